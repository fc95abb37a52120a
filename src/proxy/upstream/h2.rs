//! An HTTP/2 connection to an upstream: one authority, many exchanges.

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::time::Duration;

use super::Stream;
use super::h1::Unsent;
use crate::drain::Drain;
use crate::proxy::body::request::RequestBody;
use crate::proxy::window::Window;

/// How often a connection in use is asked whether it still lives: a dead path must not swallow requests.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// A handle to one connection; clones share it.
#[derive(Clone)]
pub(crate) struct Connection(http2::SendRequest<RequestBody>);

impl Connection {
    /// Takes over a stream on which nothing has been said yet. `header_bytes` bounds the head of a response.
    pub(crate) async fn handshake(
        stream: Stream,
        header_bytes: u32,
        window: Window,
        drain: &Drain,
    ) -> hyper::Result<Self> {
        let (sender, driver) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(window.stream())
            .initial_connection_window_size(window.connection())
            .max_header_list_size(header_bytes)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIMEOUT)
            .handshake(TokioIo::new(stream))
            .await?;
        drain.detach(async move {
            // An error reaches each exchange through its own response or body.
            let _ = driver.await;
            drop(window);
        });
        Ok(Self(sender))
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.0.is_closed()
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn send(&mut self, request: Request<RequestBody>) -> Result<Response<Incoming>, Unsent> {
        if let Err(error) = self.0.ready().await {
            return Err(Unsent { error, request: Some(Box::new(request)) });
        }
        self.0.try_send_request(request).await.map_err(|mut failed| {
            let request = failed.take_message().map(Box::new);
            Unsent { error: failed.into_error(), request }
        })
    }
}
