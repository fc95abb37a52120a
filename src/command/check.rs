//! Reads everything that a gateway starts from, and says all that is wrong with it.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use tracing::Level;

use super::{environment, output, roots};
use crate::cli::Output;
use crate::config::evidence::EvidenceSettings;
use crate::config::ledger::LedgerSettings;
use crate::config::pod::PolicySettings;
use crate::config::settings::WorkspaceSettings;
use crate::config::source::PolicySource;
use crate::config::watch::Watched;
use crate::config::{Settings, source};
use crate::evidence;
use crate::pod::{
    EVIDENCE_BYTES_VARIABLE, LEDGER_BYTES_VARIABLE, LEDGER_DIRECTORY, LOG_LEVEL, POLICY_REVISION,
    WORKSPACE_DIRECTORY, WORKSPACE_SOCKET,
};
use crate::policy::{Labels, Policy, document};
use crate::problem::Problem;
use crate::provider::surface::COMPANIONS;
use crate::telemetry::log;
use crate::tls::gate::{Evidence, Gate, GateSettings, Interception, Surroundings};
use crate::tls::roots::UpstreamTls;

/// A password or a user with one; more is another file given by mistake.
const MAX_PASSWORD_BYTES: u64 = 4 << 10;
/// Postern's roots are two at most; a bundle given by mistake is said as what it is elsewhere.
const MAX_ROOTS_BYTES: u64 = 4 << 20;
/// How often a CA that changes while it is read is read again.
const SWITCHES: usize = 5;

/// Everything that a gateway starts from, read and free of mistakes.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) settings: Settings,
    pub(crate) policy: Policy,
    pub(crate) gate: Gate,
    pub(crate) upstream_tls: UpstreamTls,
    pub(crate) expected: Expected,
    pub(crate) sources: Sources,
    /// The environment that it was read in; a reload happens in the same.
    pub(crate) surroundings: Surroundings,
}

/// What the operator and the pod say that this gateway should have.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    /// The revision that stands beside the documents.
    pub(crate) published: Option<String>,
    /// The revision that is stamped on the pod.
    pub(crate) stamped: Option<String>,
    /// The unknown parts of the newest policies, where their form for older versions is in force.
    pub(crate) unknown: Option<String>,
    /// The level of the log that the pod asks for.
    pub(crate) log_level: Option<Level>,
}

/// The sources of a snapshot: equal sources make equal snapshots, but for their age.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sources {
    revision: String,
    labels: Labels,
    /// A digest of all other files.
    others: String,
}

impl Sources {
    /// Returns the same sources with another policy.
    pub(crate) fn under(&self, policy: &Policy, labels: Labels) -> Self {
        Self { revision: policy.revision().to_owned(), labels, others: self.others.clone() }
    }
}

/// `postern gateway --check`: exit status 1 where the gateway would not start, but for variables that are not set
/// here: those are named.
pub(crate) fn run(config: &Path, output: Output) -> anyhow::Result<ExitCode> {
    match read_anywhere(config, environment::read(), SystemTime::now()).1 {
        Ok(checked) => {
            for unset in &checked.settings.unset {
                writeln!(io::stderr(), "postern: {unset} here: the gateway does not start without it")?;
            }
            if output == Output::Text {
                output::print(output, &summary(&checked), &())?;
            } else {
                output::print_problems(output, &[])?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(problems) => {
            output::print_problems(output, &problems)?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Reads what a gateway starts from in this environment: as [`read_anywhere`], and no variable may be missing.
///
/// # Errors
/// As there.
pub(crate) fn read(
    config: &Path,
    surroundings: Surroundings,
    now: SystemTime,
) -> (Watched, Result<Checked, Vec<Problem>>) {
    let (watched, checked) = read_anywhere(config, surroundings, now);
    let checked = checked.and_then(|checked| match checked.settings.unset.as_slice() {
        [] => Ok(checked),
        unset => Err(unset.to_vec()),
    });
    (watched, checked)
}

/// Reads the settings and everything they name, and answers besides what to watch for the next change: it was looked
/// at before it was read, and where reading failed it covers what has to be mended.
///
/// # Errors
/// Everything that is wrong: with the settings, or, where those are good, with all that they name.
fn read_anywhere(
    config: &Path,
    surroundings: Surroundings,
    now: SystemTime,
) -> (Watched, Result<Checked, Vec<Problem>>) {
    let mut watched = Watched::new([config.to_owned()]);
    // Digests are taken before files are read, so that a change in between is a difference the next time.
    let own = source::digest(&[config.to_owned()]).map_err(|problem| vec![problem]);
    let checked = Settings::read(config, &environment::variable).and_then(|mut settings| {
        environment::keep_first_roots(&mut settings.upstream.roots_of_environment);
        settings.ledger = settings.ledger.take().and_then(|ledger| in_this_pod(ledger, surroundings));
        settings.evidence =
            settings.evidence.take().and_then(|evidence| evidence_of_this_pod(evidence, surroundings));
        settings.workspace = settings.workspace.take().or_else(|| companion_of_this_pod(surroundings));
        watched.add(settings.files());
        let others = source::digest(&settings.files_beside_policy()).map_err(|problem| vec![problem])?;
        read_named(config, settings, own? + &others, surroundings, now)
    });
    (watched, checked)
}

/// The ledger as this pod can have it. A pod that was injected while there was none has no volume for it, and keeps none
/// until it is made anew: all pods of a namespace share one settings file.
fn in_this_pod(ledger: LedgerSettings, surroundings: Surroundings) -> Option<LedgerSettings> {
    if surroundings.kubernetes && ledger.is_in_a_pods_volume() && !Path::new(LEDGER_DIRECTORY).exists() {
        tracing::warn!(
            "this pod has no volume for a ledger: none is kept, and limits begin anew; make the pod anew"
        );
        return None;
    }
    let bytes = environment::variable(LEDGER_BYTES_VARIABLE).and_then(|bytes| bytes.parse().ok());
    Some(ledger.fitting(bytes))
}

/// The same of kept tool results: without a volume none is kept, and none is cut.
fn evidence_of_this_pod(evidence: EvidenceSettings, surroundings: Surroundings) -> Option<EvidenceSettings> {
    if surroundings.kubernetes && evidence.is_a_pods_volume() && !evidence.directory.exists() {
        tracing::warn!(
            "this pod has no volume for tool results: none is kept, and none is cut; make the pod anew"
        );
        return None;
    }
    let bytes = environment::variable(EVIDENCE_BYTES_VARIABLE).and_then(|bytes| bytes.parse().ok());
    Some(evidence.fitting(bytes))
}

/// The companion of this pod, where it was injected with one: all pods of a namespace share one settings file.
fn companion_of_this_pod(surroundings: Surroundings) -> Option<WorkspaceSettings> {
    let is_there = surroundings.kubernetes && Path::new(WORKSPACE_DIRECTORY).exists();
    is_there.then(|| WorkspaceSettings { socket: WORKSPACE_SOCKET.into() })
}

/// Reads everything that the settings name.
fn read_named(
    config: &Path,
    settings: Settings,
    others: String,
    surroundings: Surroundings,
    now: SystemTime,
) -> Result<Checked, Vec<Problem>> {
    let mut problems = Vec::new();
    let policy = policy(&settings.policy).map_err(|mistakes| problems.extend(mistakes));
    let gate =
        gate(config, &settings.interception, surroundings, now).map_err(|problem| problems.push(problem));
    let interception = gate.as_ref().map_or(&Interception::Off, |gate| &gate.interception);
    let name = config.display().to_string();
    let own =
        own_roots(&settings).map_err(|problem| problems.push(problem.in_file(&name))).unwrap_or_default();
    let upstream_tls =
        upstream_tls(config, &settings, interception, &own).map_err(|mistakes| problems.extend(mistakes));
    problems.extend(unread_files(&settings).into_iter().map(|problem| problem.in_file(&name)));
    match (policy, gate, upstream_tls) {
        (Ok((policy, labels, expected)), Ok(gate), Ok(upstream_tls)) if problems.is_empty() => {
            let sources = Sources { revision: policy.revision().to_owned(), labels, others };
            Ok(Checked { settings, policy, gate, upstream_tls, expected, sources, surroundings })
        }
        _ => Err(problems),
    }
}

/// Reads and compiles the policy for the pod as it is labelled now.
///
/// # Errors
/// Everything that is wrong with the policy's files, and with those of the labels and annotations.
pub(crate) fn policy(settings: &PolicySettings) -> Result<(Policy, Labels, Expected), Vec<Problem>> {
    let (labels, annotations) = (settings.labels.read(), settings.annotations.read());
    let source = source::read_policy(&settings.path).and_then(|source| Ok((known(&source)?, source)));
    match (labels, annotations, source) {
        (Ok(labels), Ok(mut annotations), Ok((Known { documents, published, unknown }, source))) => {
            let policy = Policy::compile(&documents, &labels)?;
            let policy = policy.accompanied(COMPANIONS).with_synced_at(source.synced_at);
            let stamped = annotations.remove(POLICY_REVISION).filter(|stamp| !stamp.is_empty());
            let log_level = annotations.get(LOG_LEVEL).and_then(|word| log::level(word));
            Ok((policy, labels, Expected { published, stamped, unknown, log_level }))
        }
        (labels, annotations, source) => {
            let of_pod = labels.err().into_iter().chain(annotations.err());
            Err(of_pod.chain(source.err().into_iter().flatten()).collect())
        }
    }
}

/// Reads the documents of a policy file or directory.
///
/// # Errors
/// Everything that is wrong with its files.
pub(crate) fn documents(path: &Path) -> Result<Vec<document::Document>, Vec<Problem>> {
    Ok(known(&source::read_policy(path)?)?.documents)
}

/// The documents that this version knows, and what the operator calls them.
struct Known {
    documents: Vec<document::Document>,
    published: Option<String>,
    unknown: Option<String>,
}

/// Reads the newest form of the policies, or the one for older versions where this version does not know the newest.
fn known(source: &PolicySource) -> Result<Known, Vec<Problem>> {
    let mut unknown = None;
    if !source.newest.files.is_empty() {
        match parsed(&source.newest.files) {
            Ok(documents) => {
                return Ok(Known { documents, published: source.newest.revision.clone(), unknown });
            }
            Err(problems) => {
                unknown = Some(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
            }
        }
    }
    // The operator has read what it writes: a mistake in it is something that this version does not know.
    let is_unknown = source.revision.is_some();
    let documents = parsed(&source.files).map_err(|mut problems| {
        problems.iter_mut().for_each(|problem| problem.is_unknown = is_unknown);
        problems
    })?;
    Ok(Known { documents, published: source.revision.clone(), unknown })
}

fn parsed(files: &[(String, String)]) -> Result<Vec<document::Document>, Vec<Problem>> {
    let (mut documents, mut problems) = (Vec::new(), Vec::new());
    for (name, text) in files {
        match document::parse(name, text) {
            Ok(read) => documents.extend(read),
            Err(mistakes) => problems.extend(mistakes),
        }
    }
    if problems.is_empty() { Ok(documents) } else { Err(problems) }
}

/// Opens the gate, or says why it stays shut.
///
/// # Errors
/// The reason for which the gateway must not start, or, at a reload, must keep the CA it has.
fn gate(
    config: &Path,
    settings: &GateSettings,
    surroundings: Surroundings,
    now: SystemTime,
) -> Result<Gate, Problem> {
    let mut watched =
        Watched::new(settings.certificate.iter().chain(&settings.key).map(|file| file.to_path_buf()));
    let mut opened = Gate::open(settings, surroundings, now);
    // A mounted Secret that switches to its next version in between gives one's certificate and the other's key.
    for _ in 0..SWITCHES {
        if opened.is_ok() || !watched.changed() {
            break;
        }
        opened = Gate::open(settings, surroundings, now);
    }
    opened.map_err(|closed| {
        let problem =
            Problem { unread: closed.error.unread(), ..Problem::at("interception", closed.to_string()) };
        problem.in_file(config.display().to_string())
    })
}

/// Reads the PEM of the roots that agents are to trust as Postern's; empty where the settings name none.
///
/// # Errors
/// The file cannot be read: without it Postern's next root could be trusted upstream.
fn own_roots(settings: &Settings) -> Result<String, Problem> {
    let Some(trust) = &settings.trust else { return Ok(String::new()) };
    source::read_text(&trust.roots, MAX_ROOTS_BYTES).map_err(|problem| named("trust.roots", &problem))
}

/// Reports a problem of a file at the field that names it.
fn named(field: &str, problem: &Problem) -> Problem {
    let message = format!("{}: {}", problem.file, problem.message);
    Problem { unread: problem.unread, ..Problem::at(field, message) }
}

/// Reads what upstreams are trusted by; Postern's own CA is never among it, nor the next one of its
/// `roots`.
///
/// # Errors
/// Every file that cannot be used.
fn upstream_tls(
    config: &Path,
    settings: &Settings,
    interception: &Interception,
    roots: &str,
) -> Result<UpstreamTls, Vec<Problem>> {
    let mut own = match interception {
        Interception::On(authority) => authority.certificates().to_vec(),
        Interception::Off | Interception::Passthrough { .. } => Vec::new(),
    };
    own.extend(roots::certificates(roots).flatten());
    let name = config.display().to_string();
    UpstreamTls::load(&settings.upstream.tls_settings(), &own)
        .map_err(|mistakes| mistakes.into_iter().map(|problem| problem.in_file(&name)).collect())
}

/// Finds other files that the settings name and that do not exist.
fn unread_files(settings: &Settings) -> Vec<Problem> {
    let password = settings.listeners.explicit.as_ref().and_then(|explicit| explicit.password_file.as_ref());
    let proxy = settings.upstream.proxy.as_ref().and_then(|proxy| proxy.credentials_file.as_ref());
    let mut problems = Vec::new();
    for (key, file) in
        [("listeners.explicit.passwordFile", password), ("upstream.proxy.credentialsFile", proxy)]
    {
        let Some(file) = file else { continue };
        match source::read_text(file, MAX_PASSWORD_BYTES) {
            Ok(text) if text.trim_end_matches(['\r', '\n']).is_empty() => {
                problems.push(Problem::at(key, format!("{} is empty", file.display())));
            }
            Ok(_) => {}
            Err(problem) => problems.push(named(key, &problem)),
        }
    }
    if let Some(directory) = &settings.credentials.directory {
        let (field, shown) = ("credentials.directory", directory.display());
        match fs::metadata(directory) {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => problems.push(Problem::at(field, format!("{shown} is no directory"))),
            Err(error) => {
                problems.push(Problem::unread(field, format!("{shown} is no directory ({error})"), &error))
            }
        }
    }
    if let Some(directory) = settings.evidence.as_ref().map(|evidence| &evidence.directory)
        && let Err(error) = evidence::check(directory)
    {
        let message = format!("{} cannot take files ({error})", directory.display());
        problems.push(Problem::unread("evidence.directory", message, &error));
    }
    problems
}

fn summary(checked: &Checked) -> String {
    let Evidence { authority, reason, .. } = &checked.gate.evidence;
    let interception = match (authority, reason) {
        (_, Some(reason)) => format!("no TLS is ended: {reason}"),
        (Some(authority), None) => format!("TLS is ended with the CA {}", authority.fingerprint),
        (None, None) => "no TLS is ended".to_owned(),
    };
    format!("in order: policy {}; {interception}\n", checked.policy.revision())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::tls::init;

    const POLICY: &str = "{apiVersion: postern.dev/v1alpha1, kind: EgressPolicy, metadata: {name: p, namespace: n}, \
        spec: {destinations: [{name: d, hosts: [a.example], action: Inspect}]}}";
    const CONSENT: Surroundings = Surroundings { intercept: true, kubernetes: false };

    /// A directory with settings, a policy and a CA.
    fn place(settings: &str, policy: &str) -> TempDir {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("settings.yaml"), format!("policy: {{path: policy.yaml}}\n{settings}"))
            .unwrap();
        fs::write(place.path().join("policy.yaml"), policy).unwrap();
        init::init(place.path(), SystemTime::now()).unwrap();
        place
    }

    fn read_in(place: &TempDir, surroundings: Surroundings) -> Result<Checked, Vec<Problem>> {
        read(&place.path().join("settings.yaml"), surroundings, SystemTime::now()).1
    }

    #[test]
    fn what_is_in_order_is_read() {
        let checked = read_in(&place("", POLICY), CONSENT).unwrap();
        assert!(matches!(checked.gate.interception, Interception::On(_)));
        let summary = summary(&checked);
        assert!(
            summary.starts_with("in order: policy sha256:") && summary.contains("with the CA sha256:"),
            "{summary}"
        );
    }

    #[test]
    fn all_that_the_settings_name_is_judged_at_once() {
        let place = place(
            "upstream: {roots: [missing.pem], proxy: {url: \"http://p.example\", credentialsFile: none}}\n\
             listeners: {explicit: {passwordFile: empty}}\n\
             credentials: {directory: nowhere}\n",
            &POLICY.replace("Inspect", "Inspct"),
        );
        fs::write(place.path().join("empty"), "\n").unwrap();
        fs::write(place.path().join("ca-cert.pem"), "no PEM").unwrap();
        let problems: Vec<_> =
            read_in(&place, CONSENT).unwrap_err().iter().map(ToString::to_string).collect();
        let all = problems.join("\n");
        assert_eq!(problems.len(), 6, "{all}");
        for part in [
            "spec.destinations[0].action",
            "interception: ",
            "missing.pem",
            "none: cannot",
            "empty",
            "nowhere",
        ] {
            assert!(all.contains(part), "{part} is missing in\n{all}");
        }
    }

    #[test]
    fn what_is_broken_is_watched_until_it_is_mended() {
        let place = place("upstream: {roots: [root.pem]}", "kind: [");
        let settings = place.path().join("settings.yaml");
        for (name, content) in
            [("policy.yaml", POLICY), ("root.pem", "no PEM"), ("settings.yaml", "policy: 5")]
        {
            let (mut watched, checked) = read(&settings, CONSENT, SystemTime::now());
            assert!(checked.is_err() && !watched.changed(), "{name}");
            fs::write(place.path().join(name), content).unwrap();
            assert!(watched.changed(), "{name}");
        }
    }

    #[test]
    fn without_consent_to_interception_it_would_not_start() {
        let place = place("", POLICY);
        let problems = read_in(&place, Surroundings { intercept: false, kubernetes: false }).unwrap_err();
        assert_eq!(problems.len(), 1);
        assert!(problems[0].message.contains("POSTERN_INTERCEPT"), "{}", problems[0]);
    }

    #[test]
    fn labels_are_read_with_the_policy() {
        let place = place("interception: {mode: Off}", POLICY);
        let settings = place.path().join("settings.yaml");
        fs::write(&settings, "policy: {path: policy.yaml, labels: labels}\ninterception: {mode: Off}\n")
            .unwrap();
        fs::write(place.path().join("labels"), "app=coder\n").unwrap();
        let problems = read_in(&place, CONSENT).unwrap_err();
        assert!(
            problems[0].file.ends_with("/labels") && problems[0].position == Some((1, 1)),
            "{}",
            problems[0]
        );
        fs::write(place.path().join("labels"), "app=\"coder\"\n").unwrap();
        read_in(&place, CONSENT).unwrap();
    }
}
