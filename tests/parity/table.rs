//! The table: policies, the calls of a model under each, and the verdict that every dialect must come to.

use Verdict::{Allow, Audit, Deny, WouldDeny};

/// A policy and one answer under it.
pub(super) struct Case {
    pub(super) title: &'static str,
    /// Lines of the spec of the policy `agents/parity`, beside destinations and provider state.
    pub(super) spec: &'static str,
    pub(super) calls: &'static [Call],
}

pub(super) struct Call {
    pub(super) namespace: Option<&'static str>,
    pub(super) name: &'static str,
    pub(super) input: &'static str,
    pub(super) verdict: Verdict,
}

/// What becomes of a call, and the rule that the event names; a rule without `/` is one of the case's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It passes; with a rule where one allows it.
    Allow(Option<&'static str>),
    /// It is replaced by text.
    Deny(&'static str),
    /// It passes and is recorded.
    Audit(&'static str),
    /// It passes since the policy only records.
    WouldDeny(&'static str),
}

const fn call(name: &'static str, input: &'static str, verdict: Verdict) -> Call {
    Call { namespace: None, name, input, verdict }
}

const fn within(namespace: &'static str, name: &'static str, verdict: Verdict) -> Call {
    Call { namespace: Some(namespace), name, input: r#"{"repository":"acme/tools"}"#, verdict }
}

const WEATHER: &str = r#"{"location":"Zürich \"Höngg\"","days":3,"units":{"metric":true}}"#;

pub(super) const TABLE: &[Case] = &[
    Case { title: "no rule, no call", spec: "", calls: &[] },
    Case {
        title: "no rule",
        spec: "",
        calls: &[call("get_weather", WEATHER, Allow(None)), call("no_input", "{}", Allow(None))],
    },
    Case {
        title: "a name is denied",
        spec: "tools: [{name: no-delete, tools: [delete_file], action: Deny, reason: Nothing is deleted}]",
        calls: &[
            call("delete_file", r#"{"id":7}"#, Deny("no-delete")),
            call("get_weather", WEATHER, Allow(None)),
        ],
    },
    Case {
        title: "the first and the last of three are denied",
        spec: "tools: [{name: no-delete, tools: [delete_file], action: Deny}]",
        calls: &[
            call("delete_file", r#"{"id":1}"#, Deny("no-delete")),
            call("get_weather", WEATHER, Allow(None)),
            call("delete_file", "{}", Deny("no-delete")),
        ],
    },
    Case {
        title: "a rule in CEL over the name of a call",
        spec: "rules: [{name: no-delete, when: 'event.kind == \"ToolCall\" && event.toolCall.name == \"delete_file\"', action: Deny}]",
        calls: &[
            call("delete_file", r#"{"id":7}"#, Deny("no-delete")),
            call("get_weather", WEATHER, Allow(None)),
        ],
    },
    Case {
        title: "a rule in CEL over the length of an input",
        spec: "rules: [{name: short, when: 'event.toolCall.inputBytes > 40', action: Deny}]",
        calls: &[
            call("get_weather", WEATHER, Deny("short")),
            call("get_weather", r#"{"days":1}"#, Allow(None)),
        ],
    },
    Case {
        title: "a rule in CEL over the kinds of a call",
        spec: "rules: [{name: no-runs, when: '\"Shell\" in event.toolCall.kinds', action: Audit}, {name: no-writes, when: '\"Write\" in event.toolCall.kinds', action: Deny}]",
        calls: &[
            call("Bash", r#"{"command":"ls","description":"look"}"#, Audit("no-runs")),
            call("Write", r#"{"file_path":"/workspace/notes.md","content":"ok"}"#, Deny("no-writes")),
            call("Read", r#"{"file_path":"/workspace/notes.md"}"#, Allow(None)),
        ],
    },
    Case {
        title: "a wildcard",
        spec: "tools: [{name: no-shells, tools: ['mcp__shell__*'], action: Deny}]",
        calls: &[
            call("mcp__shell__run", r#"{"line":"ls"}"#, Deny("no-shells")),
            call("mcp__shelf__run", r#"{"line":"ls"}"#, Allow(None)),
        ],
    },
    Case {
        title: "case and width are folded",
        spec: "tools: [{name: no-lookup, tools: [lookup], action: Deny}]",
        calls: &[
            call("LookUp", "{}", Deny("no-lookup")),
            call("ｌｏｏｋｕｐ", "{}", Deny("no-lookup")),
            call("lookups", "{}", Allow(None)),
        ],
    },
    Case {
        title: "kind Shell, a condition on the command",
        spec: r"tools: [{name: no-force, kind: Shell, action: Deny, when: {param: command, operator: Matches, values: ['rm\s+-rf']}}]",
        calls: &[
            call("Bash", r#"{"command":"cd / && rm  -rf .","description":"clean"}"#, Deny("no-force")),
            call("exec_command", r#"{"cmd":"rm -rf /"}"#, Deny("no-force")),
            call("Bash", r#"{"command":"ls -l","description":"look"}"#, Allow(None)),
        ],
    },
    Case {
        title: "a condition cannot be escaped by escapes",
        spec: "tools: [{name: no-sudo, tools: [Bash], action: Deny, when: {param: command, operator: Contains, values: [sudo]}}]",
        calls: &[
            call("Bash", r#"{"command":"s\u0075do id"}"#, Deny("no-sudo")),
            call("Bash", r#"{"c\u006fmmand":"sudo id"}"#, Deny("no-sudo")),
            call("Bash", r#"{"command":"su do"}"#, Allow(None)),
        ],
    },
    Case {
        title: "a path is not within",
        spec: "tools: [{name: stay, tools: [Read], action: Deny, when: {param: file_path, operator: NotWithin, values: [/workspace]}}]",
        calls: &[
            call("Read", r#"{"file_path":"/workspace/../etc/passwd"}"#, Deny("stay")),
            call("Read", r#"{"file_path":"/workspacex/a"}"#, Deny("stay")),
            call("Read", r#"{"file_path":"/workspace/src/main.rs"}"#, Allow(None)),
        ],
    },
    Case {
        title: "the built-in rule about control files",
        spec: "",
        calls: &[
            call(
                "Write",
                r#"{"file_path":"/workspace/.claude/settings.json","content":"{}"}"#,
                Deny("postern/builtin/agent-control-files"),
            ),
            call("Write", r#"{"file_path":"/workspace/notes.md","content":"ok"}"#, Allow(None)),
        ],
    },
    Case {
        title: "kind Fetch, a condition on the URL",
        spec: "tools: [{name: no-metadata, kind: Fetch, action: Deny, when: {param: url, operator: Contains, values: [169.254.169.254]}}]",
        calls: &[
            call("WebFetch", r#"{"url":"http://169.254.169.254/latest","prompt":"x"}"#, Deny("no-metadata")),
            call("WebFetch", r#"{"url":"https://example.com/","prompt":"x"}"#, Allow(None)),
        ],
    },
    Case {
        title: "a namespace",
        spec: "tools: [{name: no-forge, tools: ['forge.*'], action: Deny}]",
        calls: &[
            within("forge", "delete_repository", Deny("no-forge")),
            within("wiki", "delete_page", Allow(None)),
        ],
    },
    Case {
        title: "everything but what is allowed",
        spec: "toolDefault: Deny\ntools: [{name: weather, tools: [get_weather], action: Allow}]",
        calls: &[
            call("get_weather", WEATHER, Allow(Some("weather"))),
            call("Get_Weather", WEATHER, Deny("toolDefault")),
            call("lookup", "{}", Deny("toolDefault")),
        ],
    },
    Case {
        title: "everything but what is allowed by its input",
        spec: "toolDefault: Deny\ntools: [{name: tests, kind: Shell, action: Allow, when: {param: command, operator: StartsWith, values: ['cargo test']}}]",
        calls: &[
            call("Bash", r#"{"command":"cargo test --lib"}"#, Allow(Some("tests"))),
            call("Bash", r#"{"command":"cargo run"}"#, Deny("toolDefault")),
        ],
    },
    Case {
        title: "numbers, booleans and arrays by value",
        spec: "tools: [{name: no-storm, tools: [mail], action: Deny, when: {all: [{param: count, operator: Equals, values: [1000]}, {param: options.force, operator: Equals, values: [true]}, {param: to, operator: Contains, values: [everyone]}]}}]",
        calls: &[
            call(
                "mail",
                r#"{"count":1000,"options":{"force":true},"to":["a","everyone"]}"#,
                Deny("no-storm"),
            ),
            call("mail", r#"{"count":1000,"options":{"force":false},"to":["a","everyone"]}"#, Allow(None)),
        ],
    },
    Case {
        title: "an audit rule",
        spec: "tools: [{name: watched, tools: [get_weather], action: Audit, reason: Somebody wants to know}]",
        calls: &[call("get_weather", WEATHER, Audit("watched"))],
    },
    Case {
        title: "a policy in Audit",
        spec: "enforcement: Audit\ntools: [{name: no-mail, tools: [send_mail], action: Deny}]",
        calls: &[
            call("send_mail", r#"{"id":7}"#, WouldDeny("no-mail")),
            call("get_weather", WEATHER, Allow(None)),
        ],
    },
    Case {
        title: "calls inside a wrapper",
        spec: "tools: [{name: no-delete, tools: [delete_file], action: Deny}]",
        calls: &[
            call(
                "multi_tool_use.parallel",
                r#"{"tool_uses":[{"recipient_name":"functions.get_weather","parameters":{}},{"recipient_name":"functions.delete_file","parameters":{"id":7}}]}"#,
                Deny("no-delete"),
            ),
            call(
                "multi_tool_use.parallel",
                r#"{"tool_uses":[{"recipient_name":"functions.get_weather","parameters":{}},{"recipient_name":"functions.read_file","parameters":{"id":7}}]}"#,
                Allow(None),
            ),
        ],
    },
];

impl Verdict {
    /// Whether the call goes on to the agent.
    pub(super) fn passes(self) -> bool {
        !matches!(self, Deny(_))
    }

    /// The word in the event.
    pub(super) fn word(self) -> &'static str {
        match self {
            Allow(_) => "Allow",
            Deny(_) => "Deny",
            Audit(_) => "Audit",
            WouldDeny(_) => "WouldDeny",
        }
    }

    /// The id of the rule in the event.
    pub(super) fn rule(self) -> Option<String> {
        let rule = match self {
            Allow(rule) => rule?,
            Deny(rule) | Audit(rule) | WouldDeny(rule) => rule,
        };
        Some(if rule.contains('/') { rule.to_owned() } else { format!("agents/parity/{rule}") })
    }
}
