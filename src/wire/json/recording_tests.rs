//! Recorded requests of every dialect: read as serde_json reads them, and edited at each of their values.

use std::fs;
use std::path::Path;

use serde_json::Value as Expected;

use super::testing::{all, read, value_of};
use super::*;

/// Each is edited at every one of its values.
const MOST: u64 = 4 << 10;

/// Recorded bodies of real providers with their files' names, from beside the repository; none where they are not.
fn recordings() -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/fixtures");
    let mut found = Vec::new();
    collect(&directory, &mut found);
    found
}

fn collect(directory: &Path, found: &mut Vec<(String, String)>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        let small = fs::metadata(&path).is_ok_and(|metadata| metadata.len() <= MOST);
        if path.is_dir() {
            collect(&path, found);
        } else if small && path.extension().is_some_and(|extension| extension == "json") {
            let body = fs::read_to_string(&path).unwrap();
            // Some were recorded because they are broken.
            if serde_json::from_str::<Expected>(&body).is_ok() {
                found.push((path.display().to_string(), body));
            }
        }
    }
}

#[test]
fn recorded_requests_are_read_as_serde_json_reads_them() {
    for (name, body) in recordings() {
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
