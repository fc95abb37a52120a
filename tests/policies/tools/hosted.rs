//! Tools that run at the provider, what it would fetch, and what it would keep.

use postern::call::{HostedAction as Action, Terms};

use super::{audit, cluster, namespaced, policy, ruled};

/// `Strip Deny agents/p/hostedTools`
fn said(documents: &[String], tool_type: &str) -> String {
    let hosted = policy(documents).hosted_tool(tool_type);
    let action = match hosted.action {
        Action::Keep => "Keep",
        Action::Strip => "Strip",
        Action::Refuse => "Refuse",
    };
    let audited = hosted.audited.map(|audited| format!(" + {}", ruled(&audited))).unwrap_or_default();
    format!("{action} {}{audited}", ruled(&hosted.decision))
}

fn one(spec: &str) -> Vec<String> {
    vec![namespaced("p", spec)]
}

#[test]
fn what_nobody_writes_is_stripped() {
    assert_eq!(
        said(&one("enforcement: Enforce"), "web_search_20250305"),
        "Strip Deny postern/builtin/hosted-tools"
    );
    assert_eq!(said(&one("hostedTools: {}"), "x"), "Strip Deny postern/builtin/hosted-tools");
    assert_eq!(
        said(&one("hostedTools: {urlSources: Allow}"), "x"),
        "Strip Deny postern/builtin/hosted-tools"
    );
}

#[test]
fn a_policy_strips_refuses_or_keeps_and_lists_what_stays() {
    let strip = one("hostedTools: {action: Strip, allow: ['web_search_*']}");
    assert_eq!(said(&strip, "web_search_20250305"), "Keep Allow agents/p/hostedTools");
    assert_eq!(said(&strip, "web_fetch_20250910"), "Strip Deny agents/p/hostedTools");
    assert_eq!(said(&strip, "WEB_SEARCH_1"), "Strip Deny agents/p/hostedTools", "what allows is exact");
    let deny = one("hostedTools: {action: Deny, allow: [mcp_toolset]}");
    assert_eq!(said(&deny, "advisor_20260301"), "Refuse Deny agents/p/hostedTools");
    assert_eq!(said(&deny, "mcp_toolset"), "Keep Allow agents/p/hostedTools");
    assert_eq!(said(&one("hostedTools: {allow: [x]}"), "y"), "Strip Deny agents/p/hostedTools");
    assert_eq!(said(&one("hostedTools: {action: Allow}"), "anything"), "Keep Allow agents/p/hostedTools");
}

#[test]
fn together_the_strictest_action_holds_and_only_what_all_lists_share() {
    let open = cluster("open", "hostedTools: {action: Allow}");
    let search = namespaced("search", "hostedTools: {action: Strip, allow: ['web_*']}");
    let fetch = namespaced("fetch", "hostedTools: {action: Deny, allow: ['web_fetch_*', x]}");
    let urls = namespaced("urls", "hostedTools: {urlSources: Allow}");
    let all = [open.clone(), search.clone(), fetch, urls.clone()];
    assert_eq!(said(&all, "web_fetch_1"), "Keep Allow agents/fetch/hostedTools");
    assert_eq!(said(&all, "web_search_1"), "Refuse Deny agents/fetch/hostedTools");
    assert_eq!(said(&all, "x"), "Refuse Deny agents/fetch/hostedTools");
    let lax = [open.clone(), search, urls.clone()];
    assert_eq!(said(&lax, "web_search_1"), "Keep Allow agents/search/hostedTools");
    assert_eq!(said(&lax, "x"), "Strip Deny agents/search/hostedTools");
    assert_eq!(said(&[open, urls], "x"), "Keep Allow -/open/hostedTools");
}

#[test]
fn an_audit_policy_edits_nothing() {
    let trial = audit(&namespaced("trial", "hostedTools: {action: Deny}"));
    assert_eq!(said(std::slice::from_ref(&trial), "x"), "Keep WouldDeny agents/trial/hostedTools");
    assert_eq!(
        said(&[audit(&namespaced("p", "podSelector: {}"))], "x"),
        "Keep WouldDeny postern/builtin/hosted-tools"
    );
    let open = namespaced("p", "hostedTools: {action: Allow}");
    assert_eq!(
        said(&[open, trial.clone()], "x"),
        "Keep Allow agents/p/hostedTools + WouldDeny agents/trial/hostedTools"
    );
    let lax = audit(&namespaced("trial", "hostedTools: {action: Allow}"));
    let strip = namespaced("p", "hostedTools: {action: Strip}");
    assert_eq!(said(&[strip.clone(), lax], "x"), "Strip Deny agents/p/hostedTools");
    assert_eq!(said(&[strip, trial], "x"), "Strip Deny agents/p/hostedTools");
}

#[test]
fn state_and_urls_are_denied_unless_all_who_speak_allow_them() {
    let state = |documents: &[String]| {
        let judgement = policy(documents).provider_state();
        (judgement.denies(), ruled(&judgement.decision), judgement.audited.as_ref().map(ruled))
    };
    let says = |name: &str, word: &str| namespaced(name, &format!("providerState: {word}"));
    let silent = namespaced("silent", "enforcement: Enforce");
    assert_eq!(
        state(std::slice::from_ref(&silent)),
        (true, "Deny postern/builtin/provider-state".into(), None)
    );
    assert_eq!(
        state(&[says("p", "Allow"), silent.clone()]),
        (false, "Allow agents/p/providerState".into(), None)
    );
    assert_eq!(
        state(&[says("p", "Allow"), says("q", "Deny")]),
        (true, "Deny agents/q/providerState".into(), None)
    );
    let trial = audit(&says("trial", "Deny"));
    let would = Some("WouldDeny agents/trial/providerState".to_owned());
    assert_eq!(state(&[says("p", "Allow"), trial]), (false, "Allow agents/p/providerState".into(), would));
    let lax = audit(&says("lax", "Allow"));
    let told = Some("Audit agents/lax/providerState".to_owned());
    assert_eq!(state(&[silent.clone(), lax]), (true, "Deny postern/builtin/provider-state".into(), told));

    let urls = |spec: &str| ruled(&policy(&[namespaced("p", spec), silent.clone()]).url_sources().decision);
    assert_eq!(urls("hostedTools: {action: Allow}"), "Deny postern/builtin/url-sources");
    assert_eq!(urls("hostedTools: {urlSources: Allow}"), "Allow agents/p/hostedTools");
    assert_eq!(urls("hostedTools: {urlSources: Deny}"), "Deny agents/p/hostedTools");
}
