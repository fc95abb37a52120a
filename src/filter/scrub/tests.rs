//! Forms, splits and overlaps: what is masked, what passes, and what waits.

use std::sync::LazyLock;

use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use base64::{Engine, prelude::BASE64_URL_SAFE};
use proptest::prelude::*;

use super::*;
use crate::secret::Secret;

const KEY: &str = r#"sk-ant/api03+Zq9"7\_~K="#;

fn needles(keys: &[&str]) -> Arc<SecretMatcher> {
    let secrets: Vec<_> = keys.iter().map(|key| Arc::new(Secret::parse(key.as_bytes()).unwrap())).collect();
    Arc::new(SecretMatcher::new(&secrets))
}

/// Scrubs chunks, and gives back what came out after each and at the end.
fn scrub_chunks(needles: &Arc<SecretMatcher>, chunks: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut scrubber = Scrubber::new(Arc::clone(needles));
    let mut steps = Vec::new();
    let mut out = Vec::new();
    for chunk in chunks {
        scrubber.write(Bytes::copy_from_slice(chunk), &mut out).unwrap();
        assert!(out.iter().all(|piece| !piece.is_empty()));
        steps.push(std::mem::take(&mut out).concat());
    }
    scrubber.finish(&mut out).unwrap();
    steps.push(out.concat());
    steps
}

fn scrub(needles: &Arc<SecretMatcher>, text: &[u8]) -> String {
    String::from_utf8(scrub_chunks(needles, &[text]).concat()).unwrap()
}

/// The text around a form, with the form masked and with nothing of it left.
fn assert_masked(form: &str) {
    let scrubbed = scrub(&needles(&[KEY]), format!("<{form}>").as_bytes());
    assert_eq!(scrubbed, format!("<{}>", "*".repeat(form.len())), "{form}");
}

fn percent(keep: impl Fn(char) -> bool, upper: bool) -> String {
    let escape = |c: char| if upper { format!("%{:02X}", c as u32) } else { format!("%{:02x}", c as u32) };
    KEY.chars().map(|c| if keep(c) { c.to_string() } else { escape(c) }).collect()
}

#[test]
fn a_key_is_masked_as_it_is() {
    assert_masked(KEY);
    let scrubbed = scrub(&needles(&["abcdefgh"]), b"xabcdefghabcdefgabcdefgh");
    assert_eq!(scrubbed, "x********abcdefg********");
}

#[test]
fn a_key_is_masked_percent_encoded() {
    for upper in [true, false] {
        assert_masked(&percent(|_| false, upper));
        assert_masked(&percent(|c| c.is_ascii_alphanumeric() || "-._~".contains(c), upper));
        assert_masked(&percent(|c| c.is_ascii_alphanumeric() || "-._*".contains(c), upper));
        assert_masked(&percent(|c| c.is_ascii_alphanumeric() || "-._~!'()*".contains(c), upper));
        assert_masked(&percent(|c| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@/".contains(c), upper));
    }
    assert_masked(
        &percent(|c| c.is_ascii_alphanumeric() || "-._~".contains(c), true).replacen("%2F", "%2f", 1),
    );
}

#[test]
fn a_key_is_masked_json_escaped() {
    let json = serde_json::to_string(KEY).unwrap();
    let json = json.trim_start_matches('"').strip_suffix('"').unwrap();
    assert_masked(json);
    assert_masked(&json.replace('/', "\\/"));
    assert_masked(&KEY.chars().map(|c| format!("\\u{:04x}", c as u32)).collect::<String>());
    assert_masked(&KEY.chars().map(|c| format!("\\u{:04X}", c as u32)).collect::<String>());
    // What Gson writes.
    assert_masked(
        &json
            .replace('=', "\\u003d")
            .replace("\\\"", "\\u0022")
            .replace('+', "\\u002B")
            .replace('/', "\\u002f"),
    );
    // What Go and a Rails page write.
    let needles = needles(&["key&with<html>"]);
    assert_eq!(scrub(&needles, br#""key\u0026with\u003chtml\u003e""#), format!("\"{}\"", "*".repeat(29)));
}

#[test]
fn a_key_is_masked_in_hexadecimal() {
    let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
    assert_masked(&hex);
    assert_masked(&hex.to_ascii_uppercase());
}

#[test]
fn a_key_is_masked_in_base64_wherever_it_stands_in_it() {
    assert_masked(&BASE64_STANDARD.encode(KEY));
    assert_masked(&BASE64_STANDARD_NO_PAD.encode(KEY));
    assert_masked(&BASE64_URL_SAFE.encode(KEY));
    assert_masked(&BASE64_URL_SAFE_NO_PAD.encode(KEY));
    assert_masked(&BASE64_STANDARD.encode(KEY).replace('/', "\\/"));
    assert_masked(&BASE64_STANDARD.encode(KEY).replace('+', "%2B").replace('/', "%2F").replace('=', "%3D"));
    let needles = needles(&[KEY]);
    for user in ["", "u:", "x-access-token:", "git:", "oauth2:"] {
        for after in ["", "x", "yz", "\r\n and more"] {
            let basic = BASE64_STANDARD.encode(format!("{user}{KEY}{after}"));
            let scrubbed = scrub(&needles, format!("Basic {basic}").as_bytes());
            // At either end one character may hold bits of what stands beside the key.
            let masked = scrubbed.matches('*').count();
            assert!(masked + 1 >= KEY.len() * 8 / 6 - 1, "{user} {after} {scrubbed}");
            let shown: Vec<_> = scrubbed.split('*').filter(|part| !part.is_empty()).collect();
            assert!(shown.len() <= 2, "{scrubbed}");
        }
    }
}

#[test]
fn a_key_is_masked_whichever_of_its_characters_are_spelled_and_how() {
    let spell = |number: usize, byte: u8| match number % 12 {
        0 => format!("%{byte:02x}"),
        1 => format!("%25{byte:02X}"),
        2 => format!("&#{byte};"),
        3 => format!("&#x{byte:02X};"),
        4 => format!("&#000{byte};"),
        5 => format!("\\u{byte:04x}"),
        6 => format!("\\x{byte:02X}"),
        7 => format!("\\{byte:03o}"),
        8 => format!("={byte:02X}"),
        9 => format!("\\u{{{byte:x}}}"),
        10 => format!("\\U{byte:08X}"),
        _ => format!("%u{byte:04x}"),
    };
    for way in 0..12 {
        for keep in [1, 2, 3, 5] {
            let spelled = KEY.bytes().enumerate().map(|(at, byte)| match at % keep {
                0 => spell(way, byte),
                _ if matches!(byte, b'\\' | b'"') => format!("\\{}", char::from(byte)),
                _ => char::from(byte).to_string(),
            });
            assert_masked(&spelled.collect::<String>());
        }
        // Each in another way.
        assert_masked(&KEY.bytes().enumerate().map(|(at, byte)| spell(at + way, byte)).collect::<String>());
    }
    let key = "sk-ant/api_03";
    for form in [
        "sk&#45ant&sol;api&lowbar;03",
        "sk&#x2dant&sol;api&UnderBar;03",
        "SK-ANT/API_03",
        "sk\\\\u002dant\\\\/api\\\\\\u005F03",
    ] {
        let scrubbed = scrub(&needles(&[key]), format!("<{form}>").as_bytes());
        assert_eq!(scrubbed, format!("<{}>", "*".repeat(form.len())));
    }
}

#[test]
fn a_key_is_masked_in_base32_and_in_base64_of_base64() {
    let masked = |form: &str, left: usize| {
        let scrubbed = scrub(&needles(&["sk-live-0001-Zq9t"]), format!("<{form}>").as_bytes());
        assert!(scrubbed.matches('*').count() + left >= form.len(), "{form}: {scrubbed}");
    };
    // `base32`, with its padding, and in lower case.
    masked("ONVS23DJOZSS2MBQGAYS2WTRHF2A====", 0);
    masked("onvs23djozss2mbqgays2wtrhf2a", 0);
    for user in ["", "u:", "me:"] {
        let once = BASE64_STANDARD.encode(format!("{user}sk-live-0001-Zq9t"));
        let twice = BASE64_STANDARD.encode(&once);
        masked(&twice, 12);
        masked(&BASE64_URL_SAFE_NO_PAD.encode(&once), 12);
    }
}

#[test]
fn a_key_is_masked_over_line_breaks_at_any_column() {
    let encoded = BASE64_STANDARD.encode(KEY);
    for line_break in ["\n", "\r\n", "\\n", "\\r\\n", "%0A", "&#10;", "=\r\n", "=\n"] {
        for column in 1..encoded.len() {
            let lines: Vec<_> =
                encoded.as_bytes().chunks(column).map(|line| str::from_utf8(line).unwrap()).collect();
            assert_masked(&lines.join(line_break));
        }
    }
}

#[test]
fn a_key_is_masked_in_wide_characters() {
    let wide: Vec<u8> = KEY.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let out = scrub_chunks(&needles(&[KEY]), &[&wide]).concat();
    assert!(!KEY.bytes().any(|byte| out.contains(&byte)), "{out:?}");
}

#[test]
fn ordinary_text_with_escapes_and_lines_passes_untouched() {
    let needles = needles(&[KEY, "sk-live-0001"]);
    for text in [
        "event: content_block_delta\ndata: {\"text\":\"C:\\\\src\\u002fmain 100%25 &#45; sk-ant sk-live-000\"}\n\n",
        "<a href=\"https://example.com/?a=1&amp;b=%2Fsk-live%2D0002\">x</a>\r\n",
        "From: a@example.com\r\n\r\nJust=20a text with=\r\n soft breaks, sk-live=2D0002\r\n",
    ] {
        assert_eq!(needles.masked(text.as_bytes()), None, "{text}");
        assert_eq!(scrub(&needles, text.as_bytes()), text);
    }
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    // Stored blocks (RFC 1951, section 3.2.4) in a gzip member (RFC 1952).
    let mut packed = b"\x1f\x8b\x08\0\0\0\0\0\0\x03".to_vec();
    let length = u16::try_from(plain.len()).unwrap();
    packed.push(1);
    packed.extend(length.to_le_bytes());
    packed.extend((!length).to_le_bytes());
    packed.extend_from_slice(plain);
    packed.extend(crc32fast::hash(plain).to_le_bytes());
    packed.extend(u32::from(length).to_le_bytes());
    packed
}

/// What comes out of a body, or that it is refused.
fn body(chunks: &[&[u8]]) -> Option<Vec<u8>> {
    let mut scrubber = Scrubber::of_body(needles(&[KEY]));
    let mut out = Vec::new();
    for chunk in chunks {
        scrubber.write(Bytes::copy_from_slice(chunk), &mut out).ok()?;
    }
    scrubber.finish(&mut out).ok()?;
    Some(out.concat())
}

#[test]
fn a_body_that_is_gzip_by_its_first_bytes_is_looked_into() {
    let (clean, dirty) = (gzip(b"an archive"), gzip(format!("<{KEY}>").as_bytes()));
    for size in [1, 2, 3, 7, 1000] {
        let chunks = |packed: &'static [u8]| packed.chunks(size).collect::<Vec<_>>();
        assert_eq!(body(&chunks(clean.clone().leak())).as_deref(), Some(&clean[..]));
        assert_eq!(body(&chunks(dirty.clone().leak())), None);
    }
    assert_eq!(body(&[&clean[..clean.len() - 1]]), None, "cut off");
    // Nothing goes on that begins a key.
    let mut scrubber = Scrubber::of_body(needles(&[KEY]));
    let mut out = Vec::new();
    scrubber.write(Bytes::copy_from_slice(&dirty[..dirty.len() - 12]), &mut out).unwrap();
    assert!(out.is_empty(), "{out:?}");
}

#[test]
fn gzip_in_base64_inside_of_a_text_is_looked_into_and_masked_from_the_key_on() {
    let noise: String = (0..400_u32).map(|n| format!("{:x} ", n.wrapping_mul(2_654_435_761))).collect();
    let clean = BASE64_STANDARD.encode(gzip(noise.as_bytes()));
    let dirty = BASE64_STANDARD.encode(gzip(format!("{noise}{KEY}{noise}").as_bytes()));
    let wrapped: Vec<_> = dirty.as_bytes().chunks(76).map(|line| str::from_utf8(line).unwrap()).collect();
    let wrapped = wrapped.join("\\n");
    let needles = needles(&[KEY]);
    let text = |packed: &str| format!("{{\"data\":\"{packed}\",\"more\":\"H4s H4sIx\"}}");
    assert_eq!(scrub(&needles, text(&clean).as_bytes()), text(&clean));
    for packed in [dirty, wrapped] {
        let text = text(&packed);
        let scrubbed = scrub(&needles, text.as_bytes());
        assert!(
            scrubbed.len() == text.len() && scrubbed.ends_with("\",\"more\":\"H4s H4sIx\"}"),
            "{scrubbed}"
        );
        let left = scrubbed.find('*').unwrap();
        // The noise alone, but for what shares a step with the key.
        assert!(left > noise.len() && left < (noise.len() + 100) * 7 / 5, "{left}");
        for size in [1, 5, 64, 1_000] {
            let out = scrub_chunks(&needles, &text.as_bytes().chunks(size).collect::<Vec<_>>()).concat();
            assert_eq!(String::from_utf8(out).unwrap(), scrubbed, "{size}");
        }
    }
}

#[test]
fn a_body_with_a_byte_order_mark_of_wide_characters_is_refused() {
    for mark in [&b"\xff\xfe"[..], b"\xfe\xff", b"\0\0\xfe\xff"] {
        assert_eq!(body(&[mark]), None);
        assert_eq!(body(&mark.chunks(1).collect::<Vec<_>>()), None);
    }
    assert_eq!(body(&[b"\xef\xbb\xbfok"]).as_deref(), Some(&b"\xef\xbb\xbfok"[..]));
    assert_eq!(body(&[b"\0", b"\0"]).as_deref(), Some(&b"\0\0"[..]));
}

#[test]
fn what_holds_no_key_passes_as_the_same_bytes_without_a_copy() {
    let chunk = Bytes::from_static(b"data: {\"type\":\"ping\"}\n\n");
    let mut scrubber = Scrubber::new(needles(&[KEY]));
    let mut out = Vec::new();
    scrubber.write(chunk.clone(), &mut out).unwrap();
    assert_eq!((out.len(), out[0].as_ptr(), out[0].len()), (1, chunk.as_ptr(), chunk.len()));
    assert!(!scrubber.scrubbed());
}

/// A look back over all of it at each line break would take minutes.
#[test]
fn a_text_of_line_breaks_alone_is_read_once() {
    for line in ["\n", "\r\n", "\r\r\n", "a\n", "=\n", "%", "&", "\\"] {
        let text = line.repeat((1 << 20) / line.len());
        let masked = scrub_chunks(&needles(&[KEY]), &[text.as_bytes()]).concat();
        assert_eq!(masked.len(), text.len(), "{line:?}");
    }
}

#[test]
fn only_a_tail_that_could_begin_a_key_waits() {
    let needles = needles(&["sk-live-0001"]);
    let steps = scrub_chunks(&needles, &[b"event\n\n", b"disk-l", b"abel", b"sk-live-000", b"1", b"s"]);
    let steps: Vec<_> = steps.iter().map(|step| std::str::from_utf8(step).unwrap()).collect();
    assert_eq!(steps, ["event\n\n", "di", "sk-label", "", "************", "", "s"]);
}

#[test]
fn keys_that_overlap_are_masked_whole() {
    let needles = needles(&["abcdefgX-one", "X-onetwothree"]);
    assert_eq!(scrub(&needles, b".abcdefgX-onetwothree."), format!(".{}.", "*".repeat(20)));
}

#[test]
fn a_key_that_overlaps_itself_is_masked_without_end() {
    let needles = needles(&["aaaaaaaa"]);
    assert_eq!(scrub(&needles, &[b'a'; 100]), "*".repeat(100));
    assert_eq!(scrub(&needles, b"baaaaaaab"), "baaaaaaab");
}

#[test]
fn one_key_that_begins_another_is_masked_with_it() {
    let needles = needles(&["sk-live-0001", "sk-live-0001-extended"]);
    let steps = scrub_chunks(&needles, &[b"<sk-live-0001", b"-extended>", b"sk-live-0001-ex", b"it"]);
    let steps: Vec<_> = steps.iter().map(|step| std::str::from_utf8(step).unwrap()).collect();
    assert_eq!(steps.concat(), format!("<{}>{}-exit", "*".repeat(21), "*".repeat(12)));
    assert_eq!(steps[0], "<");
}

#[test]
fn a_head_is_masked_in_values_and_a_name_that_holds_a_key_is_dropped() {
    let mut headers = HeaderMap::new();
    headers.append("set-cookie", HeaderValue::from_static("t=SK-live-0001"));
    headers.append("set-cookie", HeaderValue::from_static("t=sk-Live-0001; Path=/"));
    headers.insert("sk-live-0001-x", HeaderValue::from_static("1"));
    headers
        .insert("location", HeaderValue::from_static("https://x.example/?k=%73%6B-Live-0001&k=sk-Live-0001"));
    let needles = needles(&["sk-Live-0001"]);
    assert!(needles.scrub_head(&mut headers));
    let cookies: Vec<_> = headers.get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["t=************", "t=************; Path=/"]);
    assert!(!headers.contains_key("sk-live-0001-x"));
    assert_eq!(headers["location"], "https://x.example/?k=****************&k=************");
    assert!(!needles.scrub_head(&mut headers));
}

#[test]
fn an_answer_is_asked_for_plain_and_whole() {
    let mut headers = HeaderMap::new();
    headers.append("accept-encoding", HeaderValue::from_static("gzip"));
    headers.append("accept-encoding", HeaderValue::from_static("br"));
    headers.insert("range", HeaderValue::from_static("bytes=0-7"));
    headers.insert("if-range", HeaderValue::from_static("\"x\""));
    ask_for_plain(&mut headers);
    assert_eq!(headers.len(), 1);
    assert_eq!(headers["accept-encoding"], "identity");
}

#[test]
fn a_key_of_the_greatest_size_is_found() {
    let mut state = 1_u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'!' + (state >> 24) as u8 % 94)
    });
    let key: String = noise.take(crate::secret::GREATEST).collect();
    let needles = needles(&[&key]);
    let text = format!("<{key}>");
    let steps = scrub_chunks(&needles, &text.as_bytes().chunks(4_000).collect::<Vec<_>>());
    assert_eq!(steps.concat(), format!("<{}>", "*".repeat(key.len())).as_bytes());
}

/// Texts made of keys in their forms, their beginnings and other bytes.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let forms = vec![
        KEY.to_owned(),
        percent(|_| false, true),
        percent(|_| false, false),
        BASE64_STANDARD.encode(KEY),
        BASE64_STANDARD.encode(format!("u:{KEY}")),
        "sk-live-0001".to_owned(),
        "sk-live-0001-extended".to_owned(),
        "aaaaaaaa".to_owned(),
        KEY.chars().map(|c| format!("\\u{:04x}", c as u32)).collect(),
        "%73k-live&#45;0001".to_owned(),
        "s&#x6B\\u002dlive=2D=\r\n000%2531".to_owned(),
        "aaa\naaa\\naa".to_owned(),
        "\r\n%25".to_owned(),
        "&#".to_owned(),
        BASE64_STANDARD.encode(BASE64_STANDARD.encode(KEY)),
    ];
    let part = (prop::sample::select(forms), any::<prop::sample::Index>(), any::<bool>());
    let part = part.prop_map(|(form, index, whole)| {
        let form = form.into_bytes();
        if whole { form } else { form[..index.index(form.len())].to_vec() }
    });
    let part = prop_oneof![3 => part, 1 => prop::collection::vec(any::<u8>(), 0..6)];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

static SEVERAL: LazyLock<Arc<SecretMatcher>> =
    LazyLock::new(|| needles(&[KEY, "sk-live-0001", "sk-live-0001-extended", "aaaaaaaa"]));

proptest! {
    #[test]
    fn any_split_gives_the_same_bytes(text in text(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20)) {
        let needles = &*SEVERAL;
        let whole = needles.masked(&text).unwrap_or_else(|| text.clone());
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let chunks: Vec<_> = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
        prop_assert_eq!(scrub_chunks(needles, &chunks).concat(), whole.clone());
        prop_assert_eq!(scrub_chunks(needles, &text.chunks(1).collect::<Vec<_>>()).concat(), whole.clone());
        prop_assert_eq!(whole.len(), text.len());
        prop_assert!(memchr::memmem::find(&whole, KEY.as_bytes()).is_none());
        prop_assert!(memchr::memmem::find(&whole, b"sk-live-0001").is_none());
        prop_assert!(memchr::memmem::find(&whole, b"%73k-live&#45;0001").is_none());
    }
}
