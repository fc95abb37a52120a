//! A rule as SARIF describes it: what it denied, how much that weighs, and what to do.

use std::collections::BTreeSet;

use super::builtin;
use super::entry::Entry;
use super::log::{Configuration, Description, Help, ReportingDescriptor, RuleProperties};
use super::message::{Message, shortened};
use crate::event::Kind;
use crate::terminal;

/// How much a denial weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    Low,
    Medium,
    High,
}

impl Weight {
    /// `security-severity`, by which GitHub sorts: from 4.0 medium, from 7.0 high.
    fn severity(self) -> &'static str {
        match self {
            Self::Low => "3.0",
            Self::Medium => "5.0",
            Self::High => "8.0",
        }
    }
}

/// Describes a rule by its entries, of which there is at least one.
pub(super) fn describe(id: &str, entries: &[&Entry]) -> ReportingDescriptor {
    let builtin = id.strip_prefix("postern/builtin/").and_then(builtin::describe);
    let (about, weight) = builtin.unwrap_or_else(|| by_kinds(id, entries));
    let message = Message::default()
        .ours("The rule ")
        .foreign(id)
        .ours(" denied it, or would have if its policy were enforced. ")
        .ours("`postern ledger show EVENT` shows an event with the others of its exchange, and ")
        .ours("`postern policy explain --policy FILE --event EVENT` says why each rule applies or does not.");
    let kinds: BTreeSet<&str> = entries.iter().map(|entry| entry.kind.as_str()).collect();
    let tags = ["security", "egress"].into_iter().chain(kinds).map(str::to_owned).collect();
    let level = entries.iter().map(|entry| entry.denial.level()).min().unwrap_or("error");
    ReportingDescriptor {
        id: id.to_owned(),
        short_description: Description { text: Message::default().ours("Denied by ").foreign(id).text() },
        full_description: Description { text: about.to_owned() },
        help: Help { text: message.text(), markdown: message.markdown() },
        help_uri: concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/events.md"),
        default_configuration: Configuration { level },
        properties: RuleProperties { tags, security_severity: weight.severity() },
    }
}

/// A rule's id as a report has it: bounded, and fit for a terminal.
pub(super) fn id(rule: &str) -> String {
    terminal::plain(&shortened(rule)).into_owned()
}

/// What a rule of a policy is about, by what it denied.
fn by_kinds(id: &str, entries: &[&Entry]) -> (&'static str, Weight) {
    if id.ends_with("/limits") {
        return ("A limit of the policy was reached.", Weight::Low);
    }
    if entries.iter().any(|entry| entry.kind == Kind::ToolCall) {
        return ("A rule of a policy denies tool calls of a model.", Weight::High);
    }
    ("A rule of a policy denies connections, requests or answers.", Weight::Medium)
}
