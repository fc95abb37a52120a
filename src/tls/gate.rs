//! The interception gate: whether TLS may be ended here, and the evidence for it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use zeroize::Zeroizing;

use super::authority::{Authority, AuthorityError};
use super::defect::rfc3339;
use super::file;
use crate::file_path::FilePath;
use crate::problem::{Problem, is_passing};

/// `interception` of the settings, with absolute paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct GateSettings {
    pub mode: Mode,
    #[serde(rename = "caCertificate")]
    pub certificate: Option<FilePath>,
    #[serde(rename = "caKey")]
    pub key: Option<FilePath>,
    /// The fingerprint that a human approved.
    #[serde(rename = "caApproval", deserialize_with = "fingerprint")]
    pub approval: Option<String>,
    pub on_error: OnError,
}

/// `interception.mode`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    #[default]
    Required,
    /// No TLS is ended.
    Off,
}

/// `interception.onError`: what becomes of Inspect destinations when the CA cannot be loaded or is not approved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnError {
    /// The gateway does not start; at reload the last good CA stays.
    #[default]
    FailClosed,
    /// They are tunnelled; never in Kubernetes.
    Passthrough,
}

fn fingerprint<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    if digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(Some(text.to_ascii_lowercase()));
    }
    let message =
        "expected the CA's fingerprint, \"sha256:\" and 64 hex digits, as `postern ca status` prints it";
    Err(Error::custom(message))
}

/// What the environment says, read by `command/` alone.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings {
    /// `POSTERN_INTERCEPT` is `1`: whoever started the process wants TLS ended.
    pub intercept: bool,
    /// `KUBERNETES_SERVICE_HOST` is set.
    pub kubernetes: bool,
}

/// What the gate decided, and why.
#[derive(Debug)]
pub struct Gate {
    pub interception: Interception,
    pub evidence: Evidence,
}

/// How destinations that policy inspects are treated.
#[derive(Debug)]
pub enum Interception {
    /// Their TLS is ended with leaves of this CA.
    On(Arc<Authority>),
    /// They are reached by plain HTTP and reverse listeners only, and denied otherwise.
    Off,
    /// They are tunnelled, because of `reason`.
    Passthrough { reason: String },
}

/// What a Lifecycle event and `postern ca status` say of the gate; no secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    pub mode: Mode,
    pub state: GateState,
    /// `POSTERN_INTERCEPT` was `1`.
    pub requested: bool,
    /// Whether the CA is the approved one; absent where none was loaded or no approval is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authority: Option<AuthorityEvidence>,
    /// Why it is not intercepting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Where the gate stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum GateState {
    Intercepting,
    Off,
    Passthrough,
    Refused,
}

/// The CA behind the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthorityEvidence {
    pub fingerprint: String,
    pub subject: String,
    /// RFC 3339, of the whole chain.
    pub not_before: String,
    pub not_after: String,
    /// Whether name constraints limit what it may vouch for.
    pub constrained: bool,
    /// What some clients will refuse.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<String>,
}

/// Why the gateway must not start (or, at reload, must keep the CA it has).
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Closed {
    pub evidence: Evidence,
    pub error: GateError,
}

/// What keeps the gate shut. Every message is whole, with its cause, and says what to do.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    #[error(
        "interception.mode is Required, but POSTERN_INTERCEPT is not 1 in the environment: set it to consent to TLS \
         being decrypted here (`postern run` and the chart do), or set interception.mode: Off"
    )]
    NotRequested,
    #[error(
        "interception.onError: Passthrough is refused in Kubernetes, where it would let inspected destinations pass \
         unseen: use FailClosed"
    )]
    PassthroughInKubernetes,
    #[error(
        "{field} is missing, and interception.mode is Required: `postern ca init` makes a CA and says where"
    )]
    NotSet { field: &'static str },
    #[error("{field}: {path} cannot be read ({cause})", path = path.display())]
    Unreadable { field: &'static str, path: PathBuf, cause: io::Error },
    #[error("{path}: {cause}", path = path.display())]
    Unusable { path: PathBuf, cause: Box<AuthorityError> },
    #[error(
        "interception.caApproval is no fingerprint: expected `sha256:` and 64 hex digits, as `postern ca status` shows"
    )]
    BadApproval,
    #[error(
        "the CA is not the approved one: it is {actual}, interception.caApproval says {approved}; approve it there if \
         it was changed on purpose"
    )]
    NotApproved { actual: String, approved: String },
}

impl Gate {
    /// Decides whether TLS may be ended here, reading the CA's files where it may.
    pub fn open(
        settings: &GateSettings,
        surroundings: Surroundings,
        now: SystemTime,
    ) -> Result<Self, Box<Closed>> {
        let mut evidence = Evidence {
            mode: settings.mode,
            state: GateState::Off,
            requested: surroundings.intercept,
            approved: None,
            authority: None,
            reason: None,
        };
        if settings.mode == Mode::Off {
            evidence.reason = Some("interception.mode is Off".to_owned());
            return Ok(Self { interception: Interception::Off, evidence });
        }
        let opened = may_open(settings, surroundings).and_then(|approved| {
            let authority = load(settings, now)?;
            evidence.authority = Some(AuthorityEvidence::of(&authority));
            evidence.approved = approved.as_ref().map(|approved| approved == authority.fingerprint());
            check_approval(&authority, approved)?;
            Ok(authority)
        });
        match opened {
            Ok(authority) => {
                evidence.state = GateState::Intercepting;
                Ok(Self { interception: Interception::On(Arc::new(authority)), evidence })
            }
            Err(error) => Self::fail(settings, error, evidence),
        }
    }

    fn fail(settings: &GateSettings, error: GateError, mut evidence: Evidence) -> Result<Self, Box<Closed>> {
        let reason = error.to_string();
        evidence.reason = Some(reason.clone());
        if settings.on_error == OnError::Passthrough && error.is_of_ca() && !error.is_passing() {
            evidence.state = GateState::Passthrough;
            return Ok(Self { interception: Interception::Passthrough { reason }, evidence });
        }
        evidence.state = GateState::Refused;
        Err(Box::new(Closed { evidence, error }))
    }
}

impl GateError {
    /// The error of the system, if a file of the CA could not be read.
    pub fn unread(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Unreadable { cause, .. } => Problem::unread("", "", cause).unread,
            Self::NotSet { .. }
            | Self::Unusable { .. }
            | Self::NotApproved { .. }
            | Self::NotRequested
            | Self::PassthroughInKubernetes
            | Self::BadApproval => None,
        }
    }

    /// Whether the CA may be there and in order: an agent that exhausts descriptors must not end interception.
    fn is_passing(&self) -> bool {
        self.unread().is_some_and(is_passing)
    }

    /// Whether it is the CA that is missing, unusable or not approved, for which `onError` is made; the rest are
    /// settings that contradict themselves or the environment.
    fn is_of_ca(&self) -> bool {
        match self {
            Self::NotSet { .. }
            | Self::Unreadable { .. }
            | Self::Unusable { .. }
            | Self::NotApproved { .. } => true,
            Self::NotRequested | Self::PassthroughInKubernetes | Self::BadApproval => false,
        }
    }
}

impl AuthorityEvidence {
    /// Describes a CA.
    pub fn of(authority: &Authority) -> Self {
        let (not_before, not_after) = authority.validity();
        Self {
            fingerprint: authority.fingerprint().to_owned(),
            subject: authority.subject().to_owned(),
            not_before: rfc3339(not_before.into()),
            not_after: rfc3339(not_after.into()),
            constrained: authority.is_constrained(),
            caveats: authority.caveats().to_vec(),
        }
    }
}

/// Checks everything that does not need the CA; returns the approved fingerprint in its normal form.
fn may_open(settings: &GateSettings, surroundings: Surroundings) -> Result<Option<String>, GateError> {
    if !surroundings.intercept {
        return Err(GateError::NotRequested);
    }
    if surroundings.kubernetes && settings.on_error == OnError::Passthrough {
        return Err(GateError::PassthroughInKubernetes);
    }
    settings.approval.as_deref().map(|text| normal(text).ok_or(GateError::BadApproval)).transpose()
}

fn load(settings: &GateSettings, now: SystemTime) -> Result<Authority, GateError> {
    let (path, certificate) = read("interception.caCertificate", settings.certificate.as_deref())?;
    let (_, key) = read("interception.caKey", settings.key.as_deref())?;
    Authority::load(&certificate, &key, now)
        .map_err(|cause| GateError::Unusable { path: path.to_owned(), cause: Box::new(cause) })
}

fn read<'a>(field: &'static str, path: Option<&'a Path>) -> Result<(&'a Path, Zeroizing<String>), GateError> {
    let path = path.ok_or(GateError::NotSet { field })?;
    match file::read(path) {
        Ok(text) => Ok((path, text)),
        Err(cause) => Err(GateError::Unreadable { field, path: path.to_owned(), cause }),
    }
}

fn check_approval(authority: &Authority, approved: Option<String>) -> Result<(), GateError> {
    match approved {
        Some(approved) if approved != authority.fingerprint() => {
            Err(GateError::NotApproved { actual: authority.fingerprint().to_owned(), approved })
        }
        Some(_) | None => Ok(()),
    }
}

/// The form in which fingerprints are compared; colons and capitals, as `openssl x509 -fingerprint` prints, are fine.
fn normal(fingerprint: &str) -> Option<String> {
    let text = fingerprint.trim().to_ascii_lowercase().replace(':', "");
    let hex = text.strip_prefix("sha256").unwrap_or(&text);
    (hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| format!("sha256:{hex}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::init;

    const LAPTOP: Surroundings = Surroundings { intercept: true, kubernetes: false };
    const CLUSTER: Surroundings = Surroundings { intercept: true, kubernetes: true };

    const OFF: GateSettings = GateSettings {
        mode: Mode::Off,
        certificate: None,
        key: None,
        approval: None,
        on_error: OnError::FailClosed,
    };

    /// A directory with a CA, and settings that require it.
    struct Local {
        _directory: tempfile::TempDir,
        settings: GateSettings,
        fingerprint: String,
    }

    fn local() -> Local {
        let directory = tempfile::tempdir().unwrap();
        let made = init::init(directory.path(), SystemTime::now()).unwrap();
        let settings = GateSettings {
            mode: Mode::Required,
            certificate: Some(directory.path().join(init::CERTIFICATE).into()),
            key: Some(directory.path().join(init::KEY).into()),
            ..GateSettings::default()
        };
        Local { _directory: directory, settings, fingerprint: made.fingerprint }
    }

    fn open(settings: &GateSettings, surroundings: Surroundings) -> Result<Gate, Box<Closed>> {
        Gate::open(settings, surroundings, SystemTime::now())
    }

    fn refused(settings: &GateSettings, surroundings: Surroundings) -> GateError {
        let closed = open(settings, surroundings).unwrap_err();
        assert_eq!(closed.evidence.state, GateState::Refused);
        assert_eq!(closed.evidence.reason, Some(closed.to_string()));
        closed.error
    }

    #[test]
    fn a_loaded_ca_opens_it_and_the_evidence_says_which() {
        let local = local();
        let gate = open(&local.settings, CLUSTER).unwrap();
        assert!(matches!(gate.interception, Interception::On(_)));
        let evidence = serde_json::to_value(&gate.evidence).unwrap();
        assert_eq!(evidence["mode"], "Required");
        assert_eq!(evidence["state"], "Intercepting");
        assert_eq!(evidence["requested"], true);
        assert_eq!(evidence["authority"]["fingerprint"], *local.fingerprint);
        assert_eq!(evidence["authority"]["constrained"], false);
        assert!(evidence["authority"]["notAfter"].as_str().unwrap().ends_with('Z'));
        assert!(evidence.get("approved").is_none() && evidence.get("reason").is_none());
    }

    #[test]
    fn descriptors_that_ran_out_end_no_interception() {
        let settings = GateSettings { on_error: OnError::Passthrough, ..local().settings };
        let fail = |cause: io::Error| {
            let error = GateError::Unreadable { field: "f", path: PathBuf::new(), cause };
            let evidence = open(&OFF, LAPTOP).unwrap().evidence;
            Gate::fail(&settings, error, evidence)
        };
        let closed = fail(rustix::io::Errno::MFILE.into()).unwrap_err();
        assert_eq!((closed.evidence.state, closed.error.unread().is_some()), (GateState::Refused, true));
        assert_eq!(fail(io::ErrorKind::NotFound.into()).unwrap().evidence.state, GateState::Passthrough);
    }

    #[test]
    fn mode_off_needs_nothing_and_reads_nothing() {
        let settings = GateSettings { certificate: Some("/nonexistent".into()), ..OFF };
        let gate = open(&settings, Surroundings { intercept: false, kubernetes: true }).unwrap();
        assert!(matches!(gate.interception, Interception::Off));
        assert_eq!(gate.evidence.reason.as_deref(), Some("interception.mode is Off"));
    }

    #[test]
    fn without_the_environments_consent_it_refuses_whatever_on_error_says() {
        let mut local = local();
        for on_error in [OnError::FailClosed, OnError::Passthrough] {
            local.settings.on_error = on_error;
            let error = refused(&local.settings, Surroundings { intercept: false, kubernetes: false });
            assert!(matches!(error, GateError::NotRequested));
            assert!(error.to_string().contains("POSTERN_INTERCEPT is not 1"), "{error}");
        }
    }

    #[test]
    fn the_approved_ca_opens_it_in_every_spelling_of_the_fingerprint() {
        let mut local = local();
        let hex = local.fingerprint.strip_prefix("sha256:").unwrap().to_owned();
        let pairs: Vec<&str> = (0..32).map(|at| &hex[2 * at..2 * at + 2]).collect();
        let spelt_by_openssl = pairs.join(":").to_ascii_uppercase();
        for approval in [local.fingerprint.clone(), hex.clone(), spelt_by_openssl] {
            local.settings.approval = Some(approval);
            assert_eq!(open(&local.settings, LAPTOP).unwrap().evidence.approved, Some(true));
        }
    }

    #[test]
    fn another_ca_than_the_approved_one_is_refused_and_told_with_both_fingerprints() {
        let mut local = local();
        let approved = format!("sha256:{}", "0".repeat(64));
        local.settings.approval = Some(approved.clone());
        let closed = open(&local.settings, LAPTOP).unwrap_err();
        assert!(matches!(closed.error, GateError::NotApproved { .. }));
        assert!(closed.to_string().contains(&approved) && closed.to_string().contains(&local.fingerprint));
        assert_eq!(closed.evidence.approved, Some(false));
        assert_eq!(closed.evidence.authority.unwrap().fingerprint, local.fingerprint);
    }

    #[test]
    fn an_approval_that_is_no_fingerprint_is_refused_whatever_on_error_says() {
        let mut local = local();
        local.settings.on_error = OnError::Passthrough;
        for approval in ["", "yes", "sha256:", "sha1:0000", &"g".repeat(64)] {
            local.settings.approval = Some(approval.to_owned());
            assert!(matches!(refused(&local.settings, LAPTOP), GateError::BadApproval), "{approval}");
        }
    }

    #[test]
    fn without_a_usable_ca_it_fails_closed_or_passes_through_as_settings_say() {
        let mut unreadable = local();
        unreadable.settings.key = Some("/nonexistent/ca-key.pem".into());
        let mut missing = local();
        missing.settings.certificate = None;
        let mut mismatched = local();
        mismatched.settings.key = local().settings.key;
        let mut swapped = local();
        swapped.settings.certificate = swapped.settings.key.clone();
        let mut unapproved = local();
        unapproved.settings.approval = Some("0".repeat(64));
        for local in [unreadable, missing, mismatched, swapped, unapproved] {
            let mut settings = local.settings;
            let said = refused(&settings, LAPTOP).to_string();
            settings.on_error = OnError::Passthrough;
            let gate = open(&settings, LAPTOP).unwrap();
            assert!(
                matches!(gate.interception, Interception::Passthrough { reason } if reason == said),
                "{said}"
            );
            assert_eq!(gate.evidence.state, GateState::Passthrough);
            assert_eq!(gate.evidence.reason, Some(said));
        }
    }

    #[test]
    fn passthrough_is_refused_in_kubernetes_even_while_the_ca_is_fine() {
        let mut local = local();
        local.settings.on_error = OnError::Passthrough;
        assert!(matches!(refused(&local.settings, CLUSTER), GateError::PassthroughInKubernetes));
    }
}
