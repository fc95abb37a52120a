//! Routes as users write them: every mistake with its place, whose models they may name, and how they are told.

use crate::call::{Dialect, FailureClass, Kind};
use crate::name::host::Host;
use crate::policy::explain::Applies;
use crate::policy::routing::Reach;
use crate::policy::routing::testing::{
    MODELS, assert_problems, audit, cluster, namespaced, policy, problems, routes,
};
use crate::policy::section::page::ProviderTables;
use crate::policy::{KnownRequest, Policy};

fn with(list: &[&str]) -> String {
    format!("{MODELS}{}", routes(list))
}

/// What is written, where the mistake stands in it, and what is told.
type Mistake = (&'static [&'static str], &'static str, &'static str);

const MISTAKES: &[Mistake] = &[
    (&["match: {marker: abcd}, to: [coder]"], "{match:", "spec.routes[0].name: is required"),
    (
        &["name: A, match: {marker: abcd}, to: [coder]"],
        "A,",
        "spec.routes[0].name: a name is 1 to 63 lower-case",
    ),
    (
        &["name: a, match: {marker: abcd}, to: [coder]", "name: a, match: {marker: abce}, to: [coder]"],
        "a, match: {marker: abce",
        "spec.routes[1].name: the name `a` is taken by spec.routes[0]",
    ),
    (
        &["name: route, match: {marker: abcd}, to: [coder]"],
        "route, ",
        "spec.routes[0].name: `route` is the name of a built-in rule, postern/builtin/route",
    ),
    (&["name: xyz, to: [coder]"], "{name: xyz", "spec.routes[0].match: is required: {marker: TOKEN}"),
    (&["name: a, match: {}, to: [coder]"], "{}", "spec.routes[0].match: needs `marker` or `models`"),
    (
        &["name: a, match: {hosts: [a.example]}, to: [coder]"],
        "{hosts",
        "spec.routes[0].match: needs `marker` or `models`",
    ),
    (
        &["name: a, match: {marker: abcd, models: ['*']}, to: [coder]"],
        "{marker",
        "spec.routes[0].match: has `marker` and `models`",
    ),
    (
        &["name: a, match: {marker: abc}, to: [coder]"],
        "abc}",
        "spec.routes[0].match.marker: a marker's token is 4 to 32",
    ),
    (
        &["name: a, match: {marker: ABCD}, to: [coder]"],
        "ABCD}",
        "spec.routes[0].match.marker: a marker's token",
    ),
    (
        &["name: a, match: {marker: ab-cd}, to: [coder]"],
        "ab-cd}",
        "spec.routes[0].match.marker: a marker's token",
    ),
    (&["name: a, match: {models: []}, to: [coder]"], "[]", "spec.routes[0].match.models: name at least one"),
    (
        &["name: a, match: {models: ['']}, to: [coder]"],
        "''",
        "spec.routes[0].match.models[0]: \"\": a name is 1 to 256",
    ),
    (
        &["name: a, match: {models: ['^gpt$']}, to: [coder]"],
        "'^gpt$'",
        "spec.routes[0].match.models[0]: \"^gpt$\": is no regular",
    ),
    (
        &["name: a, match: {models: [' a']}, to: [coder]"],
        "' a'",
        "spec.routes[0].match.models[0]: \" a\": has white space",
    ),
    (
        &["name: a, match: {models: ['*'], hosts: ['*.example.com']}, to: [coder]"],
        "'*.example.com'",
        "spec.routes[0].match.hosts[0]: \"*.example.com\": a route is about exact hosts",
    ),
    (
        &["name: a, match: {models: ['*'], hosts: ['https://a.example/']}, to: [coder]"],
        "'https://a.example/'",
        "spec.routes[0].match.hosts[0]: \"https://a.example/\": has a scheme",
    ),
    (
        &["name: a, match: {models: ['*'], hosts: []}, to: [coder]"],
        "[]",
        "spec.routes[0].match.hosts: name at least one",
    ),
    (&["name: abc, match: {models: ['*']}"], "{name: abc", "spec.routes[0].to: is required"),
    (
        &["name: a, match: {models: ['*']}, to: [coder, chat]"],
        "[coder, chat]",
        "spec.routes[0].to: has 2 labels; without a marker a route has one",
    ),
    (
        &["name: a, match: {models: ['*']}, to: [coder], fallback: []"],
        "[]}",
        "spec.routes[0].fallback: name at least one label",
    ),
    (
        &["name: a, match: {models: ['*']}, to: [coder], fallback: [chat, opus, codex, origin]"],
        "[chat,",
        "spec.routes[0].fallback: has 4 labels; at most 3 follow the first",
    ),
    (
        &["name: a, match: {models: ['*']}, to: [coder], fallback: [coder]"],
        "coder]}",
        "spec.routes[0].fallback[0]: `coder` stands in spec.routes[0].to[0] already",
    ),
    (
        &["name: a, match: {models: ['*']}, to: [coder], fallback: [chat, chat]"],
        "chat]}",
        "spec.routes[0].fallback[1]: `chat` stands in spec.routes[0].fallback[0] already",
    ),
    (
        &["name: a, match: {marker: abcd}, to: [coder, chat], fallback: [chat]"],
        "chat]}",
        "spec.routes[0].fallback[0]: `chat` stands in spec.routes[0].to[1] already",
    ),
    (
        &["name: a, match: {models: ['*']}, to: [coder], fallback: [chat], on: [Timeout, Slow]"],
        "Slow",
        "spec.routes[0].on[1]: unknown value \"Slow\"; expected Connect, Timeout, RateLimited, Quota, Unavailable",
    ),
    (
        &["name: a, match: {models: ['*']}, to: [coder], fallback: [chat], on: []"],
        "[]}",
        "spec.routes[0].on: name at least one class",
    ),
    (
        &["name: a, match: {models: ['*']}, to: [coder], on: [Timeout]"],
        "[Timeout]",
        "spec.routes[0].on: belongs to a route with `fallback`",
    ),
    (
        &["name: a, match: {models: ['*']}, to: [codre]"],
        "codre",
        "spec.routes[0].to[0]: \"codre\": no model of this policy or of a cluster policy has this label",
    ),
    (
        &["name: a, match: {models: ['*']}, to: [coder], fallback: [chat, codre]"],
        "codre",
        "spec.routes[0].fallback[1]: \"codre\": no model",
    ),
    (
        &["name: a, match: {models: ['*']}, to: [coder], weight: 1"],
        "weight",
        "spec.routes[0].weight: unknown field; expected name, match",
    ),
];

#[test]
fn every_mistake_has_its_place() {
    for (written, at, expected) in MISTAKES {
        assert_problems(&[(&with(written), at, expected)]);
    }
}

#[test]
fn a_routes_name_is_no_other_rules() {
    let spec = format!(
        "  destinations: [{{name: a, hosts: [a.example], action: Inspect}}]\n{}",
        with(&["name: a, match: {models: ['*']}, to: [coder]"])
    );
    let found = problems(&[namespaced("p", &spec)]);
    assert!(
        found.len() == 1
            && found[0].ends_with("spec.routes[0].name: the name `a` is taken by spec.destinations[0]"),
        "{found:?}"
    );
}

#[test]
fn a_marker_chooses_from_16_labels_at_most_and_a_policy_has_64_routes() {
    let to = |count: usize| {
        let models: String =
            (0..count).map(|number| format!("    - {{name: m{number}, provider: vllm}}\n")).collect();
        let labels: Vec<String> = (0..count).map(|number| format!("m{number}")).collect();
        let list = routes(&[&format!("name: a, match: {{marker: abcd}}, to: [{}]", labels.join(", "))]);
        problems(&[namespaced("p", &format!("{MODELS}{models}{list}"))])
    };
    assert_eq!(to(16), [""; 0]);
    assert!(to(17)[0].contains("spec.routes[0].to: has 17 labels; a marker chooses from at most 16"));
    let many = |count: usize| {
        let list: Vec<String> = (0..count)
            .map(|number| format!("name: r{number}, match: {{models: ['*']}}, to: [coder]"))
            .collect();
        problems(&[namespaced("p", &with(&list.iter().map(String::as_str).collect::<Vec<_>>()))])
    };
    assert_eq!(many(64), [""; 0]);
    assert!(many(65)[0].contains("spec.routes: has 65 routes; a policy has at most 64"));
}

#[test]
fn a_route_names_models_of_its_policy_or_of_a_cluster_policy_that_selects_the_pod() {
    let route = routes(&["name: a, match: {models: ['*']}, to: [coder]"]);
    let user = namespaced("user", &route);
    let elsewhere = |policy: &str| policy.replace("spec:\n", "spec:\n  podSelector: {matchLabels: {a: b}}\n");
    let base = cluster("base", MODELS);
    assert_eq!(problems(&[user.clone(), base.clone()]), [""; 0]);
    assert_eq!(problems(&[cluster("user", &route), base.clone()]), [""; 0]);
    let cases = [
        (namespaced("other", MODELS), "no model of this policy or of a cluster policy has this label"),
        (elsewhere(&base), "the cluster policy with this label does not select this pod"),
        (audit(&base), "the cluster policy with this label only records (Audit), and this one is enforced"),
    ];
    for (models, why) in cases {
        let found = problems(&[user.clone(), models]);
        let expected = format!("spec.routes[0].to[0]: \"coder\": {why}");
        assert!(found.len() == 1 && found[0].ends_with(&expected), "{found:?}");
    }
    assert_eq!(problems(&[audit(&user), audit(&base)]), [""; 0]);
    assert_eq!(problems(&[audit(&user), base.clone()]), [""; 0]);
    assert_eq!(problems(&[elsewhere(&user), elsewhere(&base)]), [""; 0], "neither selects the pod");
    let found = problems(&[elsewhere(&user)]);
    assert!(
        found.len() == 1 && found[0].contains("spec.routes[0].to[0]"),
        "it is wrong for every pod: {found:?}"
    );
}

#[test]
fn a_chain_goes_on_after_what_the_next_model_may_mend() {
    let policy = policy(&[namespaced(
        "p",
        &with(&[
            "name: a, match: {models: ['*']}, to: [coder], fallback: [chat]",
            "name: b, match: {models: ['*']}, to: [coder], fallback: [chat], on: [ContextLength, Connect, Connect]",
        ]),
    )]);
    let classes = |number: usize| policy.routing().unwrap().all_routes()[number].on.clone();
    use FailureClass as C;
    assert_eq!(classes(0), [C::Connect, C::Timeout, C::RateLimited, C::Quota, C::Unavailable, C::Translate]);
    assert_eq!(classes(1), [C::Connect, C::ContextLength]);
}

fn explained(policy: &Policy, dialect: Dialect, model: Option<&str>) -> Vec<(String, Applies, String)> {
    let host = Host::parse("api.anthropic.com").unwrap();
    let request = KnownRequest { host: &host, dialect, model, reach: Reach::Origin };
    let all = policy.explain_routes(&request).into_iter();
    all.map(|rule| (rule.rule, rule.applies, rule.why.join("; "))).collect()
}

#[test]
fn each_route_is_explained() {
    let policy = policy(&[namespaced(
        "p",
        &with(&[
            "name: other, match: {models: ['*'], hosts: [api.openai.com]}, to: [coder]",
            "name: marked, match: {marker: abcd}, to: [coder, chat]",
            "name: codex, match: {models: ['*']}, to: [codex]",
            "name: small, match: {models: ['claude-haiku-*']}, to: [coder], fallback: [origin]",
            "name: rest, match: {models: ['*']}, to: [chat]",
        ]),
    )]);
    let of = |all: &[(String, Applies, String)], number: usize| {
        let (rule, applies, why) = &all[number];
        format!("{rule} {applies:?}: {why}")
    };
    let all = explained(&policy, Dialect::Anthropic, Some("claude-haiku-4"));
    assert_eq!(of(&all, 0), "agents/p/other No: it is about other hosts");
    assert_eq!(
        of(&all, 1),
        "agents/p/marked Unknown: a marker abcd in the system prompt decides, which is not known here; it asks coder, chat"
    );
    assert_eq!(of(&all, 2), "agents/p/codex No: none of its models can be asked in the words of Anthropic");
    assert_eq!(
        of(&all, 3),
        "agents/p/small Unknown: claude-haiku-* covers the model \"claude-haiku-4\"; it asks coder, origin; unless a route \
         before it takes the request"
    );
    assert_eq!(
        of(&all, 4),
        "agents/p/rest No: * covers the model \"claude-haiku-4\"; it asks chat; but a route before it takes the request"
    );
    let all = explained(&policy, Dialect::OpenAIChat, Some("claude-haiku-4"));
    assert_eq!(of(&all, 1), "agents/p/marked No: markers are looked for in Anthropic Messages alone");
    assert!(of(&all, 3).starts_with("agents/p/small Yes: "), "{}", of(&all, 3));
    assert_eq!(
        of(&all, 4),
        "agents/p/rest No: * covers the model \"claude-haiku-4\"; it asks chat; but a route before it takes the request"
    );
    let all = explained(&policy, Dialect::OpenAIChat, None);
    assert_eq!(of(&all, 3).split(':').next(), Some("agents/p/small Unknown"));
}

#[test]
fn an_audit_policys_route_is_explained_as_recorded() {
    let policy = policy(&[
        cluster("base", MODELS),
        audit(&namespaced("a", &routes(&["name: try, match: {models: ['*']}, to: [coder]"]))),
        namespaced("b", &routes(&["name: real, match: {models: ['*']}, to: [chat]"])),
    ]);
    let all = explained(&policy, Dialect::Anthropic, Some("m"));
    assert!(all[0].2.ends_with("its policy only records"), "{all:?}");
    assert_eq!((all[1].0.as_str(), all[1].1), ("agents/b/real", Applies::Yes));
}

#[test]
fn routes_models_and_providers_are_listed() {
    let spec = format!(
        "  destinations: [{{name: claude, hosts: [api.anthropic.com], action: Inspect, reach: Routes}}]\n{}",
        with(&[
            "name: small, match: {models: ['claude-haiku-*'], hosts: [api.anthropic.com]}, to: [coder], fallback: [origin]"
        ])
    );
    let listing = policy(&[namespaced("p", &spec)]).listing();
    let json = serde_json::to_value(&listing).unwrap();
    assert_eq!(json["routes"][0]["rule"], "agents/p/small");
    assert_eq!(json["routes"][0]["to"][0], "coder");
    assert_eq!(json["models"][0]["provider"], "vllm");
    assert_eq!(json["modelProviders"][0]["endpoint"], "https://vllm.models.svc.cluster.local:8443/v1");
    assert_eq!(json["destinations"][0]["grants"][0], "routes alone");
    let tables = ProviderTables { count_tools: |_: Kind| 0, is_provider: |_| false };
    let page = listing.page(tables);
    let text: Vec<String> = page
        .sections()
        .flat_map(|(heading, rows)| {
            rows.iter().map(move |[left, right]| format!("{heading} | {left} | {right}"))
        })
        .collect();
    for line in [
        "Routes of requests to models (the first that matches decides) | model claude-haiku-* at api.anthropic.com | coder, then \
         origin  [agents/p/small]",
        "Models that routes name | coder | qwen3-coder at vllm  [agents/p/models/coder]",
        "Providers of those models | mantle | https://mantle.example/v1, speaks Anthropic, no key  \
         [agents/p/modelProviders/mantle]",
    ] {
        assert!(text.iter().any(|other| other == line), "{line}\n{text:#?}");
    }
    let none = serde_json::to_value(policy(&[namespaced("p", "  toolDefault: Deny\n")]).listing()).unwrap();
    assert!(
        none.get("routes").is_none() && none.get("models").is_none() && none.get("modelProviders").is_none()
    );
}

#[test]
fn reach_belongs_to_inspect() {
    for action in ["Tunnel", "Deny"] {
        let spec =
            format!("  destinations: [{{name: a, hosts: [a.example], action: {action}, reach: Routes}}]\n");
        let expected =
            format!("spec.destinations[0].reach: belongs to Inspect rules; this one says {action}");
        assert_problems(&[(&spec, "Routes}", &expected)]);
    }
    let spec = "  destinations: [{name: a, hosts: [a.example], action: Inspect, reach: Nowhere}]\n";
    assert_problems(&[(
        spec,
        "Nowhere",
        "spec.destinations[0].reach: unknown value \"Nowhere\"; expected Origin or Routes",
    )]);
}
