//! Secrets that would leave for hosts that are no model's: in bodies of any length and coding, and in heads.

use crate::gateway::{INSPECT_API, Inspected};
use crate::support::coding::encode;
use crate::support::{Answer, Connection, Ending, setup};

const RULE: &str = "postern/builtin/outbound-exfiltration";

/// Put together here, so that no file holds them.
fn secret() -> String {
    ["glp", "at-Ab3dEf6hIj9kLm2nOp5q"].concat()
}

fn github() -> String {
    ["gh", "p_", "0123456789abcdefghijABCDEFGHIJ2zKx0l"].concat()
}

/// Another host behind a policy with this line in its spec.
fn inspected_with(line: &str) -> Inspected {
    crate::gateway::inspected_with(|set| set.policy(&format!("{}  {line}\n", setup::policy(&[INSPECT_API]))))
}

fn post(test: &Inspected, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    test.gateway.agent().request("POST", "https://api.example.com/echo", headers, body)
}

/// Whether the upstream has read the secret.
fn has_left(test: &Inspected) -> bool {
    let secret = secret();
    test.upstream.requests().iter().any(|seen| String::from_utf8_lossy(&seen.body).contains(&secret))
}

/// D8: a body is ended before the last byte of a secret has gone on, however it is cut.
#[test]
fn a_body_with_a_secret_does_not_reach_another_host() {
    let test = inspected_with("");
    let text = format!("{}\nkey: {}\nmore", "some words. ".repeat(100), secret());
    post(&test, &[], text.as_bytes()).assert_refused(403, RULE);
    for size in [1, 7, 400] {
        let mut connection = test.gateway.agent().tls("api.example.com");
        connection.send("POST /echo HTTP/1.1\r\nHost: api.example.com\r\nTransfer-Encoding: chunked\r\n\r\n");
        for chunk in text.as_bytes().chunks(size) {
            let framed = [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat();
            if connection.try_send(framed).is_err() {
                break;
            }
        }
        let _ = connection.try_send("0\r\n\r\n");
        connection.read_answer().assert_refused(403, RULE);
    }
    assert!(!has_left(&test));
    let twin = text.replace(&secret(), "glpat-is-how-they-begin-he");
    assert_eq!(post(&test, &[], twin.as_bytes()).status, 200);
    let found =
        test.gateway.wait_for_event("the findings", |event| event["dlp"][0]["detector"] == "gitlab-token");
    assert_eq!((&found["dlp"][0]["location"], &found["dlp"][0]["action"]), (&"body".into(), &"Deny".into()));
}

/// D10: parts of a form, and the names of their files.
#[test]
fn a_part_of_a_form_and_the_name_of_a_file_hide_nothing() {
    let test = inspected_with("");
    let form = |name: &str, content: &str| {
        format!(
            "--b\r\ncontent-disposition: form-data; name=\"f\"; filename=\"{name}\"\r\n\r\n{content}\r\n--b--\r\n"
        )
    };
    let send =
        |body: String| post(&test, &[("content-type", "multipart/form-data; boundary=b")], body.as_bytes());
    send(form("a.txt", &secret())).assert_refused(403, RULE);
    send(form(&secret(), "text")).assert_refused(403, RULE);
    assert_eq!(send(form("a.txt", "text")).status, 200);
    assert!(!has_left(&test));
}

/// D9: a coded body is looked into.
#[test]
fn a_coded_body_to_another_host_hides_nothing() {
    let test = inspected_with("");
    let coding = [("content-encoding", "gzip")];
    post(&test, &coding, &encode("gzip", format!("key: {}", secret()).as_bytes())).assert_refused(403, RULE);
    post(&test, &[], &encode("gzip", format!("key: {}", secret()).as_bytes())).assert_refused(403, RULE);
    assert_eq!(post(&test, &coding, &encode("gzip", b"key: none")).status, 200);
}

/// D12: a head carries no secret, but one that the host is for where requests authenticate.
/// D17: what stands in a path is not recorded with it.
#[test]
fn a_head_carries_no_secret_to_another_host() {
    let test = inspected_with("");
    let secret = secret();
    let get = |path: &str, headers: &[(&str, &str)]| {
        test.gateway.agent().request("GET", &format!("https://api.example.com{path}"), headers, b"")
    };
    get(&format!("/a/{secret}"), &[]).assert_refused(403, RULE);
    get(&format!("/echo?q={secret}"), &[]).assert_refused(403, RULE);
    get(&format!("/echo?{secret}=1"), &[]).assert_refused(403, RULE);
    // What is cut is taken out first.
    let organization = format!("{}{secret}", "o".repeat(250));
    get("/echo", &[("openai-organization", &organization)]).assert_refused(403, RULE);
    get(&format!("/{}/{secret}", "p".repeat(2 * 1024 - 16)), &[]).assert_refused(403, RULE);
    get("/echo", &[("x-debug", &secret)]).assert_refused(403, RULE);
    get("/echo", &[("user-agent", &format!("curl {secret}"))]).assert_refused(403, RULE);
    get("/echo", &[("authorization", &format!("Bearer {}", github()))]).assert_refused(403, RULE);
    assert_eq!(get("/echo", &[("authorization", "Bearer of-tidings-that-are-old")]).status, 200);
    assert_eq!(get("/echo?q=glpat-is-how-they-begin-he", &[]).status, 200);
    let told: Vec<String> = test.gateway.events().iter().map(ToString::to_string).collect();
    assert!(told.iter().all(|event| !event.contains(&secret) && !event.contains(&github())), "{told:#?}");
}

/// A secret is no loss where it is at home.
#[test]
fn a_token_authenticates_at_the_host_that_it_is_for() {
    let test = inspected_with("dataLoss: {home: [{detector: github-token, hosts: [api.example.com]}]}");
    let token = format!("Bearer {}", github());
    let agent = test.gateway.agent();
    let get =
        |name: &str| agent.request("GET", "https://api.example.com/echo", &[(name, &token)], b"").status;
    assert_eq!((get("authorization"), get("x-debug")), (200, 403));
    post(&test, &[], github().as_bytes()).assert_refused(403, "agents/test/dataLoss");
}

/// D20: what a body decodes to is bounded, in time and in room.
#[test]
fn a_body_that_costs_too_much_to_search_is_refused() {
    let test = inspected_with("");
    let packed = |bytes: usize| base64(&encode("gzip", &vec![b'a'; bytes]));
    post(&test, &[], packed(2 << 20).as_bytes()).assert_refused(403, "postern/builtin/bound");
    assert_eq!(post(&test, &[], packed(1 << 15).as_bytes()).status, 200);
    // What costs little goes on, however much it is.
    let runs = "key%2D%2D%2Dvalue and more\n".repeat(12_000);
    assert_eq!(post(&test, &[], runs.as_bytes()).status, 200);
    let bomb = "QUFB".repeat(1 << 18);
    assert_eq!(post(&test, &[], bomb.as_bytes()).status, 200);
}

fn base64(bytes: &[u8]) -> String {
    base64::Engine::encode(&base64::prelude::BASE64_STANDARD, bytes)
}

/// D8: in what is coded as one, nothing hides behind something else, even if that is allowed or an example.
#[test]
fn a_secret_behind_another_one_in_one_coded_part_does_not_leave() {
    let hash = sha256(github().as_bytes());
    let line = format!("dataLoss: {{allow: [{{detector: github-token, sha256: {hash}}}]}}");
    let test = inspected_with(&line);
    let example = ["AKIA", "IOSFODNN7EXAMPLE"].concat();
    let (key, token) = (["AKIA", "Z3QK7XW2PLM5TRNB"].concat(), github().replace("0123", "9876"));
    for (first, second) in [(&example, &key), (&github(), &token)] {
        assert_eq!(post(&test, &[], base64(first.as_bytes()).as_bytes()).status, 200, "{first}");
        let coded = base64(format!("{first} and {second}").as_bytes());
        assert_eq!(post(&test, &[], coded.as_bytes()).status, 403, "{first}");
    }
}

fn sha256(bytes: &[u8]) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// D10: the fields behind a body.
#[test]
fn a_trailer_carries_no_secret_to_another_host() {
    let test = inspected_with("");
    let send = |value: &str| {
        let mut connection = test.gateway.agent().tls("api.example.com");
        connection.send("POST /echo HTTP/1.1\r\nHost: api.example.com\r\nTE: trailers\r\nTrailer: x-sum\r\n");
        connection
            .send(format!("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx-sum: {value}\r\n\r\n"));
        connection.read_answer()
    };
    assert_eq!(send("42").status, 200);
    send(&secret()).assert_refused(403, RULE);
    let carried = |test: &Inspected| {
        test.upstream
            .requests()
            .iter()
            .any(|seen| seen.trailers.iter().any(|(_, value)| value.contains(&secret())))
    };
    assert!(!carried(&test));
    let found = test.gateway.wait_for_event("the finding", |event| event["dlp"][0]["location"] == "trailers");
    assert_eq!(found["dlp"][0]["action"], "Deny");
}

/// What a request has of a part of a secret.
type Text = fn(&str) -> String;

/// D8: a secret that is divided over requests: in a parameter, in a path, in bodies.
#[test]
fn a_secret_that_is_divided_over_requests_does_not_leave_whole() {
    let secret = secret();
    let (first, second) = secret.split_at(14);
    let ways: [(&str, Text, Text); 4] = [
        ("query", |part| format!("/echo?n=1&q={part}"), |_| String::new()),
        ("path", |part| format!("/status/200/{part}"), |_| String::new()),
        ("json", |_| "/echo".to_owned(), |part| format!(r#"{{"n":1,"part":"{part}"}}"#)),
        ("plain", |_| "/echo".to_owned(), |part| format!("{part}\n")),
    ];
    for (name, path, body) in ways {
        let test = inspected_with("");
        let send = |part: &str| {
            let url = format!("https://api.example.com{}", path(part));
            test.gateway.agent().request("POST", &url, &[], body(part).as_bytes())
        };
        assert_ne!(send(first).status, 403, "{name}");
        send(second).assert_refused(403, RULE);
        let read = test.upstream.requests();
        assert!(read.iter().all(|seen| !String::from_utf8_lossy(&seen.body).contains(second)), "{name}");
        assert_ne!(send("is-how-they-begin").status, 403, "{name}");
    }
}

/// A WebSocket to another host, open.
fn socket(test: &Inspected) -> Connection {
    let mut connection = test.gateway.agent().tls("api.example.com");
    connection.send(
        "GET /ws HTTP/1.1\r\nHost: api.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
    );
    assert_eq!(connection.read_head().status, 101);
    connection
}

/// A text message of a client.
fn masked(text: &str) -> Vec<u8> {
    let mask = [1, 2, 3, 4];
    let head = [0x81, 0x80 | u8::try_from(text.len()).unwrap()];
    let payload = text.bytes().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask);
    head.into_iter().chain(mask).chain(payload).collect()
}

/// D8, D10: the messages of a WebSocket to a host that is no model's.
#[test]
fn a_websocket_to_another_host_is_ended_before_a_secret_has_left() {
    let allowed = "{name: api, hosts: [api.example.com], action: Inspect, upgrade: Allow}";
    let test = crate::gateway::inspected_with(|set| set.policy(&setup::policy(&[allowed])));
    let secret = secret();
    let (first, second) = secret.split_at(12);
    for messages in [vec![format!("it is {secret} here")], vec![first.to_owned(), second.to_owned()]] {
        let mut connection = socket(&test);
        connection.send(masked("hello"));
        assert_eq!(connection.read_exactly(7), b"\x81\x05hello");
        messages.iter().for_each(|message| drop(connection.try_send(masked(message))));
        let (Ending::Closed(said) | Ending::Cut(said)) = connection.ending();
        assert!(!String::from_utf8_lossy(&said).contains(second), "{said:?}");
    }
    let told = test.gateway.wait_for("Response", "Deny");
    assert_eq!(told["decision"]["rule"], RULE);
    assert_eq!(told["dlp"][0]["detector"], "gitlab-token");
    let mut twin = socket(&test);
    twin.send(masked("glpat-is-how-they-begin-he"));
    assert_eq!(twin.read_exactly(28), b"\x81\x1aglpat-is-how-they-begin-he");
}

/// D10: an open WebSocket meets the policy in force.
#[test]
fn a_websocket_that_is_open_is_searched_under_a_new_policy() {
    let policy = |line: &str| {
        let allowed = "{name: api, hosts: [api.example.com], action: Inspect, upgrade: Allow}";
        format!("{}  {line}\n", setup::policy(&[allowed]))
    };
    let allowing = policy("dataLoss: {action: Allow}");
    let auditing = policy("dataLoss: {action: Audit}");
    let test = crate::gateway::inspected_with(|set| set.policy(&auditing));
    let said = format!("it is {}", secret());
    let echoed = [&[0x81, u8::try_from(said.len()).unwrap()], said.as_bytes()].concat();
    let mut connection = socket(&test);
    for text in [&auditing, &allowing] {
        test.gateway.reload_policy(text, "success");
        connection.send(masked(&said));
        assert_eq!(connection.read_exactly(echoed.len()), echoed);
    }
    test.gateway.reload_policy(&policy(""), "success");
    let _ = connection.try_send(masked(&said));
    let (Ending::Closed(heard) | Ending::Cut(heard)) = connection.ending();
    assert!(!String::from_utf8_lossy(&heard).contains(&secret()));

    // One that began without a search may be compressed: it ends when there is one.
    test.gateway.reload_policy(&allowing, "success");
    let mut connection = socket(&test);
    test.gateway.reload_policy(&policy(""), "success");
    let (Ending::Closed(heard) | Ending::Cut(heard)) = connection.ending();
    assert!(heard.is_empty());
}

/// D10: what is only recorded ends no WebSocket, however much it is.
#[test]
fn any_number_of_findings_under_audit_ends_no_websocket() {
    let allowed = "{name: api, hosts: [api.example.com], action: Inspect, upgrade: Allow}";
    let line = "  dataLoss: {action: Audit}\n";
    let test = crate::gateway::inspected_with(|set| set.policy(&(setup::policy(&[allowed]) + line)));
    let mut connection = socket(&test);
    for number in 0..400 {
        let said = format!("{}{number:03}", secret());
        connection.send(masked(&said));
        assert_eq!(connection.read_exactly(2 + said.len())[2..], *said.as_bytes());
    }
}
