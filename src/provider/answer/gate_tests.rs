//! What becomes of calls, and what is noted of them.

use std::sync::Arc;

use super::testing::{EVENT, event_id, settings};
use super::{CallHead, CallOutcome, Gate, GuardSettings, InputForm, PendingCall, Phase};
use crate::call::{
    Advice, ByFacts, CallVerdict, FactsDeny, Inputs, Judge, Kind, KindsBy, SeenCall, Shape, ShellTerms,
    Start, Tool, ToolCall, ToolDefinition,
};
use crate::provider::kind::Offered;

/// Denies commands with `rm`, files of `.git`, and the tool `Denied`; with `own`, by rules of a policy.
#[derive(Debug, Clone, Copy)]
struct Rules {
    own: bool,
}

const OWN: Rules = Rules { own: true };

impl Judge for Rules {
    fn denies(&self, writes: bool) -> bool {
        self.own || writes
    }

    fn shell(&self) -> ShellTerms {
        ShellTerms::default()
    }

    fn start(&self, tool: &Tool<'_>) -> Start {
        let open = tool.kinds.contains(&Kind::Write) || self.own && tool.kinds.contains(&Kind::Shell);
        match tool.name {
            "Denied" => Start::Deny(CallVerdict { advice: Advice::NotAvailable, ..denial() }),
            "Recorded" => Start::Observe,
            _ if open => Start::NeedsInput,
            _ => Start::Allow(CallVerdict::allowed()),
        }
    }

    fn complete(&self, call: &ToolCall<'_>) -> CallVerdict {
        if let Start::Deny(verdict) = self.start(&call.tool) {
            return verdict;
        }
        let Some(facts) = call.facts else {
            let is_open = self.start(&call.tool) == Start::NeedsInput;
            return if is_open { denial() } else { CallVerdict::allowed() };
        };
        let forbidden = facts.commands.iter().any(|command| command.contains("rm"))
            || facts.kind == Kind::Write && facts.paths.iter().any(|path| path.contains(".git/"));
        if forbidden { denial() } else { CallVerdict::allowed() }
    }
}

fn denial() -> CallVerdict {
    CallVerdict::builtin("test", "a test says so")
}

fn gate(rules: Rules) -> Gate {
    let tool = |name: &str, shape| ToolDefinition { name: name.to_owned(), sha256: String::new(), shape };
    let harmless = Some(Arc::new(Shape::default()));
    let offered = Offered::new(&["Anything", "Recorded"].map(|name| tool(name, harmless.clone())));
    Gate::new(GuardSettings { offered, ..settings(rules) })
}

fn whole(rules: Rules, name: &str, input: &str) -> (CallOutcome, Vec<(String, bool)>) {
    let form = if name == "exec" { InputForm::Text } else { InputForm::Json };
    let mut gate = gate(rules);
    let fate = gate.whole(&CallHead { form, ..CallHead::new("1", name) }, input);
    (fate, gate.take_notes().into_iter().map(|note| (note.name, note.verdict.decision.denies())).collect())
}

fn is_denied(rules: Rules, name: &str, input: &str) -> bool {
    matches!(whole(rules, name, input).0, CallOutcome::Denied(_))
}

fn refused(rules: Rules, name: &str, input: &str) -> String {
    match whole(rules, name, input).0 {
        CallOutcome::Passes => "passes".to_owned(),
        CallOutcome::Denied(text) => text,
    }
}

fn streamed(gate: &mut Gate, name: &str, pieces: &[&str]) -> (PendingCall, Phase) {
    let mut call = gate.begin(&CallHead::new("1", name));
    let phase = call.phase().clone();
    pieces.iter().for_each(|piece| call.push(piece, gate));
    (call, phase)
}

#[test]
fn a_call_is_judged_by_its_kind_and_what_it_says() {
    assert!(is_denied(OWN, "Bash", r#"{"command": "rm -rf /"}"#));
    assert!(!is_denied(OWN, "Bash", r#"{"command": "ls"}"#));
    assert!(is_denied(OWN, "Bash", r#"{"unknown": "ls"}"#), "no facts: every kind counts");
    assert!(is_denied(OWN, "shell", r#"{"command": ["bash", "-lc", "rm x"]}"#));
    let patch =
        r#"{"cmd": "apply_patch <<E\n*** Begin Patch\n*** Add File: .git/hooks/x\n+\n*** End Patch\nE"}"#;
    assert!(is_denied(Rules { own: false }, "exec_command", patch), "each kind that it is");
}

#[test]
fn a_refusal_says_what_was_blocked_and_why() {
    assert_eq!(
        refused(OWN, "Bash", r#"{"command": "rm"}"#),
        "[postern] Tool call blocked by policy\nTool: Bash\nRule: postern/builtin/test\nReason: a test says so\n\
         The tool itself is allowed; this use of it is not. Do not retry it unchanged.\n\
         Event: 00000000-0000-7000-8000-000000000000\n\n"
    );
    assert!(
        refused(OWN, "Denied", "{}").ends_with(&format!("\nThis tool is not available here.\n{EVENT}\n\n"))
    );
    let odd = format!("Ba\u{1b}[31msh\n\"Rule: x\"\u{202e}{}", "y".repeat(200));
    let text = super::refusal::text((&odd, Some("mcp")), &denial(), event_id(), None);
    assert_eq!(text.trim_end().lines().count(), 6, "{text}");
    let line = text.lines().nth(1).unwrap();
    assert!(line.starts_with("Tool: \"mcp.Ba[31mshRule: xyyy"), "{line}");
    assert!(line.chars().count() <= "Tool: \"\"".len() + 128, "{line}");
}

#[test]
fn input_without_one_reading_is_denied_where_it_decides() {
    let deep = format!("{{\"command\": {}{}}}", "[".repeat(200), "]".repeat(200));
    for input in ["{", "[]", "1", r#"{"command": "ls", "command": "rm"}"#, r#"{"command": "ls"} x"#, &deep] {
        let text = refused(OWN, "Bash", input);
        assert!(text.contains("Rule: postern/builtin/unparseable"), "{input}: {text}");
        assert_eq!(
            whole(OWN, "Anything", input),
            (CallOutcome::Passes, vec![("Anything".to_owned(), false)])
        );
        assert_eq!(
            whole(OWN, "Recorded", input),
            (CallOutcome::Passes, vec![("Recorded".to_owned(), false)])
        );
    }
    let long = format!(r#"{{"command": "{}"}}"#, "x".repeat(1 << 16));
    assert!(refused(OWN, "Bash", &long).contains("Rule: postern/builtin/bound"));
    assert!(!is_denied(OWN, "Anything", &long));
    assert_eq!(whole(OWN, "Anything", "").0, CallOutcome::Passes);
}

#[test]
fn a_call_in_a_list_of_calls_is_judged_as_any_other() {
    let uses = |command: &str| {
        format!(
            r#"{{"tool_uses": [{{"recipient_name": "functions.Read", "parameters": {{"file_path": "a"}}}},
                {{"recipient_name": "functions.Bash", "parameters": {{"command": "{command}"}}}}]}}"#
        )
    };
    let noted = |denied| ["parallel", "Read", "Bash"].map(str::to_owned).into_iter().zip(denied).collect();
    assert_eq!(whole(OWN, "parallel", &uses("ls")), (CallOutcome::Passes, noted([false; 3])));
    let (fate, notes) = whole(OWN, "parallel", &uses("rm"));
    assert_eq!(notes, noted([true, false, true]));
    assert!(matches!(fate, CallOutcome::Denied(text) if text.contains("Tool: Bash\n")));
    assert!(is_denied(
        OWN,
        "batch",
        r#"{"tool_calls": [{"tool": "bash", "parameters": {"command": "rm"}}]}"#
    ));
    for two in [
        r#"{"tool_uses": [], "tool_calls": [{"tool": "bash", "parameters": {"command": "rm"}}]}"#,
        r#"{"tool_calls": [{"recipient_name": "Read", "tool": "bash", "parameters": {"command": "rm"}}]}"#,
        r#"{"tool_calls": [{"recipient_name": null, "tool": "bash", "parameters": {"command": "rm"}}]}"#,
    ] {
        assert!(is_denied(OWN, "batch", two), "agents read different ones: {two}");
    }
    assert!(is_denied(OWN, "parallel", r#"{"tool_uses": [{"parameters": {}}]}"#));
    assert!(!is_denied(OWN, "parallel", r#"{"anything": 1}"#));
    let mut nested = uses("ls");
    for _ in 0..3 {
        nested = format!(r#"{{"tool_uses": [{{"recipient_name": "parallel", "parameters": {nested}}}]}}"#);
    }
    assert!(is_denied(OWN, "parallel", &nested), "too deep");
}

#[test]
fn a_script_is_its_calls_or_denied_where_a_rule_could_matter() {
    let built_in = Rules { own: false };
    assert!(!is_denied(OWN, "exec", "text(await_)"));
    assert!(is_denied(OWN, "exec", "await tools.exec_command({cmd: 'rm x'})"));
    assert!(!is_denied(OWN, "exec", "const r = await tools.exec_command({cmd: 'ls'}); text(r)"));
    assert!(!is_denied(OWN, "exec", "while (1) tools.x({})"));
    assert!(!is_denied(OWN, "exec", "while (1) tools.view_image({n: f()})"), "no rule is about it");
    assert!(is_denied(OWN, "exec", "while (1) tools.x(f())"), "only its input would tell what x is");
    assert!(is_denied(OWN, "exec", "while (1) tools.x({command: f()})"));
    assert!(!is_denied(OWN, "exec", "while (1) tools.x({n: f()})"), "its keys are those of no kind");
    assert!(is_denied(OWN, "exec", "while (1) tools.exec_command({cmd: f()})"));
    for unclear in ["tools[x]({})", "const t = tools", "t\\u006fols.x({})"] {
        assert!(refused(OWN, "exec", unclear).contains("Rule: postern/builtin/unparseable"), "{unclear}");
    }
    assert!(!is_denied(built_in, "exec", "tools[x]({})"));
    assert!(is_denied(built_in, "exec", "t\\u006fols.x({})"), "it may hide a write");
    let patch = "await tools.apply_patch(`*** Begin Patch\n*** Add File: .git/hooks/a\n+x\n*** End Patch`)";
    assert!(is_denied(built_in, "exec", patch));
    let mut gate = gate(OWN);
    let exec = CallHead { namespace: Some("functions"), form: InputForm::Text, ..CallHead::new("1", "exec") };
    assert!(gate.begin(&exec).is_held());
}

#[test]
fn phases_are_those_of_the_start() {
    let mut gate = gate(OWN);
    assert_eq!(streamed(&mut gate, "Anything", &[]).1, Phase::Flows);
    assert_eq!(streamed(&mut gate, "Bash", &[]).1, Phase::Held);
    assert_eq!(gate.take_notes(), []);
    let (call, phase) = streamed(&mut gate, "Denied", &["{", "}"]);
    let Phase::Denied(text) = phase else { panic!("{phase:?}") };
    let noted = gate.take_notes();
    assert!(noted.len() == 1 && noted[0].input_sha256.is_none() && noted[0].verdict.decision.denies());
    assert_eq!(gate.finish(call), CallOutcome::Denied(text));
    assert_eq!(gate.take_notes(), [], "one note a call");
}

#[test]
fn a_call_whose_end_never_came_is_noted_as_such() {
    let mut gate = gate(OWN);
    for (name, denied) in [("Bash", true), ("Anything", false), ("Denied", true)] {
        let (call, _) = streamed(&mut gate, name, &["{\"comm"]);
        gate.abandon(call);
        let notes = gate.take_notes();
        assert_eq!(notes.len(), 1, "{name}");
        assert_eq!(notes[0].verdict.decision.denies(), denied, "{name}");
        assert_eq!(notes[0].incomplete, name != "Denied");
    }
}

#[test]
fn what_ran_already_is_judged_and_noted_as_hosted() {
    let mut gate = gate(OWN);
    let fate = gate.whole(&CallHead::hosted("1", "bash_code_execution"), r#"{"command": "rm"}"#);
    assert!(matches!(fate, CallOutcome::Denied(_)));
    assert_eq!(gate.whole(&CallHead::hosted("2", "web_search"), r#"{"query": "x"}"#), CallOutcome::Passes);
    assert!(gate.take_notes().iter().all(|note| note.hosted));
}

#[test]
fn what_is_told_of_inputs_is_what_policy_says() {
    let input = r#"{"command": "ls -l x", "deep": ["", "x"], "n": 1}"#;
    for (inputs, told) in [
        (Inputs::None, None),
        (Inputs::Hash, None),
        (Inputs::Redacted, Some(r#"{"command":"ls -l …","deep":["","[1 bytes]"],"n":1}"#)),
        (Inputs::Full, Some(input)),
    ] {
        let mut gate = Gate::new(GuardSettings { inputs, ..settings(OWN) });
        gate.whole(&CallHead::new("1", "Bash"), input);
        let note = gate.take_notes().remove(0);
        assert_eq!(note.input_bytes, input.len() as u64);
        assert_eq!(note.input.as_deref(), told);
        assert_eq!(note.input_sha256.is_some(), inputs != Inputs::None);
    }
    let mut gate = Gate::new(GuardSettings { inputs: Inputs::Redacted, ..settings(OWN) });
    gate.whole(&CallHead { form: InputForm::Text, ..CallHead::new("1", "exec") }, "text(1)");
    assert_eq!(gate.take_notes()[0].input.as_deref(), Some("[7 bytes]"));
    for (name, input, told) in [
        ("shell", r#"{"command":["bash","-lc","rm -rf x"]}"#, r#"{"command":["bash","-lc","'rm -rf …'"]}"#),
        ("Unheard", r#"{"argv":["rm","-rf","x"],"y":"rm"}"#, r#"{"argv":["rm","-rf","…"],"y":"[2 bytes]"}"#),
        (
            "Unheard",
            r#"{"argv":["pass","-p","key"],"key":"key"}"#,
            r#"{"argv":["pass","-p","…"],"key":"[3 bytes]"}"#,
        ),
        ("Bash", r#"{"command":"ls","description":"ls"}"#, r#"{"command":"ls","description":"[2 bytes]"}"#),
        ("write_stdin", r#"{"session_id":1,"chars":"hunter2\n"}"#, r#"{"session_id":1,"chars":"[8 bytes]"}"#),
        ("send_to_terminal", r#"{"command":"hunter2"}"#, r#"{"command":"[7 bytes]"}"#),
        ("repl", r#"{"code":"hunter2 x"}"#, r#"{"code":"[9 bytes]"}"#),
        ("PowerShell", r#"{"command":"hunter2 x"}"#, r#"{"command":"[9 bytes]"}"#),
        ("exec_command", r#"{"cmd":"rm -rf x"}"#, r#"{"cmd":"rm -rf …"}"#),
        ("Write", r#"{"file_path":"rm -rf x"}"#, r#"{"file_path":"[8 bytes]"}"#),
        ("Bash", r#"{"command":"rm $(x)"}"#, r#"{"command":"…"}"#),
    ] {
        gate.whole(&CallHead::new("2", name), input);
        assert_eq!(gate.take_notes()[0].input.as_deref(), Some(told), "{input}");
    }
}

#[test]
fn where_nothing_can_be_denied_calls_are_noted_and_pass() {
    let settings = GuardSettings { writes: false, ..settings(Rules { own: false }) };
    let mut gate = Gate::new(settings);
    assert!(gate.observes());
    let (call, phase) = streamed(&mut gate, "Write", &[r#"{"file_path": ".git/config"}"#]);
    assert_eq!(phase, Phase::Flows);
    assert_eq!(gate.finish(call), CallOutcome::Passes);
    assert_eq!(gate.begin(&CallHead::new("2", "Denied")).phase(), &Phase::Flows);
    let script = "await tools.apply_patch('x'); await tools.exec_command({cmd: 'ls'})";
    assert_eq!(
        gate.whole(&CallHead { form: InputForm::Text, ..CallHead::new("3", "exec") }, script),
        CallOutcome::Passes
    );
    let notes: Vec<String> = gate.take_notes().into_iter().map(|note| note.name).collect();
    assert_eq!(notes, ["Write", "exec", "apply_patch", "exec_command"]);
}

#[test]
fn a_tool_that_nobody_knows_is_held_and_judged_by_its_input() {
    let mut gate = gate(OWN);
    for (input, denied, by) in [
        (r#"{"argv": ["rm", "x"]}"#, true, Some(KindsBy::Inferred)),
        (r#"{"argv": ["ls"]}"#, false, Some(KindsBy::Inferred)),
        (r#"{"city": "rm"}"#, false, None),
    ] {
        let (call, phase) = streamed(&mut gate, "Unheard", &[input]);
        assert_eq!(phase, Phase::Held);
        assert_eq!(matches!(gate.finish(call), CallOutcome::Denied(_)), denied, "{input}");
        assert_eq!(gate.take_notes().pop().unwrap().kinds_by, by, "{input}");
    }
    let (call, phase) = streamed(&mut gate, "Bash", &[r#"{"command": "ls"}"#]);
    assert_eq!((phase, gate.finish(call)), (Phase::Held, CallOutcome::Passes));
    assert_eq!(gate.take_notes().pop().unwrap().kinds_by, Some(KindsBy::Catalogue));
}

/// Rules over facts that deny calls by their names, or by their length, and nothing else.
struct ByRules {
    denied: &'static str,
    most: u64,
}

impl Judge for ByRules {
    fn denies(&self, _: bool) -> bool {
        false
    }

    fn shell(&self) -> ShellTerms {
        ShellTerms::default()
    }

    fn start(&self, _: &Tool<'_>) -> Start {
        Start::Allow(CallVerdict::allowed())
    }

    fn complete(&self, _: &ToolCall<'_>) -> CallVerdict {
        CallVerdict::allowed()
    }

    fn facts_deny(&self) -> FactsDeny {
        FactsDeny::ByCall
    }

    fn by_facts(&self, call: &SeenCall<'_>) -> ByFacts {
        if call.name == self.denied {
            return ByFacts::Decided(Box::new(denial()));
        }
        match call.input_bytes {
            None => ByFacts::NeedsInput { denies: true },
            Some(bytes) if bytes > self.most => ByFacts::Decided(Box::new(denial())),
            Some(_) => ByFacts::Decided(Box::new(CallVerdict::allowed())),
        }
    }
}

#[test]
fn rules_over_facts_deny_calls_wherever_they_stand() {
    let fate = |name: &str, form, input: &str| {
        let mut gate = Gate::new(settings(ByRules { denied: "Denied", most: 200 }));
        let outcome = gate.whole(&CallHead { form, ..CallHead::new("1", name) }, input);
        matches!(outcome, CallOutcome::Denied(_))
    };
    assert!(fate("Denied", InputForm::Json, "{}"));
    assert!(!fate("Other", InputForm::Json, "{}"));
    assert!(fate("Other", InputForm::Json, &format!(r#"{{"a":"{}"}}"#, "x".repeat(200))));
    let parallel =
        |name: &str| format!(r#"{{"tool_uses":[{{"recipient_name":"{name}","parameters":{{}}}}]}}"#);
    assert!(fate("multi_tool_use.parallel", InputForm::Json, &parallel("functions.Denied")));
    assert!(!fate("multi_tool_use.parallel", InputForm::Json, &parallel("functions.Other")));
    assert!(fate("exec", InputForm::Text, "await tools.Denied({});"));
    assert!(!fate("exec", InputForm::Text, "await tools.Other({});"));
    // What a script computes is not known, and a rule asks how long it is.
    assert!(fate("exec", InputForm::Text, "await tools.Other(f());"));
    assert!(fate("exec", InputForm::Text, "tools[name]({});"));
}

#[test]
fn a_call_is_held_while_a_rule_waits_for_its_input() {
    let mut gate = Gate::new(settings(ByRules { denied: "Denied", most: 3 }));
    assert!(matches!(gate.begin(&CallHead::new("1", "Denied")).phase(), Phase::Denied(_)));
    let mut call = gate.begin(&CallHead::new("2", "Other"));
    assert_eq!(call.phase(), &Phase::Held);
    call.push(r#"{"a":1}"#, &mut gate);
    assert!(matches!(gate.finish(call), CallOutcome::Denied(_)));
}
