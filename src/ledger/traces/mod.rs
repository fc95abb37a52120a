//! Traces: one span for each exchange, put together from its events and exported over OTLP.
//!
//! It is a sink as any other: whatever becomes of the collector, no exchange waits for it.

mod client;
mod names;
mod span;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::resource::EnvResourceDetector;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, SpanData, SpanExporter};
use tokio::runtime::Handle;

use super::Sink;
use crate::decision::Verdict;
use crate::event::{Event, Id, Kind, Workload};
use crate::problem::Problem;
use crate::telemetry::Metrics;
use crate::telemetry::label::Export;
use crate::tls::roots::{TlsSettings, UpstreamTls};
use client::Client;
pub use client::Protocol;

/// More exchanges than a gateway can have under way; what is left beyond belongs to events that were dropped.
const OPEN: usize = 16_384;
/// One export: connection, request and answer. The specification's default.
const TIMEOUT: Duration = Duration::from_secs(10);
/// What a shutdown waits for the last batch.
const LAST: Duration = Duration::from_secs(3);
const LOCAL_GRPC: &str = "http://localhost:4317";
/// A switching of protocols: what is refused later on the same exchange does not end it.
const SWITCHED: u16 = 101;

/// What the standard `OTEL_*` variables ask for that the SDK does not read by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceSettings {
    pub protocol: Protocol,
    /// Whether one of the variables names an endpoint; else it is the specification's, on this host.
    pub endpoint: bool,
    /// Trusted besides the system's roots.
    pub roots: Vec<PathBuf>,
    pub timeout: Duration,
    /// `OTEL_SERVICE_NAME`, else `postern`.
    pub service: String,
}

impl TraceSettings {
    /// Reads the variables (OpenTelemetry Protocol Exporter, SDK Environment Variables); none where no traces are asked
    /// for: they name neither an endpoint nor the exporter, or switch the SDK off.
    ///
    /// # Errors
    /// A protocol that is not spoken.
    pub fn read(variable: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, Problem> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let either = |what: &str| {
            set(&format!("OTEL_EXPORTER_OTLP_TRACES_{what}"))
                .or_else(|| set(&format!("OTEL_EXPORTER_OTLP_{what}")))
        };
        let exporter = set("OTEL_TRACES_EXPORTER");
        let endpoint = either("ENDPOINT").is_some();
        let wanted = match exporter.as_deref() {
            Some("otlp") => true,
            Some(_) => false,
            None => endpoint,
        };
        if !wanted || set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let protocol = match either("PROTOCOL").as_deref() {
            None | Some("http/protobuf") => Protocol::Http,
            Some("grpc") => Protocol::Grpc,
            Some(_) => {
                let message = "expected http/protobuf or grpc; no traces are exported";
                return Err(Problem::at("OTEL_EXPORTER_OTLP_PROTOCOL", message));
            }
        };
        let timeout = either("TIMEOUT").and_then(|millis| millis.parse().ok()).map(Duration::from_millis);
        Ok(Some(Self {
            protocol,
            endpoint,
            roots: either("CERTIFICATE").map(PathBuf::from).into_iter().collect(),
            timeout: timeout.unwrap_or(TIMEOUT),
            service: set("OTEL_SERVICE_NAME").unwrap_or_else(|| "postern".to_owned()),
        }))
    }
}

/// The sink. What it knows of an exchange that has not ended are the events that led there.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    open: BTreeMap<Id, Vec<Event>>,
}

impl Traces {
    /// Starts the exporter; it connects with the first batch. Must be called inside of a runtime.
    ///
    /// # Errors
    /// What is wrong with the variables.
    pub fn start(
        settings: &TraceSettings,
        workload: &Workload,
        metrics: Arc<Metrics>,
    ) -> Result<Self, Vec<Problem>> {
        let tls = TlsSettings { roots: settings.roots.clone(), ..TlsSettings::default() };
        let client = Client {
            runtime: Handle::current(),
            tls: Arc::new(UpstreamTls::load(&tls, &[])?),
            protocol: settings.protocol,
            timeout: settings.timeout,
        };
        let mut builder = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_http_client(client);
        if settings.protocol == Protocol::Grpc && !settings.endpoint {
            builder = builder.with_endpoint(LOCAL_GRPC);
        }
        let exporter =
            builder.build().map_err(|error| vec![Problem::at("OTEL_EXPORTER_OTLP", error.to_string())])?;
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(Counted { exporter, metrics })
            .with_resource(resource(&settings.service, workload))
            .build();
        Ok(Self { tracer: provider.tracer("postern"), provider, open: BTreeMap::new() })
    }

    fn remember(&mut self, exchange: Id, event: &Event) {
        if self.open.len() >= OPEN {
            self.open.pop_first();
        }
        let events = self.open.entry(exchange).or_default();
        if events.len() < span::EVENTS {
            events.push(event.clone());
        }
    }
}

impl Sink for Traces {
    fn write(&mut self, event: &Event) -> io::Result<()> {
        let Some(exchange) = event.exchange else { return Ok(()) };
        let refused = event.kind == Kind::Request
            && event.decision.verdict == Verdict::Deny
            && event.http.as_ref().is_none_or(|http| http.status != Some(SWITCHED));
        if event.kind == Kind::Response || refused {
            let before = self.open.remove(&exchange).unwrap_or_default();
            span::export(&self.tracer, &before, event);
        } else {
            self.remember(exchange, event);
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        // Batches have a pace of their own.
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        self.provider.shutdown_with_timeout(LAST).map_err(io::Error::other)
    }
}

/// Who speaks: what is known here, and `OTEL_RESOURCE_ATTRIBUTES` over it.
fn resource(service: &str, workload: &Workload) -> Resource {
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

/// The exporter, with its batches counted.
#[derive(Debug)]
struct Counted {
    exporter: opentelemetry_otlp::SpanExporter,
    metrics: Arc<Metrics>,
}

impl SpanExporter for Counted {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len() as u64;
        let result = self.exporter.export(batch).await;
        match &result {
            Ok(()) => self.metrics.spans(Export::Success, spans),
            Err(error) => {
                self.metrics.spans(Export::Failure, spans);
                tracing::warn!(%error, spans, "traces were not exported");
            }
        }
        result
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<TraceSettings>, Problem> {
        TraceSettings::read(&|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn traces_are_exported_where_an_endpoint_or_the_exporter_is_named() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        assert_eq!(read(&[]).unwrap(), None);
        assert!(read(&[endpoint]).unwrap().is_some());
        assert!(read(&[("OTEL_TRACES_EXPORTER", "otlp")]).unwrap().is_some());
        assert_eq!(read(&[endpoint, ("OTEL_TRACES_EXPORTER", "none")]).unwrap(), None);
        assert_eq!(read(&[endpoint, ("OTEL_SDK_DISABLED", "TRUE")]).unwrap(), None);
    }

    #[test]
    fn the_variable_for_traces_counts_more_than_the_one_for_all_signals() {
        let settings = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
        ]);
        let expected = TraceSettings {
            protocol: Protocol::Grpc,
            endpoint: true,
            roots: vec!["/ca.pem".into()],
            timeout: Duration::from_millis(1500),
            service: "postern".to_owned(),
        };
        assert_eq!(settings.unwrap(), Some(expected));
    }

    #[test]
    fn a_protocol_that_is_not_spoken_is_said() {
        let problem = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ]);
        assert!(problem.unwrap_err().message.contains("http/protobuf or grpc"));
    }
}
