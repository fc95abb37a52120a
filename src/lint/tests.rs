//! Every warning beside a policy that has none.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::policy::document;

fn documents(texts: &[&str]) -> Vec<Document> {
    let of = |(number, spec): (usize, &&str)| {
        let text = format!(
            "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: p{number}, namespace: n}}\nspec: {spec}\n"
        );
        document::parse("p.yaml", &text).unwrap_or_else(|found| panic!("{spec}: {found:?}"))
    };
    texts.iter().enumerate().flat_map(of).collect()
}

/// What is warned of, each as `path: message`.
pub(super) fn said(texts: &[&str]) -> Vec<String> {
    let found = warnings(&documents(texts));
    found.iter().map(|problem| format!("{}: {}", problem.path, problem.message)).collect()
}

/// Each policy has one warning, which begins so; its twin has none.
pub(super) fn assert_twins(twins: &[(&str, &str, &str)]) {
    for (wrong, expected, right) in twins {
        let found = said(&[wrong]);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{wrong}: {found:#?}");
        assert_eq!(said(&[right]), Vec::<String>::new(), "{right}");
    }
}

#[test]
fn a_name_one_letter_from_a_known_providers_is_told() {
    assert_twins(&[
        (
            "{destinations: [{name: a, hosts: [api.anthropic.com, api.antropic.com], action: Inspect}]}",
            "spec.destinations[0].hosts[1]: \"api.antropic.com\" differs by one letter from api.anthropic.com",
            "{destinations: [{name: a, hosts: [api.antropic.com], action: Deny}]}",
        ),
        (
            "{destinations: [{name: a, hosts: ['*.openai.azur.com'], action: Tunnel}]}",
            "spec.destinations[0].hosts[0]: \"*.openai.azur.com\" differs by one letter from **.openai.azure.com",
            "{destinations: [{name: a, hosts: ['*.openai.azure.com', openai.azure.com], action: Tunnel}]}",
        ),
        (
            "{destinations: [{name: a, hosts: [team.openai.azur.com], action: Tunnel}]}",
            "spec.destinations[0].hosts[0]: \"team.openai.azur.com\" differs by one letter from **.openai.azure.com",
            "{destinations: [{name: a, hosts: [api.x.ai, api.y.ai, api2.anthropic.com, ai.example.com], action: Tunnel}]}",
        ),
        (
            "{destinations: [{name: a, hosts: [api.openai.com], action: Inspect}],
              credentials: [{name: c, hosts: [api.openai.com, api.opnai.com], fromEnv: K}]}",
            "spec.credentials[0].hosts[1]: \"api.opnai.com\" differs by one letter from api.openai.com",
            "{destinations: [{name: a, hosts: [api.openai.com], action: Inspect}],
              credentials: [{name: c, hosts: [api.openai.com], fromEnv: K}]}",
        ),
    ]);
}

#[test]
fn a_credential_that_is_never_sent_is_told() {
    assert_twins(&[
        (
            "{destinations: [{name: t, hosts: ['*.corp.example'], action: Tunnel}],
              credentials: [{name: c, hosts: [git.corp.example], fromEnv: K}]}",
            "spec.credentials[0].hosts[0]: \"git.corp.example\" is tunnelled by the rule t",
            "{destinations: [{name: t, hosts: ['*.corp.example'], action: Inspect}],
              credentials: [{name: c, hosts: [git.corp.example], fromEnv: K}]}",
        ),
        (
            "{destinations: [{name: a, hosts: [b.example], action: Inspect}],
              credentials: [{name: c, hosts: [c.example], fromEnv: K}]}",
            "spec.credentials[0].hosts[0]: no rule of what is checked here names \"c.example\"",
            "{credentials: [{name: c, hosts: [c.example], fromEnv: K}]}",
        ),
        (
            "{destinations: [{name: a, hosts: [c.example], action: Inspect}],
              credentials: [{name: c, hosts: [c.example], ports: [8443], fromEnv: K}]}",
            "spec.credentials[0].hosts[0]: no rule of what is checked here names \"c.example\" on the credential's ports",
            "{destinations: [{name: a, hosts: [c.example], ports: [8443], action: Inspect}],
              credentials: [{name: c, hosts: [c.example], ports: [8443], fromEnv: K}]}",
        ),
        (
            "{destinations: [{name: a, hosts: ['**.example'], action: Deny}],
              credentials: [{name: c, hosts: [c.example], fromEnv: K}]}",
            "spec.credentials[0].hosts[0]: \"c.example\" is denied by the rule a",
            "{destinations: [{name: a, hosts: [b.example], action: Deny}, {name: b, hosts: ['**'], action: Inspect}],
              credentials: [{name: c, hosts: [c.example], fromEnv: K}]}",
        ),
    ]);
    let named_elsewhere = [
        "{credentials: [{name: c, hosts: [c.example], fromEnv: K}]}",
        "{destinations: [{name: a, hosts: [c.example], action: Inspect}]}",
    ];
    assert_eq!(said(&named_elsewhere), Vec::<String>::new());
    let one = documents(&["{destinations: [{name: a, hosts: [b.example], action: Inspect}],
                           credentials: [{name: c, hosts: [c.example], fromEnv: K}]}"]);
    assert_eq!(warnings_of(&one[0]), [], "another policy may name it");
}

#[test]
fn a_rule_that_a_deny_rule_covers_whole_is_told() {
    assert_twins(&[
        (
            "{destinations: [{name: d, hosts: ['**.example.com'], action: Deny},
                             {name: a, hosts: [a.example.com, b.example], action: Inspect}]}",
            "spec.destinations[1].hosts[0]: \"a.example.com\" is never allowed: the rule d denies it",
            "{destinations: [{name: d, hosts: [evil.example.com], action: Deny},
                             {name: a, hosts: ['**.example.com'], action: Inspect}]}",
        ),
        (
            "{destinations: [{name: d, hosts: ['**'], ports: [80, 443], action: Deny},
                             {name: a, hosts: ['*.example.com'], action: Inspect}]}",
            "spec.destinations[1].hosts[0]: \"*.example.com\" is never allowed",
            "{destinations: [{name: d, hosts: ['**'], ports: [80], action: Deny},
                             {name: a, hosts: ['*.example.com'], action: Inspect}]}",
        ),
        (
            "{destinations: [{name: d, hosts: ['**.a.example'], action: Deny},
                             {name: a, hosts: ['**.b.a.example'], action: Tunnel}]}",
            "spec.destinations[1].hosts[0]: \"**.b.a.example\" is never allowed",
            "{destinations: [{name: d, hosts: ['*.a.example'], action: Deny},
                             {name: a, hosts: ['**.a.example'], action: Tunnel}]}",
        ),
    ]);
    let inspect = "{destinations: [{name: a, hosts: [a.example], action: Inspect}]}";
    let deny = "{destinations: [{name: d, hosts: [a.example], action: Deny}]}";
    assert!(
        said(&[inspect, deny])[0].contains("the rule d of n/p1 denies it"),
        "{:?}",
        said(&[inspect, deny])
    );
    for elsewhere in ["podSelector: {matchLabels: {app: other}}", "enforcement: Audit"] {
        let deny = deny.replacen('{', &format!("{{{elsewhere}, "), 1);
        assert_eq!(said(&[inspect, &deny]), Vec::<String>::new(), "{deny}");
    }
}

#[test]
fn a_tool_in_the_spelling_of_another_language_is_told() {
    let rule = |names: &str| format!("{{tools: [{{name: a, tools: [{names}], action: Deny}}]}}");
    for (names, expected) in [
        (
            "Read, 'Bash(rm:*)'",
            "spec.tools[0].tools[1]: \"Bash(rm:*)\": no tool is called so; an argument is a condition",
        ),
        (
            "'Edit|Write'",
            "spec.tools[0].tools[0]: \"Edit|Write\": no tool is called so; each name is an item",
        ),
        ("'.*'", "spec.tools[0].tools[0]: \".*\": no tool is called so; a name is no regular expression"),
        (
            "'mcp__git[a-z]+'",
            "spec.tools[0].tools[0]: \"mcp__git[a-z]+\": no tool is called so; a name is no",
        ),
        (
            "mcp__github",
            "spec.tools[0].tools[0]: \"mcp__github\" is a server, and no tool of it is called so; mcp__github__*",
        ),
        ("'“Bash”'", "spec.tools[0].tools[0]: \"“Bash”\" has typographic quotes around it"),
    ] {
        let found = said(&[&rule(names)]);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{names}: {found:#?}");
    }
    let benign = "Bash, 'mcp__*', mcp__github__*, mcp__github__get_me, server.tool, '*', 'server.*', functions.exec, a/b:c";
    assert_eq!(said(&[&rule(benign)]), Vec::<String>::new());
}

#[test]
fn a_parameter_that_a_kind_does_not_have_is_told() {
    let rule = |head: &str, param: &str| {
        format!(
            "{{tools: [{{name: a, {head}, action: Deny, when: {{not: {{param: {param}, operator: Equals, values: [x]}}}}}}]}}"
        )
    };
    for (head, param, expected) in [
        ("kind: Shell", "cmd", "\"cmd\" is what some agents call it"),
        ("kind: Write", "file_path", "\"file_path\" is what some agents call it"),
        ("kind: Shell", "paths", "a call of kind Shell has no paths"),
        ("kind: Fetch", "command", "a call of kind Fetch has no command"),
        ("kind: Write", "content", "\"content\" is looked for by this name"),
    ] {
        let found = said(&[&rule(head, param)]);
        let expected = format!("spec.tools[0].when.not.param: {expected}");
        assert!(found.len() == 1 && found[0].starts_with(&expected), "{head} {param}: {found:#?}");
    }
    for (head, param) in [
        ("kind: Shell", "command"),
        ("kind: Read", "paths"),
        ("kind: Write", "paths"),
        ("kind: Fetch", "url"),
        ("kind: Shell", "$"),
        ("kind: Write, tools: [save]", "content"),
        ("tools: [Bash]", "file_path"),
    ] {
        assert_eq!(said(&[&rule(head, param)]), Vec::<String>::new(), "{head} {param}");
    }
}

#[test]
fn a_rule_that_allows_by_the_text_of_a_command_is_told() {
    let rule = |head: &str, param: &str| {
        format!(
            "{{toolDefault: Deny, tools: [{{name: a, {head}, when: {{any: [{{param: {param}, operator: StartsWith, values: [npm test]}}]}}}}]}}"
        )
    };
    for (head, param) in [
        ("tools: [Bash], action: Allow", "command"),
        ("tools: [Read, Bash], action: Allow", "command"),
        ("tools: [exec_command], action: Allow", "cmd"),
        ("tools: [mcp__box__run_command], action: Allow", "command"),
        ("tools: ['*'], action: Allow", "command"),
        ("tools: [Bash], kind: Read, action: Allow", "command"),
    ] {
        let found = said(&[&rule(head, param)]);
        let is_told = |found: &String| {
            found.starts_with("spec.tools[0].when.any[0].param: ")
                && found.contains("is compared as it stands")
        };
        assert!(found.len() == 1 && found.iter().all(is_told), "{head} {param}: {found:#?}");
    }
    for (head, param) in [
        ("kind: Shell, action: Allow", "command"),
        ("tools: [Bash], kind: Shell, action: Allow", "command"),
        ("tools: [Bash], action: Deny", "command"),
        ("tools: [Bash], action: Audit", "command"),
        ("tools: [Bash], action: Allow", "description"),
        ("tools: [mail], action: Allow", "command"),
    ] {
        assert_eq!(said(&[&rule(head, param)]), Vec::<String>::new(), "{head} {param}");
    }
}

#[test]
fn the_name_of_a_known_tool_with_the_wildcard_of_another_language_is_told() {
    let rule = |name: &str| format!("{{tools: [{{name: a, tools: ['{name}'], action: Deny}}]}}");
    for name in ["Bash.*", "bash:*", "Read.*", "read_file:*"] {
        let found = said(&[&rule(name)]);
        let tool = &name[..name.len() - 2];
        assert!(found.len() == 1 && found[0].contains(&format!("is not about {tool}, only")), "{found:?}");
    }
    for name in ["Bash*", "Bash", "github.*", "server:*", "functions.*", "ns.Bash"] {
        assert_eq!(said(&[&rule(name)]), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_hosted_type_that_nobody_has_is_told() {
    assert_twins(&[
        (
            "{hostedTools: {allow: [web_search, web_serch_20250305]}}",
            "spec.hostedTools.allow[1]: \"web_serch_20250305\" is not among the types that this version knows; it stays where a request has exactly it",
            "{hostedTools: {allow: ['web_search_*', googleSearch, mcp_toolset, '*', 'openrouter:plugin:web', connectors]}}",
        ),
        (
            "{hostedTools: {allow: [bash_20250124]}}",
            "spec.hostedTools.allow[0]: \"bash_20250124\" is not among the types that this version knows; it stays where a request has exactly it",
            "{hostedTools: {allow: [web_search_options, search_model, nova_grounding]}}",
        ),
    ]);
    let found = said(&["{hostedTools: {allow: [web_search_20990101]}}"]);
    assert!(found[0].contains("known are web_search_20250305, "), "{found:?}");
    let found = said(&["{hostedTools: {allow: ['zzz_*']}}"]);
    assert!(
        found[0].contains("where a request has what it covers; a type is what providers have"),
        "{found:?}"
    );
}

#[test]
fn typographic_quotes_are_told_wherever_they_stand_but_in_prose() {
    assert_twins(&[
        (
            "{tools: [{name: a, kind: Shell, action: Deny, when: {param: command, operator: Contains, values: [ok, “rm”]}}]}",
            "spec.tools[0].when.values[1]: \"“rm”\" has typographic quotes around it",
            "{tools: [{name: a, kind: Shell, action: Deny, reason: “Never”, \
             when: {param: command, operator: Contains, values: [it’s]}}]}",
        ),
        (
            "{podSelector: {matchLabels: {app: “coder”}}}",
            "spec.podSelector.matchLabels.app: \"“coder”\" has typographic quotes around it",
            "{podSelector: {matchLabels: {app: coder}}}",
        ),
    ]);
}

/// The policies among the files of this repository, and the blocks of its documents, each with where it stands.
fn written() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![root.join("README.md")];
    for directory in ["docs", "examples", "deploy", "e2e/clients", "e2e/netns", "src/command/run"] {
        let entries = fs::read_dir(root.join(directory)).unwrap().map(|entry| entry.unwrap().path());
        let is_text = |path: &PathBuf| {
            path.extension().is_some_and(|extension| extension == "yaml" || extension == "md")
        };
        files.extend(entries.filter(is_text));
    }
    let mut found = Vec::new();
    for file in files {
        let (name, text) = (file.display().to_string(), fs::read_to_string(&file).unwrap());
        if name.ends_with(".md") {
            let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split_once("```"));
            found.extend(blocks.map(|(block, _)| (name.clone(), block.to_owned())));
        } else {
            found.extend(text.split("\n---\n").map(|document| (name.clone(), document.to_owned())));
        }
    }
    found
}

#[test]
fn nothing_is_warned_of_in_what_the_documents_and_examples_say() {
    let mut judged = 0;
    for (name, text) in written() {
        // A section alone is read as the whole of a policy.
        let indented: String = text.lines().map(|line| format!("  {line}\n")).collect();
        let head = "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {name: p, namespace: n}\nspec:\n";
        let section = format!("{head}{indented}");
        let text = if text.contains("apiVersion:") { &text } else { &section };
        let Ok(documents) = document::parse(&name, text) else { continue };
        judged += 1;
        let found: Vec<_> = warnings(&documents).iter().map(ToString::to_string).collect();
        assert_eq!(found, Vec::<String>::new(), "{text}");
    }
    assert!(judged >= 10, "{judged}");
}
