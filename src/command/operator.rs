//! `postern-operator`: the controller, the injector and the webhook, joined.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow};
use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::{crds, event_schema, output};
use crate::admin::{self, Health};
use crate::bind;
use crate::cli::Output;
use crate::drain::Drain;
use crate::ledger::fresh_id;
use crate::operator::cli::{OperatorCli, OperatorCommand, OperatorRunArgs};
use crate::operator::controller::{self, metrics::OperatorMetrics};
use crate::operator::election::{self, LeaseCandidate};
use crate::operator::settings::Settings;
use crate::operator::webhook::{self, AdmissionWebhook, serving_certificate::Keeper};
use crate::telemetry::log;
use crate::tls::serving::Presented;

/// How long questions that are under way may take once nothing new is accepted, and the controller to give up leading.
const GRACE: Duration = Duration::from_secs(12);

/// Runs the subcommand of the command line. The caller prints an error and exits with 1.
pub fn run(cli: OperatorCli) -> anyhow::Result<ExitCode> {
    match cli.command {
        OperatorCommand::Run(args) => operate(&args, cli.output),
        OperatorCommand::Crds(args) => crds::run(&args, cli.output),
        OperatorCommand::EventSchema(args) => event_schema::run(&args, cli.output),
    }
}

fn operate(args: &OperatorRunArgs, output: Output) -> anyhow::Result<ExitCode> {
    let settings = match Settings::read(&args.config) {
        Ok(settings) => settings,
        Err(problems) => {
            output::print_problems(output, &problems)?;
            return Ok(ExitCode::FAILURE);
        }
    };
    if args.check {
        match output {
            Output::Text => output::print(output, "the settings are good\n", &())?,
            Output::Json | Output::Yaml | Output::Test => output::print_problems(output, &[])?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    log::write_as(settings.log.format);
    log::start(log::DEFAULT_LEVEL);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let code = runtime.block_on(serve(settings));
    // A name that is still being resolved must not hold up the exit.
    runtime.shutdown_background();
    code
}

/// Serves until SIGTERM or SIGINT; then stops being ready, serves on until its peers have noticed, and ends.
async fn serve(settings: Settings) -> anyhow::Result<ExitCode> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let drain = Drain::default();
    let lingering = settings.webhook.drain;
    let condition = start(Arc::new(settings), &drain).await?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    condition.stopping.store(true, Ordering::Relaxed);
    tracing::info!(
        seconds = lingering.as_secs(),
        "stopping: answers go on until nobody asks this replica any more"
    );
    tokio::select! {
        () = tokio::time::sleep(lingering) => {}
        // Whoever asks twice does not want to wait.
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    let in_time = drain.shut_down(GRACE).await;
    Ok(if in_time { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Binds everything, then serves it.
async fn start(settings: Arc<Settings>, drain: &Drain) -> anyhow::Result<Arc<Condition>> {
    let config = Config::infer().await.context(
        "there is no API server to talk to: run it in a cluster with a service account, or set KUBECONFIG",
    )?;
    let client = Client::try_from(config.clone()).context("the API server's address cannot be used")?;
    let asking = election::client(config).context("the API server's address cannot be used")?;
    let metrics = Arc::new(OperatorMetrics::new()?);
    let asked = everywhere("webhook.port", settings.webhook.port).await?;
    let admin = everywhere("admin.port", settings.admin.port).await?;

    let presented = Arc::new(Presented::default());
    let (leading, leads) = watch::channel(false);
    let keeper =
        Keeper::new(client.clone(), Arc::clone(&settings), Arc::clone(&presented), Arc::clone(&metrics));
    let keeper = Arc::new(keeper);
    drain.spawn(Arc::clone(&keeper).run(leads, drain.clone()));
    let answering = AdmissionWebhook::new(client.clone(), Arc::clone(&settings), Arc::clone(&metrics));
    webhook::serve(asked, presented, answering, drain)?;
    let stopping = AtomicBool::new(false);
    let condition = Arc::new(Condition { keeper, metrics: Arc::clone(&metrics), stopping });
    admin::serve_health(admin, Arc::clone(&condition) as Arc<dyn Health>, drain);
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        namespace = settings.namespace,
        "the operator serves"
    );

    let candidate = candidate(&settings);
    let controller = move |term: Drain| {
        let (client, settings, metrics) = (client.clone(), Arc::clone(&settings), Arc::clone(&metrics));
        async move {
            metrics.leader(true);
            let _leader = Leader(Arc::clone(&metrics));
            controller::run(client, settings, metrics, term).await;
        }
    };
    drain.spawn(election::run(asking, candidate, controller, leading, drain.clone()));
    Ok(condition)
}

/// Releases the lead, also where the controller was cut.
struct Leader(Arc<OperatorMetrics>);

impl Drop for Leader {
    fn drop(&mut self) {
        self.0.leader(false);
    }
}

/// Binds a port on all addresses, of both families where there are both.
async fn everywhere(field: &str, port: u16) -> anyhow::Result<TcpListener> {
    if let Ok(listener) = bind::tcp((Ipv6Addr::UNSPECIFIED, port).into()).await {
        return Ok(listener);
    }
    bind::tcp((Ipv4Addr::UNSPECIFIED, port).into()).await.map_err(|message| anyhow!("{field}: {message}"))
}

fn candidate(settings: &Settings) -> LeaseCandidate {
    let of = |name: &str| super::environment::variable(name).filter(|value| !value.is_empty());
    let system = rustix::system::uname();
    let name = of("POD_NAME").unwrap_or_else(|| system.nodename().to_string_lossy().into_owned());
    LeaseCandidate {
        namespace: settings.namespace.clone(),
        lease: settings.lease.clone(),
        name,
        mark: fresh_id().to_string(),
    }
}

/// How the operator is, for probes and scrapes.
struct Condition {
    keeper: Arc<Keeper>,
    metrics: Arc<OperatorMetrics>,
    stopping: AtomicBool,
}

impl Health for Condition {
    fn unready(&self) -> Vec<String> {
        if self.stopping.load(Ordering::Relaxed) {
            return vec!["the operator is stopping".to_owned()];
        }
        self.keeper.unready().into_iter().collect()
    }

    fn metrics(&self) -> String {
        self.metrics.encode()
    }
}
