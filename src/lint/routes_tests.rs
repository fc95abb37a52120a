//! Routes that an earlier one hides, each beside a twin that it does not.

use super::tests::{assert_twins, said};

const MODELS: &str = "modelProviders: [{name: v, endpoint: 'https://v.example', dialect: OpenAIChat}, \
    {name: r, endpoint: 'https://r.example', dialect: OpenAIResponses}], \
    models: [{name: coder, provider: v}, {name: chat, provider: v}, {name: codex, provider: r}]";

fn spec(first: &str, second: &str) -> String {
    format!("{{{MODELS}, routes: [{{name: a, {first}}}, {{name: b, {second}}}]}}")
}

#[test]
fn a_route_that_an_earlier_one_hides_is_told() {
    let hidden =
        "spec.routes[1]: b decides nothing: the route a comes first and takes every request that it is about";
    for (wrong, right) in [
        (
            ("match: {models: ['*']}, to: [coder]", "match: {models: ['claude-*']}, to: [chat]"),
            ("match: {models: ['claude-*']}, to: [coder]", "match: {models: ['*']}, to: [chat]"),
        ),
        (
            (
                "match: {models: ['claude-*', gpt-5]}, to: [coder]",
                "match: {models: ['claude-haiku-*', gpt-5]}, to: [chat]",
            ),
            (
                "match: {models: ['claude-*', gpt-5]}, to: [coder]",
                "match: {models: ['claude-haiku-*', gpt-6]}, to: [chat]",
            ),
        ),
        (
            ("match: {models: ['*']}, to: [coder]", "match: {marker: abcd}, to: [chat]"),
            ("match: {models: ['claude-*']}, to: [coder]", "match: {marker: abcd}, to: [chat]"),
        ),
        (
            ("match: {marker: abcd}, to: [coder]", "match: {marker: abcd}, to: [chat]"),
            ("match: {marker: abcd}, to: [coder]", "match: {marker: abce}, to: [chat]"),
        ),
        (
            ("match: {models: ['*']}, to: [coder]", "match: {models: ['*'], hosts: [a.example]}, to: [chat]"),
            ("match: {models: ['*'], hosts: [a.example]}, to: [coder]", "match: {models: ['*']}, to: [chat]"),
        ),
        (
            ("match: {models: ['*']}, to: [origin]", "match: {models: [m]}, to: [chat]"),
            // Another dialect is left for it.
            ("match: {models: ['*']}, to: [codex]", "match: {models: [m]}, to: [chat]"),
        ),
        (
            ("match: {models: ['*']}, to: [codex], fallback: [origin]", "match: {models: [m]}, to: [chat]"),
            ("match: {models: ['*']}, to: [coder]", "match: {models: [m]}, to: [codex]"),
        ),
    ] {
        assert_twins(&[(&spec(wrong.0, wrong.1), hidden, &spec(right.0, right.1))]);
    }
}

#[test]
fn the_origin_hides_nothing_where_it_may_be_out_of_reach() {
    let routes = spec("match: {models: ['*']}, to: [origin]", "match: {models: [m]}, to: [chat]");
    let reached = "{destinations: [{name: d, hosts: [api.anthropic.com], action: Inspect";
    let closed = format!("{reached}, reach: Routes}}], {}", &routes[1..]);
    assert_eq!(said(&[&closed]), Vec::<String>::new());
    assert_eq!(said(&[&format!("{reached}}}], {}", &routes[1..])]).len(), 1);
}

#[test]
fn a_policy_that_comes_first_hides_the_routes_of_another() {
    let routes = |name: &str| format!("routes: [{{name: {name}, match: {{models: ['*']}}, to: [origin]}}]");
    let found = said(&[&format!("{{{}}}", routes("a")), &format!("{{{}}}", routes("b"))]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("spec.routes[0]: b decides nothing: the route a of n/p0 comes first"),
        "{found:?}"
    );
    let recorded = format!("{{enforcement: Audit, {}}}", routes("a"));
    assert_eq!(said(&[&recorded, &format!("{{{}}}", routes("b"))]), Vec::<String>::new());
}

#[test]
fn the_key_of_a_provider_needs_no_destination() {
    let spec = |destination: &str, provider: &str| {
        format!(
            "{{destinations: [{{name: d, {destination}}}], credentials: [{{name: k, hosts: [v.example], fromEnv: K}}], \
             modelProviders: [{{name: v, endpoint: 'https://v.example', dialect: OpenAIChat{provider}}}]}}"
        )
    };
    let (other, key) = ("hosts: [a.example], action: Inspect", ", credential: k");
    assert_twins(&[
        (
            &spec(other, ""),
            "spec.credentials[0].hosts[0]: no rule of what is checked here names",
            &spec(other, key),
        ),
        (
            &spec("hosts: [v.example], action: Deny", key),
            "spec.credentials[0].hosts[0]: \"v.example\" is denied by the rule d",
            &spec("hosts: [v.example], ports: [80], action: Deny", key),
        ),
    ]);
}
