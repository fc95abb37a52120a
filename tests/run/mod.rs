//! `postern run`, from outside: what the command finds, what becomes of its traffic, and how it all ends.

mod ending;
mod environment;
mod found;
mod node;
mod page;
mod ready;
mod relay;
mod traffic;
mod workspace;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::journal::poll;
use crate::support::schema;
use crate::support::{Agent, directory};

/// A user: a home, with the directory they work in, and an environment.
struct User {
    home: TempDir,
    environment: Vec<(String, String)>,
}

/// A run that waits for [`Run::end`], and the environment that its command has.
struct Run {
    child: Child,
    variables: BTreeMap<String, String>,
}

/// What was said by a run that has ended.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    signal: Option<i32>,
    stdout: String,
    stderr: String,
}

impl User {
    fn new() -> Self {
        let home = directory();
        std::fs::create_dir(home.path().join("work")).unwrap();
        std::fs::create_dir(home.path().join("tmp")).unwrap();
        let user = Self { home, environment: Vec::new() };
        let temporary = user.path("tmp").display().to_string();
        user.variable("TMPDIR", &temporary)
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postern"));
        command.args(arguments).current_dir(self.path("work")).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.home.path());
        command.envs(self.environment.iter().cloned());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs `postern` to its end.
    fn run(&self, arguments: &[&str]) -> Said {
        finish(self.command(arguments).spawn().unwrap())
    }

    /// A run under a policy file, the built-in one without, whose command tells its environment and waits.
    fn start(&self, policy: Option<&Path>) -> Run {
        self.start_with(policy, &[])
    }

    /// The same with further options.
    fn start_with(&self, policy: Option<&Path>, options: &[&str]) -> Run {
        let told = self.path("environment");
        // Of the run before.
        let _ = std::fs::remove_file(&told);
        let script = format!("env -0 > {0}.new && mv {0}.new {0}; read line", told.display());
        let mut arguments = vec![OsStr::new("run")];
        arguments.extend(policy.iter().flat_map(|policy| [OsStr::new("--policy"), policy.as_os_str()]));
        arguments.extend(options.iter().map(OsStr::new));
        arguments.extend(["--", "sh", "-c", &script].map(OsStr::new));
        let mut child = self.command(&arguments).spawn().unwrap();
        let text = poll("the command's environment", || {
            if child.try_wait().unwrap().is_some() {
                panic!("the run has ended: {:?}", std::io::read_to_string(child.stderr.take().unwrap()));
            }
            std::fs::read_to_string(&told).ok()
        });
        let pairs = text.split('\0').filter_map(|pair| pair.split_once('='));
        let variables = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Run { child, variables }
    }

    /// The events of the one run.
    fn events(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.event_file()).unwrap();
        let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        events.iter().for_each(|event| assert_eq!(schema::of_events().check(event), Ok(())));
        events
    }

    fn event_file(&self) -> PathBuf {
        let files = std::fs::read_dir(self.path(".local/state/postern/runs")).unwrap();
        let mut files = files.map(|entry| entry.unwrap().path());
        files.find(|path| path.extension() == Some("jsonl".as_ref())).unwrap()
    }
}

impl Run {
    /// The command's agent: through the proxy that its environment names, trusting the roots it names.
    fn agent(&self) -> Agent {
        let (password, address) = self.proxy();
        let mut roots = RootCertStore::empty();
        let bundle = std::fs::read(&self.variables["SSL_CERT_FILE"]).unwrap();
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&bundle).map(Result::unwrap));
        Agent::new(address.parse().unwrap(), Arc::new(roots)).password(&password)
    }

    /// Password and address.
    fn proxy(&self) -> (String, String) {
        let url = self.variables["HTTPS_PROXY"].strip_prefix("http://postern:").unwrap();
        let (password, address) = url.split_once('@').unwrap();
        (password.to_owned(), address.to_owned())
    }

    /// The signal that a run which was killed has ended by; its command ends, too.
    fn end_of_killed(mut self) -> Option<i32> {
        drop(self.child.stdin.take());
        finish(self.child).signal
    }

    /// Lets the command end.
    fn end(mut self) -> Said {
        self.child.stdin.take().unwrap().write_all(b"\n").unwrap();
        finish(self.child)
    }
}

fn finish(child: Child) -> Said {
    let output = child.wait_with_output().unwrap();
    Said {
        code: output.status.code(),
        signal: output.status.signal(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
