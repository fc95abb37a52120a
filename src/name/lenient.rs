//! Paths as servers that are not strict may read them.

use crate::fold::fold;

/// How often a path is decoded at most.
const DECODINGS: usize = 8;

/// Slashes of other alphabets that no compatibility form makes one, and that servers are known to take for one.
const SLASHES: [char; 4] = ['\u{2044}', '\u{2215}', '\u{29f8}', '\\'];

/// Every path that a lenient server may take this one for, a request target's without its query: escapes undone as often
/// as there are any (`%u002F` and overlong UTF-8 among them), compatibility forms folded (`／`), without empty segments,
/// white space, controls and the dots that end a segment, in lower case. There are several where servers differ: about
/// what follows a NUL, about parameters (`;a=b`), about `..`. A plain path has one reading, itself in lower case.
///
/// It serves to refuse what could be taken for something else, never to allow.
pub fn readings(raw: &str) -> Vec<String> {
    if is_plain(raw) {
        return vec![raw.to_ascii_lowercase()];
    }
    let text = decoded(raw);
    let mut readings = Vec::new();
    let ends = text.find('\0').map(|nul| &text[..nul]);
    for text in std::iter::once(text.as_str()).chain(ends) {
        let text = fold(text).replace(SLASHES, "/");
        let path = text.split(['?', '#']).next().unwrap_or_default();
        for (cuts, climbs) in [(true, true), (true, false), (false, true), (false, false)] {
            let reading = segments(path, cuts, climbs);
            if !readings.contains(&reading) {
                readings.push(reading);
            }
        }
    }
    readings
}

/// Whether a path has one reading alone.
fn is_plain(raw: &str) -> bool {
    let is_odd = |byte: u8| !byte.is_ascii_graphic() || b"%;\\?#".contains(&byte);
    !raw.bytes().any(is_odd) && !raw.contains("//") && !raw.contains("./") && !raw.ends_with(['.', '/'])
}

/// `cuts` says whether parameters go, `climbs` whether `..` takes the segment in front of it along.
fn segments(path: &str, cuts: bool, climbs: bool) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        let segment = if cuts { segment.split(';').next().unwrap_or_default() } else { segment };
        match segment {
            ".." if climbs => drop(kept.pop()),
            other => kept.extend(Some(other.trim_end_matches('.')).filter(|rest| !rest.is_empty())),
        }
    }
    format!("/{}", kept.join("/"))
}

/// Undoes escapes until none is left.
fn decoded(raw: &str) -> String {
    let mut text = raw.to_owned();
    for _ in 0..DECODINGS {
        let next = characters(&unescaped(text.as_bytes()));
        // A full-width `%` begins an escape where it is folded first.
        let next = next.replace('\u{ff05}', "%");
        if next == text {
            break;
        }
        text = next;
    }
    text
}

/// Decodes `%2F` and IIS's `%u002F` once.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        let wide = tail.strip_prefix(b"u").or(tail.strip_prefix(b"U")).and_then(|digits| hex(digits, 4));
        let (length, character) = match (first, hex(tail, 2), wide) {
            (b'%', Some(byte), _) => (3, Err(byte)),
            (b'%', None, Some(wide)) => (6, Ok(char::from_u32(wide).unwrap_or(char::REPLACEMENT_CHARACTER))),
            (_, _, _) => (1, Err(u32::from(*first))),
        };
        match character {
            Ok(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(byte) => out.extend(u8::try_from(byte).ok()),
        }
        rest = &rest[length..];
    }
    out
}

fn hex(digits: &[u8], count: usize) -> Option<u32> {
    let digits = digits.get(..count)?;
    digits.iter().try_fold(0, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?))
}

/// Reads UTF-8 as decoders did that forbade no overlong form (`%C0%AF` for a slash); what is none of it is replaced.
fn characters(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        let (more, bits) = match first {
            0..=0x7f => (0, u32::from(*first)),
            0xc0..=0xdf => (1, u32::from(first & 0x1f)),
            0xe0..=0xef => (2, u32::from(first & 0x0f)),
            0xf0..=0xf7 => (3, u32::from(first & 0x07)),
            0x80..=0xbf | 0xf8..=0xff => (0, u32::MAX),
        };
        let behind = tail.get(..more).filter(|behind| behind.iter().all(|byte| byte & 0xc0 == 0x80));
        let read =
            behind.map(|behind| behind.iter().fold(bits, |all, byte| all << 6 | u32::from(byte & 0x3f)));
        text.push(read.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER));
        rest = &tail[behind.map_or(0, <[u8]>::len)..];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_disguise_of_a_path_has_its_reading() {
        for raw in [
            "/v1/messages",
            "/V1/Messages/",
            "//v1/./messages",
            "/v1/files/../messages",
            "/v1%2Fmessages",
            "/v1%25252fmessages",
            "/v1\\messages",
            "/v1%5Cmessages",
            "/v1/messages;beta=true",
            "/v1;x/messages%3Bx",
            "/v1/messages%00",
            "/v1/messages%00.json",
            "/v1/mess%00ages",
            "/v1/messages.",
            "/v1/messages%20",
            "/v1./messages%2e%2E.",
            "/v1/messages%0d%0a",
            "/v1/messages%3Fbeta/x",
            "/v1%c0%afmessages",
            "/v1%e0%80%afmessages",
            "/v1%f0%80%80%afmessages",
            "/v1/%c1%adessages",
            "/v1%25c0%25afmessages",
            "/v1%u002fmessages",
            "/v1%uff0fmessages",
            "/v1%EF%BC%8Fmessages",
            "/v1／messages",
            "/v1/ｍｅｓｓａｇｅｓ",
            "/v1%E2%88%95messages",
            "/v1％2fmessages",
            "/v1/mess%e2%80%8bages",
        ] {
            assert!(
                readings(raw).iter().any(|reading| reading == "/v1/messages"),
                "{raw}: {:?}",
                readings(raw)
            );
        }
    }

    #[test]
    fn a_plain_path_has_one_reading_and_other_paths_stay_others() {
        assert_eq!(readings("/v1.0/Messages:run"), ["/v1.0/messages:run"]);
        assert_eq!(readings("/"), ["/"]);
        for raw in
            ["/v1/messages/batches", "/v1/%6dodels", "/v1//files", "/v1/messages%2Fbatches", "/caf%C3%A9"]
        {
            assert!(readings(raw).iter().all(|reading| reading != "/v1/messages"), "{raw}");
        }
    }
}
