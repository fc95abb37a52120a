//! Real keys that come back in disguise: spelled otherwise, in another character set, in an archive.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::credentials::{CANARY, PLACEHOLDER, gateway_for, policy};
use crate::support::coding::encode;
use crate::support::upstream::{Reply, Step};
use crate::support::{Answer, Gateway, Pki, Setup, Upstream};

const URL: &str = "https://api.example.com";
const KEY: [(&str, &str); 1] = [("X-Api-Key", PLACEHOLDER)];

/// Every spelling of the key that a host could answer with, and line breaks in it.
fn spellings() -> Vec<String> {
    let each = |spell: &dyn Fn(char) -> String| CANARY.chars().map(spell).collect::<String>();
    let code = u32::from;
    let every_second = |spell: &dyn Fn(char) -> String| {
        let spelled = |(at, one): (usize, char)| if at % 2 == 0 { spell(one) } else { one.to_string() };
        CANARY.chars().enumerate().map(spelled).collect::<String>()
    };
    let once = BASE64_STANDARD.encode(CANARY);
    let lines = |line_break: &str, column: usize| {
        let lines: Vec<_> =
            once.as_bytes().chunks(column).map(|line| std::str::from_utf8(line).unwrap()).collect();
        lines.join(line_break)
    };
    vec![
        every_second(&|one| format!("%{:02X}", code(one))),
        each(&|one| format!("%25{:02x}", code(one))),
        CANARY.replace('-', "%2d"),
        CANARY.replace('a', "%61"),
        each(&|one| format!("&#{};", code(one))),
        each(&|one| format!("&#x000{:X};", code(one))),
        CANARY.replace('-', "&#45").replace('/', "&sol;").replace('+', "&plus"),
        CANARY.replace('&', "&amp;").replace('"', "&quot;"),
        every_second(&|one| format!("\\x{:02x}", code(one))),
        CANARY.replace('-', "\\u002D").replace('/', "\\/").replace('"', "\\\""),
        CANARY.replace('=', "=3D").replace('-', "=2D").replace("can", "can=\r\n"),
        CANARY.to_ascii_uppercase(),
        lines("\r\n", 5),
        lines("\n", 1),
        lines("\\n", 7),
        BASE64_STANDARD.encode(&once),
        "ONVS2Y3BNZQXE6JPFM6SMIRXMYZWCOLD".to_owned(),
    ]
}

/// G14: whichever characters of the key are spelled otherwise, over any split, it is masked, and nothing around it.
#[test]
fn a_key_whose_characters_are_spelled_otherwise_is_masked() {
    let forms = spellings();
    let upstreams = Pki::new("Upstream Test CA");
    let (identity, told) = (upstreams.leaf(&["api.example.com"]), forms.clone());
    let upstream = Upstream::build()
        .identity(identity)
        .script(move |seen| {
            let form = &told[seen.path().trim_start_matches('/').parse::<usize>().unwrap()];
            let text = format!("<before>{form}<after>");
            let pieces = text.into_bytes().chunks(3).map(|piece| Step::Data(piece.to_vec().into())).collect();
            Some(Reply::streaming(pieces))
        })
        .start();
    let gateway = gateway_for(&upstreams, upstream.address(), "");

    for (number, form) in forms.iter().enumerate() {
        let answer = gateway.agent().request("GET", &format!("{URL}/{number}"), &KEY, b"");
        let text = answer.text();
        assert!(answer.complete, "{form}: {answer:?}");
        assert_eq!(text.len(), "<before><after>".len() + form.len(), "{form}: {text}");
        let left = text.strip_prefix("<before>").and_then(|rest| rest.strip_suffix("<after>"));
        // Of base64 twice, the outermost characters are shared with what could stand around it.
        let left = left.unwrap_or_else(|| panic!("{form}: {text}")).trim_matches('*').len();
        let most = if *form == BASE64_STANDARD.encode(BASE64_STANDARD.encode(CANARY)) { 6 } else { 0 };
        assert!(left <= most, "{form}: {text}");
    }
}

/// A server that answers with this body and content type at `api.example.com`, which has a key, and at
/// `other.example.com`, which has none.
fn answering(content_type: &'static str, body: Vec<u8>) -> (Upstream, Gateway) {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = Upstream::build()
        .identity(upstreams.leaf(&["api.example.com", "other.example.com"]))
        .script(move |_| Some(Reply::of(200, body.clone()).header("content-type", content_type)))
        .start();
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", upstream.address())
        .host("other.example.com", upstream.address())
        .policy(&policy(""))
        .credential("api", CANARY)
        .start();
    (upstream, gateway)
}

fn ask(gateway: &Gateway, host: &str, headers: &[(&str, &str)]) -> Answer {
    gateway.agent().request("GET", &format!("https://{host}/"), headers, b"")
}

/// All that comes of an answer that is broken off, which the event says.
fn broken_off(gateway: &Gateway) -> Vec<u8> {
    let mut connection = gateway.agent().tls("api.example.com");
    connection.send(format!("GET / HTTP/1.1\r\nHost: api.example.com\r\nX-Api-Key: {PLACEHOLDER}\r\n\r\n"));
    let came: Vec<u8> = std::iter::from_fn(|| connection.try_read()).flatten().collect();
    gateway.wait_for_event("the answer that was broken off", |event| {
        let reason = event["destination"]["reason"].as_str().unwrap_or_default();
        event["kind"] == "Response" && reason.contains("cannot be checked for the key")
    });
    came
}

/// G14: no character set that hides a key is asked for, and none passes; where no key goes, each does.
#[test]
fn a_character_set_hides_no_key() {
    let wide: Vec<u8> = "\u{feff}{\"a\":1}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (content_type, body) in [
        ("text/html; charset=utf-16", wide.clone()),
        ("text/html; charset=\"IBM037\"", b"abc".to_vec()),
        ("text/html; charset=utf-7", b"abc".to_vec()),
        ("text/html; charset=iso-2022-jp", b"abc".to_vec()),
        ("application/json; charset=of-tomorrow", b"{}".to_vec()),
    ] {
        let (_upstream, gateway) = answering(content_type, body.clone());
        assert_eq!(ask(&gateway, "api.example.com", &KEY).status, 502, "{content_type}");
        let twin = ask(&gateway, "other.example.com", &[]);
        assert_eq!((twin.status, twin.body), (200, body), "{content_type}");
    }

    let (upstream, gateway) = answering("text/html; charset=UTF-8", b"plain".to_vec());
    let wishes = [KEY[0], ("Accept-Charset", "utf-16"), ("Accept", "text/html;charset=utf-7;q=0.9, */*")];
    assert_eq!(ask(&gateway, "api.example.com", &wishes).text(), "plain");
    let seen = upstream.requests().remove(0);
    assert_eq!((seen.header("accept-charset"), seen.header("accept")), (None, Some("text/html;q=0.9, */*")));
    assert_eq!(ask(&gateway, "other.example.com", &wishes[1..]).text(), "plain");
    assert_eq!(upstream.requests()[1].header("accept-charset"), Some("utf-16"));

    let (_upstream, gateway) = answering("application/json", wide.clone());
    assert!(!broken_off(&gateway).windows(4).any(|part| part == b"\"\0a\0"));
    assert_eq!(ask(&gateway, "other.example.com", &[]).body, wide);
}

/// G14: nor does one at a model's host, whatever the status: what the guard reads is called UTF-8 behind it.
#[test]
fn a_character_set_hides_no_key_in_a_models_answer() {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = Upstream::build()
        .identity(upstreams.leaf(&["api.example.com"]))
        .script(|seen| {
            let (status, charset) = seen.header("x-wants")?.split_once(' ')?;
            let content_type = format!("application/json; charset={charset}");
            Some(Reply::of(status.parse().ok()?, b"{}".to_vec()).header("content-type", &content_type))
        })
        .start();
    let spoken = policy("").replace("action: Inspect", "action: Inspect, provider: OpenAIChat");
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", upstream.address())
        .policy(&spoken)
        .credential("api", CANARY)
        .start();
    let ask = |wants: &str| {
        let url = "https://api.example.com/v1/chat/completions";
        gateway.agent().request(
            "POST",
            url,
            &[KEY[0], ("x-wants", wants)],
            b"{\"model\":\"m\",\"messages\":[]}",
        )
    };
    for status in ["200", "300", "401", "503"] {
        assert_eq!(ask(&format!("{status} cp037")).status, 502, "{status}");
        assert_eq!(ask(&format!("{status} utf-8")).status.to_string(), status);
    }
}

/// G14: a body that is gzip though no head says so is looked into: with a key in it nothing of the key passes, and an
/// archive passes byte for byte. In base64 inside of a text, it is masked from the key on.
#[test]
fn gzip_without_its_label_hides_no_key() {
    let noise: String = (0..20_000_u32).map(|n| format!("{:x} ", n.wrapping_mul(2_654_435_761))).collect();
    let dirty = encode("gzip", format!("{noise}{CANARY}{noise}").as_bytes());
    let clean = encode("gzip", noise.as_bytes());

    let (_upstream, gateway) = answering("application/octet-stream", dirty.clone());
    let came = broken_off(&gateway);
    assert!(came.len() < dirty.len(), "{} bytes", came.len());
    assert!(!came.ends_with(&dirty[dirty.len() - 8..]));
    assert_eq!(ask(&gateway, "other.example.com", &[]).body, dirty);

    let (_upstream, gateway) = answering("application/octet-stream", clean.clone());
    let answer = ask(&gateway, "api.example.com", &KEY);
    assert!(answer.complete && answer.body == clean, "{} bytes", answer.body.len());

    let text =
        |packed: &[u8]| format!("{{\"data\":\"{}\",\"a\":1}}", BASE64_STANDARD.encode(packed)).into_bytes();
    let (_upstream, gateway) = answering("application/json", text(&dirty));
    let masked = ask(&gateway, "api.example.com", &KEY).text();
    assert!(masked.len() == text(&dirty).len() && masked.ends_with("***\",\"a\":1}"), "{masked}");
    let (_upstream, gateway) = answering("application/json", text(&clean));
    assert_eq!(ask(&gateway, "api.example.com", &KEY).body, text(&clean));
}
