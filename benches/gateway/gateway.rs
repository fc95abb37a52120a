//! The built executable as a process: its files, its listener, its CPU time and its memory.

use std::fmt::Write as _;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::pki::UPSTREAM_CA;

/// Inspected, endpoints listed, with a credential.
pub(crate) const API: &str = "api.bench.test";
/// Inspected, without a credential.
pub(crate) const PLAIN: &str = "plain.bench.test";
/// A model: what it is asked and what it answers is read.
pub(crate) const MODEL: &str = "model.bench.test";
/// The same, with a credential.
pub(crate) const GUARDED: &str = "guarded.bench.test";
/// Tunnelled.
pub(crate) const TUNNEL: &str = "tunnel.bench.test";
/// What agents send in place of the key.
pub(crate) const PLACEHOLDER: &str = "postern:bench-key";
/// Names that are inspected and that nobody has asked for before. The settings file bounds them.
pub(crate) const COLD: usize = 4_500;

/// A gateway's policy, or the directory of several.
const POLICIES: &str = "policies.yaml";

/// USER_HZ: the unit of CPU times in /proc, the same on every Linux.
const TICK: Duration = Duration::from_millis(10);
/// How long it may take to start, under a profiler too.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running gateway; dropping it ends it.
pub(crate) struct Gateway {
    child: Child,
    pub(crate) address: SocketAddr,
}

/// A name of its own for each number below [`COLD`].
pub(crate) fn cold(number: usize) -> String {
    format!("c{number}.cold.bench.test")
}

impl Gateway {
    /// Starts it with its files in `directory`, where the authorities are already. So many cold names have an address.
    pub(crate) fn start(directory: &Path, upstream: SocketAddr, names: usize) -> Self {
        std::fs::write(directory.join("settings.yaml"), settings(upstream, names)).unwrap();
        Self::with_settings(directory, &mut Command::new(executable()))
    }

    /// Starts it with the settings that are in `directory`, and its policy if there is one.
    pub(crate) fn with_settings(directory: &Path, command: &mut Command) -> Self {
        if !directory.join(POLICIES).exists() {
            write_policies(directory, POLICY);
        }
        let mut child = command
            .args(["gateway", "--config", "settings.yaml"])
            .current_dir(directory)
            .env("POSTERN_INTERCEPT", "1")
            .env("BENCH_KEY", "sk-bench-0123456789abcdefghijklmnopqrstuvwxyz")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // As a container's runtime does with a log that nobody looks at.
        let mut events = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while events.read(&mut buffer).is_ok_and(|count| count > 0) {}
        });
        let address = listener(&mut child, &directory.join("status.sock"));
        Self { child, address }
    }

    /// Asks it to end, and waits until it has: a profiler around it writes what it saw.
    pub(crate) fn terminate(mut self) {
        let pid = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        let mut profiled = children.split_whitespace().map(|child| child.parse().unwrap());
        let process = Pid::from_raw(profiled.next_back().unwrap_or(pid.cast_signed())).unwrap();
        kill_process(process, Signal::TERM).unwrap();
        self.child.wait().unwrap();
    }

    /// User and system time that the process has used so far.
    pub(crate) fn cpu(&self) -> Duration {
        let stat = self.proc("stat");
        // The second field is the name, in brackets, and may hold anything.
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        TICK * (fields[11].parse::<u32>().unwrap() + fields[12].parse::<u32>().unwrap())
    }

    /// Resident memory in KiB.
    pub(crate) fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The part of it that is no page of a file, such as the executable's, in KiB.
    pub(crate) fn own(&self) -> u64 {
        self.memory("RssAnon:")
    }

    fn memory(&self, kind: &str) -> u64 {
        let status = self.proc("status");
        let line = status.lines().find_map(|line| line.strip_prefix(kind)).unwrap();
        line.trim().trim_end_matches("kB").trim().parse().unwrap()
    }

    fn proc(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It may have ended by itself, which the failed run has told already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes these documents where the settings look for them, of several each into a file of its own.
pub(crate) fn write_policies(directory: &Path, documents: &str) {
    let policies = directory.join(POLICIES);
    let documents: Vec<&str> = documents.split("---\n").collect();
    if let [document] = *documents {
        return std::fs::write(policies, document).unwrap();
    }
    std::fs::create_dir_all(&policies).unwrap();
    for (number, document) in documents.into_iter().enumerate() {
        std::fs::write(policies.join(format!("{number}.yaml")), document).unwrap();
    }
}

pub(crate) fn executable() -> PathBuf {
    env!("CARGO_BIN_EXE_postern").into()
}

/// Where the explicit proxy listens, once it does.
fn listener(child: &mut Child, socket: &Path) -> SocketAddr {
    let begun = std::time::Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            panic!("the gateway ended with {status}");
        }
        if let Some(address) = explicit(&status(socket)) {
            return address;
        }
        assert!(begun.elapsed() < PATIENCE, "the gateway does not serve");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What `postern status` prints; nothing while the gateway is not there.
fn status(socket: &Path) -> Vec<u8> {
    let mut command = Command::new(executable());
    command.args(["status", "-o", "json", "--socket"]).arg(socket).stderr(Stdio::null());
    command.output().unwrap().stdout
}

fn explicit(status: &[u8]) -> Option<SocketAddr> {
    let status: serde_json::Value = serde_json::from_slice(status).ok()?;
    let explicit = status["listeners"].as_array()?.iter().find(|listener| listener["mode"] == "explicit")?;
    explicit["address"].as_str()?.parse().ok()
}

pub(crate) fn settings(upstream: SocketAddr, names: usize) -> String {
    let mut text = format!(
        "listeners: {{explicit: {{address: \"127.0.0.1:0\"}}}}\n\
         admin: {{address: \"127.0.0.1:0\", socket: status.sock}}\n\
         policy: {{path: {POLICIES}}}\n\
         upstream:\n  roots: [{UPSTREAM_CA}]\n  allowAddresses: [127.0.0.0/8]\n  hosts:\n"
    );
    for name in
        [API, PLAIN, MODEL, GUARDED, TUNNEL].into_iter().map(str::to_owned).chain((0..names).map(cold))
    {
        writeln!(text, "    {name}: \"{upstream}\"").unwrap();
    }
    text
}

pub(crate) const POLICY: &str = "\
apiVersion: postern.dev/v1alpha1
kind: EgressPolicy
metadata: {name: bench, namespace: agents}
spec:
  podSelector: {}
  destinations:
    - name: api
      hosts: [api.bench.test]
      action: Inspect
      endpoints: [{methods: [POST], path: \"/v1/**\"}]
    - {name: plain, hosts: [plain.bench.test], action: Inspect, provider: None}
    - {name: model, hosts: [model.bench.test], action: Inspect, provider: Anthropic}
    - {name: guarded, hosts: [guarded.bench.test], action: Inspect, provider: Anthropic}
    - {name: cold, hosts: [\"*.cold.bench.test\"], action: Inspect, provider: None}
    - {name: tunnel, hosts: [tunnel.bench.test], action: Tunnel}
    - {name: never, hosts: [\"**.invalid\"], action: Deny}
  credentials:
    - {name: bench-key, hosts: [api.bench.test, guarded.bench.test], require: true, fromEnv: BENCH_KEY}
";
