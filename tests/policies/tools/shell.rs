//! What the commands of a Shell call do, against rules of every kind, and the section `shell`.

use postern::call::{CallVerdict, Facts, Input, Judge, Kind, ShellFacts, SimpleCommand, Tool, ToolCall};
use postern::policy::{Labels, Policy, document};
use serde_json::json;

use super::{audit, cluster, namespaced, policy, ruled, rules, said, started};

/// A simple command as a small reader takes it: `cat`, `> ` and `curl` do something beside running.
fn command(number: usize, text: &str) -> (SimpleCommand, Option<Facts<'static>>) {
    let fact = |kind| Facts { derived_from: Some(number), ..Facts::new(kind) };
    let (program, operand) = text.split_once(' ').unwrap_or((text, ""));
    let named = || vec![operand.to_owned().into()];
    let facts = match program {
        "cat" => Some(Facts { paths: named(), ..fact(Kind::Read) }),
        ">" => Some(Facts { paths: named(), ..fact(Kind::Write) }),
        "curl" => Some(Facts { urls: named(), ..fact(Kind::Fetch) }),
        _ => None,
    };
    let emulates = facts.as_ref().map(|facts| facts.kind).filter(|kind| *kind == Kind::Read);
    let command = SimpleCommand {
        text: text.to_owned(),
        program: Some(program.to_owned().into()),
        changes_directory: program == "cd",
        emulates,
        file_tool: emulates.filter(|_| text.ends_with(".txt")).map(|_| "Read".to_owned()),
        ..SimpleCommand::default()
    };
    (command, facts)
}

fn verdict(policy: &Policy, name: &str, text: &str) -> CallVerdict {
    let read: Vec<_> = text.split(" && ").enumerate().map(|(number, text)| command(number, text)).collect();
    let derived: Vec<Facts<'_>> = read.iter().filter_map(|(_, facts)| facts.clone()).collect();
    let commands = read.into_iter().map(|(command, _)| command).collect();
    let facts = Facts {
        commands: vec![text.into()],
        shell: Some(ShellFacts { commands, ..ShellFacts::default() }),
        ..Facts::new(Kind::Shell)
    };
    let input = json!({ "command": text });
    let tool = Tool { kinds: &[Kind::Shell], ..Tool::named(name) };
    policy.complete(&ToolCall { tool, input: Input::Json(&input), facts: Some(&facts), derived: &derived })
}

/// The verdict, and the command that is denied.
fn decide(policy: &Policy, text: &str) -> String {
    let verdict = verdict(policy, "Bash", text);
    let command = verdict.command.as_ref().map(|command| format!(" by {}", command.text));
    said(&verdict) + &command.unwrap_or_default()
}

#[track_caller]
fn expect(policy: &Policy, table: &str) {
    super::super::compare(table, |text| decide(policy, text));
}

#[test]
fn what_commands_read_write_and_fetch_meets_rules_that_deny() {
    let policy = rules(&[
        "{name: read, kind: Read, action: Deny, when: {param: paths, operator: NotWithin, values: [/workspace]}}",
        "{name: write, kind: Write, action: Deny, when: {param: paths, operator: Within, values: [/etc]}}",
        "{name: fetch, kind: Fetch, action: Deny, when: {param: url, operator: NotHostIn, values: [a.example]}}",
        "{name: shell, kind: Shell, action: Deny, when: {param: command, operator: StartsWith, values: [git push]}}",
    ]);
    expect(
        &policy,
        "
        cat /etc/shadow = Deny agents/p/read by cat /etc/shadow
        ls && cat /etc/shadow = Deny agents/p/read by cat /etc/shadow
        cat /workspace/x = Allow
        cat x = Allow
        > /etc/hosts = Deny agents/p/write by > /etc/hosts
        > /workspace/x = Allow
        curl https://b.example/ = Deny agents/p/fetch by curl https://b.example/
        curl https://a.example/ = Allow
        cd /x && git push origin main = Deny agents/p/shell by git push origin main
        git status && ls = Allow
        > /workspace/.claude/settings.json = Deny postern/builtin/agent-control-files by > /workspace/.claude/settings.json
        cat /workspace/.claude/settings.json = Allow
        ",
    );
    assert_eq!(started(&policy, "Bash"), "held");
}

#[test]
fn what_commands_do_allows_nothing() {
    let policy = policy(&[namespaced(
        "p",
        "toolDefault: Deny
        tools: [{name: read, kind: Read, action: Allow}, {name: npm, kind: Shell, action: Allow, when: {param: command, operator: StartsWith, values: [npm test]}}]",
    )]);
    expect(
        &policy,
        "
        cat /workspace/x = Deny agents/p/toolDefault
        npm test = Allow agents/p/npm
        cd /w && npm test = Allow agents/p/npm
        npm test && curl https://a.example/ = Deny agents/p/toolDefault
        npm test && cat x = Deny agents/p/toolDefault
        ",
    );
}

#[test]
fn a_rule_that_names_a_control_file_lifts_the_built_in_one_for_commands_too() {
    let policy = rules(&[
        "{name: mcp, kind: Write, action: Allow, when: {param: paths, operator: Equals, values: [/w/.mcp.json]}}",
        "{name: all, kind: Write, action: Allow}",
    ]);
    expect(
        &policy,
        "
        > /w/.mcp.json = Allow
        > /w/.mcp.json && > /w/.bashrc = Deny postern/builtin/agent-control-files by > /w/.bashrc
        > /x/.mcp.json = Deny postern/builtin/agent-control-files by > /x/.mcp.json
        ",
    );
}

#[test]
fn audit_rules_record_what_commands_do_once() {
    let policy = rules(&["{name: net, kind: Fetch, action: Audit}"]);
    expect(
        &policy,
        "
        curl https://a.example/ && curl https://b.example/ = Allow + Audit agents/p/net
        ls = Allow
        ",
    );
    let own = rules(&["{name: net, kind: Fetch, action: Deny}"]);
    expect(&own, "ls && curl https://a.example/ = Deny agents/p/net by curl https://a.example/");
    let recorded = super::policy(&[audit(&namespaced(
        "p",
        "tools: [{name: net, kind: Fetch, action: Deny}, {name: read, kind: Read, action: Deny}]",
    ))]);
    expect(&recorded, "curl https://a.example/ = WouldDeny agents/p/net by curl https://a.example/");
}

#[test]
fn ignore_leaves_the_built_in_rule_alone() {
    let spec = "shell: {files: Ignore}
        tools: [{name: read, kind: Read, action: Deny}]";
    let own = policy(&[namespaced("p", spec)]);
    expect(
        &own,
        "
        cat /etc/shadow = Allow
        > /w/.bashrc = Deny postern/builtin/agent-control-files by > /w/.bashrc
        ",
    );
    let stricter = policy(&[namespaced("p", spec), cluster("c", "shell: {files: Judge}")]);
    expect(&stricter, "cat /etc/shadow = Deny agents/p/read by cat /etc/shadow");
    let recorded = policy(&[namespaced("p", spec), audit(&cluster("c", "shell: {files: Judge}"))]);
    expect(&recorded, "cat /etc/shadow = Allow + WouldDeny agents/p/read");
}

#[test]
fn native_denies_the_work_of_a_tool_that_is_offered() {
    let native = policy(&[namespaced("p", "shell: {files: Native}"), cluster("c", "shell: {files: Ignore}")]);
    expect(
        &native,
        "
        cat a.txt = Deny agents/p/shell by cat a.txt
        cd /w && cat a.txt = Deny agents/p/shell by cat a.txt
        cat a.rs = Allow
        ls = Allow
        ",
    );
    let verdict = verdict(&native, "Bash", "cat a.txt");
    assert_eq!(verdict.decision.why(), "Use the tool Read instead of a command");
    assert!(native.shell().prefers_file_tools);
    let recorded =
        policy(&[namespaced("p", "toolDefault: Allow"), audit(&cluster("c", "shell: {files: Native}"))]);
    expect(&recorded, "cat a.txt = Allow agents/p/toolDefault + WouldDeny -/c/shell");
}

#[test]
fn the_clusters_directory_comes_first_and_an_audit_policy_sets_none() {
    let directory = |documents: &[String]| policy(documents).shell().directory.map(|one| one.to_string());
    let (own, of_cluster) =
        (namespaced("p", "shell: {directory: /own}"), cluster("c", "shell: {directory: /}"));
    assert_eq!(directory(std::slice::from_ref(&own)).as_deref(), Some("/own"));
    assert_eq!(directory(&[own.clone(), of_cluster.clone()]).as_deref(), Some("/"));
    assert_eq!(directory(&[own.clone(), audit(&of_cluster)]).as_deref(), Some("/own"));
    assert_eq!(directory(&[audit(&own)]).as_deref(), Some("/own"), "only such select the pod");
    assert_eq!(directory(&[namespaced("p", "toolDefault: Allow")]), None);
    assert!(!Policy::none().shell().reads);
}

#[test]
fn a_directory_is_absolute_and_plain_and_one_in_a_tier() {
    let mistakes = |documents: &[String]| {
        let documents = document::parse("policy.yaml", &documents.join("---\n"));
        let compiled = documents.and_then(|documents| Policy::compile(&documents, &Labels::new()));
        compiled.map(drop).map_err(|problems| {
            problems
                .iter()
                .map(|problem| format!("{}: {}", problem.path, problem.message))
                .collect::<Vec<_>>()
        })
    };
    for directory in ["w", "./w", "~/w", "/w/", "//w", "/w/../x", "/w/.", "\"\""] {
        let found = mistakes(&[namespaced("p", &format!("shell: {{directory: {directory}}}"))]).unwrap_err();
        assert_eq!(found.len(), 1, "{directory}");
        assert!(found[0].starts_with("spec.shell.directory: "), "{}", found[0]);
    }
    let at = |name: &str, directory: &str| namespaced(name, &format!("shell: {{directory: {directory}}}"));
    assert_eq!(mistakes(&[at("p", "/w"), at("q", "/w"), cluster("c", "shell: {directory: /x}")]), Ok(()));
    assert_eq!(mistakes(&[at("p", "/w"), audit(&at("q", "/x"))]), Ok(()), "it does not decide");
    let found = mistakes(&[at("p", "/w"), at("q", "/x")]).unwrap_err();
    assert_eq!(found, ["spec.shell.directory: \"/x\" is not \"/w\" of policy.yaml:5"]);
}

#[test]
fn a_relative_path_of_a_file_tool_begins_in_the_directory() {
    let outside = "tools: [{name: w, kind: Write, action: Deny, when: {param: paths, operator: NotWithin, values: [/w/src]}}]";
    let inside = "toolDefault: Deny
        tools: [{name: w, kind: Write, action: Allow, when: {param: paths, operator: Within, values: [/w/src]}}]";
    let directory = "shell: {directory: /w}\n";
    let write = |policy: &Policy, path: &str| {
        ruled(&super::complete(policy, "Write", &json!({ "file_path": path })).decision)
    };
    let (bare, based) =
        (policy(&[namespaced("p", outside)]), policy(&[namespaced("p", &format!("{directory}{outside}"))]));
    assert_eq!(
        (write(&bare, "docs/a").as_str(), write(&based, "docs/a").as_str()),
        ("Allow", "Deny agents/p/w")
    );
    assert_eq!(write(&based, "src/a"), "Allow");
    let (bare, based) =
        (policy(&[namespaced("p", inside)]), policy(&[namespaced("p", &format!("{directory}{inside}"))]));
    assert_eq!(
        (write(&bare, "src/a").as_str(), write(&based, "src/a").as_str()),
        ("Deny agents/p/toolDefault", "Allow agents/p/w")
    );
    assert_eq!(write(&based, "docs/a"), "Deny agents/p/toolDefault");
}

#[test]
fn every_rule_and_command_is_explained() {
    let policy = rules(&[
        "{name: read, kind: Read, action: Deny, when: {param: paths, operator: Within, values: [/etc]}}",
        "{name: fetch, kind: Fetch, action: Deny}",
        "{name: reading, kind: Read, action: Allow}",
    ]);
    let (input, tool) =
        (json!({"command": "cat /etc/x"}), Tool { kinds: &[Kind::Shell], ..Tool::named("Bash") });
    let (command, derived) = command(0, "cat /etc/x");
    let shell = Some(ShellFacts { commands: vec![command], is_opaque: true, has_assignments: false });
    let facts = Facts { commands: vec!["cat /etc/x".into()], shell, ..Facts::new(Kind::Shell) };
    let derived = [derived.unwrap()];
    let call = ToolCall { tool, input: Input::Json(&input), facts: Some(&facts), derived: &derived };
    let explanation = policy.explain_call(&call);
    assert!(explanation.opaque);
    let commands: Vec<_> =
        explanation.commands.iter().map(|one| (one.command.as_str(), one.does.join("; "))).collect();
    assert_eq!(commands, [("\"cat /etc/x\"", "Read \"/etc/x\"".to_owned())]);
    let told = explanation.rules.iter().map(|rule| format!("{:?} {}", rule.applies, rule.why.join("; ")));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            "Yes a command in it is a Read; its condition holds; it decides",
            "No it is about Fetch, and no command of the call is known to be one",
            "No it is about Read tools, and this is Shell",
        ]
    );
    assert_eq!(explanation.rules[0].tests[0].found, ["\"/etc/x\""]);
    let begun = policy.explain_start(&tool);
    assert_eq!(begun.rules[0].why, ["a command may be a Read, too: the input decides"]);
}
