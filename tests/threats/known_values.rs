//! Values that are known and must not leave: keys that the gateway holds, and those that a policy names.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::requests::{MESSAGES, Models, becomes, models_with, refused, reply, untouched};
use crate::gateway::{INSPECT_API, inspected_with};
use crate::support::journal::poll;
use crate::support::{Setup, setup};

/// Neither looks like a secret: nothing but the value itself can find them.
const KEY: &str = "blue-bicycle-on-monday";
const VALUE: &str = "correct:horse;battery,staple";

const CREDENTIAL: &str =
    "credentials: [{name: key, hosts: [api.anthropic.com], secretKeyRef: {name: keys, key: key}}]";
const NAMED: &str = "dataLoss: {values: [{name: db, secretKeyRef: {name: keys, key: db}}]}";

fn holding() -> Models {
    let spec = format!("{CREDENTIAL}\n{NAMED}");
    let with = |setup: Setup| setup.credential("key", KEY).credential("value_db", &format!("{VALUE}\n"));
    models_with(&spec, |seen| reply(seen.path()), with)
}

fn told(text: &str) -> String {
    serde_json::json!({"model": "m", "messages": [{"role": "user", "content": text}]}).to_string()
}

fn reversed(text: &str) -> String {
    text.chars().rev().collect()
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// D8, D18: a value that is known is found in each form, and what looks like it is not.
#[test]
fn a_key_of_the_gateway_and_a_named_value_do_not_reach_a_model() {
    let test = holding();
    let mut rows = Vec::new();
    for (value, detector) in [(KEY, "gateway-credential"), (VALUE, "value:db")] {
        let placeholder = format!("[postern:{detector}]");
        for form in [value.to_owned(), value.to_uppercase(), reversed(value), hex(value)] {
            let sent = told(&format!("it is `{form}` today"));
            rows.push(becomes(MESSAGES, sent, told(&format!("it is `{placeholder}` today"))));
        }
        let coded = BASE64_STANDARD.encode(format!("user:{value}"));
        rows.push(refused(
            MESSAGES,
            format!(r#"{{"model":"m","messages":[{{"role":"user","content":"go"}}],"{value}":1}}"#),
            "agents/test/dataLoss",
        ));
        let asked = test.post(MESSAGES, told(&coded));
        let seen = String::from_utf8(asked.seen().body.clone()).unwrap();
        assert!(seen.contains(&placeholder) && !seen.contains(&coded[12..]), "{seen}");
        rows.push(untouched(MESSAGES, told(&value[..value.len() - 1])));
    }
    test.assert_rows(&rows);
}

/// D8: the same in a body to another host, wherever it is cut; a key is at home where it authenticates.
#[test]
fn a_key_of_the_gateway_and_a_named_value_do_not_reach_another_host() {
    let spec = "credentials: [{name: key, hosts: [api.example.com], secretKeyRef: {name: keys, key: key}}]";
    let test = inspected_with(|set| {
        set.policy(&format!("{}  {spec}\n  {NAMED}\n", setup::policy(&[INSPECT_API])))
            .credential("key", KEY)
            .credential("value_db", VALUE)
    });
    let post = |headers: &[(&str, &str)], body: &str| {
        test.gateway.agent().request("POST", "https://api.example.com/echo", headers, body.as_bytes())
    };
    for value in [KEY, VALUE] {
        let body = format!("{} {value} more", "some words. ".repeat(400));
        post(&[], &body).assert_refused(403, "agents/test/dataLoss");
        let mut connection = test.gateway.agent().tls("api.example.com");
        connection.send("POST /echo HTTP/1.1\r\nHost: api.example.com\r\nTransfer-Encoding: chunked\r\n\r\n");
        for piece in body.as_bytes().chunks(13) {
            let framed = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
            if connection.try_send(framed).is_err() {
                break;
            }
        }
        let _ = connection.try_send("0\r\n\r\n");
        assert_eq!(connection.read_answer().status, 403);
        assert_eq!(post(&[("x-debug", value)], "").status, 403);
        assert_eq!(post(&[], &body.replace(value, &value[1..])).status, 200);
        let left = test.upstream.requests();
        assert!(left.iter().all(|seen| !String::from_utf8_lossy(&seen.body).contains(value)));
    }
    assert_eq!(post(&[("x-api-key", KEY)], "").status, 200);
    assert_eq!(post(&[("x-api-key", VALUE)], "").status, 403);
}

/// A placeholder is no secret, whatever it looks like.
#[test]
fn a_placeholder_that_looks_like_a_secret_is_no_finding() {
    let placeholder = ["glp", "at-Ab3dEf6hIj9kLm2nOp5q"].concat();
    let spec = format!(
        "credentials: [{{name: key, hosts: [api.anthropic.com], placeholder: {placeholder}, secretKeyRef: {{name: keys, key: key}}}}]"
    );
    let test = models_with(&spec, |seen| reply(seen.path()), |setup| setup.credential("key", KEY));
    let other = placeholder.replace("Ab3", "Xy3");
    test.assert_rows(&[
        untouched(MESSAGES, told(&placeholder)),
        becomes(MESSAGES, told(&other), told("[postern:gitlab-token]")),
    ]);
}

/// Unknown means deny: nothing can be searched for a value that nobody knows.
#[test]
fn while_a_named_value_is_not_mounted_nothing_leaves_and_then_work_goes_on() {
    let test = inspected_with(|set| set.policy(&format!("{}  {NAMED}\n", setup::policy(&[INSPECT_API]))));
    let get = || test.gateway.agent().request("POST", "https://api.example.com/echo", &[], b"");
    get().assert_refused(403, "agents/test/dataLoss");
    test.gateway.write("credentials/value_db", VALUE);
    poll("the value is there", || (get().status == 200).then_some(()));
}

/// A policy that names a value which is not there does not come into force.
#[test]
fn a_value_that_is_missing_or_short_is_told_with_its_place() {
    let upstreams = crate::support::Pki::new("Upstream Test CA");
    let with = |value: &str| {
        let policy =
            format!("{}  dataLoss:\n    values:\n      - {{name: db, {value}}}\n", setup::policy(&[]));
        let setup = Setup::new(&upstreams).policy(&policy).variable("SHORT", "1234567");
        std::fs::write(setup.path().join("short"), "1234567").unwrap();
        setup.run(&["gateway", "--config", "settings.yaml"])
    };
    for (value, why) in [
        ("fromEnv: NOWHERE", "the environment variable NOWHERE is not set"),
        ("fromEnv: SHORT", "has fewer than 8 bytes"),
        ("fromFile: nowhere", "cannot be read"),
        ("fromFile: short", "has fewer than 8 bytes"),
    ] {
        let said = with(value);
        assert!(!said.status.success());
        assert!(said.stderr.contains("spec.dataLoss.values[0]: the value: "), "{}", said.stderr);
        assert!(said.stderr.contains(why) && said.stderr.contains(".yaml:10:9:"), "{}", said.stderr);
        assert!(!said.stderr.contains("1234567"));
    }
}
