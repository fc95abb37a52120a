//! What becomes of requests of Anthropic Messages: one table for each way to hosted tools, with a twin that stays as it is.

mod conversation;
mod hosted;
mod properties;
mod side_edits;
mod what_is_said;

use super::testing::{sent, strictly};

/// A message before and after.
fn becomes(cases: &[(&str, &str, &str)]) {
    for (what, body, expected) in cases {
        assert_eq!(strictly(body), *expected, "{what}");
        // What was edited once needs no edit again: the next turn is edited in the same way.
        assert_eq!(strictly(expected), *expected, "{what}, again");
    }
}

/// Bodies in which nothing is changed.
fn stays(bodies: &[&str]) {
    for body in bodies {
        let (kept, changes) = sent(body, super::testing::STRICT);
        assert_eq!(kept, *body);
        assert_eq!(changes, [], "{body}");
    }
}

/// A request with these messages and a custom tool.
fn talk(messages: &str) -> String {
    format!(r#"{{"tools":[{{"name":"a","input_schema":{{}}}}],"messages":[{messages}]}}"#)
}
