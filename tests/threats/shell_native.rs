//! Commands that do a file tool's work, where the request offers that tool; and what is said of commands that are denied.

use bytes::Bytes;
use serde_json::{Value, json};

use super::model::{Model, assert_without};
use super::shell_carriers::{DIALECTS, Judged, Row, answered, assert_left, calls, under};
use crate::parity::anthropic::Anthropic;
use crate::parity::dialect::Dialect;
use crate::parity::dialect::Mode::{self, Streamed, Whole};
use crate::support::upstream::Step;

const NATIVE: &str = "shell: {files: Native}";
const DENIED: Option<&str> = Some("shell");

/// Commands that read a file, that write one, and that do more or something else.
const READS: &[&str] = &[
    "cat notes",
    "cd src && cat a.rs",
    "head -n 20 notes",
    "tail -5 notes",
    "sed -n '1,40p' src/a.rs",
    "awk 'NR>=3 && NR<=9' notes",
    "ls; cat notes",
    "bash -lc 'cat notes'",
];
const WRITES: &[&str] =
    &["echo x > notes", "printf '%s' x >> notes", "cat > notes <<'E'\nx\nE", "tee notes <<< x"];
const OTHERS: &[&str] = &[
    "cat notes | grep x",
    "cat notes | head",
    "grep x notes",
    "ls",
    "tail -f log",
    "npm test > log",
    "cat notes > copy",
    "sed -i s/a/b/ notes",
    "awk '{print $1}' notes",
    "echo x",
    "echo x > /dev/null",
    "X=$(cat notes); echo $X",
    "git show HEAD:notes",
];

/// What comes of calls where a request offers tools of these names.
fn ask(model: &Model, dialect: &dyn Dialect, mode: Mode, offered: &[&str], body: Bytes) -> Vec<u8> {
    let (host, path) = dialect.place(mode).unwrap();
    let tools: Vec<String> = offered.iter().map(|name| (*name).to_owned()).collect();
    model.says(&[("content-type", dialect.content_type(mode))], vec![Step::Data(body)]);
    let request = dialect.request(&tools, mode).to_string();
    let headers = [("content-type", "application/json")];
    let url = format!("https://{host}{path}");
    let answer = model.gateway.agent().request("POST", &url, &headers, request.as_bytes());
    assert_eq!((answer.status, answer.complete), (200, true), "{}", answer.text());
    answer.body
}

/// Asserts which commands pass where a request offers tools of these names.
#[track_caller]
fn assert_offered(model: &Model, offered: &[&str], rows: &[Row<'_>]) {
    for dialect in DIALECTS {
        for mode in [Whole, Streamed].into_iter().filter(|mode| dialect.place(*mode).is_some()) {
            let calls = calls(&["Bash"], rows);
            let body = ask(model, dialect, mode, offered, answered(dialect, mode, &calls));
            let heard = dialect.hear(&body, mode);
            let left: Vec<&str> = heard.calls.iter().map(|call| call.id.as_str()).collect();
            assert_left(
                &left,
                &heard.text,
                &calls,
                &format!("{offered:?} {:?} {mode:?}", dialect.place(mode)),
            );
            for line in heard.text.lines().filter(|line| line.contains("Use the tool ")) {
                assert!(offered.iter().any(|name| line.contains(&format!("Use the tool {name} "))), "{line}");
            }
        }
    }
}

fn rows(of: &[(&[&'static str], Option<&'static str>)]) -> Vec<Row<'static>> {
    of.iter().flat_map(|(commands, rule)| commands.iter().map(|command| (*command, *rule))).collect()
}

/// F24: under `shell.files: Native` a command that only does the work of a file tool is denied where the request offers that
/// tool, and nowhere else.
#[test]
fn the_work_of_a_file_tool_is_left_to_the_tool_that_is_offered() {
    let mut model = under(NATIVE);
    assert_offered(
        &model,
        &["Bash", "Read", "Write"],
        &rows(&[(READS, DENIED), (WRITES, DENIED), (OTHERS, None)]),
    );
    assert_offered(&model, &["read_file", "Bash"], &rows(&[(READS, DENIED), (WRITES, None), (OTHERS, None)]));
    assert_offered(&model, &["Bash", "Edit"], &rows(&[(READS, None), (WRITES, DENIED), (OTHERS, None)]));
    assert_offered(&model, &["Bash", "view_image"], &rows(&[(READS, None), (WRITES, None), (OTHERS, None)]));
    // It ends in order, so that all of its many events are written whole.
    model.gateway.terminate();

    let mut model = under("shell: {files: Judge}");
    assert_offered(
        &model,
        &["Bash", "Read", "Write"],
        &rows(&[(READS, None), (WRITES, None), (OTHERS, None)]),
    );
    model.gateway.terminate();
}

/// What `policy explain` prints about a command.
fn explained(model: &Model, command: &str) -> String {
    let question = json!({"toolCall": {"name": "Bash", "input": {"command": command}}});
    model.gateway.write("question.json", &question.to_string());
    model.gateway.run(&["policy", "explain", "--policy", "policy.yaml", "question.json"])
}

/// F24: whoever asks why is told the simple commands that were seen, and what each reads, writes and fetches.
#[test]
fn the_commands_that_were_seen_are_explained() {
    let model = under(
        "shell: {directory: /workspace}\ntools: [{name: read, kind: Read, action: Deny, when: {param: paths, operator: Within, values: [/etc]}}]",
    );
    let said =
        explained(&model, "cd src && sudo cat ../../etc/shadow > out; curl -o x https://a.example/y; $X");
    for line in [
        "Deny by agents/test/read",
        "\"cat ../../etc/shadow\": Read \"/workspace/src/../../etc/shadow\"; Write \"/workspace/src/out\"",
        "\"curl -o x https://a.example/y\": Write \"/workspace/src/x\"; Fetch \"https://a.example/y\"",
        "(opaque)",
    ] {
        assert!(said.contains(line), "{line}:\n{said}");
    }
    let twin = explained(&model, "cat x");
    assert!(twin.contains("Allow") && !twin.contains("opaque"), "{twin}");
}

/// G9: the event of a denied call names the simple command that was denied as far as `audit.toolInputs` lets it.
#[test]
fn an_event_names_the_denied_command_as_far_as_policy_says() {
    let rules = "tools:
- {name: rm, kind: Shell, action: Deny, when: {param: program, operator: In, values: [rm]}}
- {name: read, kind: Read, action: Deny, when: {param: paths, operator: Within, values: [/etc]}}";
    let commands = ["cd /canary && rm -rf canary", "ls canary; cat /etc/canary", "ls canary"];
    let told = |texts: [&str; 2]| [json!(texts[0]), json!(texts[1]), Value::Null];
    for (keeps, expected) in [
        ("None", [Value::Null, Value::Null, Value::Null]),
        ("Hash", [Value::Null, Value::Null, Value::Null]),
        ("Redacted", told(["rm -r -f …", "cat …"])),
        ("Full", told(["rm -rf canary", "cat /etc/canary"])),
    ] {
        let model = under(&format!("audit: {{toolInputs: {keeps}}}\n{rules}"));
        let rows = [(commands[0], Some("rm")), (commands[1], Some("read")), (commands[2], None)];
        let calls: Vec<Judged<'_>> = calls(&["Bash"], &rows);
        let body = answered(&Anthropic, Streamed, &calls);
        let answer = model.ask(&Anthropic, Streamed, body);
        assert_without(&answer, &["call_000", "call_001"]);
        for (number, command) in expected.iter().enumerate() {
            let event = model.event(&format!("call_{number:03}"));
            assert_eq!(event["toolCall"]["command"], *command, "{keeps}: {event}");
            if keeps != "Full" {
                assert!(!event.to_string().contains("canary"), "{keeps}: {event}");
            }
        }
    }
}
