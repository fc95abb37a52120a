//! The parts of SARIF 2.1.0 (OASIS standard, section 3) that a report has, as they are written.

use std::collections::BTreeMap;

use serde::Serialize;

use super::MOST_RESULTS;
use super::entry::Entry;
use super::message::Message;
use super::place::{Place, RulePlaces};
use super::rule;
use crate::decision::Verdict;
use crate::event::{Direction, Kind};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// A report of one run.
#[derive(Debug, Serialize)]
pub(crate) struct SarifLog {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    tool: Tool,
    column_kind: &'static str,
    automation_details: AutomationDetails,
    results: Vec<SarifResult>,
}

#[derive(Debug, Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver {
    name: &'static str,
    version: &'static str,
    semantic_version: &'static str,
    information_uri: &'static str,
    rules: Vec<ReportingDescriptor>,
}

/// The category of the run: whoever shows it replaces the last run of the same.
#[derive(Debug, Serialize)]
struct AutomationDetails {
    id: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReportingDescriptor {
    pub(super) id: String,
    pub(super) short_description: Description,
    pub(super) full_description: Description,
    pub(super) help: Help,
    pub(super) help_uri: &'static str,
    pub(super) default_configuration: Configuration,
    pub(super) properties: RuleProperties,
}

#[derive(Debug, Serialize)]
pub(super) struct Description {
    pub(super) text: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Help {
    pub(super) text: String,
    pub(super) markdown: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Configuration {
    pub(super) level: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct RuleProperties {
    pub(super) tags: Vec<String>,
    #[serde(rename = "security-severity")]
    pub(super) security_severity: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SarifResult {
    rule_id: String,
    rule_index: usize,
    level: &'static str,
    message: Help,
    locations: [Location; 1],
    partial_fingerprints: BTreeMap<&'static str, String>,
    /// Of a denial.
    #[serde(flatten)]
    event: Option<OfEvent>,
}

/// What a result has from its event.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OfEvent {
    #[serde(skip_serializing_if = "Option::is_none")]
    guid: Option<String>,
    occurrence_count: u64,
    provenance: Provenance,
    properties: ResultProperties,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    physical_location: PhysicalLocation,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    region: Region,
}

#[derive(Debug, Clone, Serialize)]
struct ArtifactLocation {
    uri: String,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: usize,
}

/// When the first and the last of the denials were.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Provenance {
    first_detection_time_utc: String,
    last_detection_time_utc: String,
}

/// What the event says, for whoever reads results by program.
#[derive(Debug, Serialize)]
pub(super) struct ResultProperties {
    #[serde(rename = "proxy_event_id")]
    pub(super) event_id: String,
    #[serde(rename = "proxy_session_id", skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<String>,
    #[serde(rename = "proxy_event_kind")]
    pub(super) event_kind: Kind,
    #[serde(rename = "proxy_direction")]
    pub(super) direction: Direction,
    /// The provider's API, else `http`, else `connection`.
    #[serde(rename = "proxy_payload_kind")]
    pub(super) payload_kind: String,
    #[serde(rename = "proxy_trace_id", skip_serializing_if = "Option::is_none")]
    pub(super) trace_id: Option<String>,
    /// The exchange, else the connection.
    #[serde(rename = "proxy_tracking_id", skip_serializing_if = "Option::is_none")]
    pub(super) tracking_id: Option<String>,
    /// The names of what was changed, with commas.
    #[serde(rename = "proxy_transform", skip_serializing_if = "Option::is_none")]
    pub(super) transform: Option<String>,
    #[serde(rename = "proxy_verdict")]
    pub(super) verdict: Verdict,
    #[serde(rename = "proxy_host", skip_serializing_if = "Option::is_none")]
    pub(super) host: Option<String>,
    #[serde(rename = "proxy_tool", skip_serializing_if = "Option::is_none")]
    pub(super) tool: Option<String>,
    /// `namespace/pod`.
    #[serde(rename = "proxy_workload", skip_serializing_if = "Option::is_none")]
    pub(super) workload: Option<String>,
}

impl SarifLog {
    /// Of these entries, in their order.
    pub(super) fn of(entries: impl Iterator<Item = Entry>, places: &RulePlaces) -> Self {
        let entries: Vec<Entry> = entries.take(MOST_RESULTS).collect();
        let mut by_rule: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
        entries.iter().for_each(|entry| by_rule.entry(&entry.rule).or_default().push(entry));
        let rules = by_rule.iter().map(|(id, entries)| rule::describe(id, entries)).collect();
        let numbered: BTreeMap<String, (usize, Location)> = by_rule
            .keys()
            .enumerate()
            .map(|(number, id)| ((*id).to_owned(), (number, Location::of(places.place(id)))))
            .collect();
        let result = |entry: Entry| {
            let (number, location) = numbered.get(&entry.rule)?;
            Some(SarifResult::of(entry, *number, location.clone()))
        };
        let results = entries.into_iter().filter_map(result).collect();
        Self::written("postern/", rules, results)
    }

    /// A report of this category.
    pub(super) fn written(
        category: &'static str,
        rules: Vec<ReportingDescriptor>,
        results: Vec<SarifResult>,
    ) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let driver = Driver {
            name: "Postern",
            version,
            semantic_version: version,
            information_uri: env!("CARGO_PKG_REPOSITORY"),
            rules,
        };
        let run = Run {
            tool: Tool { driver },
            column_kind: "utf16CodeUnits",
            automation_details: AutomationDetails { id: category },
            results,
        };
        Self { schema: SCHEMA, version: "2.1.0", runs: [run] }
    }

    /// How many results the report has.
    pub(crate) fn results(&self) -> usize {
        self.runs[0].results.len()
    }
}

impl SarifResult {
    /// A result of the first rule that stands in no event.
    pub(super) fn plain(rule: &str, message: &Message, place: Place, fingerprint: String) -> Self {
        Self {
            rule_id: rule.to_owned(),
            rule_index: 0,
            level: "error",
            message: help(message),
            locations: [Location::of(place)],
            partial_fingerprints: fingerprints(fingerprint),
            event: None,
        }
    }

    fn of(entry: Entry, rule_index: usize, location: Location) -> Self {
        let event = OfEvent {
            // Of several results of one event none has its id alone.
            guid: (!entry.rule.starts_with(rule::FINDINGS)).then(|| entry.id.to_string()),
            occurrence_count: entry.count,
            provenance: Provenance {
                first_detection_time_utc: entry.first.to_string(),
                last_detection_time_utc: entry.last.to_string(),
            },
            properties: entry.properties,
        };
        Self {
            rule_id: entry.rule,
            rule_index,
            level: entry.reported.level(),
            message: help(&entry.message),
            locations: [location],
            partial_fingerprints: fingerprints(entry.fingerprint),
            event: Some(event),
        }
    }
}

pub(super) fn help(message: &Message) -> Help {
    Help { text: message.text(), markdown: message.markdown() }
}

/// GitHub compares the second alone, which is a hash and a number of the line.
fn fingerprints(of: String) -> BTreeMap<&'static str, String> {
    [("postern/v1", of.clone()), ("primaryLocationLineHash", of + ":1")].into()
}

impl Location {
    fn of(Place { uri, line }: Place) -> Self {
        let artifact_location = ArtifactLocation { uri };
        Self {
            physical_location: PhysicalLocation { artifact_location, region: Region { start_line: line } },
        }
    }
}
