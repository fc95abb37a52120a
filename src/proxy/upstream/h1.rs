//! An HTTP/1.1 connection to an upstream, driven by the exchange that uses it and by no task of its own.
//!
//! A connection task would cost two wake-ups an exchange; here the request's future, and later the response's
//! body, poll the connection in the agent connection's own task.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::future::{Future, poll_fn};

use super::Stream;
use super::pool::{Key, Pool};
use crate::proxy::body::request::RequestBody;

/// What hyper reads at most into one buffer; it bounds the head of a response too.
const BUFFER: usize = 128 << 10;

/// What reads and writes; boxed, since it is large and moves with every exchange.
type Driver = Box<http1::Connection<TokioIo<Stream>, RequestBody>>;

/// One connection, between exchanges or in one.
pub(crate) struct Connection {
    sender: http1::SendRequest<RequestBody>,
    /// `None` once hyper is done with the connection.
    driver: Option<Driver>,
    /// Whether each answer so far came after the whole of its request.
    in_step: bool,
    /// How long the upstream keeps the connection between two requests, where it says so.
    kept_for: Option<Duration>,
}

/// A request that could not be sent, given back where not a byte of it has left.
pub(crate) struct Unsent {
    pub(crate) error: hyper::Error,
    pub(crate) request: Option<Box<Request<RequestBody>>>,
}

impl Connection {
    /// Takes over a stream on which nothing has been said yet. `headers` bounds the fields of a response.
    pub(crate) async fn handshake(stream: Stream, headers: usize) -> hyper::Result<Self> {
        let (sender, driver) = http1::Builder::new()
            .max_headers(headers)
            .max_buf_size(BUFFER)
            .handshake(TokioIo::new(stream))
            .await?;
        Ok(Self { sender, driver: Some(Box::new(driver)), in_step: true, kept_for: None })
    }

    /// Whether the connection can take a request now: a peer that hung up, or spoke unasked, is found here.
    pub(crate) async fn is_usable(&mut self) -> bool {
        poll_fn(|cx| {
            self.drive(cx);
            Poll::Ready(())
        })
        .await;
        self.driver.is_some() && self.sender.is_ready()
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn send(
        mut self,
        request: Request<RequestBody>,
    ) -> Result<(Response<Incoming>, Self), Unsent> {
        let request_body = request.body().progress();
        let mut response = std::pin::pin!(self.sender.try_send_request(request));
        let driver = &mut self.driver;
        let result = poll_fn(|cx| {
            drive(driver, cx);
            let result = response.as_mut().poll(cx);
            if result.is_ready() {
                // An answer without a body leaves the connection idle only once hyper has looked again.
                drive(driver, cx);
            }
            result
        })
        .await;
        match result {
            Ok(response) => {
                // An answer before the request's end leaves the two sides of the connection out of step.
                self.in_step = request_body.is_finished();
                self.kept_for = kept_for(response.headers());
                Ok((response, self))
            }
            Err(mut failed) => {
                let request = failed.take_message().map(Box::new);
                Err(Unsent { error: failed.into_error(), request })
            }
        }
    }

    /// How long another exchange may use the connection after this one, where the upstream says so.
    pub(crate) fn kept_for(&self) -> Option<Duration> {
        self.kept_for
    }

    /// Sends a request that asks for another protocol, on a connection that serves nothing else, in `drain`'s care.
    pub(crate) async fn send_upgrade(
        self,
        request: Request<RequestBody>,
        drain: &crate::drain::Drain,
    ) -> hyper::Result<Response<Incoming>> {
        let Self { mut sender, driver, .. } = self;
        if let Some(driver) = driver {
            drain.detach(async move {
                // An error reaches the exchange through its own response.
                let _ = (*driver).with_upgrades().await;
            });
        }
        sender.send_request(request).await
    }

    fn drive(&mut self, cx: &mut Context<'_>) {
        drive(&mut self.driver, cx);
    }
}

/// How much earlier than its upstream the gateway lets go of a connection: a request that meets the close is lost, since
/// nobody knows whether it was read.
const EARLIER: Duration = Duration::from_secs(1);

/// The time that a head says in `Keep-Alive: timeout=5` (RFC 2068, section 19.7.1.1), less a margin.
fn kept_for(head: &HeaderMap) -> Option<Duration> {
    let fields = head.get_all("keep-alive").iter().filter_map(|value| value.to_str().ok());
    let timeout = |parameter: &str| {
        let (name, value) = parameter.split_once('=')?;
        let seconds = value.trim().trim_matches('"').parse().ok()?;
        name.trim().eq_ignore_ascii_case("timeout").then(|| Duration::from_secs(seconds))
    };
    let least = fields.flat_map(|value| value.split(',')).filter_map(timeout).min()?;
    Some(least.saturating_sub(EARLIER))
}

fn drive(driver: &mut Option<Driver>, cx: &mut Context<'_>) {
    if let Some(connection) = driver
        && Pin::new(connection).poll(cx).is_ready()
    {
        // An error reaches the exchange through its own response or body.
        *driver = None;
    }
}

/// A response's body, and with it the connection that it comes from.
pub(crate) struct ResponseBody {
    incoming: Incoming,
    connection: Option<Connection>,
    home: Option<(Pool, Key)>,
}

impl ResponseBody {
    /// At the body's clean end the connection goes back to `pool`, unless the exchange left anything unfinished.
    pub(crate) fn new(incoming: Incoming, connection: Connection, pool: Pool, key: Key) -> Self {
        let mut body = Self { incoming, connection: Some(connection), home: Some((pool, key)) };
        if body.incoming.is_end_stream() {
            body.release();
        }
        body
    }

    /// After a frame: ends the connection's part if the body has ended, well or badly.
    fn settle(&mut self, frame: &Option<Result<Frame<Bytes>, hyper::Error>>, cx: &mut Context<'_>) {
        match frame {
            Some(Ok(_)) if !self.incoming.is_end_stream() => {}
            Some(Err(_)) => self.connection = None,
            Some(Ok(_)) | None => {
                if let Some(connection) = &mut self.connection {
                    connection.drive(cx);
                }
                self.release();
            }
        }
    }

    /// Gives the connection back if it is fit for another exchange; drops, and so closes, it otherwise.
    fn release(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if let Some((pool, key)) = self.home.take()
            && connection.in_step
            && connection.driver.is_some()
            && connection.sender.is_ready()
        {
            pool.give_back(key, connection);
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        // Polling the body is what tells hyper that it is wanted; only then does the driver read. So twice.
        for _ in 0..2 {
            if let Some(connection) = &mut self.connection {
                connection.drive(cx);
            }
            if let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(cx) {
                self.settle(&frame, cx);
                return Poll::Ready(frame);
            }
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_an_upstream_keeps_a_connection_is_read_less_a_margin() {
        for (field, seconds) in [
            ("timeout=5", Some(4)),
            ("timeout=5, max=100", Some(4)),
            ("max=100, Timeout = \"60\"", Some(59)),
            ("timeout=1", Some(0)),
            ("timeout=0", Some(0)),
            ("max=100", None),
            ("timeout=soon", None),
            ("timeout", None),
        ] {
            let mut head = HeaderMap::new();
            head.insert("keep-alive", field.parse().unwrap());
            assert_eq!(kept_for(&head), seconds.map(Duration::from_secs), "{field}");
        }
        assert_eq!(kept_for(&HeaderMap::new()), None);
    }
}
