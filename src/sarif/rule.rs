//! A rule as SARIF describes it: what it denied, how much that weighs, and what to do.

use std::collections::BTreeSet;

use super::builtin;
use super::entry::Entry;
use super::log::{Configuration, Description, Help, ReportingDescriptor, RuleProperties};
use super::message::{Message, shortened};
use super::reported::Reported;
use crate::event::Kind;
use crate::terminal;

/// What the names of rules begin with that stand for detectors.
pub(super) const FINDINGS: &str = "dlp/";

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
    let is_finding = id.starts_with(FINDINGS);
    let builtin = id.strip_prefix("postern/builtin/").and_then(builtin::describe);
    let (about, weight) = builtin.unwrap_or_else(|| by_kinds(id, entries));
    let what = if is_finding {
        Message::default()
            .ours("A detector found it in what an agent sent; `postern dlp list` has all of them. ")
    } else {
        let rule = Message::default().ours("The rule ").foreign(id);
        rule.ours(" denied it, or would have if its policy were enforced. ")
    };
    let message = what
        .ours("`postern ledger show EVENT` shows an event with the others of its exchange, and ")
        .ours("`postern policy explain --policy FILE --event EVENT` says why each rule applies or does not.");
    let kinds: BTreeSet<&str> = entries.iter().map(|entry| entry.kind.as_str()).collect();
    let tags = ["security", "egress"].into_iter().chain(kinds).map(str::to_owned).collect();
    let level = entries.iter().map(|entry| entry.reported).min().map_or("error", Reported::level);
    ReportingDescriptor {
        id: id.to_owned(),
        short_description: Description {
            text: Message::default()
                .ours(if is_finding { "Found by " } else { "Denied by " })
                .foreign(id)
                .text(),
        },
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
    if id.starts_with(FINDINGS) {
        return ("A secret, or a file that holds some, was in what an agent sent.", Weight::High);
    }
    if id.ends_with("/limits") {
        return ("A limit of the policy was reached.", Weight::Low);
    }
    if entries.iter().any(|entry| entry.kind == Kind::ToolCall) {
        return ("A rule of a policy denies tool calls of a model.", Weight::High);
    }
    ("A rule of a policy denies connections, requests or answers.", Weight::Medium)
}
