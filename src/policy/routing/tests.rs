//! Which route takes a request, one test for each sentence of routing.md 12.1.

use super::testing::{MODELS, audit, cluster, namespaced, policy, routes};
use super::*;
use crate::call::Dialect;
use crate::decision::Verdict;
use crate::name::host::Host;
use crate::policy::Policy;

const HOST: &str = "api.anthropic.com";

/// A question: `Anthropic claude-x`, with ` @TOKEN=LABEL` behind it where there is a marker.
fn decide_at(policy: &Policy, host: &str, asked: &str, reach: Reach) -> RouteDecision {
    let (asked, marker) =
        asked.split_once(" @").map_or((asked, None), |(asked, marker)| (asked, Some(marker)));
    let (dialect, model) = asked.split_once(' ').unwrap();
    let dialect = *Dialect::ALL.iter().find(|known| known.as_str() == dialect).unwrap();
    let marker = marker.map(|marker| {
        let (token, label) = marker.split_once('=').unwrap();
        RouteMarker { token, label }
    });
    let host = Host::parse(host).unwrap();
    let question = RouteQuestion { host: &host, dialect, model, marker, audit_marker: None, reach };
    policy.routing().unwrap().choose(&question)
}

/// `agents/p/small: coder, chat`, `stub agents/p/sub: LABEL` or `none`.
fn shown(decision: &RouteDecision) -> String {
    match &decision.outcome {
        RouteOutcome::NoMatch => "none".to_owned(),
        RouteOutcome::Chain { route, chain } => {
            format!("{}: {}", route.id, chain.iter().map(Hop::label).collect::<Vec<_>>().join(", "))
        }
        RouteOutcome::Stub { route, label } => format!("stub {}: {label}", route.id),
    }
}

fn chosen(policy: &Policy, asked: &str) -> String {
    shown(&decide_at(policy, HOST, asked, Reach::Origin))
}

fn with_routes(list: &[&str]) -> Policy {
    policy(&[namespaced("p", &format!("{MODELS}{}", routes(list)))])
}

#[test]
fn the_first_route_that_matches_decides() {
    let policy = with_routes(&[
        "name: small, match: {models: ['claude-haiku-*']}, to: [coder], fallback: [chat]",
        "name: haiku, match: {models: [claude-haiku-4]}, to: [chat]",
        "name: outage, match: {models: ['*']}, to: [origin], fallback: [chat]",
    ]);
    assert_eq!(chosen(&policy, "Anthropic claude-haiku-4"), "agents/p/small: coder, chat");
    assert_eq!(chosen(&policy, "Anthropic claude-opus-4"), "agents/p/outage: origin, chat");
}

#[test]
fn names_of_models_are_compared_whole_and_by_case() {
    let policy = with_routes(&[
        "name: a, match: {models: ['claude-haiku-*', gpt-5, '*-mini', 'x*y*z', '50%']}, to: [coder]",
    ]);
    for model in ["claude-haiku-", "claude-haiku-4", "gpt-5", "o4-mini", "xyz", "x1y2z", "50%"] {
        assert_eq!(chosen(&policy, &format!("Anthropic {model}")), "agents/p/a: coder", "{model}");
    }
    for model in ["Claude-haiku-4", "a-claude-haiku-4", "gpt-5.1", "gpt", "o4-mini-high", "xz", "yxz", "505"]
    {
        assert_eq!(chosen(&policy, &format!("Anthropic {model}")), "none", "{model}");
    }
}

#[test]
fn a_marker_chooses_among_the_labels_of_its_route() {
    let policy = with_routes(&[
        "name: subagents, match: {marker: af83e9}, to: [coder, opus], fallback: [chat]",
        "name: rest, match: {models: ['*']}, to: [chat]",
    ]);
    assert_eq!(chosen(&policy, "Anthropic m @af83e9=opus"), "agents/p/subagents: opus, chat");
    assert_eq!(chosen(&policy, "Anthropic m @af83e9=coder"), "agents/p/subagents: coder, chat");
    assert_eq!(chosen(&policy, "Anthropic m @af83e9=chat"), "stub agents/p/subagents: chat");
    assert_eq!(chosen(&policy, "Anthropic m @af83e9=Coder"), "stub agents/p/subagents: Coder");
    assert_eq!(chosen(&policy, "Anthropic m @0000=coder"), "agents/p/rest: chat");
    assert_eq!(chosen(&policy, "Anthropic m"), "agents/p/rest: chat");
}

#[test]
fn a_stub_tells_the_labels_in_their_order() {
    let policy = with_routes(&["name: s, match: {marker: af83e9}, to: [coder, chat, origin]"]);
    let RouteOutcome::Stub { route, .. } =
        decide_at(&policy, HOST, "Anthropic m @af83e9=x", Reach::Origin).outcome
    else {
        panic!("no stub")
    };
    assert_eq!(route.labels().collect::<Vec<_>>(), ["coder", "chat", "origin"]);
    assert_eq!(chosen(&policy, "Anthropic m @af83e9=origin"), "agents/p/s: origin");
}

#[test]
fn hosts_are_exact_and_by_default_all() {
    let policy = with_routes(&[
        "name: one, match: {models: ['*'], hosts: [API.anthropic.com, 10.0.0.1]}, to: [coder]",
        "name: all, match: {models: ['*']}, to: [chat]",
    ]);
    for (host, route) in [
        (HOST, "agents/p/one: coder"),
        ("10.0.0.1", "agents/p/one: coder"),
        ("eu.api.anthropic.com", "agents/p/all: chat"),
        ("anthropic.com", "agents/p/all: chat"),
    ] {
        assert_eq!(shown(&decide_at(&policy, host, "Anthropic m", Reach::Origin)), route, "{host}");
    }
}

#[test]
fn models_that_cannot_be_spoken_to_are_passed_over() {
    let policy =
        with_routes(&["name: a, match: {models: ['*']}, to: [codex], fallback: [coder, opus, origin]"]);
    for (dialect, chain) in [
        ("Anthropic", "coder, opus, origin"),
        ("OpenAIChat", "coder, origin"),
        ("OpenAIResponses", "codex, origin"),
        ("Gemini", "origin"),
        ("Bedrock", "origin"),
    ] {
        assert_eq!(chosen(&policy, &format!("{dialect} m")), format!("agents/p/a: {chain}"), "{dialect}");
    }
}

#[test]
fn a_route_with_no_model_left_does_not_match() {
    let policy = with_routes(&[
        "name: codex, match: {models: ['*']}, to: [codex]",
        "name: marked, match: {marker: abcd}, to: [codex]",
        "name: rest, match: {models: ['*']}, to: [coder]",
    ]);
    assert_eq!(chosen(&policy, "Anthropic m"), "agents/p/rest: coder");
    assert_eq!(chosen(&policy, "Anthropic m @abcd=codex"), "agents/p/rest: coder");
    assert_eq!(
        chosen(&policy, "Anthropic m @abcd=nobody"),
        "agents/p/rest: coder",
        "it has nothing to offer"
    );
    assert_eq!(chosen(&policy, "OpenAIResponses m"), "agents/p/codex: codex");
    assert_eq!(chosen(&policy, "Gemini m"), "none");
}

#[test]
fn at_a_host_that_is_not_reached_the_origin_is_passed_over() {
    let policy = with_routes(&[
        "name: own, match: {models: [a]}, to: [origin]",
        "name: outage, match: {models: ['*']}, to: [origin], fallback: [chat]",
    ]);
    let of = |model: &str, reach| shown(&decide_at(&policy, HOST, &format!("Anthropic {model}"), reach));
    assert_eq!(of("a", Reach::Origin), "agents/p/own: origin");
    assert_eq!(of("a", Reach::Routes), "agents/p/outage: chat");
    assert_eq!(of("b", Reach::Routes), "agents/p/outage: chat");
}

#[test]
fn the_clusters_routes_come_first_then_those_of_policies_by_their_ids() {
    let any =
        |name: &str, to: &str| routes(&[&format!("name: {name}, match: {{models: ['*']}}, to: [{to}]")]);
    let base = cluster("z", &format!("{MODELS}{}", any("floor", "coder")));
    let (b, a) = (namespaced("b", &any("x", "chat")), namespaced("a", &any("y", "opus")));
    assert_eq!(chosen(&policy(&[b.clone(), a.clone(), base]), "Anthropic m"), "-/z/floor: coder");
    let models = cluster("z", MODELS);
    let both = policy(&[b, models, a]);
    assert_eq!(chosen(&both, "Anthropic m"), "agents/a/y: opus");
    let order: Vec<&str> = both.routing().unwrap().routes().map(|route| route.id.as_str()).collect();
    assert_eq!(order, ["agents/a/y", "agents/b/x"]);
}

#[test]
fn the_routes_of_an_audit_policy_are_recorded_alone() {
    let any =
        |name: &str, to: &str| routes(&[&format!("name: {name}, match: {{models: ['*']}}, to: [{to}]")]);
    let models = cluster("models", MODELS);
    let recording = audit(&namespaced("a", &any("try", "opus")));
    let enforced = namespaced("b", &any("real", "coder"));
    let both = policy(&[models.clone(), recording.clone(), enforced]);
    let decision = decide_at(&both, HOST, "Anthropic m", Reach::Origin);
    assert_eq!(shown(&decision), "agents/b/real: coder");
    let audited = decision.audited.unwrap();
    assert_eq!((audited.verdict, audited.rule_id()), (Verdict::Audit, "agents/a/try"));
    assert_eq!(audited.why(), "With the Audit policies enforced, opus would answer");

    let later = policy(&[
        models.clone(),
        namespaced("a", &any("real", "coder")),
        audit(&namespaced("b", &any("try", "opus"))),
    ]);
    assert!(
        decide_at(&later, HOST, "Anthropic m", Reach::Origin).audited.is_none(),
        "an enforced one comes first"
    );

    let alone = policy(&[models, recording]);
    let decision = decide_at(&alone, HOST, "Anthropic m", Reach::Origin);
    assert_eq!((shown(&decision), decision.audited.unwrap().rule_id()), ("none".to_owned(), "agents/a/try"));
}

#[test]
fn where_only_audit_policies_select_the_pod_nothing_is_routed() {
    let spec = "  destinations: [{name: d, hosts: [api.anthropic.com], action: Inspect, reach: Routes}]\n";
    let list = routes(&["name: a, match: {marker: abcd}, to: [coder]"]);
    let text = audit(&namespaced("p", &format!("{spec}{MODELS}{list}")));
    let policy = policy(&[text]);
    let routing = policy.routing().unwrap();
    let host = Host::parse(HOST).unwrap();
    assert_eq!(routing.routes().count(), 0);
    assert_eq!(routing.tokens().count(), 0, "nothing is cut out of a body");
    assert_eq!(routing.all_tokens().collect::<Vec<_>>(), ["abcd"]);
    assert!(!routing.could_serve(&host) && !routing.has_responses_route(&host));
    assert!(routing.model_list(&host).is_empty());
    assert_eq!(policy.reach(&host, 443), Reach::Origin, "what would be denied goes through");
    let decision = decide_at(&policy, HOST, "Anthropic m @abcd=coder", Reach::Origin);
    assert_eq!((shown(&decision), decision.audited.unwrap().rule_id()), ("none".to_owned(), "agents/p/a"));
}

#[test]
fn the_marker_of_an_audit_policy_is_recorded_beside_an_enforced_one() {
    let models = cluster("models", MODELS);
    let recording = audit(&namespaced("a", &routes(&["name: try, match: {marker: aaaa}, to: [opus]"])));
    let enforced = namespaced("b", &routes(&["name: real, match: {marker: bbbb}, to: [coder]"]));
    let policy = policy(&[models, recording, enforced]);
    let routing = policy.routing().unwrap();
    assert_eq!(routing.tokens().collect::<Vec<_>>(), ["bbbb"]);
    let host = Host::parse(HOST).unwrap();
    let decision = routing.choose(&RouteQuestion {
        host: &host,
        dialect: Dialect::Anthropic,
        model: "m",
        marker: Some(RouteMarker { token: "bbbb", label: "coder" }),
        audit_marker: Some(RouteMarker { token: "aaaa", label: "nobody" }),
        reach: Reach::Origin,
    });
    assert_eq!(shown(&decision), "agents/b/real: coder");
    let audited = decision.audited.unwrap();
    assert_eq!(audited.rule_id(), "agents/a/try");
    assert!(audited.why().ends_with("there are opus"), "{}", audited.why());
}

#[test]
fn a_pod_without_routes_has_no_routing() {
    assert!(policy(&[namespaced("p", MODELS)]).routing().is_none());
    assert!(Policy::none().routing().is_none());
    let others = namespaced(
        "p",
        &format!(
            "  podSelector: {{matchLabels: {{a: b}}}}\n{MODELS}{}",
            routes(&["name: a, match: {models: ['*']}, to: [coder]",])
        ),
    );
    let unselected = policy(&[others]);
    assert!(unselected.routing().is_none() && unselected.models().is_empty());
}

#[test]
fn a_host_could_be_served_where_a_route_to_a_model_applies() {
    let policy = with_routes(&[
        "name: own, match: {models: ['*'], hosts: [api.mistral.ai]}, to: [origin]",
        "name: codex, match: {models: ['*'], hosts: [api.openai.com]}, to: [origin], fallback: [codex]",
        "name: small, match: {models: ['*'], hosts: [api.anthropic.com]}, to: [coder]",
    ]);
    let routing = policy.routing().unwrap();
    for (host, could_serve, has_responses) in [
        ("api.anthropic.com", true, false),
        ("api.openai.com", true, true),
        ("api.mistral.ai", false, false),
        ("example.com", false, false),
    ] {
        let host = Host::parse(host).unwrap();
        assert_eq!(routing.could_serve(&host), could_serve, "{host}");
        assert_eq!(routing.has_responses_route(&host), has_responses, "{host}");
    }
}

#[test]
fn the_list_of_models_has_literal_names_and_labels_once() {
    let policy = with_routes(&[
        "name: a, match: {models: [claude-haiku-4, 'claude-sonnet-*', coder]}, to: [coder], fallback: [chat]",
        "name: b, match: {marker: abcd}, to: [origin, opus]",
        "name: c, match: {models: [gpt-5], hosts: [api.openai.com]}, to: [codex]",
    ]);
    let list = |host: &str| policy.routing().unwrap().model_list(&Host::parse(host).unwrap()).join(" ");
    assert_eq!(list(HOST), "claude-haiku-4 coder chat opus");
    assert_eq!(list("api.openai.com"), "claude-haiku-4 coder gpt-5 chat opus codex");
}

#[test]
fn the_stricter_of_united_rules_says_whether_a_host_is_reached() {
    let rule = |name: &str, more: &str| {
        format!("    - {{name: {name}, hosts: [api.anthropic.com], action: Inspect{more}}}\n")
    };
    let reach = |policies: &[String]| {
        let policy = policy(policies);
        (
            policy.reach(&Host::parse(HOST).unwrap(), 443),
            policy.reach(&Host::parse("other.example").unwrap(), 443),
        )
    };
    let of = |rules: &[String]| format!("  destinations:\n{}", rules.concat());
    let (open, closed) = (rule("a", ""), rule("b", ", reach: Routes"));
    assert_eq!(
        reach(&[namespaced("p", &of(&[rule("a", ", reach: Origin")]))]),
        (Reach::Origin, Reach::Origin)
    );
    assert_eq!(
        reach(&[namespaced("p", &of(&[open.clone(), closed.clone()]))]),
        (Reach::Routes, Reach::Origin)
    );
    let tiers =
        [cluster("c", &of(std::slice::from_ref(&closed))), namespaced("p", &of(std::slice::from_ref(&open)))];
    assert_eq!(reach(&tiers).0, Reach::Routes, "no namespace undoes the cluster's");
    let recorded = [namespaced("p", &of(&[open])), audit(&namespaced("q", &of(&[closed])))];
    assert_eq!(reach(&recorded).0, Reach::Origin);
}

#[test]
fn a_deny_rule_of_any_tier_holds_for_a_provider() {
    let denied = |rule: &str| {
        let spec = format!("  destinations: [{{name: no, {rule}, action: Deny}}]\n");
        let policy = policy(&[cluster("c", &spec), namespaced("p", MODELS)]);
        let provider =
            policy.model_providers().iter().find(|provider| provider.name == "vllm").unwrap().clone();
        policy.denies_provider(&provider).map(|decision| decision.rule_id().to_owned())
    };
    for rule in [
        "hosts: ['**.svc.cluster.local']",
        "hosts: ['**']",
        "hosts: [vllm.models.svc.cluster.local], ports: [8443]",
    ] {
        assert_eq!(denied(rule).as_deref(), Some("-/c/no"), "{rule}");
    }
    for rule in ["hosts: [api.deepseek.com]", "hosts: ['**'], ports: [443]", "cidrs: [0.0.0.0/0]"] {
        assert_eq!(denied(rule), None, "{rule}");
    }
}

#[test]
fn a_provider_grants_the_agent_no_way_to_it() {
    use crate::policy::destination::{Action, Flow, Protocol};
    let policy = with_routes(&["name: a, match: {models: ['*']}, to: [coder]"]);
    let Host::Name(name) = Host::parse("vllm.models.svc.cluster.local").unwrap() else { panic!("a name") };
    let flow = Flow { name: Some(&name), address: None, port: 8443, protocol: Protocol::Tls };
    assert!(matches!(policy.destination(&flow).action, Action::Deny { .. }));
    assert!(policy.answers(&name).is_err() && !policy.mints(&Host::Name(name.clone())));
}

#[test]
fn every_model_of_a_chain_is_asked_once_and_four_at_most() {
    let policy =
        with_routes(&["name: a, match: {marker: abcd}, to: [coder], fallback: [opus, chat, origin]"]);
    let decision = decide_at(&policy, HOST, "Anthropic m @abcd=coder", Reach::Origin);
    let RouteOutcome::Chain { chain, .. } = decision.outcome else { panic!("no chain") };
    assert_eq!(chain.len(), 4);
}

/// The slow way to the same decision.
fn reference(
    rules: &[(Option<&str>, &str, Option<&str>, &str)],
    host: &str,
    dialect: Dialect,
    model: &str,
    token: Option<&str>,
) -> String {
    let speaks = |label: &str| match label {
        "coder" => is_spoken(dialect, Dialect::OpenAIChat),
        "codex" => is_spoken(dialect, Dialect::OpenAIResponses),
        "opus" => is_spoken(dialect, Dialect::Anthropic),
        _ => true,
    };
    for (number, (marker, glob, at, to)) in rules.iter().enumerate() {
        let is_met = match marker {
            Some(own) => token == Some(*own),
            None => match glob.strip_suffix('*') {
                Some(prefix) => model.starts_with(prefix),
                None => model == *glob,
            },
        };
        if is_met && at.is_none_or(|at| at == host) && speaks(to) {
            return format!("agents/p/r{number}: {to}");
        }
    }
    "none".to_owned()
}

proptest::proptest! {
    #[test]
    fn routes_are_chosen_as_one_by_one(
        rules in proptest::collection::vec((0..3_usize, 0..4_usize, 0..3_usize, 0..4_usize), 1..6),
        asked in (0..2_usize, 0..5_usize, 0..3_usize, 0..3_usize),
    ) {
        let markers = [None, Some("aaaa"), Some("bbbb")];
        let (globs, hosts, labels) = (["*", "m-*", "m-1", "n"], [None, Some("a.example"), Some("b.example")], ["coder", "codex", "opus", "origin"]);
        let rules: Vec<_> = rules.into_iter().map(|(m, g, h, t)| (markers[m], globs[g], hosts[h], labels[t])).collect();
        let written: Vec<String> = rules.iter().enumerate().map(|(number, (marker, glob, host, to))| {
            let what = marker.map_or_else(|| format!("models: ['{glob}']"), |marker| format!("marker: {marker}"));
            let at = host.map(|host| format!(", hosts: [{host}]")).unwrap_or_default();
            format!("name: r{number}, match: {{{what}{at}}}, to: [{to}]")
        }).collect();
        let policy = with_routes(&written.iter().map(String::as_str).collect::<Vec<_>>());
        let host = ["a.example", "c.example"][asked.0];
        let dialect = Dialect::ALL[asked.1];
        let (model, token) = (["m-1", "m-2", "n"][asked.2], markers[asked.3]);
        let told = format!("{} {model}", dialect.as_str());
        // A marker that names the label of every route that has its token, one by one.
        let labels: Vec<&str> = rules.iter().filter(|rule| token.is_some() && rule.0 == token).map(|rule| rule.3).collect();
        if labels.windows(2).all(|pair| pair[0] == pair[1]) {
            let marked = match (token, labels.first()) {
                (Some(token), Some(label)) => format!("{told} @{token}={label}"),
                _ => told,
            };
            let expected = reference(&rules, host, dialect, model, token);
            proptest::prop_assert_eq!(shown(&decide_at(&policy, host, &marked, Reach::Origin)), expected);
        }
    }
}
