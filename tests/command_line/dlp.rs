//! `postern dlp`: where secrets stand in files, which are looked for, and how a value is named without being told.

use std::fs::File;
use std::process::Stdio;

use serde_json::{Value, json};

use super::Place;

/// A token of GitHub's shape, with a right checksum, in parts, so that it stands nowhere as a whole.
fn token() -> String {
    ["gh", "p_", "AbCdEfGhIjKlMnOpQrStUvWxYz0123", "2piBxe"].concat()
}

fn place() -> Place {
    let place = Place::new();
    place.write("src/clean.rs", "fn main() { let token = read_token(); }\n");
    place.write("src/config.env", &format!("# settings\nNAME=x\nGITHUB_TOKEN={}\n", token()));
    place.write(".git/objects/pack", &token());
    place
}

#[test]
fn a_secret_is_told_by_its_place_and_never_by_itself() {
    let place = place();
    let said = place.run(&["dlp", "scan", "."]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(1), ""), "{said:?}");
    assert!(said.stdout.starts_with("./src/config.env:3:14: High github-token, checksum right"), "{said:?}");
    assert!(said.stdout.ends_with("1 finding in 2 files, 112 bytes\n"), "{said:?}");
    for form in ["text", "json", "yaml"] {
        let said = place.run(&["dlp", "scan", "src", "-o", form]);
        assert!(!said.stdout.contains(&token()[10..20]), "{said:?}");
    }
}

#[test]
fn where_there_is_none_the_exit_status_is_0() {
    let said = place().run(&["dlp", "scan", "src/clean.rs"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "0 findings in 1 file, 40 bytes\n"), "{said:?}");
}

#[test]
fn programs_read_the_same_with_what_was_undone() {
    let place = Place::new();
    let hex: String = format!("key {} end", token()).bytes().map(|byte| format!("{byte:02x}")).collect();
    place.write("dump.txt", &format!("a line\n\u{e4} {hex}\n"));
    let said = place.run(&["dlp", "scan", "dump.txt", "-o", "json"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let finding = &said.json()["findings"][0];
    let place_of = |field: &str| finding[field].clone();
    assert_eq!(
        (place_of("file"), place_of("line"), place_of("column")),
        (json!("dump.txt"), json!(2), json!(3))
    );
    assert_eq!((place_of("detector"), place_of("decoded")), (json!("github-token"), json!(["hex"])));
    assert_eq!(place_of("length"), json!(hex.len()));
}

#[test]
fn how_sure_a_finding_is_decides_what_is_told() {
    let place = Place::new();
    place.write("readme.md", "export AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE\n");
    let said = place.run(&["dlp", "scan", "readme.md"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = place.run(&["dlp", "scan", "readme.md", "--confidence", "low"]);
    assert!(said.stdout.contains("Low aws-access-key-id"), "{said:?}");
    assert_eq!(said.code, Some(1));
}

#[test]
fn what_cannot_be_read_is_said() {
    let said = place().run(&["dlp", "scan", "nowhere", "src/clean.rs"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stdout.contains("nowhere cannot be read: No such file"), "{said:?}");
    assert_eq!(place().run(&["dlp", "scan"]).code, Some(2));
}

fn with_input(arguments: &[&str], input: &str) -> super::Said {
    let place = Place::new();
    place.write("input", input);
    place.start(arguments, &[], Stdio::from(File::open(place.path().join("input")).unwrap()))
}

#[test]
fn standard_input_is_searched_and_hashed() {
    let said = with_input(&["dlp", "scan", "-"], &token());
    assert!(said.stdout.starts_with("-:1:1: High github-token"), "{said:?}");
    let hash = |input: &str| with_input(&["dlp", "hash"], input);
    // FIPS 180-4's example.
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n";
    assert_eq!((hash("abc").stdout.as_str(), hash("abc\n").stdout.as_str()), (abc, abc));
    assert_ne!(hash("abc\n\n").stdout, abc);
    assert_eq!((hash("").code, hash("\n").code), (Some(1), Some(1)));
}

#[test]
fn every_detector_is_listed() {
    let said = Place::new().run(&["dlp", "list", "-o", "json"]);
    let rows = said.json();
    let github = rows.as_array().unwrap().iter().find(|row| row["detector"] == "github-token").unwrap();
    assert_eq!((&github["confidence"], &github["rigid"]), (&json!("High"), &Value::Bool(true)));
    assert!(Place::new().run(&["dlp", "list"]).stdout.lines().count() == rows.as_array().unwrap().len());
}
