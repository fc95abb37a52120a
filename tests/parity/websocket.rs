//! A client of the Responses WebSocket (RFC 6455): one `response.create`, and the messages that answer it.

use serde_json::Value;

use super::responses;
use crate::support::{Agent, Connection};

const TEXT: u8 = 0x81;

/// Asks over a connection of its own. Answers each message up to the last of a response.
pub(crate) fn converse(agent: &Agent, cell: &str, request: &Value) -> Vec<String> {
    let mut connection = agent.tls(responses::HOST);
    connection.send(format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nx-cell: {cell}\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
        responses::PATH,
        responses::HOST
    ));
    let answer = connection.read_answer();
    assert_eq!(answer.status, 101, "{}", answer.text());
    connection.send(message(&request.to_string()));
    let mut messages = Vec::new();
    loop {
        let message = read(&mut connection);
        let last = message.contains(r#""type":"response.completed""#)
            || message.contains(r#""type":"response.failed""#)
            || message.contains(r#""type":"error""#);
        messages.push(message);
        if last {
            return messages;
        }
    }
}

/// A text message in one frame, masked with zeros.
fn message(text: &str) -> Vec<u8> {
    let mut frame = vec![TEXT];
    match u8::try_from(text.len()) {
        Ok(length @ ..126) => frame.push(0x80 | length),
        _ => {
            frame.push(0x80 | 126);
            frame.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(text.as_bytes());
    frame
}

/// The next text message. A ping that feeds the watchdog is passed over.
fn read(connection: &mut Connection) -> String {
    loop {
        let head = connection.read_exactly(2);
        let length = match head[1] {
            126 => u64::from(u16::from_be_bytes(connection.read_exactly(2).try_into().unwrap())),
            127 => u64::from_be_bytes(connection.read_exactly(8).try_into().unwrap()),
            short => u64::from(short),
        };
        let payload = connection.read_exactly(usize::try_from(length).unwrap());
        match head[0] {
            TEXT => return String::from_utf8(payload).unwrap(),
            0x89 => {}
            other => panic!("a frame {other:#x} with {:?}", String::from_utf8_lossy(&payload)),
        }
    }
}
