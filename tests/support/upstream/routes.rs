//! How an upstream answers: scripted replies first, then the built-in routes.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::json;
use tokio::sync::Semaphore;

use super::super::body::{Aborted, Streamed, Writer, streamed, whole};
use super::record::pairs;
use super::{Records, Seen, websocket};

/// An answer to give.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) steps: Vec<Step>,
}

/// A piece of an answer's body, in time.
#[derive(Clone)]
pub(crate) enum Step {
    Data(Bytes),
    Pause(Duration),
    /// Waits until the test opens the gate.
    Wait(Gate),
    Trailers(Vec<(&'static str, String)>),
    /// Gives the body up: HTTP/1 closes the connection, h2 resets the stream.
    Abort,
}

/// What a test opens when the answer may go on.
#[derive(Clone)]
pub(crate) struct Gate(Arc<Semaphore>);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    pub(crate) fn open(&self) {
        self.0.close();
    }

    async fn wait(&self) {
        // A closed semaphore answers with an error at once: that is the gate standing open.
        let _ = self.0.acquire().await;
    }
}

impl Reply {
    /// A whole body with its length.
    pub(crate) fn of(status: u16, body: impl Into<Bytes>) -> Self {
        Self { status, headers: Vec::new(), steps: vec![Step::Data(body.into())] }
    }

    /// A body sent step by step, without a length.
    pub(crate) fn streaming(steps: Vec<Step>) -> Self {
        Self { status: 200, headers: Vec::new(), steps }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn into_response(self, records: &Records) -> Response<Streamed> {
        let mut response = match self.steps.as_slice() {
            [] => Response::new(whole(Bytes::new(), None)),
            [Step::Data(bytes)] => Response::new(whole(bytes.clone(), None)),
            _ => {
                let (writer, body) = streamed(self.declared_length());
                records.handle.spawn(play(self.steps, writer));
                Response::new(body)
            }
        };
        *response.status_mut() = self.status.try_into().unwrap();
        response.headers_mut().extend(header_map(&self.headers));
        response
    }

    fn declared_length(&self) -> Option<u64> {
        let length = self.headers.iter().find(|(name, _)| *name == "content-length");
        length.map(|(_, value)| value.parse().unwrap())
    }
}

/// Answers one request and records it.
pub(super) async fn answer(
    mut request: Request<Incoming>,
    link: usize,
    records: Arc<Records>,
) -> Result<Response<Streamed>, Infallible> {
    let head = Seen::of(&request, link);
    let index = records.requests.push(head.clone());
    if head.path() == "/ws" && head.header("upgrade") == Some("websocket") {
        return Ok(websocket::accept(&mut request, &records.handle));
    }
    if head.header("upgrade") == Some("websocket")
        && let Some(Reply { status: 101, steps, .. }) = (records.script)(&head)
    {
        return Ok(websocket::tell(&mut request, steps, &records.handle));
    }
    if !read_body(request.into_body(), index, &records).await {
        return Ok(Reply::of(400, "the body broke off").into_response(&records));
    }
    let seen = records.requests.entries().swap_remove(index);
    let reply = (records.script)(&seen).unwrap_or_else(|| built_in(&seen));
    Ok(reply.into_response(&records))
}

/// Records a body as it arrives; false where it breaks off.
async fn read_body(mut body: Incoming, index: usize, records: &Records) -> bool {
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        records.requests.edit(index, |seen| match frame.into_data() {
            Ok(data) => seen.body.extend_from_slice(&data),
            Err(frame) => {
                seen.trailers = frame.into_trailers().map(|trailers| pairs(&trailers)).unwrap_or_default();
            }
        });
    }
    records.requests.edit(index, |seen| seen.complete = true);
    true
}

/// `/echo` `/bytes/N` `/status/N` `/sse` `/slow` `/trailers` `/gzip` `/redirect`; 404 for others.
fn built_in(seen: &Seen) -> Reply {
    let number = |name| seen.query(name).and_then(|value| value.parse::<u64>().ok());
    let mut segments = seen.path().split('/').skip(1);
    let (route, count) = (segments.next().unwrap_or_default(), segments.next().and_then(|n| n.parse().ok()));
    match route {
        "echo" => echo(seen),
        "bytes" => Reply::of(200, pattern(count.unwrap_or(0))),
        "status" => Reply::of(count.unwrap_or(200).try_into().unwrap(), "as asked"),
        "sse" => server_sent(number("events").unwrap_or(3), number("interval").unwrap_or(0)),
        "slow" => Reply::streaming(vec![
            Step::Pause(Duration::from_millis(number("ms").unwrap_or(200))),
            Step::Data("at last".into()),
        ]),
        "trailers" => Reply::streaming(vec![
            Step::Data("with trailers".into()),
            Step::Trailers(vec![("x-checksum", "abc123".to_owned())]),
        ])
        .header("trailer", "x-checksum"),
        "gzip" => Reply::of(200, gzip(b"{\"packed\":true}"))
            .header("content-encoding", "gzip")
            .header("content-type", "application/json"),
        "redirect" => Reply::of(302, "elsewhere").header("location", seen.query("to").unwrap_or("/echo")),
        _ => Reply::of(404, "no such route"),
    }
}

/// Bytes of which any cut, doubled or missing piece shows.
pub(crate) fn pattern(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index * 31 + index / 251) as u8).collect()
}

fn echo(seen: &Seen) -> Reply {
    let body = json!({
        "method": seen.method,
        "target": seen.target,
        "authority": seen.authority,
        "version": seen.version,
        "headers": seen.headers.iter().map(|(name, value)| json!([name, value])).collect::<Vec<_>>(),
        "body": String::from_utf8_lossy(&seen.body),
        "trailers": seen.trailers.iter().map(|(name, value)| json!([name, value])).collect::<Vec<_>>(),
    });
    Reply::of(200, body.to_string()).header("content-type", "application/json")
}

fn server_sent(events: u64, interval: u64) -> Reply {
    let event = |index| Step::Data(format!("event: tick\ndata: {{\"n\":{index}}}\n\n").into());
    let steps = (0..events).flat_map(|index| [event(index), Step::Pause(Duration::from_millis(interval))]);
    Reply::streaming(steps.collect()).header("content-type", "text/event-stream")
}

/// A gzip file of one stored block (RFC 1951 section 3.2.4, RFC 1952): what the format needs and no compressor.
fn gzip(text: &[u8]) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap();
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    file.extend(length.to_le_bytes());
    file.extend((!length).to_le_bytes());
    file.extend(text);
    file.extend(crc32(text).to_le_bytes());
    file.extend(u32::from(length).to_le_bytes());
    file
}

/// CRC-32/ISO-HDLC.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

/// Writes the steps until they end or nobody reads any more.
async fn play(steps: Vec<Step>, writer: Writer) {
    for step in steps {
        let frame = match step {
            Step::Data(bytes) => Ok(Frame::data(bytes)),
            Step::Trailers(trailers) => Ok(Frame::trailers(header_map(&trailers))),
            Step::Abort => Err(Aborted),
            Step::Pause(time) => {
                tokio::time::sleep(time).await;
                continue;
            }
            Step::Wait(gate) => {
                gate.wait().await;
                continue;
            }
        };
        if writer.send(frame).await.is_err() {
            return;
        }
    }
}

fn header_map(pairs: &[(&'static str, String)]) -> HeaderMap {
    let entry = |(name, value): &(&'static str, String)| {
        (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
    };
    pairs.iter().map(entry).collect()
}
