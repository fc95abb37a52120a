//! `postern policy list`: what applies to a pod, for people.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde::Serialize;

use super::compile;
use crate::cli::{Output, PolicyListArgs};
use crate::command::output;
use crate::name::host::DnsName;
use crate::policy::document::Document;
use crate::policy::listing::Listing;
use crate::policy::section::page::{ProviderTables, Row};
use crate::provider::kind;
use crate::provider::surface::surface;

/// The listing, and the policies that do not select the pod.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PolicyList {
    #[serde(flatten)]
    listing: Listing,
    not_selected: Vec<String>,
}

/// Prints what applies; exit status 1 where the policies have a mistake.
pub(super) fn run(args: &PolicyListArgs, output: Output) -> anyhow::Result<ExitCode> {
    let Some((documents, policy)) = compile(&args.paths, &args.pod, output)? else {
        return Ok(ExitCode::FAILURE);
    };
    let mut not_selected: Vec<String> = documents.iter().map(Document::id).collect();
    not_selected.retain(|id| policy.selected().iter().all(|selected| selected.id != *id));
    let listed = PolicyList { listing: policy.listing(), not_selected };
    output::print(output, &people(&listed), &listed)?;
    Ok(ExitCode::SUCCESS)
}

/// The widest first column that the second is set beside; else it stands on a line of its own.
const MOST_WIDTH: usize = 48;

fn people(listed: &PolicyList) -> String {
    let listing = &listed.listing;
    let mut text = format!("revision {}: {}\n", listing.revision, in_force(listing));
    let selected =
        listing.policies.iter().map(|policy| [policy.policy.clone(), policy.enforcement.to_owned()]);
    let others = listed.not_selected.iter().map(|id| [id.clone(), "does not select the pod".to_owned()]);
    let policies: Vec<Row> = selected.chain(others).collect();
    if !policies.is_empty() {
        section("Policies", &policies, &mut text);
    }
    if listing.policies.is_empty() {
        return text;
    }
    let page = listing.page(ProviderTables { count_tools: kind::count, is_provider });
    page.sections().for_each(|(heading, rows)| section(heading, rows, &mut text));
    text
}

fn in_force(listing: &Listing) -> &'static str {
    match listing.enforcement {
        "Enforce" => "enforced",
        "Audit" => "only Audit policies select the pod, so what they deny is recorded and goes through",
        _ => "no policy selects the pod, so everything is denied",
    }
}

fn is_provider(host: &str) -> bool {
    DnsName::parse(host).is_ok_and(|name| surface(&name).is_some())
}

/// Writes rows under a heading.
fn section(heading: &str, rows: &[Row], text: &mut String) {
    let short = rows.iter().map(|[left, _]| left.chars().count()).filter(|width| *width <= MOST_WIDTH);
    let width = short.max().unwrap_or_default();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "\n{heading}");
    for [left, right] in rows {
        let beside = left.chars().count() <= width;
        let gap = if beside { "  ".to_owned() } else { format!("\n{:1$}", "", width + 4) };
        let _ = writeln!(text, "{}", format!("  {left:width$}{gap}{right}").trim_end());
    }
}
