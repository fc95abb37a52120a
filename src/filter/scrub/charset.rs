//! Character sets in which a key would not be found: what is asked of a host, and what of its answers is refused.

use http::{HeaderMap, HeaderValue, header};

/// Takes wishes for a character set out of a request: an answer comes in the one that the host has by itself.
pub(super) fn ask_for_none(headers: &mut HeaderMap) {
    headers.remove(header::ACCEPT_CHARSET);
    if !headers.get_all(header::ACCEPT).iter().any(|value| value.as_bytes().contains(&b';')) {
        return;
    }
    let values: Vec<_> = headers.get_all(header::ACCEPT).iter().map(without_charset).collect();
    headers.remove(header::ACCEPT);
    for value in values {
        headers.append(header::ACCEPT, value);
    }
}

/// The value without parameters called `charset`; any type, where it cannot be told what belongs to a parameter.
fn without_charset(value: &HeaderValue) -> HeaderValue {
    const ANY: HeaderValue = HeaderValue::from_static("*/*");
    let Ok(text) = value.to_str() else { return ANY };
    if !text.to_ascii_lowercase().contains("charset") {
        return value.clone();
    }
    if text.contains('"') {
        return ANY;
    }
    let is_kept = |part: &&str| {
        let name = part.split(['=', '*']).next().unwrap_or_default();
        !name.trim().eq_ignore_ascii_case("charset")
    };
    let kept = |range: &str| range.split(';').filter(is_kept).collect::<Vec<_>>().join(";");
    let ranges: Vec<String> = text.split(',').map(kept).collect();
    HeaderValue::from_str(&ranges.join(",")).unwrap_or(ANY)
}

/// Whether a body with this head is in a character set in which ASCII's characters are single bytes, as far as the
/// head says; none is said by most. A set that is not known is not.
pub fn is_ascii_compatible(headers: &HeaderMap) -> bool {
    const WORD: &[u8] = b"charset";
    let values = headers.get_all(header::CONTENT_TYPE).iter();
    let mut mentions = values
        .filter(|value| value.as_bytes().windows(WORD.len()).any(|word| word.eq_ignore_ascii_case(WORD)));
    mentions.all(|value| {
        let text = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
        // Whatever mentions a set is taken for a parameter, quoted or not: parsers differ.
        text.match_indices("charset").all(|(at, word)| {
            let rest = text[at + word.len()..].trim_start();
            let Some(label) = rest.strip_prefix('=') else { return !rest.starts_with('*') };
            let label = label.trim_start_matches([' ', '\t', '"', '\'']);
            let label = label.split([';', ',', '"', '\'', ' ', '\t']).next().unwrap_or_default();
            LABELS.contains(&label)
        })
    })
}

/// The labels of encodings whose ASCII characters are single bytes, in lower case: the table of the WHATWG's Encoding
/// Standard (section 4.2) without UTF-16, ISO-2022-JP and those that it replaces (ISO-2022-CN, ISO-2022-KR, HZ).
const LABELS: &[&str] = &[
    "unicode-1-1-utf-8",
    "unicode11utf8",
    "unicode20utf8",
    "utf-8",
    "utf8",
    "x-unicode20utf8", // UTF-8
    "866",
    "cp866",
    "csibm866",
    "ibm866", // IBM866
    "csisolatin2",
    "iso-8859-2",
    "iso-ir-101",
    "iso8859-2",
    "iso88592",
    "iso_8859-2",
    "iso_8859-2:1987",
    "l2",
    "latin2",
    "csisolatin3",
    "iso-8859-3",
    "iso-ir-109",
    "iso8859-3",
    "iso88593",
    "iso_8859-3",
    "iso_8859-3:1988",
    "l3",
    "latin3",
    "csisolatin4",
    "iso-8859-4",
    "iso-ir-110",
    "iso8859-4",
    "iso88594",
    "iso_8859-4",
    "iso_8859-4:1988",
    "l4",
    "latin4",
    "csisolatincyrillic",
    "cyrillic",
    "iso-8859-5",
    "iso-ir-144",
    "iso8859-5",
    "iso88595",
    "iso_8859-5",
    "iso_8859-5:1988",
    "arabic",
    "asmo-708",
    "csiso88596e",
    "csiso88596i",
    "csisolatinarabic",
    "ecma-114",
    "iso-8859-6",
    "iso-8859-6-e",
    "iso-8859-6-i",
    "iso-ir-127",
    "iso8859-6",
    "iso88596",
    "iso_8859-6",
    "iso_8859-6:1987",
    "csisolatingreek",
    "ecma-118",
    "elot_928",
    "greek",
    "greek8",
    "iso-8859-7",
    "iso-ir-126",
    "iso8859-7",
    "iso88597",
    "iso_8859-7",
    "iso_8859-7:1987",
    "sun_eu_greek",
    "csiso88598e",
    "csisolatinhebrew",
    "hebrew",
    "iso-8859-8",
    "iso-8859-8-e",
    "iso-ir-138",
    "iso8859-8",
    "iso88598",
    "iso_8859-8",
    "iso_8859-8:1988",
    "visual",
    "csiso88598i",
    "iso-8859-8-i",
    "logical",
    "csisolatin6",
    "iso-8859-10",
    "iso-ir-157",
    "iso8859-10",
    "iso885910",
    "l6",
    "latin6",
    "iso-8859-13",
    "iso8859-13",
    "iso885913",
    "iso-8859-14",
    "iso8859-14",
    "iso885914",
    "csisolatin9",
    "iso-8859-15",
    "iso8859-15",
    "iso885915",
    "iso_8859-15",
    "l9",
    "iso-8859-16",
    "cskoi8r",
    "koi",
    "koi8",
    "koi8-r",
    "koi8_r",
    "koi8-ru",
    "koi8-u",
    "csmacintosh",
    "mac",
    "macintosh",
    "x-mac-roman",
    "x-mac-cyrillic",
    "x-mac-ukrainian",
    "dos-874",
    "iso-8859-11",
    "iso8859-11",
    "iso885911",
    "tis-620",
    "windows-874",
    "cp1250",
    "windows-1250",
    "x-cp1250",
    "cp1251",
    "windows-1251",
    "x-cp1251",
    "ansi_x3.4-1968",
    "ascii",
    "cp1252",
    "cp819",
    "csisolatin1",
    "ibm819",
    "iso-8859-1",
    "iso-ir-100",
    "iso8859-1",
    "iso88591",
    "iso_8859-1",
    "iso_8859-1:1987",
    "l1",
    "latin1",
    "us-ascii",
    "windows-1252",
    "x-cp1252",
    "cp1253",
    "windows-1253",
    "x-cp1253",
    "cp1254",
    "csisolatin5",
    "iso-8859-9",
    "iso-ir-148",
    "iso8859-9",
    "iso88599",
    "iso_8859-9",
    "iso_8859-9:1989",
    "l5",
    "latin5",
    "windows-1254",
    "x-cp1254",
    "cp1255",
    "windows-1255",
    "x-cp1255",
    "cp1256",
    "windows-1256",
    "x-cp1256",
    "cp1257",
    "windows-1257",
    "x-cp1257",
    "cp1258",
    "windows-1258",
    "x-cp1258",
    "chinese",
    "csgb2312",
    "csiso58gb231280",
    "gb2312",
    "gb_2312",
    "gb_2312-80",
    "gbk",
    "iso-ir-58",
    "x-gbk",
    "gb18030",
    "big5",
    "big5-hkscs",
    "cn-big5",
    "csbig5",
    "x-x-big5",
    "cseucpkdfmtjapanese",
    "euc-jp",
    "x-euc-jp",
    "csshiftjis",
    "ms932",
    "ms_kanji",
    "shift-jis",
    "shift_jis",
    "sjis",
    "windows-31j",
    "x-sjis",
    "cseuckr",
    "csksc56011987",
    "euc-kr",
    "iso-ir-149",
    "korean",
    "ks_c_5601-1987",
    "ks_c_5601-1989",
    "ksc5601",
    "ksc_5601",
    "windows-949",
    "binary",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(value: &'static str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(value));
        headers.insert(header::ACCEPT_CHARSET, HeaderValue::from_static("utf-16"));
        ask_for_none(&mut headers);
        assert!(!headers.contains_key(header::ACCEPT_CHARSET));
        headers[header::ACCEPT].to_str().unwrap().to_owned()
    }

    #[test]
    fn no_wish_for_a_character_set_goes_on() {
        assert_eq!(accept("text/html;charset=utf-16;q=0.5, */*;q=0.1"), "text/html;q=0.5, */*;q=0.1");
        assert_eq!(accept("text/html; Charset = utf-7"), "text/html");
        assert_eq!(accept("text/html; charset*=us'en'utf-7"), "text/html");
        assert_eq!(accept("text/html; charset=\"utf-16\""), "*/*");
        for untouched in ["*/*", "application/json", "text/html;level=1;q=0.4, text/event-stream"] {
            assert_eq!(accept(untouched), untouched);
        }
    }

    #[test]
    fn only_known_sets_with_ascii_in_single_bytes_are_compatible() {
        let is_compatible = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_str(value).unwrap());
            is_ascii_compatible(&headers)
        };
        for value in [
            "application/json",
            "text/html; charset=utf-8",
            "text/html;charset=\"UTF-8\"",
            "text/html; charset = 'iso-8859-1'; x=y",
            "text/plain; charset=Shift_JIS",
        ] {
            assert!(is_compatible(value), "{value}");
        }
        for value in [
            "text/html; charset=utf-16",
            "text/html; charset=\"UTF-16LE\"",
            "text/html; charset=utf-8; charset=utf-7",
            "text/html; charset=ibm037",
            "text/html; charset=iso-2022-jp",
            "text/html; charset=hz-gb-2312",
            "text/html; charset*=utf-8''utf-16",
            "text/html; charset=of-tomorrow",
            "text/html; charset=",
        ] {
            assert!(!is_compatible(value), "{value}");
        }
    }
}
