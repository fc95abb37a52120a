//! Bodies that two readers would read differently: codings, types, doubled keys, escapes, odd numbers.

use crate::support::coding::{encode, zstd_bomb};
use crate::support::upstream::Reply;

use super::requests::{
    CHAT, CONVERSE, DIALECTS, GEMINI, INVOKE, MESSAGES, RESPONSES, Row, becomes, hosted_tool, models,
    models_with, offering, own_tool, refused, reply, said, untouched,
};

const CODINGS: [&str; 4] = ["gzip", "deflate", "br", "zstd"];
/// Inference endpoints that belong to no dialect.
const PLAIN: [&str; 3] = [
    "api.openai.com/v1/embeddings",
    "generativelanguage.googleapis.com/v1beta/models/m:embedContent",
    "cloudcode-pa.googleapis.com/v1internal:loadCodeAssist",
];
const UNPARSEABLE: &str = "postern/builtin/unparseable";
/// A server in Go, which reads keys in any case.
const OLLAMA: &str = "ollama.com/v1/messages";
const BOUND: &str = "postern/builtin/bound";

/// D1: a coding hides no tool: what is inside is seen; a body that stays goes on as it came, one that is edited plain.
#[test]
fn a_content_coding_hides_nothing() {
    let test = models("");
    for (door, coding) in
        DIALECTS.iter().map(|door| (*door, "zstd")).chain(CODINGS.map(|coding| (MESSAGES, coding)))
    {
        let fields = [("content-type", "application/json"), ("content-encoding", coding)];
        let (own, hosted) = (own_tool(door), hosted_tool(door));
        let hidden = encode(coding, offering(door, &[hosted, own]).as_bytes());
        let asked = test.post_with(door, &fields, hidden);

        assert_eq!(asked.answer.status, 200, "{door} {coding}: {:?}", asked.answer);
        let seen = asked.seen();
        assert_eq!(String::from_utf8_lossy(&seen.body), offering(door, &[own]), "{door} {coding}");
        assert_eq!(seen.header("content-encoding"), None);
        assert_eq!(seen.header("content-length"), Some(seen.body.len().to_string().as_str()));
        test.event_of(&asked, "Transform", "Allow");

        let open = encode(coding, offering(door, &[own]).as_bytes());
        let seen = test.post_with(door, &fields, &open).reached.remove(0);
        assert_eq!(
            (
                seen.body,
                seen.headers.iter().any(|(name, value)| (name.as_str(), value.as_str()) == fields[1])
            ),
            (open, true)
        );
    }
}

/// D1: a coding that is not known, or stands on another, is refused, in words, and nothing of it is sent on.
#[test]
fn a_content_coding_that_cannot_be_undone_is_refused() {
    let test = models("");
    for door in DIALECTS {
        let body = offering(door, &[own_tool(door)]);
        let gzip = encode("gzip", body.as_bytes());
        let twice = encode("gzip", &gzip);
        for (fields, body) in [
            (vec![("content-encoding", "compress")], body.as_bytes()),
            (vec![("content-encoding", "x-rot13")], body.as_bytes()),
            (vec![("content-encoding", "gzip, gzip")], &twice),
            (vec![("content-encoding", "gzip"), ("content-encoding", "gzip")], &twice),
        ] {
            let asked = test.post_with(door, &fields, body);
            asked.answer.assert_refused_by_provider(UNPARSEABLE);
            assert!(asked.reached.is_empty(), "{door} {fields:?}");
            test.assert_denial_is_told(&asked, UNPARSEABLE);
        }
        assert_eq!(test.post_with(door, &[("content-encoding", "gzip")], &gzip).seen().body, gzip);
    }
}

/// D2: a body that decodes to far more than it is, or wants far more memory, is given up at its bound.
#[test]
fn a_decompression_bomb_is_given_up_at_its_bound() {
    let test = models("");
    assert_eq!(test.post(MESSAGES, said(MESSAGES, "")).answer.status, 200);
    let before = test.gateway.peak_memory();
    // Frames that ask for a window of 1 GiB, and that declare 200 MiB of content (RFC 8878, section 3.1.1.1).
    let window = [0x28, 0xb5, 0x2f, 0xfd, 0, 0xa0, 0x09, 0, 0, b'x'];
    let declared = [0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0x80, 0x0c, 0x09, 0, 0, b'x'];

    for bomb in [&zstd_bomb()[..], &window, &declared] {
        let asked = test.post_with(MESSAGES, &[("content-encoding", "zstd")], bomb);
        assert_eq!(asked.answer.status, 413, "{:?}", asked.answer);
        asked.answer.assert_refused_by_provider(BOUND);
        assert!(asked.reached.is_empty());
        test.assert_denial_is_told(&asked, BOUND);
    }

    let grown = test.gateway.peak_memory() - before;
    assert!(grown < 128 << 20, "{grown} bytes for a bound of 64 MiB");
}

/// D2: the bound holds for every coding, and a body within it passes.
#[test]
fn what_a_body_decodes_to_is_bounded_in_every_coding() {
    let test =
        models_with("", |seen| reply(seen.path()), |setup| setup.set("/limits/decodedBodyBytes", 1 << 20));
    let padded = |bytes: usize| said(MESSAGES, &format!(r#""pad":"{}","#, "a".repeat(bytes)));
    for coding in CODINGS {
        let fields = [("content-encoding", coding)];
        let asked = test.post_with(MESSAGES, &fields, encode(coding, padded(2 << 20).as_bytes()));
        assert_eq!(asked.answer.status, 413, "{coding}: {:?}", asked.answer);
        asked.answer.assert_refused_by_provider(BOUND);
        assert!(asked.reached.is_empty(), "{coding}");

        let fits = encode(coding, padded(900 << 10).as_bytes());
        assert_eq!(test.post_with(MESSAGES, &fields, &fits).seen().body, fits, "{coding}");
    }
}

/// D3: a body whose coding is not the one that is said is none that can be read.
#[test]
fn a_body_that_is_not_in_the_coding_that_is_said_is_refused() {
    let test = models("");
    for door in DIALECTS {
        let plain = offering(door, &[hosted_tool(door)]).into_bytes();
        let (gzip, zstd) = (encode("gzip", &plain), encode("zstd", &plain));
        let mut doubled = zstd.clone();
        doubled.extend(&plain);
        for (coding, body) in [
            (None, &gzip),
            (None, &zstd),
            (Some("identity"), &gzip),
            (Some("gzip"), &plain),
            (Some("gzip"), &zstd),
            (Some("zstd"), &gzip),
            (Some("zstd"), &doubled),
            (Some("gzip"), &gzip[..gzip.len() - 9].to_vec()),
        ] {
            let fields: Vec<_> = coding.map(|coding| ("content-encoding", coding)).into_iter().collect();
            let asked = test.post_with(door, &fields, body);
            asked.answer.assert_refused_by_provider(UNPARSEABLE);
            assert!(asked.reached.is_empty(), "{door} {coding:?}");
        }
        let own = offering(door, &[own_tool(door)]);
        assert_eq!(
            test.post_with(door, &[("content-encoding", "identity")], &own).seen().body,
            own.as_bytes()
        );
    }
}

/// D4: what a body is follows from where it is sent, not from what it calls itself; it is UTF-8, or it is nothing.
#[test]
fn a_content_type_says_nothing_about_a_body() {
    let test = models("");
    let types =
        ["text/plain", "application/json; charset=utf-16", "application/octet-stream", "image/png", ""];
    for door in DIALECTS {
        let (own, hosted) = (own_tool(door), hosted_tool(door));
        for content_type in types {
            let fields: Vec<_> =
                (!content_type.is_empty()).then_some(("content-type", content_type)).into_iter().collect();
            let asked = test.post_with(door, &fields, offering(door, &[own, hosted]));
            assert_eq!(
                String::from_utf8_lossy(&asked.seen().body),
                offering(door, &[own]),
                "{door} {content_type}"
            );
        }
        let text = offering(door, &[hosted]);
        let utf_16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
        let latin = [text.as_bytes().strip_suffix(b"}").unwrap(), b",\"x\":\"\xe9\"}"].concat();
        for body in [utf_16, marked, latin] {
            let asked = test.post_with(door, &[("content-type", "application/json; charset=utf-16")], body);
            asked.answer.assert_refused_by_provider(UNPARSEABLE);
            assert!(asked.reached.is_empty(), "{door}");
            test.assert_denial_is_told(&asked, UNPARSEABLE);
        }
    }
    let spoken: Vec<Row> =
        DIALECTS.iter().map(|door| untouched(door, said(door, r#""x":"Zürich — ✓","#))).collect();
    test.assert_rows(&spoken);
}

/// D5: nothing goes on of a body that is longer than what is looked at; up to the bound it is looked at to its end.
#[test]
fn a_body_over_its_bound_goes_nowhere() {
    let test = models("limits: {requestBodyBytes: 65536}");
    let padded = |door: &str, length: usize| {
        let body = |pad: usize| {
            let tools = [own_tool(door), hosted_tool(door)];
            offering(door, &tools).replacen('{', &format!(r#"{{"pad":"{}","#, "a".repeat(pad)), 1)
        };
        body(length - body(0).len())
    };
    for door in DIALECTS {
        let over = padded(door, 65_537);
        let asked = test.post(door, &over);
        asked.answer.assert_refused_by_provider(BOUND);
        test.assert_denial_is_told(&asked, BOUND);
        assert!(asked.answer.complete && asked.reached.is_empty(), "{door}");

        let (host, path) = door.split_once('/').unwrap();
        let mut connection = test.gateway.agent().tls(host);
        connection.send(format!(
            "POST /{path} HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{over}\r\n",
            over.len()
        ));
        connection.read_answer().assert_refused_by_provider(BOUND);
        let over_h2 =
            test.gateway.agent().h2(host).request("POST", &format!("https://{door}"), &[], over.as_bytes());
        over_h2.unwrap().assert_refused_by_provider(BOUND);
        assert!(test.upstream.requests().iter().all(|seen| seen.body.len() < 65_536), "{door}");

        let fits = padded(door, 65_536);
        let seen = test.post(door, &fits).reached.remove(0);
        let expected = fits.replacen(&format!(",{}", hosted_tool(door)), "", 1);
        assert_eq!(String::from_utf8_lossy(&seen.body), expected, "{door}");
    }
}

/// D6: a body that no dialect reads (embeddings, what starts an agent) is read all the same: it goes on byte for byte
/// where it has one reading, within the bound, and not at all where it has none or two.
#[test]
fn a_body_of_an_endpoint_without_a_dialect_has_one_reading() {
    let test = models("limits: {requestBodyBytes: 4096}");
    let rows: Vec<Row> = PLAIN
        .into_iter()
        .flat_map(|door| {
            [
                untouched(door, r#"{ "model":"m",  "input":["Z\u00fcrich", 1.10e400, {}] } "#),
                refused(door, r#"{"model":"m","input":["a"}"#, UNPARSEABLE),
                refused(door, r#"{"model":"m","model":"n"}"#, UNPARSEABLE),
                refused(door, r#"{"input":[{"a":1,"\u0061":2}]}"#, UNPARSEABLE),
                refused(door, "model=m", UNPARSEABLE),
            ]
        })
        .collect();
    test.assert_rows(&rows);

    for door in PLAIN {
        assert!(test.post(door, "").seen().body.is_empty(), "{door}");
        let asked = test.post(door, format!(r#"{{"input":"{}"}}"#, "a".repeat(4_096)));
        asked.answer.assert_refused_by_provider(BOUND);
        assert!(asked.answer.status == 413 && asked.reached.is_empty(), "{:?}", asked.answer);
        let fields = [("content-type", "application/json"), ("content-encoding", "gzip")];
        let open = encode("gzip", br#"{"input":"a"}"#);
        assert_eq!(test.post_with(door, &fields, &open).seen().body, open);
        let hidden = encode("gzip", br#"{"input":"a","input":"b"}"#);
        let asked = test.post_with(door, &fields, &hidden);
        asked.answer.assert_refused_by_provider(UNPARSEABLE);
        assert!(asked.reached.is_empty());
    }
}

/// Where only Audit policies select the pod, such a body goes on, and an event says what it would have been.
#[test]
fn a_body_without_one_reading_goes_on_under_audit_alone() {
    let test = models("enforcement: Audit");
    for door in PLAIN {
        let twice = r#"{"model":"m","model":"n"}"#;
        let asked = test.post(door, twice);
        assert_eq!((asked.answer.status, asked.seen().body.as_slice()), (200, twice.as_bytes()), "{door}");
        let event = test.event_of(&asked, "Policy", "WouldDeny");
        assert_eq!(event["decision"]["rule"], UNPARSEABLE);
    }
}

/// Nor is one refused there whose coding cannot be undone: only its bounds stay.
#[test]
fn a_body_whose_coding_cannot_be_undone_goes_on_under_audit_alone() {
    let test = models("enforcement: Audit");
    let body = r#"{"model":"m","input":"a"}"#;
    for door in PLAIN {
        for coding in ["x-rot13", "gzip, gzip", "gzip"] {
            let asked = test.post_with(door, &[("content-encoding", coding)], body);
            let seen = asked.seen();
            assert_eq!(
                (asked.answer.status, seen.body.as_slice()),
                (200, body.as_bytes()),
                "{door} {coding}"
            );
            assert_eq!(seen.header("content-encoding"), Some(coding));
            let event = test.event_of(&asked, "Policy", "WouldDeny");
            assert_eq!(event["decision"]["rule"], UNPARSEABLE);
        }
    }
}

/// D6: where a key stands twice, the provider may read the other one: at any depth at which it could matter, that is refused.
#[test]
fn a_key_that_stands_twice_is_refused() {
    let test = models("");
    let mut rows = Vec::new();
    for door in DIALECTS {
        let (own, hosted) = (own_tool(door), hosted_tool(door));
        let list = if door == CONVERSE { "toolConfig" } else { "tools" };
        let value = |tools: &str| match door {
            CONVERSE => format!(r#"{{"tools":[{tools}]}}"#),
            _ => format!("[{tools}]"),
        };
        let (first, second) = (value(own), value(hosted));
        let escaped = list.replace('o', r"\u006f");
        rows.push(refused(door, said(door, &format!(r#""{list}":{first},"{list}":{second},"#)), UNPARSEABLE));
        rows.push(refused(door, said(door, &format!(r#""{list}":{second},"{list}":{first},"#)), UNPARSEABLE));
        rows.push(refused(
            door,
            said(door, &format!(r#""{list}":{first},"{escaped}":{second},"#)),
            UNPARSEABLE,
        ));
        rows.push(untouched(door, offering(door, &[own, own])));
    }
    let nested = [
        (MESSAGES, r#"{"type":"custom","name":"x","type":"web_search_20250305"}"#),
        (INVOKE, r#"{"type":"custom","name":"x","type":"web_search_20250305"}"#),
        (CHAT, r#"{"type":"function","function":{"name":"x"},"type":"web_search"}"#),
        (RESPONSES, r#"{"type":"function","name":"x","type":"web_search"}"#),
        (RESPONSES, r#"{"type":"namespace","name":"x","tools":[],"tools":[{"type":"web_search"}]}"#),
        (GEMINI, r#"{"functionDeclarations":[{"name":"x"}],"functionDeclarations":[{"name":"y"}]}"#),
        (CONVERSE, r#"{"toolSpec":{"name":"x"},"toolSpec":{"name":"y"}}"#),
    ];
    rows.extend(nested.map(|(door, tool)| refused(door, offering(door, &[tool]), UNPARSEABLE)));
    for (door, body) in [
        (
            MESSAGES,
            r#"{"model":"m","messages":[{"role":"user","content":"a","content":[{"type":"tool_addition"}]}]}"#,
        ),
        (MESSAGES, r#"{"model":"m","messages":[],"messages":[{"role":"user","content":"a"}]}"#),
        (CHAT, r#"{"model":"m","messages":[{"role":"user","content":"a","content":"b"}]}"#),
        (
            RESPONSES,
            r#"{"model":"m","input":[{"type":"message","role":"user","type":"item_reference","id":"a"}]}"#,
        ),
        (RESPONSES, r#"{"model":"m","store":false,"store":true,"input":"a"}"#),
        (GEMINI, r#"{"contents":[],"cachedContent":"","cachedContent":"cachedContents/a"}"#),
        (CONVERSE, r#"{"messages":[{"role":"user","content":[{"text":"a","text":"b"}]}]}"#),
    ] {
        rows.push(refused(door, body, UNPARSEABLE));
    }
    test.assert_rows(&rows);
}

/// D6: of two values for one key in a call's input, the agent may take the other one: such a call is replaced by text.
#[test]
fn a_call_whose_input_has_a_key_twice_is_replaced() {
    let rule = "tools: [{name: no-rm, kind: Shell, action: Deny, when: {param: command, operator: Contains, values: [rm]}}]";
    let script = |seen: &crate::support::upstream::Seen| {
        let doubled = String::from_utf8_lossy(&seen.body).contains("doubled");
        let input = if doubled { r#"{"command":"ls","command":"rm -rf /"}"# } else { r#"{"command":"ls"}"# };
        let body = format!(
            r#"{{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{{"type":"tool_use","id":"t1","name":"Bash","input":{input}}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{{"input_tokens":7,"output_tokens":9}}}}"#
        );
        Reply::of(200, body).header("content-type", "application/json")
    };
    let test = models_with(rule, script, |setup| setup);

    let doubled = test.post(MESSAGES, said(MESSAGES, r#""doubled":true,"#));
    assert_eq!(doubled.answer.status, 200);
    assert_eq!(doubled.answer.json()["content"][0]["type"], "text", "{:?}", doubled.answer);
    assert!(!doubled.answer.text().contains("rm -rf"));
    assert_eq!(test.event_of(&doubled, "ToolCall", "Deny")["toolCall"]["id"], "t1");

    let single = test.post(MESSAGES, said(MESSAGES, ""));
    assert_eq!(single.answer.json()["content"][0]["input"]["command"], "ls");
    test.event_of(&single, "ToolCall", "Allow");
}

/// D7: an escape is read before anything is compared.
#[test]
fn an_escape_hides_no_tool() {
    let test = models("");
    let rows = [
        (MESSAGES, r#"{"t\u0079pe":"web_\u0073earch_20250305","name":"web_search"}"#),
        (INVOKE, r#"{"t\u0079pe":"web_\u0073earch_20250305","name":"web_search"}"#),
        (CHAT, r#"{"t\u0079pe":"web_\u0073earch"}"#),
        (RESPONSES, r#"{"t\u0079pe":"\u0077eb_search"}"#),
        (GEMINI, r#"{"google\u0053earch":{}}"#),
        (CONVERSE, r#"{"\u0073ystemTool":{"name":"nova_grounding"}}"#),
    ];
    for (door, tool) in rows {
        let key = if door == CONVERSE { "toolConfig" } else { "tools" };
        let hide = |body: String| body.replacen(key, &key.replace('l', r"\u006c"), 1);
        let (sent, left) = (offering(door, &[tool, own_tool(door)]), offering(door, &[own_tool(door)]));
        test.assert_rows(&[becomes(door, &sent, &left), becomes(door, hide(sent), hide(left))]);
    }
}

/// D7: what is not JSON to every parser is refused; odd numbers, escapes and depths that are JSON pass as they are.
#[test]
fn what_parsers_disagree_about_is_refused_and_what_is_odd_passes() {
    let test = models("");
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let mut rows = Vec::new();
    for door in DIALECTS {
        let with = |value: &str| said(door, &format!(r#""x":{value},"#));
        for odd in [
            "1e0",
            "-0.0E+1",
            "123456789012345678901234567890",
            "1E400",
            r#""\u0000""#,
            r#""\ud83d\ude00""#,
            r#""\/""#,
        ] {
            rows.push(untouched(door, with(odd)));
        }
        rows.push(untouched(door, with(&nested(127))));
        for bad in [
            "NaN",
            "Infinity",
            "01",
            "+1",
            ".5",
            "0x10",
            r#""\ud800""#,
            r#""\ude00\ud83d""#,
            "'a'",
            "[1,]",
            "{a:1}",
            r#""\x41""#,
            "\"a\nb\"",
            "undefined",
            "1/**/",
            "True",
        ] {
            rows.push(refused(door, with(bad), UNPARSEABLE));
        }
        rows.push(refused(door, with(&nested(128)), UNPARSEABLE));
        let plain = said(door, "");
        for bad in [format!("{plain}{plain}"), format!("{plain} x"), format!("[{plain}]"), "null".to_owned()]
        {
            rows.push(refused(door, bad, UNPARSEABLE));
        }
    }
    test.assert_rows(&rows);
}

/// D7: a key in another case, where servers are known that read it all the same, is refused.
#[test]
fn a_key_in_another_case_is_refused_where_servers_read_it() {
    let test = models("");
    test.assert_rows(&[
        refused(CHAT, said(CHAT, r#""Tools":[{"type":"web_search"}],"#), UNPARSEABLE),
        refused(
            CHAT,
            offering(CHAT, &[r#"{"Type":"web_search","type":"function","function":{"name":"x"}}"#]),
            UNPARSEABLE,
        ),
        refused(CHAT, said(CHAT, r#""\u017ftore":true,"#), UNPARSEABLE),
        refused(RESPONSES, said(RESPONSES, r#""TOOLS":[{"type":"web_search"}],"#), UNPARSEABLE),
        refused(RESPONSES, said(RESPONSES, r#""Background":true,"#), UNPARSEABLE),
        refused(CONVERSE, said(CONVERSE, r#""ToolConfig":{"tools":[]},"#), UNPARSEABLE),
        refused(CONVERSE, said(CONVERSE, r#""additional_model_request_fields":{"tools":[]},"#), UNPARSEABLE),
        refused(MESSAGES, said(MESSAGES, r#""Tools":[{"type":"web_search_20250305"}],"#), UNPARSEABLE),
        refused(OLLAMA, said(MESSAGES, r#""MCP_SERVERS":[{"type":"url"}],"#), UNPARSEABLE),
        refused(
            OLLAMA,
            offering(MESSAGES, &[r#"{"Type":"web_search_20250305","name":"web_search"}"#]),
            UNPARSEABLE,
        ),
        refused(INVOKE, said(INVOKE, r#""Tools":[{"type":"web_search_20250305"}],"#), UNPARSEABLE),
        untouched(OLLAMA, said(MESSAGES, r#""Unknown":1,"#)),
        untouched(CHAT, said(CHAT, r#""Unknown":1,"#)),
        untouched(RESPONSES, said(RESPONSES, r#""Unknown":1,"#)),
        untouched(CONVERSE, said(CONVERSE, r#""Unknown":1,"#)),
    ]);
}
