//! The one body of both sides: a text, a bulk of zeros or of text, or events that go out one by one.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::Interval;

/// A chunk of a bulk, as large as a write of a busy sender.
const CHUNK: usize = 64 << 10;
static ZEROS: [u8; CHUNK] = [0; CHUNK];
/// Source code, as an agent would send it.
static SOURCE: LazyLock<Bytes> =
    LazyLock::new(|| include_str!("load.rs").bytes().cycle().take(CHUNK).collect::<Vec<u8>>().into());

/// Bytes of a bulk.
const BULK: u64 = 1 << 30;

/// A stream of events: what begins it, what is said over and over, what ends it.
pub(crate) struct Events {
    pub(crate) begin: &'static str,
    pub(crate) each: &'static str,
    pub(crate) end: &'static str,
}

/// An event as LLM providers stream them, and nothing around it.
pub(crate) static TEXT: Events = Events { begin: "", each: MESSAGES.each, end: "" };

/// An answer of Messages.
pub(crate) static MESSAGES: Events = Events {
    begin: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n\
        event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    each: "event: content_block_delta\n\
        data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"some words \"}}\n\n",
    end: "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
        event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":2000}}\n\n\
        event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
};

/// The same answer of Chat Completions.
pub(crate) static CHAT: Events = Events {
    begin: "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"},\"finish_reason\":null}]}\n\n",
    each: "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"some words \"},\"finish_reason\":null}]}\n\n",
    end: "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2000,\"total_tokens\":2009}}\n\n\
        data: [DONE]\n\n",
};

pub(crate) enum Body {
    Text(Option<Bytes>),
    /// So many bytes are left; those that went are counted.
    Bulk {
        left: u64,
        gone: Arc<AtomicU64>,
        is_text: bool,
    },
    /// So many events are left, each of which says when it was sent; they come one by one, some time apart.
    Paced {
        events: &'static Events,
        left: u32,
        has_begun: bool,
        pace: Interval,
    },
    /// Calls that never end: the next round of their pieces.
    Held {
        round: usize,
    },
    /// So many events are left; each is written before the next is there, or as many as a chunk holds.
    Events {
        events: &'static Events,
        left: u32,
        has_begun: bool,
        paused: bool,
        is_bulk: bool,
    },
}

/// Calls of one answer, and pieces of each call's arguments.
const CALLS: usize = 200;
const PIECES: usize = 80;
const PIECE: usize = 256;
/// The bytes of all arguments of an answer that never ends.
pub(crate) const HELD_BYTES: usize = CALLS * PIECES * PIECE;

/// The pieces of every call's arguments in this round.
fn interleaved(round: usize) -> Bytes {
    let piece = |call: usize| {
        let arguments = if round == 0 { r#"{\"a\":\""#.to_owned() } else { "x".repeat(PIECE) };
        let named = match round {
            0 => format!(r#""id":"call_{call}","type":"function","#),
            _ => String::new(),
        };
        let name = if round == 0 { r#""name":"Read","# } else { "" };
        format!(
            r#"data: {{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":{call},{named}"function":{{{name}"arguments":"{arguments}"}}}}]}}}}]}}"#
        ) + "\n\n"
    };
    (0..CALLS).map(piece).collect::<String>().into()
}

impl Body {
    pub(crate) fn text(text: impl Into<Bytes>) -> Self {
        let text = text.into();
        Self::Text((!text.is_empty()).then_some(text))
    }

    pub(crate) fn bulk(gone: &Arc<AtomicU64>) -> Self {
        Self::Bulk { left: BULK, gone: Arc::clone(gone), is_text: false }
    }

    pub(crate) fn source(gone: &Arc<AtomicU64>) -> Self {
        Self::Bulk { left: BULK, gone: Arc::clone(gone), is_text: true }
    }

    /// Calls that interleave, and never end.
    pub(crate) fn held() -> Self {
        Self::Held { round: 0 }
    }

    pub(crate) fn paced(events: &'static Events, left: u32) -> Self {
        Self::Paced { events, left, has_begun: false, pace: tokio::time::interval(APART) }
    }

    pub(crate) fn events(events: &'static Events, left: u32, is_bulk: bool) -> Self {
        Self::Events { events, left, has_begun: false, paused: false, is_bulk }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = match self.get_mut() {
            Self::Text(text) => text.take(),
            Self::Bulk { left: 0, .. } | Self::Events { left: 0, .. } | Self::Paced { left: 0, .. } => None,
            Self::Paced { events, left, has_begun, pace } => {
                ready!(pace.poll_tick(context));
                *left -= 1;
                let begin = if std::mem::replace(has_begun, true) { "" } else { events.begin };
                let end = if *left == 0 { events.end } else { "" };
                Some([begin, &events.each.replace(WORDS, &sent_now()), end].concat().into())
            }
            Self::Held { round: PIECES.. } => return Poll::Pending,
            Self::Held { round } => {
                *round += 1;
                Some(interleaved(*round - 1))
            }
            Self::Bulk { left, gone, is_text } => {
                let size = usize::try_from(*left).unwrap_or(CHUNK).min(CHUNK);
                *left -= size as u64;
                gone.fetch_add(size as u64, Ordering::Relaxed);
                Some(if *is_text { SOURCE.slice(..size) } else { Bytes::from_static(&ZEROS[..size]) })
            }
            Self::Events { paused: paused @ false, is_bulk: false, .. } => {
                // A sender that has nothing more flushes what it has: each event becomes a record of its own.
                *paused = true;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Self::Events { events, left, has_begun, paused, is_bulk } => {
                *paused = false;
                let most = if *is_bulk { CHUNK / events.each.len() } else { 1 };
                let count = u32::try_from(most).unwrap().min(*left);
                *left -= count;
                let begin = if std::mem::replace(has_begun, true) { "" } else { events.begin };
                let end = if *left == 0 { events.end } else { "" };
                Some(match (begin, count, end) {
                    ("", 1, "") => Bytes::from_static(events.each.as_bytes()),
                    _ => [begin, &events.each.repeat(count as usize), end].concat().into(),
                })
            }
        };
        Poll::Ready(data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(
            self,
            Self::Text(None)
                | Self::Bulk { left: 0, .. }
                | Self::Events { left: 0, .. }
                | Self::Paced { left: 0, .. }
        )
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Text(text) => SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64),
            Self::Bulk { left, .. } => SizeHint::with_exact(*left),
            Self::Events { .. } | Self::Held { .. } | Self::Paced { .. } => SizeHint::default(),
        }
    }
}

/// What each event says.
const WORDS: &str = "some words ";
/// How long after each other paced events come.
const APART: Duration = Duration::from_millis(5);

/// When this process began to send.
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
/// What is before the time in an event, and how many digits that has.
const SENT: &str = "sent at ";
const DIGITS: usize = 16;

/// The words of an event that is sent now.
fn sent_now() -> String {
    format!("{SENT}{:0DIGITS$} ", BEGAN.elapsed().as_nanos())
}

/// How long ago each event of a chunk was sent.
pub(crate) fn delays(chunk: &[u8]) -> impl Iterator<Item = Duration> + '_ {
    let now = BEGAN.elapsed();
    memchr::memmem::find_iter(chunk, SENT).filter_map(move |at| {
        let digits = chunk.get(at + SENT.len()..)?.get(..DIGITS)?;
        let sent = std::str::from_utf8(digits).ok()?.parse().ok()?;
        now.checked_sub(Duration::from_nanos(sent))
    })
}

/// How many events a chunk of a stream ends.
pub(crate) fn count_events(chunk: &[u8]) -> u64 {
    memchr::memmem::find_iter(chunk, b"\n\n").count() as u64
}
