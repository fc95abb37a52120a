//! OTLP: what the standard `OTEL_*` variables say of a signal, and the client by which its exporter speaks.

mod client;
pub(super) mod names;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::EnvResourceDetector;
use tokio::runtime::Handle;

use crate::event::Workload;
use crate::problem::Problem;
use crate::tls::roots::{TlsSettings, UpstreamTls};
pub(super) use client::OtlpClient;
pub use client::OtlpProtocol;

/// One export: connection, request and answer. The specification's default.
const TIMEOUT: Duration = Duration::from_secs(10);
const LOCAL_GRPC: &str = "http://localhost:4317";

/// A signal of OpenTelemetry that the gateway exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Traces,
    Logs,
}

impl Signal {
    /// The word in the names of variables.
    fn word(self) -> &'static str {
        match self {
            Self::Traces => "TRACES",
            Self::Logs => "LOGS",
        }
    }

    /// What is exported, in a sentence.
    fn noun(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Logs => "logs",
        }
    }

    /// Whether the endpoint of all signals is enough to export this one. Traces always were; logs are not sent to what may
    /// be a store of traces alone.
    fn follows_common_endpoint(self) -> bool {
        self == Self::Traces
    }
}

/// The settings of the standard `OTEL_*` variables that the exporter does not read by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpSettings {
    pub protocol: OtlpProtocol,
    /// Whether a variable names an endpoint; else the specification's default on this host is used.
    pub endpoint: bool,
    /// Whether that endpoint is `https`.
    pub is_secure: bool,
    /// Roots that are trusted besides the system's.
    pub roots: Vec<PathBuf>,
    pub timeout: Duration,
    /// `OTEL_SERVICE_NAME`, else `postern`.
    pub service: String,
}

impl OtlpSettings {
    /// Reads the variables (OpenTelemetry Protocol Exporter, SDK Environment Variables); none where the signal is not asked
    /// for: they name neither an endpoint nor the exporter, or switch the SDK off.
    ///
    /// # Errors
    /// A protocol that is not supported.
    pub fn read(signal: Signal, variable: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, Problem> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let own = |what: &str| set(&format!("OTEL_EXPORTER_OTLP_{}_{what}", signal.word()));
        let common = |what: &str| set(&format!("OTEL_EXPORTER_OTLP_{what}"));
        let either = |what: &str| own(what).or_else(|| common(what));
        let wanted = match set(&format!("OTEL_{}_EXPORTER", signal.word())).as_deref() {
            Some("otlp") => true,
            Some(_) => false,
            None => {
                own("ENDPOINT").is_some() || signal.follows_common_endpoint() && common("ENDPOINT").is_some()
            }
        };
        if !wanted || set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let protocol = match either("PROTOCOL").as_deref() {
            None | Some("http/protobuf") => OtlpProtocol::Http,
            Some("grpc") => OtlpProtocol::Grpc,
            Some(_) => {
                let message = format!("expected http/protobuf or grpc; no {} are exported", signal.noun());
                return Err(Problem::at("OTEL_EXPORTER_OTLP_PROTOCOL", message));
            }
        };
        let timeout = either("TIMEOUT").and_then(|millis| millis.parse().ok()).map(Duration::from_millis);
        let endpoint = either("ENDPOINT");
        let scheme =
            endpoint.as_deref().and_then(|endpoint| endpoint.split_once("://")).map(|(scheme, _)| scheme);
        Ok(Some(Self {
            protocol,
            endpoint: endpoint.is_some(),
            is_secure: scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https")),
            roots: either("CERTIFICATE").map(PathBuf::from).into_iter().collect(),
            timeout: timeout.unwrap_or(TIMEOUT),
            service: set("OTEL_SERVICE_NAME").unwrap_or_else(|| "postern".to_owned()),
        }))
    }

    /// The client of an exporter; `method` is the path of the collector's method for gRPC. Must be called inside of a
    /// runtime.
    ///
    /// # Errors
    /// Roots that cannot be read.
    pub(super) fn client(&self, method: &'static str) -> Result<OtlpClient, Vec<Problem>> {
        // The system's roots take memory, and most collectors are asked in plain HTTP.
        let tls = TlsSettings { roots: self.roots.clone(), ..TlsSettings::default() };
        let tls = self.is_secure.then(|| UpstreamTls::load(&tls, &[])).transpose()?;
        Ok(OtlpClient {
            runtime: Handle::current(),
            tls: tls.map(Arc::new),
            protocol: self.protocol,
            method,
            timeout: self.timeout,
        })
    }

    /// The endpoint where no variable names one and the exporter's own default is of another protocol.
    pub(super) fn default_endpoint(&self) -> Option<&'static str> {
        (self.protocol == OtlpProtocol::Grpc && !self.endpoint).then_some(LOCAL_GRPC)
    }
}

/// A mistake in the variables that the exporter reads.
pub(super) fn mistake(error: &impl ToString) -> Problem {
    Problem::at("OTEL_EXPORTER_OTLP", error.to_string())
}

/// Describes this gateway; `OTEL_RESOURCE_ATTRIBUTES` adds to the attributes and wins.
pub(super) fn resource(service: &str, workload: &Workload) -> Resource {
    let known =
        [(names::NAMESPACE, &workload.namespace), (names::POD, &workload.pod), (names::NODE, &workload.node)];
    let known = known.into_iter().filter(|(_, value)| !value.is_empty());
    Resource::builder_empty()
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_attributes(known.map(|(name, value)| KeyValue::new(name, value.clone())))
        .with_detector(Box::new(EnvResourceDetector::new()))
        .with_service_name(service.to_owned())
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(signal: Signal, variables: &[(&str, &str)]) -> Result<Option<OtlpSettings>, Problem> {
        OtlpSettings::read(signal, &|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn traces_are_exported_where_an_endpoint_or_the_exporter_is_named() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        let read = |variables: &[(&str, &str)]| read(Signal::Traces, variables).unwrap();
        assert_eq!(read(&[]), None);
        assert!(read(&[endpoint]).is_some());
        assert!(read(&[("OTEL_TRACES_EXPORTER", "otlp")]).is_some());
        assert_eq!(read(&[endpoint, ("OTEL_TRACES_EXPORTER", "none")]), None);
        assert_eq!(read(&[endpoint, ("OTEL_SDK_DISABLED", "TRUE")]), None);
    }

    #[test]
    fn logs_are_exported_where_they_are_asked_for_by_name() {
        let common = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://jaeger:4318");
        let own = ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://collector:4318/v1/logs");
        let read = |variables: &[(&str, &str)]| read(Signal::Logs, variables).unwrap();
        assert_eq!(read(&[common]), None, "it may be a store of traces");
        assert!(read(&[own]).unwrap().endpoint);
        assert!(read(&[common, ("OTEL_LOGS_EXPORTER", "otlp")]).unwrap().endpoint);
        assert!(!read(&[("OTEL_LOGS_EXPORTER", "otlp")]).unwrap().endpoint);
        assert_eq!(read(&[own, ("OTEL_LOGS_EXPORTER", "none")]), None);
        assert_eq!(read(&[own, ("OTEL_SDK_DISABLED", "true")]), None);
    }

    #[test]
    fn the_variable_of_a_signal_counts_more_than_the_one_for_all() {
        for (signal, own) in [
            (Signal::Traces, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"),
            (Signal::Logs, "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL"),
        ] {
            let settings = read(
                signal,
                &[
                    ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317"),
                    ("OTEL_LOGS_EXPORTER", "otlp"),
                    ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
                    (own, "grpc"),
                    ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500"),
                    ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
                ],
            );
            let expected = OtlpSettings {
                protocol: OtlpProtocol::Grpc,
                endpoint: true,
                is_secure: false,
                roots: vec!["/ca.pem".into()],
                timeout: Duration::from_millis(1500),
                service: "postern".to_owned(),
            };
            assert_eq!(settings.unwrap(), Some(expected));
        }
    }

    #[tokio::test]
    async fn roots_are_read_for_a_collector_that_is_asked_over_tls_alone() {
        let client = |endpoint: &str| {
            let settings = read(
                Signal::Logs,
                &[
                    ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", endpoint),
                    ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nonexistent/ca.pem"),
                ],
            );
            settings.unwrap().unwrap().client("").map(|client| client.tls.is_some())
        };
        assert_eq!(client("http://collector:4318/v1/logs"), Ok(false));
        for secure in ["https://collector/v1/logs", "HTTPS://collector"] {
            let problems = client(secure).unwrap_err();
            assert!(problems[0].to_string().contains("/nonexistent/ca.pem"), "{problems:?}");
        }
    }

    #[test]
    fn a_protocol_that_is_not_spoken_is_said() {
        let problem = read(
            Signal::Logs,
            &[("OTEL_LOGS_EXPORTER", "otlp"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")],
        );
        assert!(problem.unwrap_err().message.contains("http/protobuf or grpc; no logs are exported"));
    }
}
