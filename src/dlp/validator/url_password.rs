//! A password inside of a URL that somebody uses, and not one of a manual.

use super::{Candidate, Judged, Validator};

/// Words that stand for a password in examples.
const WORDS: &[&str] = &[
    "password",
    "passwd",
    "pass",
    "pwd",
    "secret",
    "token",
    "changeme",
    "example",
    "user",
    "username",
    "test",
    "admin",
    "root",
    "postgres",
    "mysql",
    "guest",
    "foo",
    "bar",
    "xxx",
    "port",
    "key",
    "your-password",
    "your_password",
    "mypassword",
];
const LEAST: usize = 6;

pub(super) struct UrlPassword;

impl Validator for UrlPassword {
    fn judge(&self, candidate: &Candidate<'_>) -> Option<Judged> {
        let value = candidate.value();
        // The shape takes the first character of the host.
        let at = value.len().checked_sub(2)?;
        let user = candidate.anchor.end - candidate.range.start;
        let colon = user + memchr::memchr(b':', value.get(user..at)?)?;
        let password = value.get(colon + 1..at)?;
        let is_word = std::str::from_utf8(password)
            .is_ok_and(|password| WORDS.iter().any(|word| password.eq_ignore_ascii_case(word)));
        let is_port = password.iter().all(u8::is_ascii_digit) && password.len() <= 5;
        let range = candidate.range.start + colon + 1..candidate.range.start + at;
        (password.len() >= LEAST && !is_word && !is_port && !password.contains(&b'*'))
            .then(|| Judged::found(range))
    }
}
