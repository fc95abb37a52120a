//! A verdict on a ClientHello, once given, never changes with more bytes, and says only what the bytes say.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern::wire::client_hello::{Hello, read};
use postern::wire::first_bytes::{First, classify};

fuzz_target!(|bytes: &[u8]| {
    let bytes = &bytes[..bytes.len().min(64 << 10)];
    let whole = read(bytes);
    // Every prefix of a short input, some of a long one.
    for end in (0..bytes.len()).step_by(1 + bytes.len() / 512) {
        let part = read(&bytes[..end]);
        assert!(part == Hello::Incomplete || part == whole, "{end} bytes: {part:?}, all: {whole:?}");
        let first = classify(&bytes[..end]);
        assert!(first == First::NeedMore || first == classify(bytes));
    }
    if whole != Hello::NotTls && bytes.len() > 1 {
        assert_eq!(classify(bytes), First::Tls);
    }
    if let Hello::Complete(hello) = &whole {
        let name = hello.server_name.as_deref().unwrap_or("a");
        assert!(name.is_ascii() && !name.is_empty());
        assert!(hello.alpn.iter().all(|protocol| !protocol.is_empty() && protocol.len() < 256));
        assert_eq!(read(&refragmented(bytes)), whole, "other records, other verdict");
    }
});

/// The handshake message of a complete ClientHello in records of one byte each.
fn refragmented(mut bytes: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    while let [_, _, _, high, low, rest @ ..] = bytes {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        message.extend_from_slice(&rest[..length]);
        bytes = &rest[length..];
        if message.len() >= 4 {
            let needed = 4 + u32::from_be_bytes([0, message[1], message[2], message[3]]) as usize;
            if message.len() >= needed {
                message.truncate(needed);
                break;
            }
        }
    }
    message.iter().flat_map(|byte| [0x16, 3, 3, 0, 1, *byte]).collect()
}
