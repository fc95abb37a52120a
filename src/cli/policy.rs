//! The commands of `postern policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::LedgerSourceArgs;

/// `postern policy`.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    Init(PolicyInitArgs),
    /// Checks policies, and says everything that is wrong with file, line and column.
    Check(PolicyCheckArgs),
    /// Says what applies to a pod: destinations, tools, credentials, limits, and which policies select it.
    List(PolicyListArgs),
    Explain(PolicyExplainArgs),
    /// Tries calls, requests and past events against policies, and compares with what is expected.
    Test(PolicyTestArgs),
    /// Drafts a policy in Audit from what happened.
    Learn(PolicyLearnArgs),
    /// Says what a new policy changes, and with a ledger what it would have decided otherwise.
    Diff(PolicyDiffArgs),
}

/// Prints a policy to begin with: one that is ready for an agent, with comments.
///
/// Nothing is written to a file: `postern policy init --agent claude > policy.yaml`.
#[derive(Debug, Args)]
pub struct PolicyInitArgs {
    /// The agent that the policy is for; `any` is that of the README.
    #[arg(long, value_enum, default_value_t = Agent::Any)]
    pub agent: Agent,
    /// Take each key from a Secret of its credential's name, under the key `api-key`, instead of the environment.
    #[arg(long)]
    pub kubernetes: bool,
}

/// The agents for which there is a ready policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Agent {
    /// One of the agents that follow, with a key of Anthropic, OpenAI or Gemini.
    Any,
    Claude,
    Codex,
    Gemini,
    Opencode,
    Copilot,
}

/// Arguments of `postern policy check`.
#[derive(Debug, Args)]
pub struct PolicyCheckArgs {
    /// Policy files, or directories of them (*.yaml, *.yml, *.json); all are checked as one policy.
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Exit with 1 where there are warnings, too.
    #[arg(long)]
    pub strict: bool,
}

/// Arguments of `postern policy list`.
#[derive(Debug, Args)]
pub struct PolicyListArgs {
    /// Policy files, or directories of them (*.yaml, *.yml, *.json); all are one policy.
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub pod: PodArgs,
}

/// Arguments of `postern policy test`.
#[derive(Debug, Args)]
pub struct PolicyTestArgs {
    /// Files of PolicyTest documents.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Also write the results to this file, as JUnit's XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Also write the cases that do not hold to this file, as SARIF.
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct PolicyLearnArgs {
    #[command(flatten)]
    pub source: LedgerSourceArgs,
    /// How often something must have been seen to be granted.
    #[arg(long, value_name = "TIMES", default_value_t = 2)]
    pub min: u64,
}

#[derive(Debug, Args)]
pub struct PolicyDiffArgs {
    /// A policy file or a directory of them: as it is.
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
    /// As it is to be.
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
    #[command(flatten)]
    pub pod: PodArgs,
    #[command(flatten)]
    pub source: ReplaySourceArgs,
    /// Exit with 1 where something gets looser, or where anything changes.
    #[arg(long, value_name = "WHAT")]
    pub fail_on: Option<FailOn>,
}

/// Which events are decided anew.
#[derive(Debug, Args)]
pub struct ReplaySourceArgs {
    /// Decide these events anew under both: a ledger, a file of events in JSON lines, a directory of them (*.jsonl), or `-` for
    /// standard input.
    #[arg(long, value_name = "FILE|DIR|-")]
    pub ledger: Option<PathBuf>,
}

/// What makes `policy diff` fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A change that lets more through, or an event that would be allowed.
    Loosening,
    /// Any change.
    Any,
}

/// Says why each rule does or does not apply to one tool call or request, and what is decided.
///
/// The question is JSON or YAML, an event or as little as {"toolCall": {"name", "input"}} or
/// {"destination": {"host", "port"}, "http": {"method", "path"}} (docs/policy.md). The exit status is 0 whatever is
/// decided.
#[derive(Debug, Args)]
pub struct PolicyExplainArgs {
    /// A policy file or a directory of them; may be repeated, all are one policy.
    #[arg(long, required = true, value_name = "FILE|DIR")]
    pub policy: Vec<PathBuf>,
    #[command(flatten)]
    pub pod: PodArgs,
    /// The call or request; `-` is standard input.
    #[arg(value_name = "QUESTION", required_unless_present = "event", conflicts_with = "event")]
    pub question: Option<PathBuf>,
    /// The event with this id, as `postern ledger show` finds it.
    #[arg(long, value_name = "ID")]
    pub event: Option<String>,
    #[command(flatten)]
    pub source: LedgerSourceArgs,
}

/// The pod that policies are looked at for.
#[derive(Debug, Args)]
pub struct PodArgs {
    /// Its labels; without any only policies that select every pod apply.
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = label)]
    pub labels: Vec<(String, String)>,
}

/// Reads `KEY=VALUE`.
fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a label is written KEY=VALUE")?;
    if key.is_empty() {
        return Err("a label needs a key before the `=`".to_owned());
    }
    Ok((key.to_owned(), value.to_owned()))
}
