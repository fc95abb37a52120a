//! The catalogue, by what agents really send.

use serde_json::{Value, json};

use super::catalogue::CATALOGUE;
use super::{Offered, read};
use crate::call::Kind::{self, Fetch, Read, Shell, Write};
use crate::call::{Facts, Input, KindsBy};
use crate::fold::fold;

const PATCH: &str = "*** Begin Patch\n*** Update File: src/a.rs\n*** Move to: src/b.rs\n@@\n-a\n+b\n*** Add File: c\n+x\n*** Delete File: /d\n*** End Patch";

fn kinds(name: &str) -> &'static [Kind] {
    super::find(name, None).map_or(&[], |(entry, _)| entry.kinds)
}

fn texts(all: &[std::borrow::Cow<'_, str>]) -> Vec<String> {
    all.iter().map(|text| text.clone().into_owned()).collect()
}

fn facts(name: &str, input: Input<'_>) -> Option<Vec<(Kind, Vec<String>)>> {
    let says = |facts: &Facts<'_>| {
        let all = [&facts.commands, &facts.paths, &facts.urls].map(|texts_of| texts(texts_of)).concat();
        (facts.kind, all)
    };
    let seen = read(name, None, input, &Offered::default());
    Some(seen.facts?.iter().map(says).collect())
}

fn one(kind: Kind, all: &[&str]) -> Option<Vec<(Kind, Vec<String>)>> {
    Some(vec![(kind, all.iter().map(|text| (*text).to_owned()).collect())])
}

#[test]
fn every_agents_tools_are_known_by_what_they_do() {
    let table: &[(&str, Value, Kind, &[&str])] = &[
        // Claude Code
        ("Bash", json!({"command": "ls -l", "description": "x"}), Shell, &["ls -l"]),
        ("BashOutput", json!({"bash_id": "1"}), Shell, &[]),
        ("Read", json!({"file_path": "/a", "limit": 3}), Read, &["/a"]),
        ("Edit", json!({"file_path": "/a", "old_string": "x", "new_string": "y"}), Write, &["/a"]),
        (
            "MultiEdit",
            json!({"file_path": "/a", "edits": [{"old_string": "x", "new_string": "y"}]}),
            Write,
            &["/a"],
        ),
        ("Write", json!({"file_path": "/a", "content": "x"}), Write, &["/a"]),
        ("NotebookEdit", json!({"notebook_path": "/n.ipynb", "new_source": ""}), Write, &["/n.ipynb"]),
        ("NotebookRead", json!({"notebook_path": "/n.ipynb"}), Read, &["/n.ipynb"]),
        ("Glob", json!({"pattern": "**/*.rs"}), Read, &["."]),
        ("Glob", json!({"pattern": "/etc/*", "path": "/w"}), Read, &["/w", "/etc/*"]),
        ("Grep", json!({"pattern": "x", "path": "src"}), Read, &["src"]),
        ("LS", json!({"path": "/w"}), Read, &["/w"]),
        ("WebFetch", json!({"url": "https://a.example/", "prompt": "x"}), Fetch, &["https://a.example/"]),
        ("WebSearch", json!({"query": "x"}), Fetch, &[]),
        // Anthropic's own
        ("bash", json!({"restart": true}), Shell, &[]),
        ("str_replace_based_edit_tool", json!({"command": "view", "path": "/a"}), Read, &["/a"]),
        (
            "str_replace_based_edit_tool",
            json!({"command": "create", "path": "/a", "file_text": ""}),
            Write,
            &["/a"],
        ),
        (
            "memory",
            json!({"command": "rename", "old_path": "/memories/a", "new_path": "/b"}),
            Write,
            &["/memories/a", "/b"],
        ),
        // Codex, and OpenAI's own
        ("shell", json!({"command": ["bash", "-lc", "ls | wc"]}), Shell, &["ls | wc", "bash -lc ls | wc"]),
        (
            "shell",
            json!({"command": ["/usr/bin/git", "-c", "x=y", "log"]}),
            Shell,
            &["/usr/bin/git -c x=y log"],
        ),
        ("shell_command", json!({"command": "ls", "workdir": "/w"}), Shell, &["ls"]),
        ("exec_command", json!({"cmd": "ls"}), Shell, &["ls"]),
        ("write_stdin", json!({"session_id": 1, "chars": "y\n"}), Shell, &["y\n"]),
        ("write_stdin", json!({"session_id": 1}), Shell, &[]),
        (
            "local_shell",
            json!({"type": "local_shell_call", "action": {"type": "exec", "command": ["ls", "-l"]}}),
            Shell,
            &["ls -l"],
        ),
        ("local_shell", json!({"type": "exec", "command": ["ls", "-l"], "env": {}}), Shell, &["ls -l"]),
        (
            "shell_call",
            json!({"action": {"commands": ["ls", "pwd"], "timeout_ms": 1}}),
            Shell,
            &["ls", "pwd"],
        ),
        ("apply_patch", json!({"input": PATCH}), Write, &["src/a.rs", "src/b.rs", "c", "/d"]),
        ("apply_patch", json!({"type": "create_file", "path": "a", "diff": "+x"}), Write, &["a"]),
        ("apply_patch_call", json!({"operation": {"type": "delete_file", "path": "a"}}), Write, &["a"]),
        ("view_image", json!({"path": "/a.png"}), Read, &["/a.png"]),
        ("web__run", json!({"search_query": [{"q": "x"}]}), Fetch, &[]),
        // Gemini CLI
        ("run_shell_command", json!({"command": "ls", "dir_path": "x"}), Shell, &["ls"]),
        ("read_file", json!({"absolute_path": "/a"}), Read, &["/a"]),
        ("read_many_files", json!({"paths": ["a", "b"]}), Read, &["a", "b"]),
        ("read_many_files", json!({"include": ["a/**"], "recursive": true}), Read, &["a/**"]),
        ("write_file", json!({"file_path": "/a", "content": ""}), Write, &["/a"]),
        ("replace", json!({"file_path": "/a", "old_string": "", "new_string": ""}), Write, &["/a"]),
        ("search_file_content", json!({"pattern": "x"}), Read, &["."]),
        ("list_directory", json!({"dir_path": "/a"}), Read, &["/a"]),
        (
            "web_fetch",
            json!({"prompt": "Read https://a.example/x, and (http://b.example)"}),
            Fetch,
            &["https://a.example/x", "http://b.example"],
        ),
        ("google_web_search", json!({"query": "x"}), Fetch, &[]),
        // opencode
        ("read", json!({"filePath": "/a"}), Read, &["/a"]),
        ("edit", json!({"filePath": "/a", "oldString": "", "newString": ""}), Write, &["/a"]),
        ("patch", json!({"patchText": PATCH}), Write, &["src/a.rs", "src/b.rs", "c", "/d"]),
        ("webfetch", json!({"url": "https://a.example", "format": "text"}), Fetch, &["https://a.example"]),
        ("list", json!({}), Read, &["."]),
        // Cline, Roo, Cursor, Copilot, Amp, Goose
        ("execute_command", json!({"command": "ls", "requires_approval": false}), Shell, &["ls"]),
        ("read_file", json!({"files": [{"path": "a"}, {"path": "b", "line_ranges": []}]}), Read, &["a", "b"]),
        ("apply_diff", json!({"args": {"file": [{"path": "a", "diff": []}]}}), Write, &["a"]),
        ("write_to_file", json!({"path": "a", "content": ""}), Write, &["a"]),
        ("replace_in_file", json!({"path": "a", "diff": ""}), Write, &["a"]),
        ("run_terminal_cmd", json!({"command": "ls", "is_background": false}), Shell, &["ls"]),
        ("edit_file", json!({"target_file": "a", "code_edit": ""}), Write, &["a"]),
        ("run_in_terminal", json!({"command": "ls", "explanation": ""}), Shell, &["ls"]),
        ("insert_edit_into_file", json!({"filePath": "/a", "code": ""}), Write, &["/a"]),
        (
            "multi_replace_string_in_file",
            json!({"replacements": [{"filePath": "/a"}, {"filePath": "/b"}]}),
            Write,
            &["/a", "/b"],
        ),
        ("fetch_webpage", json!({"urls": ["https://a.example"], "query": ""}), Fetch, &["https://a.example"]),
        ("delete_file", json!({"target_file": "a"}), Write, &["a"]),
        ("create_text_file", json!({"relative_path": "a", "content": ""}), Write, &["a"]),
        ("mcp__jetbrains__create_new_file", json!({"pathInProject": "a", "text": ""}), Write, &["a"]),
        ("Bash", json!({"cmd": "ls"}), Shell, &["ls"]),
        ("developer__shell", json!({"command": "ls"}), Shell, &["ls"]),
        // MCP servers
        ("mcp__filesystem__read_multiple_files", json!({"paths": ["a"]}), Read, &["a"]),
        ("mcp__filesystem__move_file", json!({"source": "a", "destination": "b"}), Write, &["a", "b"]),
        ("mcp__filesystem__create_directory", json!({"path": "a"}), Write, &["a"]),
        (
            "mcp__fetch__fetch",
            json!({"url": "https://a.example", "max_length": 1}),
            Fetch,
            &["https://a.example"],
        ),
        ("mcp__acp__Write", json!({"file_path": "a", "content": ""}), Write, &["a"]),
    ];
    for (name, input, kind, expected) in table {
        assert_eq!(facts(name, Input::Json(input)), one(*kind, expected), "{name} {input}");
        assert!(kinds(name).contains(kind), "{name}");
    }
    assert_eq!(facts("apply_patch", Input::Text(PATCH)), one(Write, &["src/a.rs", "src/b.rs", "c", "/d"]));
}

#[test]
fn a_patch_inside_a_command_writes_files() {
    let script = "cd sub && apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nEOF";
    let input = json!({"command": ["bash", "-lc", script], "workdir": "/w"});
    let all = facts("shell", Input::Json(&input)).unwrap();
    assert_eq!(all[1], (Write, vec!["/w/sub/a".to_owned()]));
    assert_eq!((all.len(), all[0].0), (2, Shell));
    let plain = json!({"command": ["apply_patch", PATCH]});
    let all = facts("shell", Input::Json(&plain)).unwrap();
    assert_eq!(all[1], (Write, ["/d", "c", "src/a.rs", "src/b.rs"].map(str::to_owned).to_vec()));
    let broken = json!({"cmd": "apply_patch '*** Begin Patch'"});
    let all = facts("exec_command", Input::Json(&broken)).unwrap();
    assert_eq!(all[1], (Write, vec![]), "no file is named, so anything may be written");
    assert_eq!((all.len(), all[0].0), (2, Shell), "what runs is known");
}

#[test]
fn a_unified_diff_writes_the_files_that_it_names() {
    let diff = "--- a/src/a.rs\n+++ b/.git/hooks/x\n@@ -1 +1 @@\n-a\n+b\n";
    let read = ["a/src/a.rs", "b/.git/hooks/x", ".git/hooks/x", "src/a.rs"];
    let sorted = |all: Option<Vec<(Kind, Vec<String>)>>| {
        let mut paths = all.unwrap().remove(0).1;
        paths.sort();
        paths
    };
    let mut expected: Vec<String> = read.map(str::to_owned).to_vec();
    expected.sort();
    for input in [json!({"patch": diff}), json!({"diff": diff})] {
        assert_eq!(sorted(facts("apply_patch", Input::Json(&input))), expected);
    }
    assert_eq!(sorted(facts("patch", Input::Text(diff))), expected);
    let both = format!("*** Begin Patch\n*** Update File: x\n@@\n*** End Patch\n{diff}");
    assert!(sorted(facts("apply_patch", Input::Text(&both))).contains(&".git/hooks/x".to_owned()));
    let comment =
        "*** Begin Patch\n*** Update File: x.sql\n@@ select\n--- a comment\n+-- another\n*** End Patch";
    assert_eq!(facts("apply_patch", Input::Text(comment)), one(Write, &["x.sql"]), "a line that goes");
}

#[test]
fn a_name_begins_in_the_directory_beside_it() {
    for (name, input, expected) in [
        (
            "write_file",
            json!({"directory": "/w/.git/hooks", "filename": "pre-commit"}),
            &["/w/.git/hooks/pre-commit"][..],
        ),
        ("write_file", json!({"folder": "/w", "path": "/v/a"}), &["/v/a"]),
        ("create_directory", json!({"directory": "/w/x"}), &["/w/x"]),
        ("move_path", json!({"source_path": "a", "destination_path": "b"}), &["a", "b"]),
        ("copy_path", json!({"source_path": "a", "destination_path": "b"}), &["a", "b"]),
        ("edit_block", json!({"file_path": "/a", "old_string": "", "new_string": ""}), &["/a"]),
        ("file_editor", json!({"command": "create", "path": "/a", "file_text": ""}), &["/a"]),
        ("remove-files", json!({"file_paths": ["a", "b"]}), &["a", "b"]),
    ] {
        assert_eq!(facts(name, Input::Json(&input)), one(Write, expected), "{name} {input}");
    }
    let download = json!({"url": "https://a.example/x", "file_path": "/w/x", "timeout": 3});
    let all = facts("download", Input::Json(&download)).unwrap();
    assert_eq!(all, [(Fetch, vec!["https://a.example/x".to_owned()]), (Write, vec!["/w/x".to_owned()])]);
    let moved = json!({"source": "a", "destination": "b"});
    let seen = read("move_file", None, Input::Json(&moved), &Offered::default());
    assert!(seen.facts.unwrap()[0].moves);
    let unknown = json!({"source": "a", "onto": "b"});
    assert_eq!(facts("move_file", Input::Json(&unknown)), None, "where to is not known");
}

#[test]
fn braces_of_a_pattern_are_several_patterns() {
    for (name, input, expected) in [
        ("Glob", json!({"pattern": "{/etc/passwd,src/*}"}), &[".", "/etc/passwd"][..]),
        ("Glob", json!({"pattern": "src/{..,x}/../y", "path": "/w"}), &["/w", "src/../../y", "src/x/../y"]),
        ("Glob", json!({"pattern": "**/*.{rs,toml}"}), &["."]),
        ("read_many_files", json!({"include": ["/w/{../etc/passwd,a}"]}), &["/w/../etc/passwd", "/w/a"]),
    ] {
        let mut all = facts(name, Input::Json(&input)).unwrap().remove(0).1;
        all.sort();
        assert_eq!(all, expected, "{name} {input}");
    }
    let many = json!({"pattern": "{a,b}".repeat(9)});
    assert_eq!(facts("Glob", Input::Json(&many)), None, "more than are looked at");
}

#[test]
fn what_a_tool_does_not_take_has_no_facts_but_its_kinds() {
    for (name, input) in [
        ("Bash", json!({"command": 1})),
        ("Bash", json!({"Cmd_Line": "ls"})),
        ("Bash", json!({})),
        ("shell", json!({"command": ["ls", 1]})),
        ("Read", json!({"file_path": {"path": "/a"}})),
        ("Write", json!({"content": "x"})),
        ("read_many_files", json!({"paths": ["a", 1]})),
        ("WebFetch", json!({"url": ["https://a.example"]})),
        ("web_fetch", json!({"prompt": "nothing"})),
        ("str_replace_editor", json!({"path": "/a"})),
        ("apply_patch", json!({"input": "no patch"})),
    ] {
        assert_eq!(facts(name, Input::Json(&input)), None, "{name} {input}");
        assert!(!kinds(name).is_empty(), "{name}");
    }
    assert_eq!(facts("Write", Input::Text("ls")), None);
}

#[test]
fn other_tools_have_no_kind() {
    let long = "Bash".repeat(100);
    for name in [
        "get_weather",
        "TodoWrite",
        "todo_write",
        "Task",
        "team_run_task",
        "mcp__calendar__create",
        "mcp__db__execute",
        "mcp__x__",
        "",
        "exec",
        &long,
    ] {
        assert_eq!(kinds(name), &[] as &[Kind], "{name}");
        assert_eq!(facts(name, Input::Json(&json!({"city": "Bern"}))), None);
    }
}

#[test]
fn a_servers_tools_are_known_in_every_spelling_and_serve_no_allow_rule() {
    for name in [
        "mcp__desktop-commander__start_process",
        "mcp_desktop-commander_start_process",
        "desktop-commander_start_process",
        "desktop_commander_start-process",
        "desktop-commander.start_process",
        "functions.start_process:0",
        "functions.bash",
    ] {
        let (entry, by) = super::find(name, None).unwrap();
        assert_eq!((entry.kinds, by), (&[Shell] as &[Kind], KindsBy::Ending), "{name}");
    }
    let long = format!("mcp__{}__start_process", "x".repeat(900));
    assert_eq!(kinds(&long), [Shell], "no name is too long to be known");
    let by = |name, namespace| super::find(name, namespace).map(|(_, by)| by);
    assert_eq!(by("bash", None), Some(KindsBy::Catalogue));
    assert_eq!(by("bash", Some("functions")), Some(KindsBy::Catalogue));
    assert_eq!(by("bash", Some("mcp__x")), Some(KindsBy::Ending));
    assert_eq!(by("list", Some("mcp__x")), None);
}

#[test]
fn names_are_known_however_they_are_written() {
    for name in ["BASH", "ｂash", "ba\u{200b}sh", "mcp__X__BASH"] {
        assert_eq!(kinds(name), [Shell], "{name:?}");
    }
}

#[test]
fn every_name_stands_once_and_folded() {
    let mut names: Vec<&str> = CATALOGUE.iter().flat_map(|entry| entry.names).copied().collect();
    assert!(names.iter().all(|name| fold(name) == *name));
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}
