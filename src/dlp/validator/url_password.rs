//! A password inside of a URL that somebody uses, and not one of a manual.

use super::{Candidate, Judged, Validator};
use crate::dlp::runs::{Set, set};

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
/// The bytes of schemes, users and passwords.
const SCHEME: std::ops::RangeInclusive<usize> = 2..=16;
const MOST_OF_USER: usize = 64;
const PASSWORD: std::ops::RangeInclusive<usize> = 6..=128;
/// What ends a user or a password.
const ENDS: Set =
    set!(0..=b' ' | b'/' | b'@' | b'"' | b'\'' | b'<' | b'>' | b'{' | b'}' | b'$' | b'?' | b'#');

pub(super) struct UrlPassword;

impl Validator for UrlPassword {
    fn judge(&self, candidate: &Candidate<'_>) -> Option<Judged> {
        let Candidate { text, anchor, .. } = candidate;
        let rest = text.get(anchor.end..)?.iter().take(MOST_OF_USER + PASSWORD.end() + 2);
        let length = rest.take_while(|byte| !ENDS[usize::from(**byte)]).count();
        let user = text.get(anchor.end..anchor.end + length)?;
        let colon = memchr::memchr(b':', user).filter(|colon| *colon <= MOST_OF_USER)?;
        let range = anchor.end + colon + 1..anchor.end + length;
        let has_host = text.get(range.end) == Some(&b'@')
            && text.get(range.end + 1).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'[');
        let password = text.get(range.clone())?;
        (has_host
            && PASSWORD.contains(&range.len())
            && has_scheme(text, anchor.start)
            && !is_example(password))
        .then(|| Judged::found(range))
    }
}

fn has_scheme(text: &[u8], end: usize) -> bool {
    let is_in = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'.' | b'-');
    let before = text.get(..end).unwrap_or_default();
    SCHEME.contains(&before.iter().rev().take(SCHEME.end() + 1).take_while(is_in).count())
}

fn is_example(password: &[u8]) -> bool {
    let is_word = std::str::from_utf8(password)
        .is_ok_and(|password| WORDS.iter().any(|word| password.eq_ignore_ascii_case(word)));
    let is_port = password.iter().all(u8::is_ascii_digit) && password.len() <= 5;
    is_word || is_port || password.contains(&b'*')
}
