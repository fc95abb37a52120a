//! What a gateway is started with: its files in a directory of their own, and the process itself.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{Gateway, Pki};

/// The file of the policy in the directory of the gateway.
pub(super) const POLICY: &str = "policy.yaml";

/// A gateway's files before it starts: `settings.yaml`, `policy.yaml`, `credentials/`, and Postern's own CA.
pub(crate) struct Setup {
    directory: TempDir,
    authority: Pki,
    settings: Value,
    policy: String,
    environment: Vec<(String, String)>,
    descriptors: Option<u64>,
    has_full_disks: bool,
}

/// What a command said that has ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Setup {
    /// An explicit listener and the admin port on free ports, interception on, upstreams of this authority
    /// trusted, the loopback allowed, and a policy that denies everything.
    pub(crate) fn new(upstreams: &Pki) -> Self {
        let authority = Pki::new("Postern Test CA");
        let settings = json!({
            "listeners": {"explicit": {"address": "127.0.0.1:0"}},
            "admin": {"address": "127.0.0.1:0", "socket": "status.sock"},
            "interception": {
                "mode": "Required",
                "caCertificate": authority.certificate_path(),
                "caKey": authority.key_path(),
            },
            "policy": {"path": POLICY},
            "upstream": {
                "roots": ["upstream-ca.pem"],
                "hosts": {},
                "allowAddresses": ["127.0.0.0/8"],
            },
            "credentials": {"directory": "credentials"},
        });
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("credentials")).unwrap();
        std::fs::copy(upstreams.certificate_path(), directory.path().join("upstream-ca.pem")).unwrap();
        let environment = vec![("POSTERN_INTERCEPT".to_owned(), "1".to_owned())];
        Self {
            directory,
            authority,
            settings,
            policy: policy(&[]),
            environment,
            descriptors: None,
            has_full_disks: false,
        }
    }

    /// The same with this authority as Postern's own.
    pub(crate) fn issuing(mut self, authority: Pki) -> Self {
        self.authority = authority;
        let (certificate, key) = (self.authority.certificate_path(), self.authority.key_path());
        self.set("/interception/caCertificate", certificate.to_str()).set("/interception/caKey", key.to_str())
    }

    /// The policy `agents/test` with these destinations, each a YAML mapping on one line.
    pub(crate) fn destinations(self, destinations: &[&str]) -> Self {
        self.policy(&policy(destinations))
    }

    /// The text of `policy.yaml`.
    pub(crate) fn policy(mut self, text: &str) -> Self {
        text.clone_into(&mut self.policy);
        self
    }

    /// A static address for an upstream's name.
    pub(crate) fn host(self, name: &str, address: SocketAddr) -> Self {
        let pointer = format!("/upstream/hosts/{name}");
        self.set(&pointer, address.to_string())
    }

    /// A reverse listener that stands for this upstream.
    pub(crate) fn reverse(self, upstream: &str) -> Self {
        self.set("/listeners/reverse", json!([{"address": "127.0.0.1:0", "upstream": upstream}]))
    }

    /// The resolver, on a free port with the addresses of this pool.
    pub(crate) fn resolver(self, pool: &str) -> Self {
        self.set("/listeners/dns", json!({"port": 0, "pool": pool}))
    }

    /// A credential's mounted file.
    pub(crate) fn credential(self, name: &str, value: &str) -> Self {
        std::fs::write(self.path().join("credentials").join(name), value).unwrap();
        self
    }

    /// A variable of the gateway's environment, which holds nothing but these and `PATH`.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.retain(|(key, _)| key != name);
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The hard limit of the gateway's file descriptors; the soft one is half of it.
    pub(crate) fn descriptors(mut self, hard: u64) -> Self {
        self.descriptors = Some(hard);
        self
    }

    /// Prepares the gateway for [`Gateway::limit_files`]: a write beyond the limit is an error, and no signal that ends it.
    pub(crate) fn with_full_disks(mut self) -> Self {
        self.has_full_disks = true;
        self
    }

    /// A setting by its place (`/timeouts/agentHead`); `Value::Null` takes it away.
    pub(crate) fn set(mut self, pointer: &str, value: impl Into<Value>) -> Self {
        let mut at = &mut self.settings;
        let (parents, key) = pointer.rsplit_once('/').unwrap();
        for parent in parents.split('/').skip(1) {
            let parents = at.as_object_mut().unwrap();
            at = parents.entry(parent).or_insert_with(|| Value::Object(Map::new()));
        }
        let (value, parent) = (value.into(), at.as_object_mut().unwrap());
        if value.is_null() {
            parent.remove(key);
        } else {
            parent.insert(key.to_owned(), value);
        }
        self
    }

    /// The directory of its files; relative paths in the settings start here.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Postern's own authority.
    pub(crate) fn authority(&self) -> &Pki {
        &self.authority
    }

    /// Starts the gateway and waits until it serves.
    #[track_caller]
    pub(crate) fn start(self) -> Gateway {
        let mut command = self.command(&["gateway", "--config", "settings.yaml"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        Gateway::over(child, self.directory, self.authority)
    }

    /// Runs `postern` with these arguments in the directory, to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        let output = self.command(arguments).stdin(Stdio::null()).output().unwrap();
        Said {
            status: output.status,
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Writes the files and prepares the command.
    fn command(&self, arguments: &[&str]) -> Command {
        let settings = serde_yaml::to_string(&self.settings).unwrap();
        std::fs::write(self.path().join("settings.yaml"), settings).unwrap();
        std::fs::write(self.path().join(POLICY), &self.policy).unwrap();
        let executable = env!("CARGO_BIN_EXE_postern");
        let limits = self.descriptors.map(|hard| format!("ulimit -Sn {} && ulimit -Hn {hard} && ", hard / 2));
        let ignores = self.has_full_disks.then(|| "trap '' XFSZ && ".to_owned());
        let before: String = limits.into_iter().chain(ignores).collect();
        let mut command = Command::new(if before.is_empty() { executable } else { "/bin/sh" });
        if !before.is_empty() {
            command.args(["-c", &format!("{before}exec \"$0\" \"$@\""), executable]);
        }
        command.args(arguments).current_dir(self.path()).env_clear();
        // What a gateway that is killed leaves behind goes with its files.
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("TMPDIR", self.path());
        command.envs(self.environment.iter().cloned());
        command
    }
}

/// The policy `agents/test` with these destinations, each a YAML mapping on one line.
pub(crate) fn policy(destinations: &[&str]) -> String {
    let list: String = destinations.iter().map(|one| format!("    - {one}\n")).collect();
    let list = if list.is_empty() { "    []\n".to_owned() } else { list };
    format!(
        "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: test, namespace: agents}}\n\
         spec:\n  podSelector: {{}}\n  destinations:\n{list}"
    )
}
