//! The command line: clap types, nothing else.

mod moment;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::version;
pub use moment::Moment;
use moment::moment;

/// The guarded door through which AI agents' traffic leaves.
#[derive(Debug, Parser)]
#[command(
    name = "postern",
    version = version::VERSION,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Exit status: 0 fine, 1 refused or failed, 2 wrong usage."
)]
pub struct Cli {
    /// How results are printed.
    #[arg(short, long, global = true, value_enum, default_value_t = Output::Text, value_name = "FORMAT")]
    pub output: Output,
    #[command(subcommand)]
    pub command: Command,
}

/// The form of what is printed on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    Json,
    Yaml,
}

/// What the executable does.
#[derive(Debug, Subcommand)]
pub enum Command {
    Gateway(GatewayArgs),
    Run(RunArgs),
    Demo(DemoArgs),
    Doctor(DoctorArgs),
    Status(StatusArgs),
    Redirect(RedirectArgs),
    /// Works on policies.
    #[command(subcommand, arg_required_else_help = true)]
    Policy(PolicyCommand),
    /// Reads the events that gateways wrote down: those of the newest run, or of files (docs/events.md).
    #[command(subcommand, arg_required_else_help = true)]
    Ledger(LedgerCommand),
    Ui(UiArgs),
    /// Makes and inspects the CA with which TLS is ended on this machine.
    #[command(subcommand, arg_required_else_help = true)]
    Ca(CaCommand),
    /// Prints the completion script of a shell.
    Completions(CompletionsArgs),
}

/// Runs the gateway in the foreground: events on standard output, logs on standard error.
///
/// SIGTERM and SIGINT end it after what is under way has ended; SIGHUP reloads.
#[derive(Debug, Args)]
pub struct GatewayArgs {
    /// The settings file (docs/configuration.md); nothing else configures the gateway.
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Read everything the gateway would read, say all that is wrong, and exit.
    #[arg(long)]
    pub check: bool,
}

/// Runs a command whose traffic goes through a gateway of its own.
///
/// Its exit status is the command's; 128 + n when signal n ended it, 127 when it cannot be started, and with
/// --fail-on-deny 3 when the command ended with 0 although something was denied.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// A policy file or a directory of them. Without it: policy.yaml in the user's configuration directory, else a
    /// built-in policy that only records what it would deny.
    #[arg(long, value_name = "FILE|DIR")]
    pub policy: Option<PathBuf>,
    /// Ends with 3 in the place of 0 where something was denied: agents end with 0 after a turn whose calls were denied.
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        ignore_case = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "Any"
    )]
    pub fail_on_deny: Option<Denials>,
    /// Shows the events of the run in a browser on this machine, live, at an address that is printed (docs/ui.md).
    #[arg(long)]
    pub ui: bool,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Which denials `postern run --fail-on-deny` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum Denials {
    /// Tool calls, requests, answers and connections.
    Any,
    /// Tool calls alone: agents also dial hosts that they do not need.
    ToolCalls,
}

impl Denials {
    /// What to say where a value was written behind a space and so taken for the command.
    pub fn remedy(command: &str) -> &'static str {
        match Self::from_str(command, true) {
            Ok(Self::Any) => "; write --fail-on-deny=Any, with `=`",
            Ok(Self::ToolCalls) => "; write --fail-on-deny=ToolCalls, with `=`",
            Err(_) => "",
        }
    }
}

/// Shows what the gateway does, without a network: an agent, a provider and the gateway in one process.
#[derive(Debug, Args)]
pub struct DemoArgs {}

/// Says what is enforced here, what is not, and how to get it.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Also look at what this settings file asks for.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Asks a running gateway, that of a `postern run` too, for its policy, settings and health.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// The gateway's status socket, `admin.socket` in its settings. Without it: the gateway or run that answers here, at
    /// /run/postern/status.sock or for this user; where several do, a list of them.
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
}

/// Makes the gateway the only way out of this network namespace, and verifies that it is (docs/redirect.md).
///
/// Needs the capability NET_ADMIN. Run again, it replaces what it programmed before.
#[derive(Debug, Args)]
pub struct RedirectArgs {
    /// The UID that the gateway runs under, the only one that gets out.
    #[arg(long, required_unless_present = "remove")]
    pub uid: Option<u32>,
    /// Ports of this pod that others may connect to, besides the gateway's admin port.
    #[arg(long, value_name = "PORT", value_delimiter = ',')]
    pub inbound_ports: Vec<u16>,
    /// The gateway's settings, for its ports [default: 15001, 15002, 15053 and 15090].
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Keeps the name servers of /etc/resolv.conf there, and a hosts file with the loopback alone: what the gateway resolves
    /// by, which no container of the pod can change.
    #[arg(long, value_name = "DIRECTORY")]
    pub keep_names: Option<PathBuf>,
    /// What programs the rules. Auto is nf_tables, and iptables where the kernel has no nf_tables.
    #[arg(long, value_enum, ignore_case = true, default_value_t = Backend::Auto)]
    pub backend: Backend,
    #[command(flatten)]
    pub instead: RedirectInstead,
}

/// What `postern redirect` does instead of programming.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct RedirectInstead {
    /// Print the rules in the syntax of `nft`, or with --backend Iptables of `iptables-restore`.
    #[arg(long)]
    pub dry_run: bool,
    /// Say whether the rules are in force as they would be programmed.
    #[arg(long)]
    pub verify: bool,
    /// Remove everything that was programmed, by either backend.
    #[arg(long)]
    pub remove: bool,
}

/// The backends of `postern redirect`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum Backend {
    Auto,
    Nftables,
    Iptables,
}

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

/// Says why each rule does or does not apply to one tool call or request, and what is decided.
///
/// The question is JSON or YAML, an event or as little as {"toolCall": {"name", "input"}} or
/// {"destination": {"host", "port"}, "http": {"method", "path"}} (docs/policy.md). The exit status is 0 whatever is
/// decided.
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
    /// Decide these events anew under both: a file of events in JSON lines, a directory of them (*.jsonl), or `-` for
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

/// `postern ledger`.
#[derive(Debug, Subcommand)]
pub enum LedgerCommand {
    /// Prints the last events, and with --follow those that come.
    Tail(LedgerTailArgs),
    /// Prints the events that fit, in the order in which they were written; files of a directory by their names.
    Query(LedgerQueryArgs),
    Show(LedgerShowArgs),
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
    #[command(flatten)]
    pub source: LedgerSourceArgs,
    #[command(flatten)]
    pub filter: LedgerFilterArgs,
}

/// Shows one event whole, with the others of its exchange.
///
/// An id that was counted with others in one event is found there.
#[derive(Debug, Args)]
pub struct LedgerShowArgs {
    /// The event's id, as a refusal and the header x-postern-event name it.
    #[arg(value_name = "ID")]
    pub id: String,
    #[command(flatten)]
    pub source: LedgerSourceArgs,
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

/// Prints denials as SARIF 2.1.0, for what shows the results of code scanners (docs/sarif.md).
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

/// Shows events in a browser on this machine, live while more come (docs/ui.md).
///
/// Prints the page's address, which nobody else can guess, and serves it on the loopback until it is interrupted.
#[derive(Debug, Args)]
pub struct UiArgs {
    #[command(flatten)]
    pub source: LedgerSourceArgs,
    /// The port on 127.0.0.1; 0 is any that is free.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// Opens the page in the browser.
    #[arg(long)]
    pub open: bool,
}

/// `postern ca`.
#[derive(Debug, Subcommand)]
pub enum CaCommand {
    /// Makes a CA: ca-cert.pem, ca-key.pem (for its owner alone) and metadata.json. Never overwrites one.
    Init(CaArgs),
    /// Says which CA is there, whether it can be used, and what else interception needs.
    Status(CaArgs),
}

/// Arguments of `postern ca init` and `postern ca status`.
#[derive(Debug, Args)]
pub struct CaArgs {
    /// Where the CA is [default: `postern` in the user's data directory, that of `postern run`].
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
}

/// Arguments of `postern completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell to complete in.
    #[arg(value_enum)]
    pub shell: Shell,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[derive(Parser)]
    struct Run {
        #[command(flatten)]
        args: RunArgs,
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_command_of_run_keeps_its_own_flags() {
        for line in [
            &["run", "--", "curl", "--policy", "x", "-o", "y"][..],
            &["run", "curl", "--policy", "x", "-o", "y"],
        ] {
            let run = Run::try_parse_from(line).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(run.args.command, ["curl", "--policy", "x", "-o", "y"]);
            assert!(run.args.policy.is_none());
        }
        assert!(Run::try_parse_from(["run", "--polcy", "x", "--", "curl"]).is_err());
    }

    #[test]
    fn fail_on_deny_takes_no_word_of_the_command() {
        let run = Run::try_parse_from(["run", "--fail-on-deny", "curl", "x"]).unwrap();
        assert_eq!((run.args.fail_on_deny, run.args.command.len()), (Some(Denials::Any), 2));
        let run = Run::try_parse_from(["run", "--fail-on-deny=toolcalls", "--", "curl"]).unwrap();
        assert_eq!(run.args.fail_on_deny, Some(Denials::ToolCalls));
    }

    #[test]
    fn the_format_may_stand_anywhere() {
        for line in [["postern", "-o", "json", "ca", "status"], ["postern", "ca", "status", "-o", "json"]] {
            assert_eq!(Cli::parse_from(line).output, Output::Json);
        }
    }
}
