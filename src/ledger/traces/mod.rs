//! Traces: one span for each exchange, put together from its events and exported over OTLP.
//!
//! It is a sink that drops: no exchange waits for the collector.

mod span;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, SpanData, SpanExporter};

use super::otlp::{self, OtlpSettings};
use super::sink::Sink;
use crate::decision::Verdict;
use crate::event::{Event, Id, Kind, Workload};
use crate::problem::Problem;
use crate::telemetry::Metrics;
use crate::telemetry::label::Export;

/// More open exchanges than a gateway can have; beyond that, the oldest lost the event that would have ended it.
const OPEN: usize = 16_384;
/// How long a shutdown waits for the last batch.
const LAST: Duration = Duration::from_secs(3);
/// The method of the collector's service (opentelemetry-proto, `collector/trace/v1/trace_service.proto`).
const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/// Switching Protocols: a later refusal on the same exchange does not end it.
const SWITCHED: u16 = 101;

/// The sink. It keeps the events of each open exchange until the exchange ends.
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
    /// Mistakes in the variables.
    pub fn start(
        settings: &OtlpSettings,
        workload: &Workload,
        metrics: Arc<Metrics>,
    ) -> Result<Self, Vec<Problem>> {
        let mut builder = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_http_client(settings.client(EXPORT)?);
        if let Some(endpoint) = settings.default_endpoint() {
            builder = builder.with_endpoint(endpoint);
        }
        let exporter = builder.build().map_err(|error| vec![otlp::mistake(&error)])?;
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(CountedExporter { exporter, metrics })
            .with_resource(otlp::resource(&settings.service, workload))
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
    fn write(&mut self, event: &Event, _line: &[u8]) -> io::Result<()> {
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

/// The exporter, which counts its spans.
#[derive(Debug)]
struct CountedExporter {
    exporter: opentelemetry_otlp::SpanExporter,
    metrics: Arc<Metrics>,
}

impl SpanExporter for CountedExporter {
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
