//! A WebSocket that echoes, or tells what it was given (RFC 6455): the handshake by hand, then frame by frame.

use std::io;
use std::pin::Pin;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Handle;

use super::super::body::{Streamed, whole};
use super::Step;

/// RFC 6455 section 1.3.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;

/// Answers 101 and echoes every message without its mask, until a close frame; 400 where no key was sent.
pub(super) fn accept(request: &mut Request<Incoming>, handle: &Handle) -> Response<Streamed> {
    upgrade(request, handle, |stream| Box::pin(echo(stream)))
}

/// Answers 101, and the first message with these messages; the other side ends it.
pub(super) fn tell(request: &mut Request<Incoming>, steps: Vec<Step>, handle: &Handle) -> Response<Streamed> {
    upgrade(request, handle, |stream| Box::pin(answer(stream, steps)))
}

/// What is done with the bytes after the handshake.
type Conversation = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

fn upgrade(
    request: &mut Request<Incoming>,
    handle: &Handle,
    speak: impl FnOnce(TokioIo<Upgraded>) -> Conversation + Send + 'static,
) -> Response<Streamed> {
    let Some(key) = request.headers().get("sec-websocket-key") else {
        return Response::builder().status(400).body(whole(Bytes::from("no key"), None)).unwrap();
    };
    let accept = accept_key(key.to_str().unwrap());
    let upgrade = hyper::upgrade::on(request);
    handle.spawn(async move {
        if let Ok(upgraded) = upgrade.await {
            // Either side may end it at any time.
            let _ = speak(TokioIo::new(upgraded)).await;
        }
    });
    Response::builder()
        .status(101)
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-accept", accept)
        .body(whole(Bytes::new(), None))
        .unwrap()
}

/// What `Sec-WebSocket-Accept` must say to a key.
pub(crate) fn accept_key(key: &str) -> String {
    let digest = aws_lc_rs::digest::digest(
        &aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY,
        format!("{key}{GUID}").as_bytes(),
    );
    BASE64_STANDARD.encode(digest.as_ref())
}

async fn echo(mut stream: TokioIo<Upgraded>) -> io::Result<()> {
    loop {
        let (first, payload) = read(&mut stream).await?;
        stream.write_all(&frame(first, &payload)).await?;
        stream.flush().await?;
        if first == CLOSE {
            return stream.shutdown().await;
        }
    }
}

async fn answer(mut stream: TokioIo<Upgraded>, steps: Vec<Step>) -> io::Result<()> {
    read(&mut stream).await?;
    for step in steps {
        if let Step::Data(message) = step {
            stream.write_all(&frame(TEXT, &message)).await?;
            stream.flush().await?;
        }
    }
    while read(&mut stream).await?.0 != CLOSE {}
    stream.shutdown().await
}

/// The first byte of the next frame, and its payload without the mask.
async fn read(stream: &mut TokioIo<Upgraded>) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 2];
    stream.read_exact(&mut head).await?;
    let length = match head[1] & 0x7f {
        126 => usize::from(stream.read_u16().await?),
        127 => usize::try_from(stream.read_u64().await?).unwrap(),
        short => usize::from(short),
    };
    let mut mask = [0; 4];
    stream.read_exact(&mut mask).await?;
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).await?;
    payload.iter_mut().enumerate().for_each(|(index, byte)| *byte ^= mask[index % 4]);
    Ok((head[0], payload))
}

fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match u16::try_from(payload.len()) {
        Ok(length @ 0..=125) => frame.push(length as u8),
        Ok(length) => {
            frame.push(126);
            frame.extend(length.to_be_bytes());
        }
        Err(_) => {
            frame.push(127);
            frame.extend((payload.len() as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    frame
}
