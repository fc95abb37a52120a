//! Holds the documentation to the table of fields. `POSTERN_BLESS=1` writes it.

use std::fmt::Write as _;
use std::{env, fs};

use super::kind::Record;
use super::{Field, event_fields};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/policy.md");
const END: &str = "<!-- end of fields -->";

fn rows(title: &str, prefix: &str, fields: &[Field]) -> String {
    let mut table = format!("| {title} | type | |\n|---|---|---|\n");
    for field in fields {
        writeln!(table, "| `{prefix}{}` | {} | {} |", field.path, field.describe(), field.about).unwrap();
    }
    table
}

#[test]
fn the_page_lists_every_field_that_rules_may_read() {
    let expected = format!(
        "{}\n{}\n{}",
        rows("field", "event.", event_fields()),
        rows("of a tool", "", Record::Tool.fields()),
        rows("of a finding", "", Record::Finding.fields())
    );
    let page = fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once("<!-- fields:").unwrap();
    let (comment, rest) = rest.split_once("-->\n").unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    if env::var_os("POSTERN_BLESS").is_some() {
        let blessed = format!("{before}<!-- fields:{comment}-->\n{expected}{END}{after}");
        fs::write(PAGE, blessed).unwrap();
    } else {
        assert_eq!(
            written, expected,
            "POSTERN_BLESS=1 cargo test --lib policy::cel::documentation writes it"
        );
    }
}
