//! Recorded answers, as they were framed and framed as arrays: what goes on where nothing, everything or every other
//! call is denied.

use std::fs;

use bytes::Bytes;

use super::testing::{array, calls, chunks, events, guard, guarded};
use crate::provider::adapter::Framing;
use crate::provider::answer::testing::{Every, recorded};

/// Recorded because they are no answers, so that there are no calls in them.
const BROKEN: &[&str] = &["streaming-failure-invalid-json.sse", "streaming-failure-malformed-content.sse"];

/// The recordings of this dialect with their names.
fn files() -> Vec<(String, String)> {
    let parts = ["firebase-googleai", "firebase-vertexai", "live", "louter-sse", "vercel"];
    let paths = parts.iter().flat_map(|part| recorded(&format!("gemini/{part}")));
    let named = paths.map(|path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    });
    named.collect()
}

/// The recorded streams, each as events and as an array.
fn streams() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (name, text) in files() {
        if BROKEN.contains(&name.as_str()) {
            continue;
        }
        let prefix = if name.ends_with(".sse") { "data: " } else { "" };
        if name.ends_with(".sse") || name.ends_with(".chunks.txt") {
            let lines: Vec<&str> = text
                .lines()
                .filter_map(|line| line.strip_prefix(prefix))
                .filter(|line| line.starts_with('{'))
                .collect();
            found.push((format!("{name}, as an array"), array(&lines)));
            found.push((format!("{name}, as events"), events(&lines)));
        }
    }
    found
}

fn answers() -> Vec<(String, String)> {
    let is_answer = |(name, text): &(String, String)| {
        !name.contains("request") && name.ends_with(".json") && text.contains("\"candidates\"")
    };
    files().into_iter().filter(is_answer).collect()
}

#[test]
fn where_nothing_is_denied_no_byte_changes() {
    for (name, text) in files() {
        if name.ends_with(".sse") {
            let (out, result) = guarded(Every::new(0, true), &text, 1000);
            assert_eq!(result, Ok(()), "{name}");
            // An event that nothing ends is written anew, and an error that is none stays as it is.
            let is_cut = text.starts_with("data: ") && !text.replace('\r', "").ends_with("\n\n");
            let (out, text) = if is_cut { (out.trim_end(), text.trim_end()) } else { (&*out, &*text) };
            assert_eq!(out, text, "{name}");
        }
    }
    for (name, stream) in streams() {
        for holds in [false, true] {
            let (out, result) = guarded(Every::new(0, holds), &stream, 1000);
            assert_eq!(result, Ok(()), "{name}");
            assert_eq!(out, stream, "{name}");
        }
    }
    for (name, body) in answers() {
        let out = guard(Every::new(0, true), Framing::Whole).whole(Bytes::from(body.clone())).unwrap();
        assert_eq!(out, body.as_bytes(), "{name}");
    }
}

#[test]
fn where_everything_is_denied_no_call_is_left() {
    for (name, stream) in streams() {
        let before = chunks(&stream);
        for holds in [false, true] {
            let (out, result) = guarded(Every::new(1, holds), &stream, 1000);
            assert_eq!(result, Ok(()), "{name}");
            let after = chunks(&out);
            assert_eq!(calls(&after), Vec::<String>::new(), "{name}");
            assert_eq!(after.len(), before.len(), "{name}");
            assert!(!out.contains("executableCode") && !out.contains("codeExecutionResult"), "{name}");
            let blocked = out.matches("[postern] Tool call blocked").count();
            assert!(blocked >= calls(&before).len(), "{name}");
        }
    }
    for (name, body) in answers() {
        let out = guard(Every::new(1, true), Framing::Whole).whole(Bytes::from(body)).unwrap();
        assert_eq!(calls(&[serde_json::from_slice(&out).unwrap()]), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn where_every_other_call_is_denied_the_others_stay_whole() {
    for (name, stream) in streams() {
        if stream.contains("executableCode") || stream.contains("Metadata\": {\"") {
            continue;
        }
        let before = calls(&chunks(&stream));
        for holds in [false, true] {
            let (out, result) = guarded(Every::new(2, holds), &stream, 1000);
            assert_eq!(result, Ok(()), "{name}");
            let left: Vec<String> = before.iter().skip(1).step_by(2).cloned().collect();
            assert_eq!(calls(&chunks(&out)), left, "{name}");
        }
    }
}

#[test]
fn any_split_gives_the_same() {
    for (name, stream) in streams() {
        for (every, holds) in [(0, true), (1, false), (2, true)] {
            let whole = guarded(Every::new(every, holds), &stream, stream.len());
            for piece in [1, 13, 500] {
                assert_eq!(guarded(Every::new(every, holds), &stream, piece), whole, "{name}");
            }
        }
    }
}
