//! Recorded requests of every dialect: read as serde_json reads them, and edited at each of their values.

use std::fs;
use std::path::Path;

use serde_json::Value as Expected;

use super::testing::{all, read, value_of};
use super::*;

/// Each recorded body with its file's name.
fn recordings() -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap()))
        .collect()
}

#[test]
fn recorded_requests_are_read_as_serde_json_reads_them() {
    let recordings = recordings();
    assert!(recordings.len() >= 10, "the recordings are gone");
    for (name, body) in recordings {
        let document = read(&body);
        assert_eq!(document.first_duplicate(), None, "{name}");
        assert_eq!(value_of(document.root()), serde_json::from_str::<Expected>(&body).unwrap(), "{name}");
    }
}

#[test]
fn a_value_put_in_its_own_place_changes_no_byte_of_a_recorded_request() {
    for (name, body) in recordings() {
        let document = read(&body);
        for value in all(document.root()) {
            let mut edits = Edits::new(&document);
            edits.replace(value, value.raw()).unwrap();
            assert_eq!(edits.apply(), body.as_bytes(), "{name}, {value:?}");
        }
    }
}

#[test]
fn a_recorded_request_without_one_value_is_what_is_before_and_after_it() {
    for (name, body) in recordings() {
        let document = read(&body);
        for value in all(document.root()).into_iter().skip(1) {
            let mut edits = Edits::new(&document);
            edits.remove(value).unwrap();
            let edited = String::from_utf8(edits.apply()).unwrap();
            let left = all(read(&edited).root()).len();
            assert_eq!(left, all(document.root()).len() - all(value).len(), "{name}, {value:?}");
            let before = body.bytes().zip(edited.bytes()).take_while(|(a, b)| a == b).count();
            let after = &edited[before..];
            assert!(body.ends_with(after), "{name}, {value:?}");
            assert!(
                before <= value.span().end && body.len() - after.len() >= value.span().end,
                "{name}, {value:?}"
            );
        }
    }
}
