//! A running gateway: the built executable, its events, its log, its status and metrics, and its end.

use std::fs::{self, DirEntry};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::Value;
use tempfile::TempDir;

use super::journal::{Journal, poll};
use super::schema;
use super::setup::POLICY;
use super::{Agent, Connection, PATIENCE, Pki, Resolver};

/// The process. Dropping it kills it, and shows its log where the test failed.
pub(crate) struct Gateway {
    child: Child,
    directory: TempDir,
    authority: Pki,
    events: Arc<Journal<Value>>,
    strays: Arc<Journal<String>>,
    /// Whether this test ends the process in the middle of what it writes.
    is_killed: Arc<AtomicBool>,
    log: Arc<Journal<String>>,
    readers: Vec<JoinHandle<()>>,
    listeners: Vec<(String, SocketAddr)>,
    /// The text of the policy that was last known to be in force.
    in_force: Mutex<String>,
}

impl Gateway {
    /// Takes over a process that was just started and waits until its status names its listeners.
    #[track_caller]
    pub(super) fn over(mut child: Child, directory: TempDir, authority: Pki) -> Self {
        let (events, strays) = (Arc::new(Journal::new()), Arc::new(Journal::new()));
        let (log, is_killed) = (Arc::new(Journal::new()), Arc::new(AtomicBool::new(false)));
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let events_reader = read_lines(stdout, {
            let (events, strays, is_killed) =
                (Arc::clone(&events), Arc::clone(&strays), Arc::clone(&is_killed));
            move |line, is_whole| {
                let _ = match serde_json::from_str(&line) {
                    Ok(event) => {
                        if let Err(why) = schema::of_events().check(&event) {
                            strays.push(format!("{why}: {line}"));
                        }
                        events.push(event)
                    }
                    Err(_) if !is_whole && is_killed.load(Ordering::Relaxed) => return,
                    Err(_) => strays.push(line),
                };
            }
        });
        let log_reader = read_lines(stderr, {
            let log = Arc::clone(&log);
            move |line, _| {
                let _ = log.push(line);
            }
        });
        let readers = vec![events_reader, log_reader];
        let in_force = fs::read_to_string(directory.path().join(POLICY)).unwrap_or_default();
        let (listeners, in_force) = (Vec::new(), Mutex::new(in_force));
        let mut gateway = Self {
            child,
            directory,
            authority,
            events,
            strays,
            is_killed,
            log,
            readers,
            listeners,
            in_force,
        };
        gateway.listeners = poll("the gateway's status", || gateway.read_listeners());
        gateway
    }

    /// An agent that goes through the explicit listener and trusts Postern's CA alone.
    pub(crate) fn agent(&self) -> Agent {
        Agent::new(self.address("explicit"), self.authority.roots())
    }

    /// A connection to the reverse listener.
    pub(crate) fn reverse(&self) -> Connection {
        Connection::open(self.address("reverse"))
    }

    /// The resolver, over IPv4.
    pub(crate) fn resolver(&self) -> Resolver {
        Resolver::at(self.address("dns"))
    }

    /// Where a listener (`explicit`, `reverse`, `dns`, `admin`) is bound.
    pub(crate) fn address(&self, mode: &str) -> SocketAddr {
        let listener = self.listeners.iter().find(|(name, _)| name == mode);
        listener.unwrap_or_else(|| panic!("no {mode} listener among {:?}", self.listeners)).1
    }

    /// The directory of its files.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Postern's own authority.
    pub(crate) fn authority(&self) -> &Pki {
        &self.authority
    }

    /// The events so far.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.events.entries()
    }

    /// Waits for an event.
    #[track_caller]
    pub(crate) fn wait_for_event(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.events.wait_for(what, wanted)
    }

    /// Waits for the first event of a kind with a verdict.
    #[track_caller]
    pub(crate) fn wait_for(&self, kind: &str, verdict: &str) -> Value {
        self.wait_for_event(&format!("a {kind} event with verdict {verdict}"), |event| {
            event["kind"] == kind && event["decision"]["verdict"] == verdict
        })
    }

    /// The log so far.
    pub(crate) fn log(&self) -> String {
        self.log.entries().join("\n")
    }

    /// What the status socket tells.
    pub(crate) fn status(&self) -> Value {
        self.read_status().unwrap_or_else(|| panic!("no status; the log says\n{}", self.log()))
    }

    /// What `postern` says on standard output with these arguments, in the gateway's directory.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postern"));
        let output = command.args(arguments).current_dir(self.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// An answer of the admin port.
    pub(crate) fn admin(&self, path: &str) -> super::Answer {
        let mut connection = Connection::open(self.address("admin"));
        connection.send(format!("GET {path} HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n"));
        connection.read_answer()
    }

    /// The sum of a metric's series that have these labels; 0 where there is none.
    pub(crate) fn metric(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let text = self.admin("/metrics").text();
        let series = text.lines().filter_map(|line| line.strip_prefix(name)?.rsplit_once(' '));
        let label = |(key, value): &(&str, &str)| format!("{key}=\"{value}\"");
        series
            .filter(|(braces, _)| braces.is_empty() || braces.starts_with('{'))
            .filter(|(braces, _)| labels.iter().all(|pair| braces.contains(&label(pair))))
            .map(|(_, value)| value.parse::<f64>().unwrap())
            .sum()
    }

    /// Waits until a metric has reached a value.
    #[track_caller]
    pub(crate) fn wait_for_metric(&self, name: &str, labels: &[(&str, &str)], at_least: f64) {
        let what = format!("{name}{labels:?} >= {at_least}");
        poll(&what, || (self.metric(name, labels) >= at_least).then_some(()));
    }

    /// Lets the kernel write a core file of the process, as far as this user may.
    pub(crate) fn permit_core_files(&self) {
        let pid = Some(Pid::from_child(&self.child));
        let hard = getrlimit(Resource::Core).maximum;
        prlimit(pid, Resource::Core, Rlimit { current: hard, maximum: hard }).unwrap();
    }

    /// Lets the process have so many file descriptors from now on; those that it has stay.
    pub(crate) fn limit_descriptors(&self, current: u64) {
        let pid = Some(Pid::from_child(&self.child));
        let maximum = getrlimit(Resource::Nofile).maximum;
        prlimit(pid, Resource::Nofile, Rlimit { current: Some(current), maximum }).unwrap();
    }

    /// Makes every write fail that would make a file longer than so many bytes, as on a full disk; none lets all succeed.
    pub(crate) fn limit_files(&self, current: Option<u64>) {
        let pid = Some(Pid::from_child(&self.child));
        let maximum = getrlimit(Resource::Fsize).maximum;
        prlimit(pid, Resource::Fsize, Rlimit { current, maximum }).unwrap();
    }

    /// The most memory that the process has held so far, in bytes (`VmHWM` of proc(5)).
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    /// Writes a file of its directory anew, whole.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let (written, target) = (self.path().join(format!("{name}.new")), self.path().join(name));
        fs::write(&written, text).unwrap();
        fs::rename(written, target).unwrap();
    }

    /// Replaces the policy, signals, and waits until a reload ended with `result` (`success` or `failure`), and until
    /// another text is in force: the gateway also looks by itself, so that an end may be that of the text before.
    #[track_caller]
    pub(crate) fn reload_policy(&self, text: &str, result: &str) {
        let labels = [("result", result)];
        let ended = self.metric("postern_policy_reloads_total", &labels);
        let revision = self.policy_revision();
        self.write(POLICY, text);
        self.signal("HUP");
        self.wait_for_metric("postern_policy_reloads_total", &labels, ended + 1.0);
        if result == "success" && self.in_force.lock().unwrap().as_str() != text {
            poll("the new policy", || (self.policy_revision() != revision).then_some(()));
            text.clone_into(&mut self.in_force.lock().unwrap());
        }
    }

    /// The revision of the policy in force.
    fn policy_revision(&self) -> Value {
        self.status()["policy"]["revision"].clone()
    }

    /// Sends a signal by its name, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        self.is_killed.fetch_or(name == "KILL", Ordering::Relaxed);
        let command = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
    }

    /// Halts all its threads, until it is told to `CONT`.
    pub(crate) fn pause(&self) {
        self.signal("STOP");
        let tasks = format!("/proc/{}/task", self.child.id());
        let halted = |task: std::io::Result<DirEntry>| {
            // A thread may have ended meanwhile.
            let stat = task.and_then(|task| fs::read_to_string(task.path().join("stat"))).unwrap_or_default();
            // Behind the name, which is in parentheses: `man 5 proc_pid_stat`.
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
        };
        poll("the halt", || fs::read_dir(&tasks).unwrap().all(halted).then_some(()));
    }

    /// Asks it to stop and waits until it has.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait_for_exit()
    }

    /// Waits for its end, and until all that it said has been read.
    pub(crate) fn wait_for_exit(&mut self) -> ExitStatus {
        let child = &mut self.child;
        let status = poll("the gateway's end", || child.try_wait().unwrap());
        self.readers.drain(..).for_each(|reader| reader.join().unwrap());
        status
    }

    fn read_listeners(&mut self) -> Option<Vec<(String, SocketAddr)>> {
        if let Some(status) = self.child.try_wait().unwrap() {
            panic!("the gateway ended with {status}");
        }
        let status = self.read_status()?;
        let listener = |entry: &Value| {
            let mode = entry["mode"].as_str()?.to_owned();
            Some((mode, entry["address"].as_str()?.parse().ok()?))
        };
        status["listeners"].as_array()?.iter().map(listener).collect()
    }

    fn read_status(&self) -> Option<Value> {
        let mut stream = UnixStream::connect(self.path().join("status.sock")).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.write_all(b"GET /status HTTP/1.1\r\nHost: postern\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        serde_json::from_str(body).ok()
    }
}

impl Drop for Gateway {
    #[expect(clippy::print_stderr, reason = "the log of a failed test is what explains it")]
    fn drop(&mut self) {
        // It may have ended already, which is what some tests wait for.
        self.is_killed.store(true, Ordering::Relaxed);
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.readers.drain(..).for_each(|reader| drop(reader.join()));
        if std::thread::panicking() {
            eprintln!("--- the gateway's log\n{}\n--- its events", self.log());
            self.events().iter().for_each(|event| eprintln!("{event}"));
            return;
        }
        assert_eq!(
            self.strays.entries(),
            Vec::<String>::new(),
            "standard output carries events alone, which are as their schema says"
        );
    }
}

/// Gives each line away, and whether it ended: the last one of a killed process may not have.
fn read_lines(
    from: impl Read + Send + 'static,
    take: impl Fn(String, bool) + Send + 'static,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = String::new();
        while from.read_line(&mut line).is_ok_and(|read| read > 0) {
            let is_whole = line.ends_with('\n');
            take(line.trim_end_matches('\n').to_owned(), is_whole);
            line.clear();
        }
    })
}
