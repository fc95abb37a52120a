//! Field lines of heads and trailers: where a section ends, and what a line may contain.

use memchr::memchr_iter;

use super::limits::Limits;
use super::violation::Violation;

/// The kind of section: a head may follow one empty line (RFC 9112, section 2.2), trailers end at their first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldSection {
    Head,
    Trailers,
}

/// The search for a section's end. It remembers its position and the line ends, so that each byte is read once however
/// the bytes arrive.
#[derive(Debug, Default)]
pub(super) struct SectionSearch {
    /// The offset of each line's LF, except that of the last, empty one.
    ends: Vec<usize>,
    line: usize,
    searched: usize,
}

impl SectionSearch {
    /// The length of the section up to and with its empty line; `None` needs more bytes.
    /// `bytes` begin where they began at the last call.
    pub(super) fn end(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        section: FieldSection,
    ) -> Result<Option<usize>, Violation> {
        // Bytes past the limit are not read, so that the verdict does not depend on how the bytes arrive.
        let window = bytes.get(..limits.header_bytes).unwrap_or(bytes);
        let from = self.searched;
        for at in memchr_iter(b'\n', window.get(from..).unwrap_or_default()) {
            let lf = from + at;
            if lf.checked_sub(1).and_then(|cr| window.get(cr)) != Some(&b'\r') {
                return Err(Violation::malformed("bare LF"));
            }
            if lf == self.line + 1 {
                // `line` is the offset of the empty line: 0 is the one that may precede a request, 2 would be a second one.
                match (section, self.line) {
                    (FieldSection::Head, 0) => {}
                    (FieldSection::Head, 2) => {
                        return Err(Violation::malformed("empty line before the request"));
                    }
                    (FieldSection::Head | FieldSection::Trailers, _) => return Ok(Some(lf + 1)),
                }
            }
            // The request line and an empty one before it are no header.
            if self.ends.len() > limits.header_count + 1 {
                return Err(Violation::too_many());
            }
            self.ends.push(lf);
            self.line = lf + 1;
            self.searched = lf + 1;
        }
        if window.len() >= limits.header_bytes {
            return Err(Violation::too_large(match section {
                FieldSection::Head => "head too large",
                FieldSection::Trailers => "trailers too large",
            }));
        }
        self.searched = window.len();
        Ok(None)
    }

    /// The lines of the section that was found, without their line ends and without empty ones.
    pub(super) fn lines<'a>(&self, section: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let mut start = 0;
        self.ends.iter().filter_map(move |lf| {
            let line = section.get(start..lf.saturating_sub(1)).unwrap_or_default();
            start = lf + 1;
            if line.is_empty() { None } else { Some(line) }
        })
    }

    /// Refuses control bytes (CR, NUL, DEL among them) but tabs and the line ends of the section that was found.
    pub(super) fn only_line_ends(&self, section: &[u8]) -> Result<(), Violation> {
        let line_ends = self.ends.len() + 1;
        if controls(section) == 2 * line_ends {
            return Ok(());
        }
        let bare_cr = section.windows(2).any(|pair| matches!(pair, [b'\r', after] if *after != b'\n'));
        Err(Violation::malformed(if bare_cr { "bare CR" } else { "control byte" }))
    }

    /// Forgets the section, to begin another.
    pub(super) fn restart(&mut self) {
        self.ends.clear();
        self.line = 0;
        self.searched = 0;
    }
}

/// Counts control bytes, in blocks short enough for the count to fit a byte, so that the compiler compares sixteen
/// bytes at once.
fn controls(bytes: &[u8]) -> usize {
    let in_block = |block: &[u8]| block.iter().fold(0u8, |n, b| n.wrapping_add(u8::from(is_control(*b))));
    bytes.chunks(240).map(|block| usize::from(in_block(block))).sum()
}

const fn is_control(b: u8) -> bool {
    (b < b' ') & (b != b'\t') | (b == 0x7f)
}

/// Splits a line into name and value (RFC 9112, section 5): no space around the name, none kept around the value.
pub(super) fn field(line: &[u8]) -> Result<(&[u8], &[u8]), Violation> {
    let Some((name, rest)) = line.split_at_checked(token_length(line)) else {
        return Err(Violation::malformed("header without colon"));
    };
    match (rest, name) {
        ([b':', ..], []) => Err(Violation::malformed("empty header name")),
        ([b':', value @ ..], _) => Ok((name, trim(value))),
        ([b' ' | b'\t', ..], []) => Err(Violation::malformed("folded header line")),
        ([b' ' | b'\t', ..], _) => Err(Violation::malformed("space in or after a header name")),
        ([], _) => Err(Violation::malformed("header without colon")),
        ([_, ..], _) => Err(Violation::malformed("header name")),
    }
}

pub(super) fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// The length of the token that `bytes` begin with.
pub(super) fn token_length(bytes: &[u8]) -> usize {
    // Four at a time without a branch between them: most of the work on a head is its names.
    let whole =
        bytes.chunks_exact(4).take_while(|four| four.iter().fold(true, |token, b| token & is_token(*b)));
    let known = whole.count() * 4;
    known + bytes.iter().skip(known).take_while(|b| is_token(**b)).count()
}

/// A byte of a token (RFC 9110, section 5.6.2).
const fn is_token(b: u8) -> bool {
    TOKEN[b as usize]
}

const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0u8;
    while b < 0x7f {
        table[b as usize] = b.is_ascii_alphanumeric()
            || matches!(
                b,
                b'!' | b'#'
                    | b'$'
                    | b'%'
                    | b'&'
                    | b'\''
                    | b'*'
                    | b'+'
                    | b'-'
                    | b'.'
                    | b'^'
                    | b'_'
                    | b'`'
                    | b'|'
                    | b'~'
            );
        b += 1;
    }
    table
};

/// What `Connection` may name: hop-by-hop fields (RFC 9110, section 7.6.1), and its options.
const HOP_BY_HOP: [&[u8]; 12] = [
    b"keep-alive",
    b"close",
    b"upgrade",
    b"te",
    b"trailer",
    b"trailers",
    b"transfer-encoding",
    b"http2-settings",
    b"proxy-connection",
    b"proxy-authorization",
    b"proxy-authenticate",
    b"connection",
];

/// Whether a `Connection` value names only hop-by-hop fields: any other would be judged here and removed by a later hop
/// (threat C12).
pub fn nominates_hop_by_hop(value: &[u8]) -> bool {
    value
        .split(|b| *b == b',')
        .map(trim)
        .all(|option| option.is_empty() || HOP_BY_HOP.iter().any(|known| known.eq_ignore_ascii_case(option)))
}

/// The names that no trailer may have (RFC 9110, section 6.5.1): framing, routing, authentication, how content is read.
const NOT_IN_TRAILERS: [&[u8]; 27] = [
    b"api-key",
    b"authorization",
    b"cache-control",
    b"connection",
    b"content-encoding",
    b"content-length",
    b"content-location",
    b"content-range",
    b"content-type",
    b"cookie",
    b"expect",
    b"host",
    b"keep-alive",
    b"location",
    b"max-forwards",
    b"proxy-authenticate",
    b"proxy-authorization",
    b"proxy-connection",
    b"range",
    b"set-cookie",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
    b"www-authenticate",
    b"x-api-key",
    b"x-goog-api-key",
];

/// Whether a trailer may have this name; names of framing, routing and authentication are not allowed (threat C2).
pub fn fit_for_trailers(name: &[u8]) -> bool {
    !NOT_IN_TRAILERS.iter().any(|known| known.eq_ignore_ascii_case(name))
}
