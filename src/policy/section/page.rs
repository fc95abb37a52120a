//! A listing for people: rows under headings.

use std::collections::BTreeMap;

use crate::call::Kind;

/// Two columns.
pub type Row = [String; 2];

/// What a listing says beyond the policies, by the tables of providers and tools.
#[derive(Debug, Clone, Copy)]
pub struct ProviderTables {
    /// How many tools of a kind are known.
    pub count_tools: fn(Kind) -> usize,
    /// Whether a host is known to be an LLM provider's.
    pub is_provider: fn(&str) -> bool,
}

/// The headings, in the order of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heading {
    Destinations,
    Companions,
    ToolsBlocked,
    ToolsBlockedUnderCondition,
    ToolsAllowed,
    CallsRecorded,
    McpTools,
    UnnamedCalls,
    Rules,
    Unguarded,
    AtProvider,
    Credentials,
    Routes,
    Models,
    ModelProviders,
    Limits,
    Settings,
}

/// Rows under headings.
#[derive(Debug)]
pub struct Page {
    /// Whether only Audit policies select the pod.
    audit_only: bool,
    pub(super) catalogue: ProviderTables,
    rows: BTreeMap<Heading, Vec<Row>>,
}

impl Page {
    pub(in crate::policy) fn new(audit_only: bool, catalogue: ProviderTables) -> Self {
        Self { audit_only, catalogue, rows: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, heading: Heading, row: Row) {
        self.rows.entry(heading).or_default().push(row);
    }

    /// A rule's id, and that it only records where it does.
    pub(super) fn by(&self, rule: &str, enforcement: &str) -> String {
        let aside = enforcement == "Audit" && !self.audit_only;
        if aside { format!("{rule} (Audit: recorded only)") } else { rule.to_owned() }
    }

    /// The rows under the text of each heading.
    pub fn sections(&self) -> impl Iterator<Item = (&'static str, &[Row])> {
        let audit_only = self.audit_only;
        self.rows.iter().map(move |(heading, rows)| (heading.text(audit_only), rows.as_slice()))
    }
}

impl Heading {
    fn text(self, audit_only: bool) -> &'static str {
        match self {
            Self::Destinations if audit_only => "Destinations (what is not here is tunnelled)",
            Self::Destinations => "Destinations (what is not here is denied)",
            Self::Companions => {
                "Denied, with the reason shown inside TLS (agents dial them beside their provider)"
            }
            Self::ToolsBlocked => "Tools blocked",
            Self::ToolsBlockedUnderCondition => "Tools blocked under a condition",
            Self::ToolsAllowed => "Tools allowed by name or kind",
            Self::CallsRecorded => "Tool calls recorded",
            Self::McpTools => "MCP tools",
            Self::UnnamedCalls => "Tool calls that no rule names",
            Self::Rules => "Rules over facts",
            Self::Unguarded => "Where tool rules do not hold",
            Self::AtProvider => "At the provider",
            Self::Credentials => "Credentials",
            Self::Routes if audit_only => "Routes of requests to models (recorded alone)",
            Self::Routes => "Routes of requests to models (the first that matches decides)",
            Self::Models => "Models that routes name",
            Self::ModelProviders => "Providers of those models",
            Self::Limits if audit_only => "Limits, per credential (recorded alone)",
            Self::Limits => "Limits, per credential",
            Self::Settings => "Settings",
        }
    }
}

/// A row of two texts.
pub(super) fn row(left: &str, right: impl Into<String>) -> Row {
    [left.to_owned(), right.into()]
}
