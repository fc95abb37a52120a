//! The interception gate: whether TLS may be ended here, and the evidence for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;
use zeroize::Zeroizing;

use super::authority::{Authority, AuthorityError};
use super::defect::rfc3339;
use super::file;

/// `interception` of the settings, with absolute paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GateSettings {
    pub mode: Mode,
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    /// The fingerprint that a human approved.
    pub approval: Option<String>,
    pub on_error: OnError,
}

/// `interception.mode`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Mode {
    Required,
    /// No TLS is ended.
    #[default]
    Off,
}

/// `interception.onError`: what becomes of Inspect destinations when the CA cannot be loaded or is not approved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnError {
    /// The gateway does not start; at reload the last good CA stays.
    #[default]
    FailClosed,
    /// They are tunnelled; never in Kubernetes.
    Passthrough,
}

/// What the environment says, read by `command/` alone.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings {
    /// `POSTERN_INTERCEPT` is `1`: whoever started the process wants TLS ended.
    pub intercept: bool,
    /// `KUBERNETES_SERVICE_HOST` is set.
    pub kubernetes: bool,
}

/// The gate's answer, and why.
#[derive(Debug)]
pub struct Gate {
    pub interception: Interception,
    pub evidence: Evidence,
}

/// What becomes of destinations that policy inspects.
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
    pub state: State,
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
pub enum State {
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
    #[error("{field} is missing, and interception.mode is Required: `postern ca init` makes a CA and says where")]
    NotSet { field: &'static str },
    #[error("{field}: {path} cannot be read ({cause})", path = path.display())]
    Unreadable { field: &'static str, path: PathBuf, cause: std::io::Error },
    #[error("{path}: {cause}", path = path.display())]
    Unusable { path: PathBuf, cause: Box<AuthorityError> },
    #[error("interception.caApproval is no fingerprint: expected `sha256:` and 64 hex digits, as `postern ca status` shows")]
    BadApproval,
    #[error(
        "the CA is not the approved one: it is {actual}, interception.caApproval says {approved}; approve it there if \
         it was changed on purpose"
    )]
    NotApproved { actual: String, approved: String },
}

impl Gate {
    /// Decides whether TLS may be ended here, reading the CA's files where it may.
    pub fn open(settings: &GateSettings, surroundings: Surroundings, now: SystemTime) -> Result<Self, Box<Closed>> {
        let mut evidence = Evidence {
            mode: settings.mode,
            state: State::Off,
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
                evidence.state = State::Intercepting;
                Ok(Self { interception: Interception::On(Arc::new(authority)), evidence })
            }
            Err(error) => Self::fail(settings, error, evidence),
        }
    }

    fn fail(settings: &GateSettings, error: GateError, mut evidence: Evidence) -> Result<Self, Box<Closed>> {
        let reason = error.to_string();
        evidence.reason = Some(reason.clone());
        if settings.on_error == OnError::Passthrough && error.is_of_ca() {
            evidence.state = State::Passthrough;
            return Ok(Self { interception: Interception::Passthrough { reason }, evidence });
        }
        evidence.state = State::Refused;
        Err(Box::new(Closed { evidence, error }))
    }
}

impl GateError {
    /// Whether it is the CA that is missing, unusable or not approved, for which `onError` is made; the rest are
    /// settings that contradict themselves or the environment.
    fn is_of_ca(&self) -> bool {
        match self {
            Self::NotSet { .. } | Self::Unreadable { .. } | Self::Unusable { .. } | Self::NotApproved { .. } => true,
            Self::NotRequested | Self::PassthroughInKubernetes | Self::BadApproval => false,
        }
    }
}

impl AuthorityEvidence {
    /// What there is to say of a CA.
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

/// Everything that does not need the CA; answers the approved fingerprint in its one form.
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
