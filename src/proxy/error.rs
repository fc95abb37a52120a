//! Why an exchange stopped: a denial is a decision, a failure is an error. One table maps failures to statuses.

use std::io;

use http::StatusCode;
use rustls::{AlertDescription, CertificateError};

use crate::call::{Denial, DenialForm};
use crate::decision::Decision;
use crate::filter::Refused;
use crate::telemetry::label::UpstreamError;

/// The early end of an exchange.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Stop {
    /// Policy, or something built in, said no.
    #[error("{}", .0.decision.why())]
    Denied(Refusal),
    /// The upstream could not be reached, verified or understood.
    #[error(transparent)]
    Failed(Failure),
}

/// A denial with the form in which the agent reads it.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) decision: Decision,
    /// Whether the agent's connection is closed after it.
    pub(crate) close: bool,
    /// Its form in an LLM provider's dialect.
    pub(crate) answer: DenialForm,
}

/// An error of the far side. The message is fit for the agent's eyes.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    pub(crate) class: Class,
    pub(crate) message: String,
}

/// The kinds of failure, each with its status, its metric label and how loud it is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Resolve,
    Connect,
    ConnectTimeout,
    /// This process has no file descriptor left.
    Descriptors,
    Proxy,
    Untrusted,
    Handshake,
    /// The upstream takes none of the protocols that were offered.
    NoProtocol,
    HeadTimeout,
    Idle,
    Exchange,
    Framing,
    Encoding,
    Agent,
}

impl Class {
    /// Returns the status for the agent, and the metric's label if the upstream is to blame.
    pub(crate) fn shows(self) -> (StatusCode, Option<UpstreamError>) {
        match self {
            Self::Resolve => (StatusCode::BAD_GATEWAY, Some(UpstreamError::Resolve)),
            Self::Connect => (StatusCode::BAD_GATEWAY, Some(UpstreamError::Connect)),
            Self::ConnectTimeout => (StatusCode::GATEWAY_TIMEOUT, Some(UpstreamError::ConnectTimeout)),
            Self::Descriptors => (StatusCode::SERVICE_UNAVAILABLE, Some(UpstreamError::Descriptors)),
            Self::Proxy => (StatusCode::BAD_GATEWAY, Some(UpstreamError::Proxy)),
            Self::Untrusted => (StatusCode::BAD_GATEWAY, Some(UpstreamError::Tls)),
            Self::Handshake => (StatusCode::BAD_GATEWAY, Some(UpstreamError::Tls)),
            Self::NoProtocol => (StatusCode::BAD_GATEWAY, Some(UpstreamError::Tls)),
            Self::HeadTimeout => (StatusCode::GATEWAY_TIMEOUT, Some(UpstreamError::HeadTimeout)),
            Self::Idle => (StatusCode::GATEWAY_TIMEOUT, Some(UpstreamError::StreamIdle)),
            Self::Exchange => (StatusCode::BAD_GATEWAY, Some(UpstreamError::Reset)),
            Self::Framing => (StatusCode::BAD_GATEWAY, Some(UpstreamError::Protocol)),
            Self::Encoding => (StatusCode::BAD_GATEWAY, Some(UpstreamError::Protocol)),
            Self::Agent => (StatusCode::BAD_REQUEST, None),
        }
    }
}

impl Failure {
    pub(crate) fn new(class: Class, message: impl Into<String>) -> Self {
        Self { class, message: message.into() }
    }

    /// A TCP connection that was not made.
    pub(crate) fn connect(error: &io::Error) -> Self {
        Self::new(Class::Connect, format!("the upstream cannot be reached: {}", error.kind()))
    }

    /// A TLS handshake that failed.
    pub(crate) fn handshake(error: &io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::InvalidCertificate(why)) => Self::new(
                Class::Untrusted,
                format!("the upstream's certificate is not trusted: {}", untrusted(why)),
            ),
            Some(rustls::Error::NoCertificatesPresented) => {
                Self::new(Class::Untrusted, "the upstream presented no certificate")
            }
            Some(rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)) => {
                Self::new(Class::NoProtocol, "the upstream takes none of the protocols that were offered")
            }
            Some(why) => Self::new(Class::Handshake, format!("the upstream's TLS handshake failed: {why}")),
            None => {
                Self::new(Class::Handshake, format!("the upstream's TLS handshake failed: {}", error.kind()))
            }
        }
    }

    /// An exchange that broke off before the head of the answer.
    pub(crate) fn exchange(error: &hyper::Error) -> Self {
        let message = if error.is_parse() {
            "the upstream's answer is not HTTP that has one reading"
        } else if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
            "the upstream closed the connection before it answered"
        } else {
            "the upstream broke off the exchange"
        };
        Self::new(if error.is_parse() { Class::Framing } else { Class::Exchange }, message)
    }
}

/// The advice for a server under a company's own CA.
const UNKNOWN_ISSUER: &str = "; if a private CA has issued it, name that CA's certificate in `upstream.roots` of the \
    gateway's settings (`gateway.upstream.roots` of the chart), or in SSL_CERT_FILE where the gateway or `postern run` is \
    started";

/// The advice for the certificate that `openssl req -x509` makes by default, and development servers use.
const SELF_SIGNED: &str = "the server shows a CA's certificate as its own, which no strict client takes; give it one that \
    this CA has issued";

/// Returns why a certificate is not trusted, and what to do.
fn untrusted(why: &CertificateError) -> String {
    if *why == CertificateError::UnknownIssuer {
        return format!("{why}{UNKNOWN_ISSUER}");
    }
    // rustls has no variant for this error of webpki: its text is the name of webpki's variant.
    let text = why.to_string();
    if text.contains("CaUsedAsEndEntity") { SELF_SIGNED.to_owned() } else { text }
}

impl Stop {
    /// Whether the body is larger than may be held.
    pub(crate) fn is_too_large(&self) -> bool {
        matches!(self, Self::Denied(Refusal { answer: DenialForm::TooLarge, .. }))
    }
}

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Unreadable(reason) => Denial::unparseable("the body", reason).into(),
            Refused::Denied(denial) => denial.into(),
        }
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Denied(refusal)
    }
}

impl From<Decision> for Stop {
    /// A denial that leaves the connection usable.
    fn from(decision: Decision) -> Self {
        Self::Denied(Refusal::new(StatusCode::FORBIDDEN, decision))
    }
}

impl From<Denial> for Stop {
    fn from(denial: Denial) -> Self {
        let (status, close) = match denial.answer {
            // The rest of the body is read when the connection closes.
            DenialForm::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, true),
            DenialForm::UnsupportedCoding => (StatusCode::UNSUPPORTED_MEDIA_TYPE, false),
            DenialForm::Forbidden => (StatusCode::FORBIDDEN, false),
            DenialForm::Limited { .. } => (StatusCode::TOO_MANY_REQUESTS, false),
            DenialForm::Recoverable { status, .. } => {
                (StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST), false)
            }
        };
        Self::Denied(Refusal { status, decision: denial.decision, close, answer: denial.answer })
    }
}

impl Refusal {
    /// A denial that leaves the connection usable.
    pub(crate) fn new(status: StatusCode, decision: Decision) -> Self {
        Self { status, decision, close: false, answer: DenialForm::Forbidden }
    }

    /// A denial after which the connection is closed.
    pub(crate) fn closing(status: StatusCode, decision: Decision) -> Self {
        Self { close: true, ..Self::new(status, decision) }
    }
}
/// The denial while the ledger cannot be written and events wait for it (`ledger.onPressure: Block`).
pub(crate) fn unrecorded() -> Decision {
    Decision::builtin("ledger", "The ledger cannot be written at this moment, and nothing goes on unrecorded")
}
