//! `postern policy list`: what applies to a pod, for people.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde::Serialize;

use super::compile;
use crate::cli::{Output, PolicyListArgs};
use crate::command::output;
use crate::name::host::DnsName;
use crate::policy::document::Provider;
use crate::policy::listing::{DestinationListed, Listing, Setting, ToolListed, is_mcp};
use crate::provider::kind;
use crate::provider::surface::surface;

/// The listing, and the policies that do not select the pod.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    #[serde(flatten)]
    listing: Listing,
    not_selected: Vec<String>,
}

/// Prints what applies; exit status 1 where the policies have a mistake.
pub(super) fn run(args: &PolicyListArgs, output: Output) -> anyhow::Result<ExitCode> {
    let Some((documents, policy)) = compile(&args.paths, &args.pod, output)? else {
        return Ok(ExitCode::FAILURE);
    };
    let mut not_selected: Vec<String> = documents.iter().map(crate::policy::document::Document::id).collect();
    not_selected.retain(|id| policy.selected().iter().all(|one| one.id != *id));
    let listed = Listed { listing: policy.listing(), not_selected };
    output::print(output, &people(&listed), &listed)?;
    Ok(ExitCode::SUCCESS)
}

/// Lines under headings; what there is nothing to say of is left out.
#[derive(Default)]
struct Page(String);

impl Page {
    fn section(&mut self, heading: &str, rows: Vec<[String; 2]>) {
        if rows.is_empty() {
            return;
        }
        let short = rows.iter().map(|[left, _]| left.chars().count()).filter(|width| *width <= MOST_WIDTH);
        let width = short.max().unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "\n{heading}");
        for [left, right] in rows {
            let beside = left.chars().count() <= width;
            let gap = if beside { "  ".to_owned() } else { format!("\n{:1$}", "", width + 4) };
            let _ = writeln!(self.0, "{}", format!("  {left:width$}{gap}{right}").trim_end());
        }
    }
}

/// The widest first column that the second is set beside; else it stands on a line of its own.
const MOST_WIDTH: usize = 48;

fn people(listed: &Listed) -> String {
    let listing = &listed.listing;
    let mut page = Page(format!("revision {}: {}\n", listing.revision, in_force(listing)));
    let selected = listing.policies.iter().map(|one| [one.policy.clone(), one.enforcement.to_owned()]);
    let others = listed.not_selected.iter().map(|id| [id.clone(), "does not select the pod".to_owned()]);
    page.section("Policies", selected.chain(others).collect());
    if listing.policies.is_empty() {
        return page.0;
    }
    let audit = listing.enforcement == "Audit";
    let rest = if audit { "tunnelled" } else { "denied" };
    let destinations = listing.destinations.iter().map(destination).collect();
    page.section(&format!("Destinations (what is not here is {rest})"), destinations);
    page.section(
        "Denied, with the reason shown inside TLS (agents dial them beside their provider)",
        companions(listing),
    );
    tools(listing, &mut page);
    page.section("Where tool rules do not hold", unguarded(listing));
    page.section("At the provider", at_provider(listing));
    page.section("Credentials", credentials(listing));
    page.section(
        if audit { "Limits, per credential (recorded alone)" } else { "Limits, per credential" },
        limits(listing),
    );
    let settings = vec![
        row(
            "answers that cannot be understood",
            if listing.failure_policy == "Open" { "pass" } else { "are refused" },
        ),
        row("tool inputs in events", &format!("{:?}", listing.audit.tool_inputs)),
    ];
    page.section("Settings", settings);
    page.0
}

fn in_force(listing: &Listing) -> &'static str {
    match listing.enforcement {
        "Enforce" => "enforced",
        "Audit" => "only Audit policies select the pod, so what they deny is recorded and goes through",
        _ => "no policy selects the pod, so everything is denied",
    }
}

fn row(left: &str, right: &str) -> [String; 2] {
    [left.to_owned(), right.to_owned()]
}

/// A rule's id, and that it only records where it does.
fn by(rule: &str, enforcement: &str, listing: &Listing) -> String {
    let aside = enforcement == "Audit" && listing.enforcement == "Enforce";
    if aside { format!("{rule} (Audit: recorded only)") } else { rule.to_owned() }
}

fn destination(rule: &DestinationListed) -> [String; 2] {
    let mut right = rule.action.to_owned();
    if let Some(ports) = &rule.ports {
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        let _ = write!(right, ", ports {}", ports.join(", "));
    }
    match rule.provider {
        Some(Provider::None) => right.push_str(", no LLM provider"),
        Some(provider) => {
            let _ = write!(right, ", speaks {provider:?}");
        }
        None => {}
    }
    rule.grants.iter().for_each(|grant| {
        let _ = write!(right, ", {grant}");
    });
    if let Some(endpoints) = &rule.endpoints {
        let _ = write!(right, ": {}", endpoints.join("; "));
    }
    let aside = if rule.enforcement == "Audit" { " (Audit)" } else { "" };
    let _ = write!(right, "  [{}{aside}]", rule.rule);
    [rule.hosts.iter().chain(&rule.cidrs).cloned().collect::<Vec<_>>().join(", "), right]
}

/// The companions, a few to a line.
fn companions(listing: &Listing) -> Vec<[String; 2]> {
    listing.companions.chunks(4).map(|some| row(&some.join(", "), "")).collect()
}

/// The rules by which an answer of a model could pass unguarded: what is tunnelled, and at hosts that are not known what
/// a rule says is no provider's, or opens by `endpoints` alone.
fn unguarded(listing: &Listing) -> Vec<[String; 2]> {
    let why = |rule: &DestinationListed| match (rule.action, rule.provider, &rule.endpoints) {
        ("Tunnel", _, _) => Some("nobody reads a tunnel"),
        ("Inspect", Some(Provider::None), _) => Some("provider: None"),
        ("Inspect", None, Some(listed)) if listed.iter().any(|one| may_post(one)) => {
            Some("`endpoints` without `provider`")
        }
        _ => None,
    };
    let rows = listing.destinations.iter().filter_map(|rule| {
        let why = why(rule)?;
        let is_open = |host: &&String| rule.action == "Tunnel" || !is_known(host);
        let hosts: Vec<&str> =
            rule.hosts.iter().filter(is_open).chain(&rule.cidrs).map(String::as_str).collect();
        (!hosts.is_empty()).then(|| [hosts.join(", "), format!("{why}  [{}]", rule.rule)])
    });
    rows.collect()
}

/// Whether the text of an endpoint covers a POST, by which models are asked.
fn may_post(endpoint: &str) -> bool {
    endpoint.starts_with("any method") || endpoint.split([' ', ',']).any(|word| word == "POST")
}

fn is_known(host: &str) -> bool {
    DnsName::parse(host).is_ok_and(|name| surface(&name).is_some())
}

fn tools(listing: &Listing, page: &mut Page) {
    let of = |action: &str, fits: fn(&ToolListed) -> bool| {
        let rules =
            listing.tools.iter().filter(|rule| rule.action == action && is_general(rule) && fits(rule));
        rules.map(|rule| tool(rule, listing)).collect::<Vec<_>>()
    };
    page.section("Tools blocked", of("Deny", |rule| rule.when.is_none()));
    page.section("Tools blocked under a condition", of("Deny", |rule| rule.when.is_some()));
    page.section("Tools allowed by name or kind", of("Allow", |_| true));
    page.section("Tool calls recorded", of("Audit", |_| true));
    let mcp = listing.tools.iter().filter(|rule| rule.mcp).map(|rule| {
        let [_, right] = tool(rule, listing);
        let names: Vec<&str> = rule.tools.iter().map(String::as_str).filter(|name| is_mcp(name)).collect();
        [names.join(", "), format!("{} {right}", rule.action)]
    });
    page.section("MCP tools", mcp.collect());
    let default = match listing.tool_default.action {
        "Deny" => "are denied",
        _ => "are allowed",
    };
    page.section("Tool calls that no rule names", vec![row(default, &set_by(&listing.tool_default))]);
}

/// Whether a rule is about other tools than those of MCP servers.
fn is_general(rule: &ToolListed) -> bool {
    rule.kind.is_some() || rule.tools.iter().any(|name| !is_mcp(name))
}

fn tool(rule: &ToolListed, listing: &Listing) -> [String; 2] {
    // An Allow rule is about no tool whose kind is inferred.
    let beyond = if rule.action == "Allow" { "" } else { ", and what looks like one" };
    let kind = rule.kind.iter().map(|kind| format!("{kind:?}: {} known tools{beyond}", kind::count(*kind)));
    let about: Vec<String> = kind.chain(rule.tools.iter().cloned()).collect();
    let when = rule.when.as_ref().map(|when| format!("where {when}  ")).unwrap_or_default();
    let reason = if rule.reason.is_empty() { String::new() } else { format!(": {}", rule.reason) };
    [about.join(", "), format!("{when}[{}{reason}]", by(&rule.rule, rule.enforcement, listing))]
}

fn set_by(setting: &Setting) -> String {
    setting.rule.as_ref().map_or_else(|| "[default]".to_owned(), |rule| format!("[{rule}]"))
}

fn at_provider(listing: &Listing) -> Vec<[String; 2]> {
    let allow: Vec<String> = listing.hosted_tools.allow.iter().map(|list| list.join(", ")).collect();
    let but = match (listing.hosted_tools.setting.action, allow.iter().any(|list| !list.is_empty())) {
        ("Allow", _) | (_, false) => String::new(),
        (_, true) => format!(" but {}", allow.join(" and ")),
    };
    let setting = |setting: &Setting, but: &str| format!("{}{but}  {}", setting.action, set_by(setting));
    vec![
        row("hosted tools", &setting(&listing.hosted_tools.setting, &but)),
        row("URLs that the provider would fetch", &setting(&listing.url_sources, "")),
        row("conversations kept there", &setting(&listing.provider_state, "")),
    ]
}

fn credentials(listing: &Listing) -> Vec<[String; 2]> {
    let rows = listing.credentials.iter().map(|credential| {
        let ports: Vec<String> = credential.ports.iter().map(u16::to_string).collect();
        let require = if credential.require { ", no other key" } else { "" };
        let right = format!(
            "{}, ports {}{require}  [{}]",
            credential.hosts.join(", "),
            ports.join(", "),
            credential.rule
        );
        [credential.name.clone(), right]
    });
    rows.collect()
}

fn limits(listing: &Listing) -> Vec<[String; 2]> {
    let rows =
        listing.limits.iter().map(|limit| row(limit.name, &format!("{}  [{}]", limit.most, limit.rule)));
    rows.collect()
}
