//! `postern ledger stats`: what was asked, called, denied and spent, and what was unusual.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context, anyhow};
use serde::Serialize;

use super::filter::EventFilter;
use super::print;
use crate::cli::{LedgerFilterArgs, LedgerStatsArgs, Output, StatsBy};
use crate::command::{ledger, output, policy};
use crate::config::source;
use crate::stats::{
    Counts, EventCounter, GroupBy, LEAST_DAYS, OutputRow, PriceList, SignalReport, StatsReport, Subject,
};
use crate::terminal;

/// The largest file of prices, in bytes.
const MOST_PRICES: u64 = 1 << 20;

/// How many rows of a table people see.
const SHOWN: usize = 20;

/// The report, and what was not counted.
#[derive(Serialize)]
struct Stats {
    #[serde(flatten)]
    report: StatsReport,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<String>,
}

/// Prints the counts; exit status 1 where a policy or the prices have a mistake.
pub(super) fn run(args: &LedgerStatsArgs, output: Output) -> anyhow::Result<ExitCode> {
    let (documents, problems) = policy::read(&args.policy);
    if !problems.is_empty() {
        output::print_problems(Output::Text, &problems)?;
        return Ok(ExitCode::FAILURE);
    }
    let prices = args.prices.as_deref().map(prices).transpose()?;
    let times = LedgerFilterArgs {
        since: args.since.clone(),
        until: args.until.clone(),
        ..LedgerFilterArgs::default()
    };
    let filter = EventFilter::new(&times, SystemTime::now());
    let mut counter = EventCounter::new(args.by.map(group_by));
    let skipped = ledger::each(args.source.ledger.as_deref(), |event, _| {
        if filter.takes(event) {
            counter.take(event);
        }
    })?;
    print::report_skipped(&skipped);
    let policies = (!args.policy.is_empty()).then_some(documents.as_slice());
    let mut report = counter.report(prices.as_ref(), policies);
    if !args.tool_outputs {
        report.tool_outputs.clear();
    }
    let stats = Stats { report, skipped };
    output::print(output, &people(&stats.report, args.by), &stats)?;
    Ok(ExitCode::SUCCESS)
}

fn group_by(by: StatsBy) -> GroupBy {
    match by {
        StatsBy::Workload => GroupBy::Workload,
        StatsBy::Model => GroupBy::Model,
        StatsBy::Tool => GroupBy::Tool,
        StatsBy::Session => GroupBy::Session,
    }
}

fn prices(path: &Path) -> anyhow::Result<PriceList> {
    let text = source::read_text(path, MOST_PRICES).map_err(|problem| anyhow!("{problem}"))?;
    let cannot = || format!("{} is no list of prices (docs/ledger.md has one)", path.display());
    let prices: PriceList = serde_yaml::from_str(&text).with_context(cannot)?;
    prices.check().map_err(anyhow::Error::msg).with_context(cannot)
}

fn people(report: &StatsReport, by: Option<StatsBy>) -> String {
    let mut text = String::new();
    head(report, &mut text);
    if let Some(by) = by {
        let heading = match by {
            StatsBy::Workload => "By workload",
            StatsBy::Model => "By model",
            StatsBy::Tool => "By tool; tokens are those of the answers that called it",
            StatsBy::Session => "By session",
        };
        table(
            heading,
            report.groups.iter().map(|row| (row.name.to_string(), counts(&row.counts))),
            &mut text,
        );
    }
    let tools = report
        .tools
        .iter()
        .map(|row| (row.tool.to_string(), format!("{} calls, {} denied", row.calls, row.denied)));
    table("Tools", tools, &mut text);
    let denied = report.denied.iter().map(|row| {
        let counts = [
            (row.calls, "calls"),
            (row.requests, "requests"),
            (row.connections, "connections"),
            (row.would_deny, "would be"),
        ];
        (row.rule.to_string(), some(&counts))
    });
    table("Denied by rule", denied, &mut text);
    let limits =
        report.limits.iter().map(|row| (format!("{}: {}", row.rule, row.reason), row.count.to_string()));
    table("Limits reached", limits, &mut text);
    let findings =
        report.findings.iter().map(|row| (format!("{} {}", row.detector, row.action), row.count.to_string()));
    table("Findings", findings, &mut text);
    let repeated = report.repeated.iter().map(|row| {
        (
            format!("{} in session {}", row.tool, row.session),
            format!("{} times with input {}…", row.count, row.input_sha256),
        )
    });
    table("Repeated calls", repeated, &mut text);
    outputs(&report.tool_outputs, &mut text);
    if let Some(rules) = &report.never_fired {
        table("Rules that no event names", rules.iter().map(|rule| (rule.clone(), String::new())), &mut text);
    }
    match &report.signals {
        Some(signals) => signal_tables(signals, &mut text),
        None => {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "\nNo signals: they want {LEAST_DAYS} days of events.");
        }
    }
    text
}

/// What became of long results of tools.
fn outputs(rows: &[OutputRow], text: &mut String) {
    let rows = rows.iter().map(|row| {
        let OutputRow { action, reason, texts, bytes_before, bytes_after, tokens_before, tokens_after } = row;
        let reason = reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        let became = if bytes_before == bytes_after {
            format!("{bytes_before} bytes, about {tokens_before} tokens")
        } else {
            format!("{bytes_before} bytes became {bytes_after}, about {tokens_before} tokens {tokens_after}")
        };
        (format!("{action}{reason}"), format!("{texts} texts, {became}"))
    });
    table("Results of tools, each text once", rows, text);
}

/// What the whole record comes to.
fn head(report: &StatsReport, text: &mut String) {
    let times = report.from.zip(report.to).map(|(from, to)| format!(", {from} to {to}")).unwrap_or_default();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{} events{times}", report.events);
    let _ = writeln!(text, "{}", counts(&report.total));
    if !report.without_price.is_empty() {
        let models: Vec<&str> = report.without_price.iter().map(|model| &**model).take(SHOWN).collect();
        let _ = writeln!(text, "without a price: {}", terminal::plain(&models.join(", ")));
    }
}

fn counts(counts: &Counts) -> String {
    let Counts {
        requests,
        denied_requests,
        denied_connections,
        tool_calls,
        denied_calls,
        would_deny,
        findings,
        tokens,
        cost,
    } = counts;
    let mut text = some(&[
        (*requests, "requests"),
        (*denied_requests, "denied"),
        (*denied_connections, "connections denied"),
        (*tool_calls, "tool calls"),
        (*denied_calls, "calls denied"),
        (*would_deny, "would be denied"),
        (*findings, "findings"),
    ]);
    if tokens.input > 0 || tokens.output > 0 {
        let cached =
            some(&[(tokens.cache_read, "read from caches"), (tokens.cache_write, "written to caches")]);
        let cached = if cached.is_empty() { String::new() } else { format!(" ({cached})") };
        // Writing to a String cannot fail.
        let _ = write!(text, "; tokens: {} in{cached}, {} out", tokens.input, tokens.output);
    }
    if let Some(cost) = cost {
        let _ = write!(text, "; {:.2} {}", cost.amount, cost.currency);
    }
    text
}

/// The counts that are not 0.
fn some(counts: &[(u64, &str)]) -> String {
    let texts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    texts.collect::<Vec<_>>().join(", ")
}

/// A heading and its rows; nothing where there is none. Names in them are what somebody wrote: they make no lines.
fn table(heading: &str, rows: impl Iterator<Item = (String, String)>, text: &mut String) {
    let rows: Vec<(String, String)> =
        rows.map(|(name, what)| (terminal::plain(&name).into_owned(), what)).collect();
    if rows.is_empty() {
        return;
    }
    // Writing to a String cannot fail.
    let _ = writeln!(text, "\n{heading}");
    for (name, what) in rows.iter().take(SHOWN) {
        let _ = writeln!(text, "  {}", format!("{name:<40}  {}", terminal::plain(what)).trim_end());
    }
    if rows.len() > SHOWN {
        let _ = writeln!(text, "  and {} more (-o json has up to 100)", rows.len() - SHOWN);
    }
}

/// Numbers, and no verdicts.
fn signal_tables(signals: &SignalReport, text: &mut String) {
    let seen = signals.first_seen.iter().map(|seen| {
        let subject = match seen.subject {
            Subject::Host => "host",
            Subject::Tool => "tool",
            Subject::Model => "model",
            Subject::McpServer => "MCP server",
        };
        (format!("{subject} {}", seen.name), format!("{} at {}", seen.workload, seen.time))
    });
    table("First seen in the last day", seen, text);
    let days = signals.days.iter().map(|day| {
        let what = match day.what {
            "toolCalls" => "tool calls",
            other => other,
        };
        (day.workload.to_string(), format!("{}: {} {what}, the median is {}", day.day, day.count, day.median))
    });
    table("Days over 5 times the median", days, text);
    let rows = signals
        .denials_in_a_row
        .iter()
        .map(|row| (row.workload.to_string(), format!("{} from {} to {}", row.count, row.from, row.to)));
    table("Denials in a row", rows, text);
    let payloads = signals.payloads.iter().map(|payload| {
        (
            payload.workload.to_string(),
            format!("{} bytes in {}, 99 of 100 have at most {}", payload.bytes, payload.event, payload.p99),
        )
    });
    table("Payloads over 10 times the 99th percentile", payloads, text);
}
