//! Writes policies for gateways of the last minor release, in fields that those know. Pure.
//!
//! While the operator is a version ahead, pods run the gateway that they were started with. A field that such a gateway
//! does not know makes all of its reloads fail, and a day later it denies everything.

use std::collections::BTreeMap;

use super::known_fields::KnownFields;
use super::narrowed::{changed_hands, has_unknown_labels, strengthened, stub};
use crate::policy::document::Document;

/// Policies as gateways of the last release can read them, if they cannot read the newest form.
#[derive(Debug, Default)]
pub(super) struct OlderForm {
    pub(super) documents: BTreeMap<String, Document>,
    /// The fields that those gateways do not know, by policy key. Empty if one form does for everybody.
    pub(super) beyond: BTreeMap<String, Vec<String>>,
}

/// Writes `documents` for gateways that know only these fields. Of a policy with other fields they get what it denies,
/// and the rules that open something only if the version they were last given had them too; without such a version, or
/// if it was for other pods, the policy opens nothing. So they never allow what the newest policies do not, as far as
/// those say it in known fields, and a credential is the same in both forms.
pub(super) fn older(
    known: &KnownFields,
    documents: &BTreeMap<String, Document>,
    last_given: impl FnOnce() -> BTreeMap<String, Document>,
) -> OlderForm {
    let mut beyond: BTreeMap<String, Vec<String>> = documents
        .iter()
        .map(|(key, document)| (key.clone(), known.beyond(document)))
        .filter(|(_, unknown)| !unknown.is_empty())
        .collect();
    if beyond.is_empty() {
        return OlderForm::default();
    }
    let mut formers = last_given();
    formers.retain(|_, former| known.beyond(former).is_empty());
    let mut given = BTreeMap::new();
    for (key, document) in documents {
        let Some(unknown) = beyond.get_mut(key) else {
            given.insert(key.clone(), document.clone());
            continue;
        };
        let Some(stub) = stub(known, document) else { continue };
        let former = formers.get(key);
        if let Some(name) = former.and_then(|former| changed_hands(former, document)) {
            unknown.push(format!("the change of the credential `{name}`"));
        }
        let kept = former.and_then(|former| strengthened(&stub, former, document));
        given.insert(key.clone(), kept.unwrap_or(stub));
    }
    // A policy whose models are left out takes the routes to them along.
    while let Some(key) = without_models(&given) {
        beyond.entry(key.clone()).or_default().push("the models of a cluster policy".to_owned());
        let narrowed = given.get(&key).and_then(|document| stub(known, document));
        match narrowed.filter(|narrowed| !has_unknown_labels(narrowed, &given)) {
            Some(narrowed) => given.insert(key, narrowed),
            None => given.remove(&key),
        };
    }
    OlderForm { documents: given, beyond }
}

/// The first policy with a route to a model that no policy has.
fn without_models(documents: &BTreeMap<String, Document>) -> Option<String> {
    let mut all = documents.iter();
    all.find(|(_, document)| has_unknown_labels(document, documents)).map(|(key, _)| key.clone())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::super::testing::{candidate, policy};
    use super::*;
    use crate::api::crd;
    use crate::name::host::DnsName;
    use crate::policy::compile::{Labels, Policy};
    use crate::policy::destination::{Action, Flow, Protocol};

    /// The lines of the definitions as they are.
    fn lines() -> BTreeSet<String> {
        let mut lines = BTreeSet::new();
        for definition in crd::all() {
            let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            list(&schema["properties"]["spec"], "spec", &mut lines);
        }
        lines
    }

    fn list(schema: &Value, path: &str, lines: &mut BTreeSet<String>) {
        lines.insert(path.to_owned());
        let words = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
        lines.extend(words.map(|word| format!("{path}={word}")));
        let fields = schema["properties"].as_object();
        if fields.is_none() && schema["x-kubernetes-preserve-unknown-fields"] == true {
            lines.insert(format!("{path}.**"));
        }
        for (name, field) in fields.into_iter().flatten() {
            list(field, &format!("{path}.{name}"), lines);
        }
        if schema["items"].is_object() {
            list(&schema["items"], &format!("{path}[]"), lines);
        }
        if schema["additionalProperties"].is_object() {
            list(&schema["additionalProperties"], &format!("{path}.*"), lines);
        }
    }

    fn documents(specs: &[(&str, &str)]) -> BTreeMap<String, Document> {
        let candidates = specs.iter().map(|(name, spec)| candidate(&policy(name, spec)));
        candidates.map(|one| (one.key, one.read.unwrap())).collect()
    }

    const RULES: &str = "destinations: [{name: d, hosts: [a.example], action: Inspect, endpoints: [{methods: [GET], path: /a}]}]\n  \
        podSelector: {matchLabels: {anything: at-all}}\n  toolDefault: Deny\n  \
        tools: [{name: t, kind: Shell, action: Deny, when: {any: [{param: command, operator: Contains, values: [rm]}]}}]";

    /// What a release knew that had not heard of these.
    fn without(gone: &[&str]) -> KnownFields {
        let is_gone =
            |line: &String| gone.iter().any(|gone| line == gone || line.starts_with(&format!("{gone}.")));
        KnownFields(lines().into_iter().filter(|line| !is_gone(line)).collect())
    }

    /// Before a first release no gateway is older than its operator: what is added is known.
    #[test]
    fn what_the_last_release_knew_is_still_known() {
        let text = lines().into_iter().map(|line| line + "\n").collect::<String>();
        if std::env::var_os("POSTERN_BLESS").is_some() {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/operator/controller/last-release.txt");
            std::fs::write(file, &text).unwrap();
        }
        let gone: Vec<String> = KnownFields::by_last_release().0.difference(&lines()).cloned().collect();
        assert_eq!(gone, [""; 0], "older gateways are given what nobody reads any more");
        let changes = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/CHANGELOG.md"));
        let is_current = include_str!("last-release.txt") == text;
        assert!(is_released(changes) || is_current, "see CONTRIBUTING.md, \"Versions\"");
    }

    /// Whether a changelog has a heading of a version that is out.
    fn is_released(changes: &str) -> bool {
        let headings = changes.lines().filter(|line| line.starts_with("## "));
        headings.map(str::to_lowercase).any(|heading| !heading.contains("unreleased"))
    }

    #[test]
    fn a_version_that_is_said_to_be_unreleased_is_no_release() {
        assert!(!is_released(
            "# Changelog\n\n## Unreleased\n\n## 0.1.0 – Unreleased\n\n## 0.1.0 (unreleased)\n"
        ));
        assert!(is_released("## 0.2.0 – unreleased\n\n## 0.1.0 – 2026-12-01\n"));
    }

    #[test]
    fn a_document_is_compared_field_by_field_and_word_by_word() {
        let document = &documents(&[("a", RULES)])["namespace-a.json"];
        assert_eq!(KnownFields::by_last_release().beyond(document), [""; 0]);
        let older = without(&["spec.tools[].when", "spec.destinations[].action=Inspect", "spec.toolDefault"]);
        assert_eq!(
            older.beyond(document),
            ["spec.destinations[].action=Inspect", "spec.toolDefault", "spec.tools[].when"]
        );
    }

    #[test]
    fn a_policy_that_says_more_than_is_known_keeps_what_it_opened_before_and_opens_still() {
        let known = without(&["spec.toolDefault"]);
        let rule = |host: &str| format!("destinations: [{{name: d, hosts: [{host}], action: Tunnel}}]");
        let last = documents(&[("a", &rule("old.example")), ("b", &rule("old.example"))]);
        let later = "destinations: [{name: e, hosts: [old.example], action: Tunnel}, {name: d, hosts: [new.example], action: Tunnel}]\n  \
             toolDefault: Deny";
        let wanted = documents(&[("a", later), ("b", &rule("new.example")), ("c", later)]);
        let given = older(&known, &wanted, || last);
        let host = |key: &str| given.documents[key].spec.destinations[0].hosts.clone().unwrap();
        assert_eq!(host("namespace-a.json"), ["old.example"]);
        assert_eq!(given.documents["namespace-a.json"].spec.destinations.len(), 1);
        assert_eq!(host("namespace-b.json"), ["new.example"], "the others go on");
        let stub = &given.documents["namespace-c.json"].spec;
        assert!(stub.destinations.is_empty(), "it never said anything else, and opens nothing");
        assert_eq!(given.beyond["namespace-a.json"], ["spec.toolDefault"]);
        assert_eq!(given.beyond.len(), 2);
    }

    #[test]
    fn where_all_is_known_there_is_one_form() {
        let given = older(KnownFields::by_last_release(), &documents(&[("a", RULES)]), BTreeMap::new);
        assert!(given.documents.is_empty() && given.beyond.is_empty());
    }

    /// What it is about a name, and how it is enforced; beyond what is known where it sets `toolDefault`.
    fn about(name: &str, (action, enforcement): (&str, &str), extra: &str) -> (String, String) {
        let rule = match action {
            "" => String::new(),
            action => format!("destinations: [{{name: d, hosts: [a.example], action: {action}}}]\n  "),
        };
        (name.to_owned(), format!("{rule}enforcement: {enforcement}{extra}"))
    }

    fn allows(documents: &BTreeMap<String, Document>) -> bool {
        let all: Vec<Document> = documents.values().cloned().collect();
        let policy = Policy::compile(&all, &Labels::new()).unwrap();
        let name = DnsName::parse_written("a.example").unwrap();
        let flow = Flow { name: Some(&name), address: None, port: 443, protocol: Protocol::Tls };
        !matches!(policy.destination(&flow).action, Action::Deny { .. })
    }

    /// Every pair of versions of two policies, the second of which always is beyond what is known.
    #[test]
    fn older_gateways_allow_nothing_that_the_newest_policies_do_not() {
        let known = without(&["spec.toolDefault"]);
        let mut ways = vec![None];
        for enforcement in ["Enforce", "Audit"] {
            ways.extend(["", "Tunnel", "Deny"].map(|action| Some((action, enforcement))));
        }
        let read = |a: Option<(&str, &str)>, b: Option<(&str, &str)>, extra: &str| {
            let a = a.map(|way| about("a", way, ""));
            let specs: Vec<_> = a.into_iter().chain(b.map(|way| about("b", way, extra))).collect();
            documents(&specs.iter().map(|(name, spec)| (name.as_str(), spec.as_str())).collect::<Vec<_>>())
        };
        let pairs = || ways.iter().flat_map(|a| ways.iter().map(move |b| (*a, *b)));
        let befores: Vec<_> = pairs().map(|(a, b)| read(a, b, "")).collect();
        let (mut allowed, mut denied) = (0, 0);
        for (a, b) in pairs().filter(|(_, b)| b.is_some()) {
            let newest = read(a, b, "\n  toolDefault: Deny");
            for before in &befores {
                let given = older(&known, &newest, || before.clone()).documents;
                let does = allows(&given);
                assert!(allows(&newest) || !does, "{before:?} then {newest:?}");
                if does { allowed += 1 } else { denied += 1 }
            }
        }
        assert!(allowed > 100 && denied > 100, "{allowed} allowed, {denied} denied");
    }

    #[test]
    fn a_new_policy_beside_an_audit_policy_keeps_older_gateways_enforcing() {
        let known = without(&["spec.toolDefault"]);
        let watch = ("watch", "enforcement: Audit\n  destinations: []");
        let before =
            documents(&[watch, ("a", "destinations: [{name: d, hosts: [b.example], action: Tunnel}]")]);
        let later = "destinations: [{name: d, hosts: [b.example], action: Tunnel}]\n  toolDefault: Deny";
        let given = older(&known, &documents(&[watch, ("renamed", later)]), || before);
        assert!(!allows(&given.documents), "what nobody opens is denied, not recorded");
    }

    #[test]
    fn a_deny_that_moves_into_a_policy_with_a_new_field_goes_on_denying() {
        let opens = "{name: o, hosts: [a.example], action: Tunnel}";
        let denies = "{name: d, hosts: [a.example], action: Deny}";
        let moved = |extra: &str, rule: &str| {
            let known = without(&["spec.toolDefault", "spec.destinations[].ports"]);
            let newest = documents(&[
                ("a", &format!("destinations: [{opens}]")),
                ("b", &format!("destinations: [{rule}]{extra}")),
            ]);
            let before = documents(&[("a", &format!("destinations: [{opens}, {denies}]"))]);
            older(&known, &newest, || before).documents
        };
        assert!(!allows(&moved("\n  toolDefault: Deny", denies)));
        let narrow = denies.replace("action", "ports: [443], action");
        let given = moved("", &narrow);
        assert!(!allows(&given), "a Deny rule that cannot be told denies everything");
        assert!(allows(&moved("\n  toolDefault: Deny", "{name: e, hosts: [b.example], action: Deny}")));
    }

    #[test]
    fn what_the_newest_deny_is_added_to_the_former_version_and_nothing_of_that_is_left_out() {
        let known = without(&["spec.podSelector", "spec.tools[].when.any"]);
        let before = documents(&[(
            "a",
            "destinations: [{name: d, hosts: [a.example], action: Inspect}, {name: e, hosts: [b.example], action: Deny}]\n  \
             hostedTools: {allow: [one, two]}\n  limits: {tokensPerDay: 9, requestsPerMinute: 5}",
        )]);
        let newest = "destinations: [{name: d, hosts: [c.example], action: Deny}, {name: o, hosts: [a.example], action: Inspect}]\n  toolDefault: Deny\n  \
            hostedTools: {action: Deny, allow: [two, three]}\n  limits: {tokensPerDay: 7, requestsPerMinute: 8}\n  \
            tools: [{name: t, kind: Shell, action: Deny, when: {any: [{param: command, operator: Contains, values: [rm]}]}}]";
        let given = older(&known, &documents(&[("a", newest)]), || before.clone());
        let spec = serde_json::to_value(&given.documents["namespace-a.json"].spec).unwrap();
        let hosts = |at: usize| spec["destinations"][at]["hosts"][0].as_str().unwrap();
        assert_eq!([hosts(0), hosts(1), hosts(2)], ["c.example", "a.example", "b.example"]);
        assert_eq!(spec["tools"], serde_json::json!([{"name": "t", "kind": "Shell", "action": "Deny"}]));
        assert_eq!(spec["toolDefault"], "Deny");
        assert_eq!(spec["hostedTools"], serde_json::json!({"action": "Deny", "allow": ["two"]}));
        assert_eq!(spec["limits"], serde_json::json!({"tokensPerDay": 7, "requestsPerMinute": 5}));
        let others = format!("{newest}\n  podSelector: {{matchLabels: {{app: one}}}}");
        let given = older(&known, &documents(&[("a", &others)]), || before);
        let spec = &given.documents["namespace-a.json"].spec;
        assert_eq!(spec.destinations.len(), 1, "what was opened for some is not opened for others");
        assert!(spec.pod_selector.is_none(), "where nobody knows whom it denies, it denies all");
    }

    #[test]
    fn a_credential_is_the_same_one_in_both_forms() {
        let known = without(&["spec.toolDefault"]);
        let spec = |host: &str, secret: &str, extra: &str| {
            format!(
                "destinations: [{{name: d, hosts: [{host}], action: Inspect}}]\n  \
                 credentials: [{{name: key, hosts: [{host}], require: true, secretKeyRef: {{name: {secret}, key: k}}}}]{extra}"
            )
        };
        let before = documents(&[("a", &spec("a.example", "one", ""))]);
        let newest = |host: &str, secret: &str| {
            let newest = documents(&[("a", &spec(host, secret, "\n  toolDefault: Deny"))]);
            let given = older(&known, &newest, || before.clone());
            (given.documents["namespace-a.json"].spec.clone(), given.beyond["namespace-a.json"].clone())
        };
        let (kept, said) = newest("a.example", "one");
        assert_eq!((kept.destinations.len(), said.len()), (1, 1));
        for (host, secret) in [("b.example", "two"), ("a.example", "two"), ("b.example", "one")] {
            let (stub, said) = newest(host, secret);
            assert_eq!(stub.credentials.len(), 1);
            assert_eq!(stub.credentials[0].hosts, [host], "its key goes where the newest policy sends it");
            assert_eq!(stub.destinations.is_empty(), host == "b.example");
            assert_eq!(said[1], "the change of the credential `key`");
        }
    }

    const ROUTED: &str = "destinations: [{name: d, hosts: [a.example], action: Inspect}]\n  \
        credentials: [{name: key, hosts: [v.example], secretKeyRef: {name: one, key: k}}]\n  \
        modelProviders: [{name: v, endpoint: 'https://v.example', dialect: OpenAIChat, credential: key}]\n  \
        models: [{name: coder, provider: v}]\n  routes: [{name: r, match: {models: ['*']}, to: [coder]}]";

    #[test]
    fn what_is_routed_stays_routed_or_is_not_opened() {
        let known = without(&["spec.toolDefault"]);
        let given = |newest: &str| {
            let newest = documents(&[("a", &format!("{newest}\n  toolDefault: Deny"))]);
            let spec = older(&known, &newest, || documents(&[("a", ROUTED)])).documents["namespace-a.json"]
                .spec
                .clone();
            (spec.destinations.len(), spec.routes.len(), spec.models.len(), spec.model_providers.len())
        };
        assert_eq!(given(ROUTED), (1, 1, 1, 1));
        for (from, to) in [
            ("models: ['*']", "models: ['b*']"),
            ("name: coder, provider: v", "name: coder, provider: v, maxTokens: 1"),
            ("'https://v.example'", "'https://v.example/v1'"),
            ("name: one", "name: two"),
        ] {
            assert!(ROUTED.contains(from));
            assert_eq!(given(&ROUTED.replace(from, to)), (0, 0, 0, 0), "{to}");
        }
    }

    #[test]
    fn a_route_to_a_model_that_is_left_out_goes_with_it() {
        let read = |kind: &str, name: &str, spec: &str| {
            let place = if kind == "EgressPolicy" { ", namespace: agents" } else { "" };
            let text = format!(
                "apiVersion: postern.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}{place}}}\nspec:\n  {spec}\n"
            );
            crate::policy::document::parse(name, &text).unwrap().remove(0)
        };
        let base = "modelProviders: [{name: v, endpoint: 'https://v.example', dialect: OpenAIChat}]\n  \
                    models: [{name: coder, provider: v}]\n  toolDefault: Deny";
        let user = "destinations: [{name: d, hosts: [a.example], action: Inspect}]\n  \
                    routes: [{name: r, match: {models: ['*']}, to: [coder], fallback: [origin]}]";
        let newest = BTreeMap::from([
            ("cluster-base.json".to_owned(), read("ClusterEgressPolicy", "base", base)),
            ("namespace-user.json".to_owned(), read("EgressPolicy", "user", user)),
        ]);
        let given = older(&without(&["spec.toolDefault"]), &newest, BTreeMap::new);
        let user = &given.documents["namespace-user.json"].spec;
        assert!(user.routes.is_empty() && user.destinations.is_empty());
        assert_eq!(given.beyond["namespace-user.json"], ["the models of a cluster policy"]);
        assert!(!allows(&given.documents));
    }
}
