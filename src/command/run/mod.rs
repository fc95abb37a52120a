//! `postern run`: a command whose traffic goes through a gateway of its own.

mod background;
mod child;
mod companion;
pub(super) mod corporate;
mod denied;
mod evidence;
mod node;
mod page;
pub(super) mod policy;
mod record;
mod tally;
mod trust;
pub(super) mod variables;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context, bail};
use serde_json::json;
use tracing::Level;

use super::gateway::running::Running;
use super::gateway::sinks::EventSinks;
use super::gateways::GatewayOrigin;
use super::private_directory::{PrivateDirectory, random_hex};
use super::{check, directories, environment, output};
use crate::cli::{Denials, Output, RunArgs};
use crate::ledger::NamedSink;
use crate::ledger::stdout::JsonLines;
use crate::policy::Policy;
use crate::problem::Problem;
use crate::telemetry::log;
use crate::terminal;
use crate::tls::gate::Surroundings;
use crate::tls::init::{self, CERTIFICATE, KEY};
use child::ChildSignals;
use companion::Companion;
use corporate::ProxySearch;
use page::RunPage;
use policy::ChosenPolicy;
use record::RunRecord;
use tally::{RunSummary, RunTally};
use trust::Trusted;
use variables::ProxyWay;

/// How long the exchanges of processes that outlive the command may take to end.
const GRACE: &str = "2s";

/// Runs the command to its end. The exit status is the command's; 127 where it cannot be started, and 1 where it did
/// not come to that.
pub(super) fn run(args: &RunArgs, output: Output) -> anyhow::Result<ExitCode> {
    if environment::variable(variables::MARK).is_some() {
        bail!(
            "this is already inside a `postern run`: its gateway would not be trusted by another; run the command as it is"
        );
    }
    let (record, events, log_file) = RunRecord::create(&directories::state()?)?;
    log::start_in(Level::WARN, log_file);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let code = runtime.block_on(serve(args, output, &record, events));
    // A name that is still being resolved must not hold up the exit.
    runtime.shutdown_background();
    if record.close() {
        say(&format!("warnings are in {}", record.log.display()));
    }
    code
}

async fn serve(args: &RunArgs, output: Output, record: &RunRecord, events: File) -> anyhow::Result<ExitCode> {
    // First of all: a signal that comes before the command has started is for the command.
    let signals = ChildSignals::listen()?;
    let place = PrivateDirectory::make()?;
    let chosen = ChosenPolicy::choose(args.policy.as_deref(), &place)?;
    say(&chosen.announcement());
    let program = args.command.first().and_then(|program| Path::new(program).file_name());
    let origin = GatewayOrigin::of_run(&program.unwrap_or_default().to_string_lossy());
    let companion = Companion::of(args.workspace.as_deref(), &place).await?;
    let prepared = Prepared::write(&chosen, place, &origin, companion.as_ref())?;
    let surroundings = Surroundings { intercept: true, ..environment::read() };
    let (watched, checked) = check::read(&prepared.settings, surroundings, SystemTime::now());
    let tally = RunTally::default();
    let page = page(args, record).await?;
    let sinks = sinks(events, &tally, page.as_ref());
    let started = match checked {
        Ok(checked) => {
            let sinks = EventSinks::with_exporters_of_environment(sinks);
            Running::start(&prepared.settings, checked, watched, sinks).await
        }
        Err(problems) => Err(problems),
    };
    let running = match started {
        Ok(running) => running,
        Err(problems) => return refuse(output, &problems),
    };
    say(&format!(
        "events go to {} (`postern ledger tail -f`); ask the gateway with `postern status --socket {}`",
        record.events.display(),
        prepared.socket.display()
    ));
    let snapshot = running.gateway.snapshot();
    snapshot.credentials.problems().iter().for_each(|problem| say(&problem.to_string()));
    background::warning(&args.command).into_iter().for_each(say);
    let variables = prepared.variables(&running, snapshot.policy())?;
    if let Some(program) = args.command.first().filter(|_| !snapshot.policy().audit_only())
        && let Some(warning) = node::warning(program, &variables).await
    {
        say(&warning);
    }
    let code = match child::start(&args.command, variables) {
        Ok(child) => child::wait(child, signals).await?,
        Err(error) => {
            let program = args.command.first().map(|program| program.display().to_string());
            let program = program.unwrap_or_default();
            let remedy = args.fail_on_deny.map_or("", |_| Denials::remedy(&program));
            say(&format!("{program} cannot be started: {error}{remedy}"));
            child::NOT_STARTED
        }
    };
    running.stop().await;
    stop(companion, page).await;
    summarize(&tally, output)?;
    let (_, dropped) = running.gateway.metrics.events_total();
    Ok(ExitCode::from(exit_status(code, args.fail_on_deny, &tally.summary(), dropped)))
}

/// Ends what ran beside the gateway.
async fn stop(companion: Option<Companion>, page: Option<RunPage>) {
    if let Some(companion) = companion {
        companion.stop().await;
    }
    if let Some(page) = page {
        page.stop().await;
    }
}

/// Serves the page that `--ui` asks for, and says where it is.
async fn page(args: &RunArgs, record: &RunRecord) -> anyhow::Result<Option<RunPage>> {
    if !args.ui {
        return Ok(None);
    }
    let page = RunPage::serve(&record.events).await?;
    say(&format!("the events of this run are shown, while it lasts, at {}", page.url()));
    Ok(Some(page))
}

fn sinks(events: File, tally: &RunTally, page: Option<&RunPage>) -> Vec<NamedSink> {
    let kept =
        [NamedSink::blocking("file", JsonLines::new(events)), NamedSink::blocking("summary", tally.clone())];
    kept.into_iter().chain(page.map(RunPage::sink)).collect()
}

/// The exit status of a run whose command ended with 0 although something was denied, where `--fail-on-deny` asks.
const DENIED: u8 = 3;

/// The command's exit status, unless it is 0 and `--fail-on-deny` says otherwise. Events that were dropped could have
/// been denials.
fn exit_status(code: u8, fail_on: Option<Denials>, summary: &RunSummary, dropped: u64) -> u8 {
    let (calls, any) = summary.denied_by.calls_and_any();
    let denied = match fail_on {
        None => return code,
        Some(Denials::Any) => any,
        Some(Denials::ToolCalls) => calls,
    };
    match (code, denied, dropped) {
        (0, true, _) => say(&format!("something was denied: the exit status is {DENIED} (--fail-on-deny)")),
        (0, false, 1..) => {
            say(&format!("{dropped} events were dropped: the exit status is {DENIED} (--fail-on-deny)"));
        }
        _ => return code,
    }
    DENIED
}

fn refuse(output: Output, problems: &[Problem]) -> anyhow::Result<ExitCode> {
    output::print_problems(output, problems)?;
    Ok(ExitCode::FAILURE)
}

/// Standard output is the command's, so what Postern says goes to standard error.
fn say(text: &str) {
    // Nobody may be reading it, which is no reason not to run the command.
    let _ = writeln!(io::stderr(), "postern: {}", terminal::plain(text));
}

fn summarize(tally: &RunTally, output: Output) -> anyhow::Result<()> {
    let summary = tally.summary();
    let text = output::render(output, &summary.text(), &summary)?;
    // Nobody may be reading it.
    let _ = io::stderr().write_all(text.as_bytes());
    Ok(())
}

/// The files of a run's gateway.
struct Prepared {
    password: String,
    settings: PathBuf,
    socket: PathBuf,
    bundle: PathBuf,
    added_roots: PathBuf,
    /// Removed with all of them when the run is over.
    _place: PrivateDirectory,
}

impl Prepared {
    fn write(
        chosen: &ChosenPolicy,
        place: PrivateDirectory,
        origin: &GatewayOrigin,
        companion: Option<&Companion>,
    ) -> anyhow::Result<Self> {
        let home = authority()?;
        let own = std::fs::read_to_string(home.join(CERTIFICATE))
            .with_context(|| format!("{} cannot be read", home.join(CERTIFICATE).display()))?;
        let trusted =
            Trusted::collect(&own, &environment::variable).map_err(|problem| anyhow::anyhow!("{problem}"))?;
        for file in &trusted.files {
            say(&format!("the roots of {} are trusted, as your environment says", file.display()));
        }
        let mut upstream = json!({});
        match corporate::find(&environment::variable) {
            ProxySearch::Nothing => {}
            ProxySearch::Usable(corporate) => {
                say(&format!("the gateway goes through {}, as {} says", corporate.url, corporate.variable));
                upstream["proxy"] = corporate.settings(&place)?;
            }
            ProxySearch::Unusable(why) => say(&format!("{why}; the gateway does not go through it")),
        }
        let password = random_hex()?;
        let socket = origin.write(&place)?;
        let mut settings = json!({
            "listeners": {"explicit": {
                "address": "127.0.0.1:0",
                "passwordFile": place.write("proxy-password", password.as_bytes())?,
            }},
            "admin": {"address": "127.0.0.1:0", "socket": socket},
            "interception": {
                "mode": "Required",
                "caCertificate": home.join(CERTIFICATE),
                "caKey": home.join(KEY),
            },
            "policy": {"path": chosen.path()},
            "upstream": upstream,
            "evidence": evidence::settings(&directories::state()?)?,
            "events": {"stdout": false},
            "shutdown": {"grace": GRACE},
        });
        if let Some(companion) = companion {
            settings["workspace"] = json!({"socket": companion.socket});
        }
        Ok(Self {
            password,
            // JSON is YAML.
            settings: place.write("settings.yaml", serde_json::to_string_pretty(&settings)?.as_bytes())?,
            socket,
            bundle: place.write("bundle.pem", trusted.bundle.as_bytes())?,
            added_roots: place.write("added-roots.pem", trusted.added.as_bytes())?,
            _place: place,
        })
    }

    /// Returns the variables for the command's environment.
    fn variables(&self, running: &Running, policy: &Policy) -> anyhow::Result<Vec<(OsString, OsString)>> {
        let explicit = running.listeners().iter().find(|listener| listener.mode == "explicit");
        let address = &explicit.context("the gateway has no explicit listener")?.address;
        let proxy = format!("http://postern:{}@{address}", self.password);
        let way = ProxyWay { proxy: &proxy, bundle: &self.bundle, added_roots: &self.added_roots };
        let credentials: Vec<_> = policy.credentials().iter().map(AsRef::as_ref).collect();
        let users: Vec<_> = std::env::vars_os().collect();
        if policy.count() == 0 {
            say(
                "no policy selects this run, so that everything is denied: a run has no labels, and podSelector asks for some",
            );
        }
        Ok(variables::of(&way, &credentials, &users))
    }
}

/// The directory of the CA, which is made on first use.
fn authority() -> anyhow::Result<PathBuf> {
    let home: PathBuf = directories::data()?;
    if init::ensure(&home, SystemTime::now())? {
        say(&format!("made a CA in {}; only what `postern run` starts trusts it", shown(&home)));
    }
    Ok(home)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
