//! The command line: clap types, nothing else.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::version;

mod dlp;
mod ledger;
mod policy;

pub use dlp::*;
pub use ledger::*;
pub use policy::*;

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
    /// As a case of `postern policy test`: of `ledger show` alone.
    #[value(hide = true)]
    Test,
}

impl Output {
    /// Refuses the form of one command for the others.
    ///
    /// # Errors
    /// It is `test`, and this is not `ledger show`.
    pub(crate) fn check<C: CommandFactory>(self, is_show: bool) -> Result<(), clap::Error> {
        if self != Self::Test || is_show {
            return Ok(());
        }
        Err(C::command().error(ErrorKind::InvalidValue, "`-o test` is a form of `postern ledger show` alone"))
    }
}

impl Cli {
    /// Reads the command line of this process.
    ///
    /// # Errors
    /// Wrong usage, or a question for help or the version, which is to be printed.
    pub fn read() -> Result<Self, clap::Error> {
        let cli = Self::try_parse()?;
        cli.output.check::<Self>(matches!(cli.command, Command::Ledger(LedgerCommand::Show(_))))?;
        Ok(cli)
    }
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
    Workspace(WorkspaceArgs),
    /// Finds secrets in files, and tells what is looked for (docs/detection.md).
    #[command(subcommand, arg_required_else_help = true)]
    Dlp(DlpCommand),
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
    /// Reads the files of this directory for the gateway, by a process of its own, which `edits` of policies and agents may ask
    /// (docs/workspace.md).
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
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

/// Reads an agent's files for a gateway, which has keys and must not (docs/workspace.md).
///
/// It answers on a Unix socket, writes nothing, and uses no network. SIGTERM and SIGINT end it.
#[derive(Debug, Args)]
pub struct WorkspaceArgs {
    /// The directory of the agent's files. Nothing outside of it is opened, and no link is followed.
    #[arg(long, value_name = "DIR")]
    pub root: PathBuf,
    /// Where the gateway asks: `workspace.socket` of its settings.
    #[arg(long, value_name = "PATH")]
    pub socket: PathBuf,
    /// Lets other users ask, too: whoever reaches the socket. For a directory that the gateway alone can enter.
    #[arg(long)]
    pub any_user: bool,
    /// Says when it answers, and ends with its standard input and not by SIGINT.
    #[arg(long, hide = true)]
    pub attached: bool,
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

    /// Where neither the command nor its arguments are described, clap takes the words of a group of options.
    #[test]
    fn every_command_says_what_it_does() {
        fn check(command: &clap::Command) {
            for command in command.get_subcommands() {
                let about = command.get_about().unwrap_or_default().to_string();
                let verb = about.split(' ').next().unwrap_or_default();
                let is_verb = verb.ends_with('s') && verb != "Arguments";
                assert!(is_verb, "{}: {about:?}", command.get_name());
                check(command);
            }
        }
        check(&Cli::command());
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
