//! Counts the records that a collector rejects of a batch that it takes, which the exporter does not tell.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use prost::Message;

use super::super::otlp::OtlpClient;

/// A client that reads the answers on their way to the exporter.
#[derive(Debug)]
pub(super) struct CountingClient {
    pub(super) client: OtlpClient,
    /// Of the last answer.
    pub(super) rejected: Arc<AtomicU64>,
}

#[async_trait::async_trait]
impl HttpClient for CountingClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.client.send_bytes(request).await?;
        self.rejected.store(rejected(answer.body()), Ordering::Relaxed);
        Ok(answer)
    }
}

/// The number of rejected records in an answer (OTLP specification, "Partial Success"); 0 where it is no such message.
fn rejected(answer: &[u8]) -> u64 {
    let answer = ExportLogsServiceResponse::decode(answer).unwrap_or_default();
    answer
        .partial_success
        .map_or(0, |partial| u64::try_from(partial.rejected_log_records).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsPartialSuccess;

    use super::*;

    #[test]
    fn an_answer_says_how_many_records_were_rejected() {
        let answer = |rejected_log_records: i64| {
            let partial =
                ExportLogsPartialSuccess { rejected_log_records, error_message: "too old".to_owned() };
            ExportLogsServiceResponse { partial_success: Some(partial) }.encode_to_vec()
        };
        assert_eq!(rejected(&answer(3)), 3);
        assert_eq!(rejected(&answer(-1)), 0);
        assert_eq!((rejected(b""), rejected(b"not a message")), (0, 0));
    }
}
