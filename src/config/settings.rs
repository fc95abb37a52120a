//! The gateway's settings: one YAML file, compiled into what runs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::evidence::EvidenceSettings;
use super::ledger::LedgerSettings;
use super::limits::{Limits, Timeouts};
use super::listeners::{Admin, Listeners};
use super::pod::PolicySettings;
use super::trust::TrustSettings;
use super::upstream::Upstream;
use super::{source, value};
use crate::clients;
use crate::file_path::FilePath;
use crate::problem::Problem;
use crate::telemetry::log;
use crate::tls::gate::GateSettings;
use crate::tls::roots::system_bundle;
use crate::yaml::origin::Origin;
use crate::yaml::read::{self, Context, Environment, Fault, FaultKind};
use crate::yaml::{self, Key, Node, Value};

const MAX_BYTES: u64 = 1 << 20;

/// The settings that a gateway runs with, in the shape of their file: a field here is a key there. Paths are absolute,
/// names canonical; there is no secret in them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    pub listeners: Listeners,
    pub admin: Admin,
    pub interception: GateSettings,
    pub policy: PolicySettings,
    pub upstream: Upstream,
    pub credentials: CredentialSettings,
    /// The roots that are written for agents.
    pub trust: Option<TrustSettings>,
    pub events: EventSettings,
    /// The file that keeps events and limits; none without it.
    pub ledger: Option<LedgerSettings>,
    /// Where tool results that are cut out of requests are kept; without it none is cut.
    pub evidence: Option<EvidenceSettings>,
    /// The companion that reads the agent's files; none without it.
    pub workspace: Option<WorkspaceSettings>,
    pub log: LogSettings,
    pub shutdown: ShutdownSettings,
    pub limits: Limits,
    pub timeouts: Timeouts,
    /// What `fromEnv` wants and the environment does not have; it is as if not written.
    #[serde(skip)]
    pub unset: Vec<Problem>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CredentialSettings {
    /// One file per credential name.
    pub directory: Option<FilePath>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EventSettings {
    /// Whether events go to standard output.
    pub stdout: bool,
}

impl Default for EventSettings {
    fn default() -> Self {
        Self { stdout: true }
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkspaceSettings {
    /// The socket of `postern workspace`.
    pub socket: FilePath,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSettings {
    /// How lines of the log on standard error are written.
    pub format: log::Format,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShutdownSettings {
    /// How long exchanges may take to end after a SIGTERM.
    #[serde(deserialize_with = "value::duration", serialize_with = "value::show_duration")]
    pub grace: Duration,
}

impl Default for ShutdownSettings {
    fn default() -> Self {
        Self { grace: Duration::from_secs(30) }
    }
}

impl Settings {
    /// Reads a settings file; relative paths in it are relative to its directory. What the environment names besides
    /// are the roots of `SSL_CERT_FILE` and the like.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the file.
    pub fn read(path: &Path, environment: Environment<'_>) -> Result<Self, Vec<Problem>> {
        let name = path.display().to_string();
        let text = source::read_text(path, MAX_BYTES).map_err(|problem| vec![problem])?;
        let absolute = std::path::absolute(path)
            .map_err(|error| vec![Problem::at("", format!("cannot be found: {error}")).in_file(&name)])?;
        let mut settings =
            Self::parse_in(environment, &text, absolute.parent().unwrap_or(Path::new("/")), &name)?;
        settings.upstream.roots_of_environment = roots_of(environment);
        Ok(settings)
    }

    /// Reads the text of a settings file that is used elsewhere: no variable is looked up, and `unset` names all.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the file.
    pub fn parse(text: &str, base_dir: &Path, file_name: &str) -> Result<Self, Vec<Problem>> {
        Self::parse_in(&|_| None, text, base_dir, file_name)
    }

    fn parse_in(
        environment: Environment<'_>,
        text: &str,
        base_dir: &Path,
        file_name: &str,
    ) -> Result<Self, Vec<Problem>> {
        let mut root = document(text).map_err(|problem| vec![problem.in_file(file_name)])?;
        let context = Context { directory: base_dir, environment, is_lenient: true };
        let (settings, faults) = read::read::<Self>(&mut root, &context);
        let (unset, faults): (Vec<_>, Vec<_>) =
            faults.into_iter().partition(|fault| fault.kind == FaultKind::UnsetVariable);
        let in_file = |fault| problem(fault).in_file(file_name);
        let mut problems: Vec<Problem> = faults.into_iter().map(in_file).collect();
        let found = settings.as_ref().map(Self::mistakes).unwrap_or_default();
        Origin::of(file_name, &root).add(&mut problems, found);
        let unset = unset.into_iter().map(in_file);
        match settings {
            Some(settings) if problems.is_empty() => {
                Ok(Self { unset: unset.collect(), ..settings.with_default_files(base_dir) })
            }
            Some(_) => Err(problems),
            // More is wrong than is told.
            None => Err(problems.into_iter().chain(unset).collect()),
        }
    }

    /// The CA's files have their default names beside the settings file.
    fn with_default_files(mut self, base_dir: &Path) -> Self {
        let GateSettings { certificate, key, .. } = &mut self.interception;
        certificate.get_or_insert_with(|| base_dir.join("ca-cert.pem").into());
        key.get_or_insert_with(|| base_dir.join("ca-key.pem").into());
        self
    }

    /// What is wrong with the settings as a whole.
    fn mistakes(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let trust = self.trust.as_ref();
        let workspace = self.workspace.as_ref().map(|workspace| &workspace.socket);
        for (path, field, meaning) in [
            (Some(&self.policy.path), "policy.path", "a policy file, or a directory of them"),
            (workspace, "workspace.socket", "where `postern workspace` answers"),
            (trust.map(|trust| &trust.directory), "trust.directory", "where agents find their roots"),
            (
                trust.map(|trust| &trust.roots),
                "trust.roots",
                "the PEM file of the roots that agents are to trust besides their own",
            ),
        ] {
            if path.is_some_and(|path| path.as_os_str().is_empty()) {
                problems.push(Problem::at(field, format!("is required: {meaning}")));
            }
        }
        if self.listeners.is_empty() {
            let message = "lists no listener: write `explicit: {}` for the proxy on its default port, \
                           or leave `listeners` out";
            problems.push(Problem::at("listeners", message));
        }
        problems.extend(self.ledger.iter().flat_map(LedgerSettings::mistakes));
        problems.extend(self.evidence.iter().flat_map(EvidenceSettings::mistakes));
        problems.extend(self.upstream.mistakes());
        problems.extend(self.listeners.shared(&self.admin));
        problems
    }

    /// The files besides the settings file whose change asks for a reload. The credentials' directory is not
    /// among them: secrets are re-read by themselves.
    pub fn files(&self) -> Vec<PathBuf> {
        let pod = [&self.policy.labels, &self.policy.annotations];
        let mut files = self.files_beside_policy();
        files.push(self.policy.path.clone().into());
        files.extend(pod.into_iter().filter_map(|map| map.path().map(Path::to_owned)));
        files
    }

    /// Those of [`Self::files`] that say neither what is allowed nor whom it is for.
    pub fn files_beside_policy(&self) -> Vec<PathBuf> {
        let Self { interception, upstream, listeners, .. } = self;
        let hosts = upstream
            .tls
            .values()
            .flat_map(|host| host.roots.iter().chain(&host.certificate).chain(&host.key));
        let password = listeners.explicit.iter().flat_map(|explicit| &explicit.password_file);
        let proxy = upstream.proxy.iter().flat_map(|proxy| &proxy.credentials_file);
        let settings = interception.certificate.iter().chain(&interception.key).chain(&upstream.roots);
        let files = settings.chain(hosts).chain(password).chain(proxy).map(|file| file.to_path_buf());
        files.chain(upstream.roots_of_environment.iter().cloned()).collect()
    }

    /// The settings in force as `postern status` shows them: the file's own shape, with every default in it. Nothing
    /// secret is there: passwords and keys stand in files, and URLs with a password are refused.
    pub fn redacted(&self) -> serde_json::Value {
        let mut settings = self.clone();
        let of_environment = settings.upstream.roots_of_environment.iter().cloned();
        settings.upstream.roots.extend(of_environment.map(FilePath::from));
        // No type of the settings fails to be written.
        let mut shown = serde_json::to_value(settings).unwrap_or_default();
        leave_out_unset(&mut shown);
        shown
    }
}

fn leave_out_unset(value: &mut serde_json::Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
        fields.values_mut().for_each(leave_out_unset);
    }
}

fn problem(mut fault: Fault) -> Problem {
    let mut is_unknown = false;
    if let FaultKind::UnknownField(known) = fault.kind {
        is_unknown = true;
        fault.message = format!("unknown key; expected one of: {}", known.join(", "));
    }
    Problem { is_unknown, ..fault.into() }
}

/// The files of roots that the environment names, but for the system's own bundle, which is trusted anyway, and for
/// relative paths: whoever may write where the gateway was started would be trusted.
fn roots_of(environment: Environment<'_>) -> Vec<PathBuf> {
    let named = clients::named_roots(environment).into_iter();
    named.filter(|file| file.is_absolute() && Some(file.as_path()) != system_bundle()).collect()
}

/// Reads the one document of a settings file; an empty file is one with nothing in it.
fn document(text: &str) -> Result<Node, Problem> {
    let mut documents = yaml::documents(text)?.into_iter();
    let mut root = documents.next().unwrap_or(Node { position: (1, 1), value: Value::Null });
    if let Some(second) = documents.next() {
        let message = "a second document begins here; settings are one document, without `---` in between";
        return Err(Problem { position: Some(second.position), ..Problem::at("", message) });
    }
    if root.is_null() {
        root.value = Value::Map(Vec::new());
    }
    if let Some(proxy) = root.value_mut("upstream").and_then(|upstream| upstream.value_mut("proxy")) {
        spell_out(proxy, "url");
    }
    Ok(root)
}

/// Makes `{key: text}` of a text alone.
fn spell_out(node: &mut Node, key: &str) {
    if let Value::Text(_) = node.value {
        let key = Key { position: node.position, text: key.to_owned() };
        node.value = Value::Map(vec![(key, node.clone())]);
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
