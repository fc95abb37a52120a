//! How tool rules are listed.

use serde::Serialize;

use super::super::page::{Heading, Page, Row};
use super::rule::CallRule;
use crate::call::Kind;
use crate::decision::Enforcement;
use crate::fold::fold;

#[derive(Serialize)]
pub(in crate::policy) struct ToolsListed {
    tools: Vec<ToolListed>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolListed {
    rule: String,
    enforcement: &'static str,
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<String>,
    /// The condition in words. None: every call.
    #[serde(skip_serializing_if = "Option::is_none")]
    when: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    /// Whether one of its names is that of MCP servers' tools, `mcp__…`.
    mcp: bool,
}

pub(super) fn list(rules: &[CallRule]) -> ToolsListed {
    ToolsListed { tools: rules.iter().map(list_rule).collect() }
}

fn list_rule(rule: &CallRule) -> ToolListed {
    let tools: Vec<String> = rule.names.iter().map(|name| name.written.to_string()).collect();
    ToolListed {
        rule: rule.id.to_string(),
        enforcement: Enforcement::of(rule.audit).as_str(),
        action: rule.action.as_str(),
        kind: rule.kind,
        mcp: tools.iter().any(|name| is_mcp(name)),
        tools,
        when: rule.condition.as_ref().map(ToString::to_string),
        reason: rule.reason.clone(),
    }
}

/// Whether a name, or a wildcard over names, is about tools of MCP servers, which agents call `mcp__SERVER__TOOL`.
fn is_mcp(name: &str) -> bool {
    fold(name).starts_with("mcp__")
}

pub(super) fn rows(listed: &ToolsListed, page: &mut Page) {
    for rule in &listed.tools {
        let [left, right] = rule_row(rule, page);
        if rule.mcp {
            let names: Vec<&str> =
                rule.tools.iter().map(String::as_str).filter(|name| is_mcp(name)).collect();
            page.add(Heading::McpTools, [names.join(", "), format!("{} {right}", rule.action)]);
        }
        let is_general = rule.kind.is_some() || rule.tools.iter().any(|name| !is_mcp(name));
        if is_general {
            page.add(heading(rule), [left, right]);
        }
    }
}

fn heading(rule: &ToolListed) -> Heading {
    match (rule.action, &rule.when) {
        ("Deny", None) => Heading::ToolsBlocked,
        ("Deny", Some(_)) => Heading::ToolsBlockedUnderCondition,
        ("Allow", _) => Heading::ToolsAllowed,
        _ => Heading::CallsRecorded,
    }
}

fn rule_row(rule: &ToolListed, page: &Page) -> Row {
    // An Allow rule is about no tool whose kind is inferred.
    let beyond = if rule.action == "Allow" { "" } else { ", and what looks like one" };
    let count = page.catalogue.count_tools;
    let kind = rule.kind.iter().map(|kind| format!("{kind:?}: {} known tools{beyond}", count(*kind)));
    let about: Vec<String> = kind.chain(rule.tools.iter().cloned()).collect();
    let when = rule.when.as_ref().map(|when| format!("where {when}  ")).unwrap_or_default();
    let reason = if rule.reason.is_empty() { String::new() } else { format!(": {}", rule.reason) };
    [about.join(", "), format!("{when}[{}{reason}]", page.by(&rule.rule, rule.enforcement))]
}
