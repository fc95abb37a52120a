//! The arguments of `postern ledger`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use time::format_description::well_known::Rfc3339;
use time::{Date, OffsetDateTime};

/// `postern ledger`.
#[derive(Debug, Subcommand)]
pub enum LedgerCommand {
    /// Prints the last events, and with --follow those that come.
    Tail(LedgerTailArgs),
    /// Prints the events that fit, in the order in which they were written; files of a directory by their names.
    Query(LedgerQueryArgs),
    Show(LedgerShowArgs),
    Stats(LedgerStatsArgs),
    Verify(LedgerVerifyArgs),
    Sarif(LedgerSarifArgs),
}

/// Where events are read from.
#[derive(Debug, Default, Args)]
pub struct LedgerSourceArgs {
    /// A ledger, a file of events in JSON lines, a directory of them (*.jsonl), or `-`; lines may be compressed by gzip
    /// or zstd [default: the newest run of `postern run`; where an id is looked for, all runs].
    #[arg(long, value_name = "FILE|DIR|-")]
    pub ledger: Option<PathBuf>,
}

/// Which events. Of several options all have to hold, of the values of one any (repeated, or with commas). `*` stands
/// for any text, and case does not matter.
#[derive(Debug, Default, Args)]
pub struct LedgerFilterArgs {
    /// From then on: 90s, 10m, 2h or 3d ago, 2026-11-22 or 2026-11-22T10:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub since: Option<Moment>,
    /// Until then.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub until: Option<Moment>,
    /// What happened; several with commas.
    #[arg(
        long, value_delimiter = ',', ignore_case = true,
        value_parser = ["Connection", "Request", "Response", "ToolCall", "Transform", "Policy", "Lifecycle"]
    )]
    pub kind: Vec<String>,
    /// What was decided.
    #[arg(
        long, value_delimiter = ',', ignore_case = true,
        value_parser = ["Allow", "Deny", "Audit", "WouldDeny"]
    )]
    pub verdict: Vec<String>,
    /// The rule's id (namespace/policy/rule), or its name; here and below `*` stands for any text.
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub rule: Vec<String>,
    /// The host that was dialled, without its port.
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    pub host: Vec<String>,
    /// The tool that was called, as the model wrote it.
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    pub tool: Vec<String>,
    /// The model that was asked, or that answered.
    #[arg(long, value_name = "MODEL", value_delimiter = ',')]
    pub model: Vec<String>,
    /// The agent's label of its session.
    #[arg(long, value_name = "SESSION", value_delimiter = ',')]
    pub session: Vec<String>,
    /// The exchange that requests, answers and calls share.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub exchange: Vec<String>,
}

/// Arguments of `postern ledger tail`.
#[derive(Debug, Args)]
pub struct LedgerTailArgs {
    /// Goes on with the events that come, until it is interrupted.
    #[arg(short, long)]
    pub follow: bool,
    /// How many of those that are there.
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 20)]
    pub lines: usize,
    #[command(flatten)]
    pub source: LedgerSourceArgs,
    #[command(flatten)]
    pub filter: LedgerFilterArgs,
}

/// Arguments of `postern ledger query`.
#[derive(Debug, Args)]
pub struct LedgerQueryArgs {
    /// How many are printed at most.
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    pub limit: usize,
    /// One SELECT over the tables of a ledger (docs/ledger.md) in place of a filter, cut off at 5 seconds and 10,000 rows;
    /// lines are put into the same tables first.
    #[arg(
        long, value_name = "SELECT",
        conflicts_with_all = ["since", "until", "kind", "verdict", "rule", "host", "tool", "model", "session", "exchange"]
    )]
    pub sql: Option<String>,
    #[command(flatten)]
    pub source: LedgerSourceArgs,
    #[command(flatten)]
    pub filter: LedgerFilterArgs,
}

/// Shows one event whole, with the others of its exchange.
///
/// An id that was counted with others in one event is found there. `-o test` prints a case of `postern policy test`.
#[derive(Debug, Args)]
pub struct LedgerShowArgs {
    /// The event's id, as a refusal and the header x-postern-event name it.
    #[arg(value_name = "ID")]
    pub id: String,
    #[command(flatten)]
    pub source: LedgerSourceArgs,
}

/// Counts requests, tool calls, denials and tokens, and tells what was unusual.
///
/// Numbers alone: what is unusual is told from three days of events on, and judged by nobody.
#[derive(Debug, Args)]
pub struct LedgerStatsArgs {
    /// Events from then on: 90s, 10m, 2h or 3d ago, 2026-11-22 or 2026-11-22T10:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub since: Option<Moment>,
    /// Until then.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub until: Option<Moment>,
    /// Counts by it, too.
    #[arg(long, value_enum)]
    pub by: Option<StatsBy>,
    /// Tells what became of long results of tools, too: each text once, however often it was sent.
    #[arg(long)]
    pub tool_outputs: bool,
    /// What a million tokens of each model cost; without it nothing is said of money.
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// Policies, of which the rules are told that no event names; may be repeated.
    #[arg(long, value_name = "FILE|DIR")]
    pub policy: Vec<PathBuf>,
    #[command(flatten)]
    pub source: LedgerSourceArgs,
}

/// What counts are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StatsBy {
    /// The pod.
    Workload,
    /// The model that answered.
    Model,
    /// The tool; its tokens are those of the answers that called it.
    Tool,
    /// The label that the agent gives its session.
    Session,
}

/// Checks that events hold together: that none was changed, removed, moved or cut off.
///
/// A record alone proves that it is consistent; with --against, lines that left the gateway are the witness that nobody
/// wrote it anew. Exit status 1 where something does not hold.
#[derive(Debug, Args)]
pub struct LedgerVerifyArgs {
    /// Lines that left the gateway, in any form that --ledger takes but a ledger.
    #[arg(long, value_name = "FILE|DIR|-")]
    pub against: Option<PathBuf>,
    #[command(flatten)]
    pub source: LedgerSourceArgs,
}

/// Prints denials and findings as SARIF 2.1.0, for what shows the results of code scanners (docs/sarif.md).
///
/// One result for each denial, enforced or recorded, at most the newest 25,000. Where no event at all could be read it
/// prints none and exits with 1: an empty report would close the alerts of the last one.
#[derive(Debug, Args)]
pub struct LedgerSarifArgs {
    /// Policies to look up the rules in, so that a result names a rule's file and line; may be repeated. Without it the
    /// place is postern/NAMESPACE/POLICY.yaml.
    #[arg(long, value_name = "FILE|DIR")]
    pub policy: Vec<PathBuf>,
    /// One result for equal denials (of a rule, at a host, of a tool), which counts them.
    #[arg(long)]
    pub group: bool,
    #[command(flatten)]
    pub source: LedgerSourceArgs,
}

/// A time on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moment {
    Ago(Duration),
    At(OffsetDateTime),
}

/// Reads a time; a date is its beginning in UTC.
fn moment(text: &str) -> Result<Moment, String> {
    let ago = || {
        let number: u64 = text.get(..text.len().checked_sub(1)?)?.parse().ok()?;
        let seconds = match text.chars().next_back()? {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return None,
        };
        // A century is before any event.
        number.checked_mul(seconds).filter(|seconds| *seconds < 100 * 366 * 86_400).map(Duration::from_secs)
    };
    let date = || {
        let date = Date::parse(text, time::macros::format_description!("[year]-[month]-[day]")).ok()?;
        Some(date.midnight().assume_utc())
    };
    let at = || OffsetDateTime::parse(text, &Rfc3339).ok().or_else(date).map(Moment::At);
    ago()
        .map(Moment::Ago)
        .or_else(at)
        .ok_or_else(|| "a time is 90s, 10m, 2h or 3d (ago), 2026-11-22, or 2026-11-22T10:00:00Z".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_an_age_a_date_or_rfc_3339() {
        assert_eq!(moment("90s"), Ok(Moment::Ago(Duration::from_secs(90))));
        assert_eq!(moment("3d"), Ok(Moment::Ago(Duration::from_secs(3 * 86_400))));
        assert_eq!(moment("2026-11-22"), moment("2026-11-22T00:00:00Z"));
        assert!(moment("2026-11-22T01:00:00+01:00").is_ok());
        for bad in ["", "s", "10", "-1m", "10é", "99999999999999d", "2026-13-01", "yesterday"] {
            assert!(moment(bad).is_err(), "{bad}");
        }
    }
}
