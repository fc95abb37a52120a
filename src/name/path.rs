//! Request paths in their one canonical form, and the patterns they are compared with.

use std::fmt;

use super::host::NameError;

/// A request's path, without query. Percent-escapes of characters that need none are decoded, all others
/// are upper-case (RFC 3986 section 6.2.2); one trailing slash is kept and never decides.
///
/// What servers read in different ways is not interpreted: such a path is *ambiguous*, is kept as it was
/// sent, and matches only `/**` (threats C5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NormalPath {
    text: String,
    ambiguous: bool,
}

impl NormalPath {
    /// Reads a path as it stands in a request target; an empty one is `/`.
    pub fn parse(raw: &str) -> Self {
        if raw.is_empty() {
            return Self { text: "/".into(), ambiguous: false };
        }
        match normalise(raw) {
            Some(text) => Self { text, ambiguous: false },
            None => Self { text: raw.into(), ambiguous: true },
        }
    }

    /// Whether servers could read it in different ways.
    pub fn is_ambiguous(&self) -> bool {
        self.ambiguous
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn segments(&self) -> impl Iterator<Item = &str> + Clone {
        segments(&self.text)
    }
}

impl fmt::Display for NormalPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A path of `endpoints`: `*` is one segment, `**` any number of them, none included, and `*:verb` one segment that
/// ends in a verb (Google's custom methods, <https://google.aip.dev/136>).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Literal(String),
    One,
    /// `:verb`, behind a name that has no colon.
    Verb(String),
    Any,
}

impl PathPattern {
    /// Reads a pattern as a policy's author writes it.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if !text.starts_with('/') {
            return Err(NameError("a path begins with `/`"));
        }
        if text.contains(['?', '#']) {
            return Err(NameError("a path is compared without its query: leave out `?` and what follows"));
        }
        if segments(text).any(|segment| segment.contains('*') && !is_wild(segment)) {
            return Err(NameError(
                "`*` and `**` stand for whole segments, between slashes; only a verb may follow, as in `*:verb`",
            ));
        }
        let normal = normalise(text).ok_or(NameError(
            "servers read this path in different ways (empty or dot segments, `;`, backslashes, escaped \
             separators or broken escapes), so no request is compared with it: use `/**`",
        ))?;
        let segments = segments(&normal).map(|segment| match segment {
            "*" => Segment::One,
            "**" => Segment::Any,
            literal => literal
                .strip_prefix('*')
                .map_or_else(|| Segment::Literal(literal.into()), |verb| Segment::Verb(verb.into())),
        });
        Ok(Self { segments: segments.collect() })
    }

    /// `/**`
    pub fn any() -> Self {
        Self { segments: vec![Segment::Any] }
    }

    /// Whether the pattern covers this path.
    pub fn matches(&self, path: &NormalPath) -> bool {
        if self.segments == [Segment::Any] {
            return true;
        }
        !path.ambiguous && covers(&self.segments, path.segments())
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.segments.is_empty() {
            return f.write_str("/");
        }
        self.segments.iter().try_for_each(|segment| match segment {
            Segment::Literal(text) => write!(f, "/{text}"),
            Segment::One => f.write_str("/*"),
            Segment::Verb(verb) => write!(f, "/*{verb}"),
            Segment::Any => f.write_str("/**"),
        })
    }
}

/// Compares segment by segment; of several `**` only the last needs another try, so this is quadratic at worst.
fn covers<'a>(mut pattern: &[Segment], mut path: impl Iterator<Item = &'a str> + Clone) -> bool {
    let mut retry = None;
    loop {
        let mut rest = path.clone();
        let step = match (pattern.split_first(), rest.next()) {
            (Some((Segment::Any, after)), _) => {
                retry = Some((after, path.clone()));
                pattern = after;
                continue;
            }
            (None, None) => return true,
            (Some((Segment::One, after)), Some(_)) => Some(after),
            (Some((Segment::Literal(own), after)), Some(segment)) if own == segment => Some(after),
            (Some((Segment::Verb(own), after)), Some(segment)) if has_verb(segment, own) => Some(after),
            (Some(_) | None, _) => None,
        };
        if let Some(after) = step {
            (pattern, path) = (after, rest);
            continue;
        }
        let Some((after, from)) = retry.as_mut() else { return false };
        if from.next().is_none() {
            return false;
        }
        (pattern, path) = (after, from.clone());
    }
}

/// `*`, `**` or `*:verb`.
fn is_wild(segment: &str) -> bool {
    let is_verb = |verb: &str| !verb.is_empty() && !verb.contains(['*', ':', '%']);
    segment == "*" || segment == "**" || segment.strip_prefix("*:").is_some_and(is_verb)
}

/// Whether a segment is a name and this verb; with another colon in it, servers could take another part for the verb.
fn has_verb(segment: &str, verb: &str) -> bool {
    segment.strip_suffix(verb).is_some_and(|name| !name.is_empty() && !name.contains(':'))
}

/// What stands between the slashes, without the one that may end the path.
fn segments(path: &str) -> impl Iterator<Item = &str> + Clone {
    let inner = path.strip_prefix('/').unwrap_or(path);
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    // `/` has no segment at all, where split would give one empty one.
    inner.split('/').skip(usize::from(inner.is_empty()))
}

/// The canonical form, or none where the path is ambiguous.
fn normalise(raw: &str) -> Option<String> {
    let mut text = String::with_capacity(raw.len());
    let mut bytes = raw.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => push_escaped(hex(bytes.next()?)? << 4 | hex(bytes.next()?)?, &mut text)?,
            b'\\' | b';' | b'?' | b'#' | 0..=0x20 | 0x7f => return None,
            plain if is_plain(plain) || plain == b'/' => text.push(char::from(plain)),
            other => push_escape(other, &mut text),
        }
    }
    let body = text.strip_prefix('/')?;
    let body = body.strip_suffix('/').unwrap_or(body);
    let odd = |segment: &str| matches!(segment, "" | "." | "..");
    let odd = text == "//" || (!body.is_empty() && body.split('/').any(odd));
    (!odd && !is_escaped_twice(&text) && is_utf8(&text) && !has_other_slashes(&text)).then_some(text)
}

/// Adds a byte that was escaped; none where its meaning depends on who decodes it, and when.
fn push_escaped(byte: u8, text: &mut String) -> Option<()> {
    match byte {
        b'/' | b'\\' | b';' | b'.' | b'?' | b'#' | 0..=0x1f | 0x7f => return None,
        plain if is_plain(plain) => text.push(char::from(plain)),
        other => push_escape(other, text),
    }
    Some(())
}

fn push_escape(byte: u8, text: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
    text.extend(['%', digit(byte >> 4), digit(byte)]);
}

/// Characters that stand for themselves in a segment: pchar (RFC 3986 section 3.3) without `;`.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,=:@".contains(&byte)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Whether an escaped `%` begins another escape: some servers decode once, some twice.
fn is_escaped_twice(normal: &str) -> bool {
    let is_hex = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    normal.match_indices("%25").any(|(at, _)| {
        let rest = normal.as_bytes().get(at + 3..).unwrap_or_default();
        is_hex(rest.first()) && is_hex(rest.get(1))
    })
}

/// Characters that some servers take for a slash: the full-width ones and the small one, and those of fractions and
/// divisions, as they are escaped.
const OTHER_SLASHES: [&str; 6] =
    ["%EF%BC%8F", "%EF%BC%BC", "%EF%B9%A8", "%E2%81%84", "%E2%88%95", "%E2%A7%B8"];

fn has_other_slashes(normal: &str) -> bool {
    normal.contains('%') && OTHER_SLASHES.iter().any(|slash| normal.contains(slash))
}

/// Whether the escaped bytes are UTF-8; overlong forms of `/` and `.` are not.
fn is_utf8(normal: &str) -> bool {
    if !normal.contains('%') {
        return true;
    }
    let mut decoded = Vec::with_capacity(normal.len());
    let mut bytes = normal.bytes();
    while let Some(byte) = bytes.next() {
        let escape = (byte == b'%').then(|| (bytes.next(), bytes.next()));
        match escape {
            Some((Some(a), Some(b))) => decoded.push(hex(a).unwrap_or(0) << 4 | hex(b).unwrap_or(0)),
            Some(_) => return false,
            None => decoded.push(byte),
        }
    }
    std::str::from_utf8(&decoded).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn covers(pattern: &str, path: &str) -> bool {
        PathPattern::parse(pattern).unwrap().matches(&NormalPath::parse(path))
    }

    #[test]
    fn escapes_that_need_not_be_are_decoded_and_others_are_upper_case() {
        for (raw, normal) in [
            ("/v1/%6dessages", "/v1/messages"),
            ("/a%20b", "/a%20b"),
            ("/%c3%a9", "/%C3%A9"),
            ("/é", "/%C3%A9"),
            ("/@scope/%40x", "/@scope/@x"),
            ("/100%25", "/100%25"),
            ("", "/"),
            ("/a/", "/a/"),
        ] {
            let path = NormalPath::parse(raw);
            assert_eq!((path.as_str(), path.is_ambiguous()), (normal, false), "{raw}");
        }
    }

    #[test]
    fn what_servers_read_in_different_ways_is_ambiguous_and_matches_only_everything() {
        let tricks = [
            "//v1/messages",
            "/v1//messages",
            "//",
            "/v1/./messages",
            "/v1/../messages",
            "/..",
            "/.",
            "/v1/%2e%2e/messages",
            "/v1/%2E/messages",
            "/file%2etxt",
            "/v1%2Fmessages",
            "/v1%2fmessages",
            "/v1%5cmessages",
            "/v1\\messages",
            "/v1/messages;param",
            "/v1/messages%3Bparam",
            "/v1/messages%00",
            "/v1/messages%0d%0a",
            "/v1/messages%3Fx",
            "/v1/messages%23x",
            "/v1/messages?x",
            "/v1/%",
            "/v1/%4",
            "/v1/%zz",
            "/v1/%252e%252e/messages",
            "/v1/%25%32%65/messages",
            "/v1/%c0%af",
            "/v1/%ff",
            "v1/messages",
            "*",
            "http://example.com/v1",
            "/v1/mess ages",
            "/v1%EF%BC%8Fmessages",
            "/v1／messages",
            "/v1%e2%88%95messages",
        ];
        for raw in tricks {
            let path = NormalPath::parse(raw);
            assert!(path.is_ambiguous(), "{raw}");
            assert_eq!(path.as_str(), raw);
            for pattern in ["/v1/**", "/*/*", "/v1/messages", "/**/messages"] {
                assert!(!covers(pattern, raw), "{pattern} {raw}");
            }
            assert!(covers("/**", raw), "{raw}");
        }
    }

    #[test]
    fn names_that_begin_with_dots_are_plain() {
        assert!(covers("/v1/..hidden", "/v1/..hidden"));
        assert!(covers("/.well-known/*", "/.well-known/x"));
        assert!(covers("/...", "/..."));
    }

    #[test]
    fn one_star_is_one_segment_and_two_are_any_number() {
        assert!(covers("/v1/*", "/v1/messages"));
        assert!(!covers("/v1/*", "/v1"));
        assert!(!covers("/v1/*", "/v1/messages/batches"));
        assert!(covers("/acme/**", "/acme/repo/info/refs"));
        assert!(covers("/acme/**", "/acme"));
        assert!(!covers("/acme/**", "/acmex/repo"));
        assert!(covers("/**/info/refs", "/a/b/info/refs"));
        assert!(covers("/**/info/refs", "/info/refs"));
        assert!(!covers("/**/info/refs", "/a/info/refs/x"));
        assert!(covers("/a/**/b/**/c", "/a/x/b/y/b/z/c"));
        assert!(!covers("/a/**/b/**/c", "/a/x/c/b"));
        assert!(covers("/**", "/"));
        assert!(!covers("/*", "/"));
        assert!(covers("/", "/"));
    }

    #[test]
    fn a_verb_ends_a_segment_and_its_name_has_no_other() {
        let pattern = "/v1/models/*:generateContent";
        assert!(covers(pattern, "/v1/models/gemini-2.5:generateContent"));
        assert!(covers(pattern, "/v1/models/gemini%3AgenerateContent"));
        assert!(covers("/**/*:run", "/a/b/c:run"));
        for path in [
            "/v1/models/gemini",
            "/v1/models/:generateContent",
            "/v1/models/gemini:streamGenerateContent",
            "/v1/models/gemini:batchGenerateContent",
            "/v1/models/gemini:generatecontent",
            "/v1/models/gemini:batch:generateContent",
            "/v1/models/gemini:generateContent/x",
            "/v1/models/a/b:generateContent",
        ] {
            assert!(!covers(pattern, path), "{path}");
        }
    }

    #[test]
    fn one_trailing_slash_never_decides() {
        assert!(covers("/v1/messages", "/v1/messages/"));
        assert!(covers("/v1/messages/", "/v1/messages"));
        assert!(!covers("/v1/messages", "/v1/messages//"));
        assert!(covers("/acme/**/", "/acme/x"));
    }

    #[test]
    fn a_path_keeps_its_case() {
        assert!(!covers("/v1/messages", "/V1/Messages"));
    }

    #[test]
    fn a_pattern_is_normalised_like_a_path() {
        assert!(covers("/a%20b/%6d", "/a%20b/m"));
        assert!(covers("/caf%c3%a9", "/café"));
        assert!(covers("/café/*", "/caf%C3%A9/x"));
    }

    #[test]
    fn patterns_that_no_path_could_match_are_refused() {
        for text in [
            "v1",
            "",
            "/v1/../x",
            "/v1//x",
            "/a;b",
            "/a%2fb",
            "/v1/*.json",
            "/*:",
            "/*:a*",
            "/*:a:b",
            "/a**",
            "/v1?x=1",
            "/%",
            "/a b",
        ] {
            assert!(PathPattern::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn normalising_twice_changes_nothing(raw in "(/([a-zA-Z%0-9.;~é-]|%[0-9a-fA-F]{2}){0,6}){0,6}|\\PC{0,40}") {
            let once = NormalPath::parse(&raw);
            prop_assert_eq!(NormalPath::parse(once.as_str()), once);
        }

        #[test]
        fn a_literal_pattern_covers_exactly_its_own_path(a in "(/[a-z]{1,3}){1,3}", b in "(/[a-z]{1,3}){1,3}") {
            prop_assert_eq!(covers(&a, &b), a == b);
        }

        #[test]
        fn stars_in_number_cost_no_time(stars in 1_usize..40, depth in 1_usize..200) {
            let pattern = format!("{}/b", "/**/a".repeat(stars));
            prop_assert!(!covers(&pattern, &"/a".repeat(depth)));
        }
    }
}
