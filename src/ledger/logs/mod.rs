//! Logs: each event as a log record, exported over OTLP in batches of our own.
//!
//! It is a sink that drops: no exchange waits for the collector. The SDK's own batches are not used, since their drops are
//! counted only when they end.

mod record;
mod rejected;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use opentelemetry::InstrumentationScope;
use opentelemetry::logs::{Logger, LoggerProvider};
use opentelemetry_otlp::{LogExporter as OtlpLogExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{LogBatch, LogExporter, SdkLogRecord, SdkLogger, SdkLoggerProvider};
use tokio::runtime::Handle;

use super::otlp::{self, OtlpSettings};
use super::sink::Sink;
use crate::event::{Event, Workload};
use crate::problem::Problem;
use crate::telemetry::Metrics;
use crate::telemetry::label::Export;
use rejected::CountingClient;

/// The most records of a batch.
const RECORDS: usize = 512;
/// With so many bytes of lines a batch is sent; a collector takes 4 MiB by gRPC.
const BYTES: usize = 1 << 20;
/// How long a batch gathers.
const GATHER: Duration = Duration::from_secs(1);
/// How long nothing is sent after a batch that was given up, so that a gateway ends in time where a collector is away.
const PAUSE: Duration = Duration::from_secs(1);
/// How many bytes of lines wait while a batch is sent; further events are dropped and counted.
pub const QUEUE_BYTES: usize = 8 << 20;
/// The method of the collector's service (opentelemetry-proto, `collector/logs/v1/logs_service.proto`).
const EXPORT: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

/// The sink. It keeps the records of a batch until the batch is sent.
#[derive(Debug)]
pub struct Logs {
    batch: Batch,
    /// Makes empty records, and does nothing else.
    logger: SdkLogger,
    sender: BatchSender,
}

impl Logs {
    /// Starts the exporter; it connects with the first batch. Must be called inside of a runtime.
    ///
    /// # Errors
    /// Mistakes in the variables.
    pub fn start(
        settings: &OtlpSettings,
        workload: &Workload,
        metrics: Arc<Metrics>,
    ) -> Result<Self, Vec<Problem>> {
        let rejected = Arc::default();
        let client = CountingClient { client: settings.client(EXPORT)?, rejected: Arc::clone(&rejected) };
        let mut builder = OtlpLogExporter::builder()
            .with_http()
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_http_client(client)
            .with_timeout(settings.timeout);
        if let Some(endpoint) = settings.default_endpoint() {
            builder = builder.with_endpoint(endpoint);
        }
        let mut exporter = builder.build().map_err(|error| vec![otlp::mistake(&error)])?;
        exporter.set_resource(&otlp::resource(&settings.service, workload));
        let sender = BatchSender {
            exporter,
            scope: InstrumentationScope::builder("postern").with_version(env!("CARGO_PKG_VERSION")).build(),
            runtime: Handle::current(),
            metrics,
            rejected,
            failed: None,
            lost: 0,
        };
        let logger = SdkLoggerProvider::builder().build().logger("postern");
        Ok(Self { batch: Batch::default(), logger, sender })
    }

    fn send(&mut self) {
        self.sender.send(&std::mem::take(&mut self.batch).records);
    }
}

/// Records that are not sent yet.
#[derive(Debug, Default)]
struct Batch {
    records: Vec<SdkLogRecord>,
    bytes: usize,
    /// When the first of them came.
    begun: Option<Instant>,
}

impl Batch {
    fn is_full(&self) -> bool {
        self.records.len() >= RECORDS || self.bytes >= BYTES
    }

    fn is_due(&self, now: Instant) -> bool {
        self.begun.is_some_and(|begun| now.duration_since(begun) >= GATHER)
    }
}

impl Sink for Logs {
    fn write(&mut self, event: &Event, line: &[u8]) -> io::Result<()> {
        let mut record = self.logger.create_log_record();
        record::fill(&mut record, event, line);
        self.batch.records.push(record);
        self.batch.bytes += line.len();
        self.batch.begun.get_or_insert_with(Instant::now);
        if self.batch.is_full() {
            self.send();
        }
        Ok(())
    }

    /// Sends a batch that has gathered for long enough: no further event waits, but more may come.
    fn flush(&mut self) -> io::Result<()> {
        if self.batch.is_due(Instant::now()) {
            self.send();
        }
        Ok(())
    }

    fn idle(&mut self) -> io::Result<()> {
        self.send();
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        self.send();
        Ok(())
    }
}

/// Sends batches one after the other, and knows whether the collector takes them.
#[derive(Debug)]
struct BatchSender {
    exporter: OtlpLogExporter,
    scope: InstrumentationScope,
    runtime: Handle,
    metrics: Arc<Metrics>,
    /// How many records of the last batch that was taken the collector rejected.
    rejected: Arc<AtomicU64>,
    /// When the last batch was given up; none while the collector takes them.
    failed: Option<Instant>,
    /// Records lost since then.
    lost: u64,
}

impl BatchSender {
    /// Sends a batch, which the exporter tries again within its timeout. What the collector does not take is counted.
    fn send(&mut self, records: &[SdkLogRecord]) {
        let count = records.len() as u64;
        if count == 0 {
            return;
        }
        if self.failed.is_some_and(|failed| failed.elapsed() < PAUSE) {
            return self.lose(count);
        }
        let batch: Vec<_> = records.iter().map(|record| (record, &self.scope)).collect();
        let outcome: OTelSdkResult = self.runtime.block_on(self.exporter.export(LogBatch::new(&batch)));
        match outcome {
            Ok(()) => {
                let rejected = self.rejected.swap(0, Ordering::Relaxed).min(count);
                self.metrics.log_records(Export::Success, count - rejected);
                self.metrics.log_records(Export::Failure, rejected);
                if self.failed.take().is_some() {
                    tracing::warn!(lost = self.lost, "events are exported as logs again");
                    self.lost = 0;
                }
            }
            Err(error) => {
                if self.failed.is_none() {
                    tracing::warn!(
                        %error,
                        "events are not exported as logs; they are counted in postern_log_records_exported_total"
                    );
                }
                self.failed = Some(Instant::now());
                self.lose(count);
            }
        }
    }

    fn lose(&mut self, count: u64) {
        self.lost += count;
        self.metrics.log_records(Export::Failure, count);
    }
}
