//! The stage of the demo's steps: upstream, gateway and agent in this process, their files in a directory that
//! goes with them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::{Context, anyhow};
use serde_json::json;

use super::agent::{AgentAnswer, Ask, DemoAgent};
use super::upstream::DemoUpstream;
use crate::command::check;
use crate::command::gateway::running::Running;
use crate::command::gateway::sinks::{EventSinks, Exporters};
use crate::command::private_directory::{PrivateDirectory, random_hex};
use crate::drain::Drain;
use crate::event::Event;
use crate::ledger::{NamedSink, Sink};
use crate::problem::Problem;
use crate::tls::gate::Surroundings;
use crate::tls::init;
use crate::workspace::serve::{Askers, serve};

pub(super) const POLICY: &str = include_str!("policy.yaml");
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(10);
/// Every name that has an address here.
const NAMES: [&str; 8] = [
    "llm.demo.test",
    "local.demo.test",
    "model.demo.test",
    "packages.demo.test",
    "eu.registry.demo.test",
    "pastebin.demo.test",
    "unknown.demo.test",
    "later.demo.test",
];

pub(super) struct DemoStage {
    pub(super) upstream: DemoUpstream,
    pub(super) agent: DemoAgent,
    /// The key that only the gateway may hold.
    pub(super) real_key: String,
    running: Running,
    events: Recorder,
    /// The ids of the events that refusals named.
    refusals: Mutex<Vec<String>>,
    place: PrivateDirectory,
}

impl DemoStage {
    pub(super) async fn set() -> anyhow::Result<Self> {
        let drain = Drain::default();
        let upstream = DemoUpstream::start(&drain).await?;
        let place = PrivateDirectory::make()?;
        let password = random_hex()?;
        let real_key = format!("sk-demo-real-{}", random_hex()?);
        let ca = place.path().join("ca");
        init::init(&ca, SystemTime::now())?;
        place.write("policy.yaml", POLICY.as_bytes())?;
        place.write("model-key", real_key.as_bytes())?;
        let hosts: serde_json::Map<_, _> =
            NAMES.iter().map(|name| ((*name).to_owned(), upstream.address.to_string().into())).collect();
        let evidence = place.path().join("evidence");
        std::fs::create_dir(&evidence)?;
        let settings = json!({
            "listeners": {"explicit": {
                "address": "127.0.0.1:0",
                "passwordFile": place.write("proxy-password", password.as_bytes())?,
            }},
            "admin": {"address": "127.0.0.1:0", "socket": "status.sock"},
            "interception": {"caCertificate": ca.join(init::CERTIFICATE), "caKey": ca.join(init::KEY)},
            "policy": {"path": "policy.yaml"},
            "upstream": {
                "roots": [place.write("upstream.pem", upstream.root.as_bytes())?],
                "hosts": hosts,
                "allowAddresses": ["127.0.0.0/8"],
            },
            "evidence": {"directory": evidence},
            "workspace": {"socket": companion(place.path())?},
            "shutdown": {"grace": "1s"},
        });
        let settings = place.write("settings.yaml", settings.to_string().as_bytes())?;
        let surroundings = Surroundings { intercept: true, kubernetes: false };
        let (watched, checked) = check::read(&settings, surroundings, SystemTime::now());
        let events = Recorder::default();
        let named = vec![NamedSink::blocking("demo", events.clone())];
        let sinks = EventSinks { named, exporters: Exporters::default(), store: None };
        let checked = checked.map_err(|problems| as_error(&problems))?;
        let running = Running::start(&settings, checked, watched, sinks)
            .await
            .map_err(|problems| as_error(&problems))?;
        let own = std::fs::read_to_string(ca.join(init::CERTIFICATE))?;
        let tls = DemoAgent::tls(&[&own, &upstream.root])?;
        let agent = DemoAgent { proxy: address(&running, "explicit")?, password, tls, drain };
        Ok(Self { upstream, agent, real_key, running, events, refusals: Mutex::default(), place })
    }

    /// Sends one request of the agent, and remembers the event that a refusal names.
    pub(super) async fn ask(&self, ask: Ask<'_>) -> anyhow::Result<AgentAnswer> {
        let shown =
            tokio::time::timeout(PATIENCE, self.agent.ask(&ask)).await.context("no answer in time")??;
        let event = shown.header("x-postern-event");
        if !event.is_empty() {
            self.refusals.lock().unwrap_or_else(PoisonError::into_inner).push(event.to_owned());
        }
        Ok(shown)
    }

    /// The ids of the events that refusals named so far.
    pub(super) fn refusals(&self) -> Vec<String> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The events so far, as they are written.
    pub(super) fn events(&self) -> Vec<String> {
        self.events.lines()
    }

    /// Adds a destination to the policy's file and waits until another revision is in force.
    pub(super) async fn add_destination(&self, destination: &str) -> anyhow::Result<()> {
        let before = self.revision();
        let list = "  destinations:\n";
        let edited = POLICY.replacen(list, &format!("{list}    - {destination}\n"), 1);
        self.place.write("policy.yaml", edited.as_bytes())?;
        self.until("the edited policy in force", || self.revision() != before).await
    }

    /// Waits until something holds.
    pub(super) async fn until(&self, what: &str, holds: impl Fn() -> bool + Send) -> anyhow::Result<()> {
        let looking = async {
            while !holds() {
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::time::timeout(PATIENCE, looking).await.with_context(|| format!("not in time: {what}"))
    }

    /// The admin port's `/metrics`.
    pub(super) async fn metrics(&self) -> anyhow::Result<String> {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(address(&self.running, "admin")?).await?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await?;
        let mut text = String::new();
        tokio::time::timeout(PATIENCE, stream.read_to_string(&mut text)).await??;
        Ok(text)
    }

    pub(super) async fn clear(self) {
        self.running.stop().await;
    }

    fn revision(&self) -> String {
        self.running.gateway.snapshot().policy().revision().to_owned()
    }
}

/// Starts the companion of a workspace with one file, in a thread and a runtime of its own, since the gateway waits for its
/// answers. Returns its socket.
fn companion(place: &Path) -> anyhow::Result<PathBuf> {
    let (root, socket) = (place.join("workspace"), place.join("workspace.sock"));
    std::fs::create_dir(&root)?;
    std::fs::write(root.join("notes.txt"), "one\ntwo\n")?;
    let (ready, started) = std::sync::mpsc::channel();
    let at = socket.clone();
    let answer = move || -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            ready.send(serve(&root, &at, Askers::Owner, &Drain::default()))?;
            std::future::pending().await
        })
    };
    std::thread::Builder::new().name("companion".to_owned()).spawn(answer)?;
    started.recv_timeout(PATIENCE).context("no companion")??;
    Ok(socket)
}

fn address(running: &Running, mode: &str) -> anyhow::Result<std::net::SocketAddr> {
    let listener = running.listeners().iter().find(|listener| listener.mode == mode);
    Ok(listener.with_context(|| format!("no {mode} listener"))?.address.parse()?)
}

pub(super) fn as_error(problems: &[Problem]) -> anyhow::Error {
    anyhow!(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

/// Keeps events as the lines that a file would get.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Recorder {
    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Sink for Recorder {
    fn write(&mut self, _event: &Event, line: &[u8]) -> io::Result<()> {
        let line = String::from_utf8_lossy(line).into_owned();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
