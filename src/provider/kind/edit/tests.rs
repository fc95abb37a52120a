//! The edits of real agents' tools, as their inputs say them.

use serde_json::json;

use super::*;
use crate::call::{EditBlock, Occurrences};

/// The edits of a call, each in one line: `path = whole`, or `path: search -> replace xTIMES, …`.
fn read(name: &str, input: &Value) -> Vec<String> {
    edits(name, None, Input::Json(input)).iter().map(told).collect()
}

fn told(edit: &FileEdit) -> String {
    let path = &edit.path;
    let blocks = match &edit.change {
        FileChange::Overwrite => return format!("{path} = whole"),
        FileChange::Replace(blocks) => blocks.iter().map(|block| match block {
            EditBlock::Text { search, replace, expected } => {
                let times = match expected {
                    Occurrences::Once => "x1".to_owned(),
                    Occurrences::AtLeastOnce => "x+".to_owned(),
                    Occurrences::Exactly(times) => format!("x{times}"),
                };
                format!("{search} -> {replace} {times}")
            }
            EditBlock::Lines { below, old } => format!("{} @ {}", below.join("|"), old.join("|")),
        }),
    };
    format!("{path}: {}", blocks.collect::<Vec<_>>().join(", "))
}

/// A call of a tool, and the edits that are read in it.
type Row = (&'static str, Value, &'static [&'static str]);

fn assert_read(rows: &[Row]) {
    for (name, input, expected) in rows {
        assert_eq!(read(name, input), *expected, "{name} {input}");
    }
}

#[test]
fn the_edits_of_agents_tools_are_read() {
    assert_read(&[
        // Claude Code 2.1.
        ("Edit", json!({"file_path": "/w/a", "old_string": "x", "new_string": "y"}), &["/w/a: x -> y x1"]),
        (
            "Edit",
            json!({"file_path": "/w/a", "old_string": "x", "new_string": "", "replace_all": true}),
            &["/w/a: x ->  x+"],
        ),
        (
            "MultiEdit",
            json!({"file_path": "/w/a", "edits": [
                {"old_string": "x", "new_string": "y"}, {"old_string": "y", "new_string": "z", "replace_all": true},
            ]}),
            &["/w/a: x -> y x1, y -> z x+"],
        ),
        ("Write", json!({"file_path": "/w/a", "content": "x"}), &["/w/a = whole"]),
        // Gemini CLI, Qwen Code.
        (
            "replace",
            json!({"file_path": "/w/a", "old_string": "x", "new_string": "y", "expected_replacements": 3}),
            &["/w/a: x -> y x3"],
        ),
        (
            "replace",
            json!({"file_path": "a", "old_string": "x", "new_string": "y", "allow_multiple": true}),
            &["a: x -> y x+"],
        ),
        ("write_file", json!({"file_path": "/w/a", "content": "x"}), &["/w/a = whole"]),
        // OpenCode, VS Code.
        ("edit", json!({"filePath": "/w/a", "oldString": "x", "newString": "y"}), &["/w/a: x -> y x1"]),
        (
            "multi_replace_string_in_file",
            json!({"explanation": "e", "replacements": [
                {"filePath": "/w/a", "oldString": "x", "newString": "y"},
                {"filePath": "/w/b", "oldString": "x", "newString": "y"},
                {"filePath": "/w/a", "oldString": "z", "newString": ""},
            ]}),
            &["/w/a: x -> y x1, z ->  x1", "/w/b: x -> y x1"],
        ),
        ("create_file", json!({"filePath": "/w/a", "content": "x"}), &["/w/a = whole"]),
    ]);
}

#[test]
fn the_edits_of_editors_servers_and_extensions_are_read() {
    assert_read(&[
        // Anthropic's editor, and those like it.
        (
            "str_replace_based_edit_tool",
            json!({"command": "str_replace", "path": "/w/a", "old_str": "x", "new_str": "y"}),
            &["/w/a: x -> y x1"],
        ),
        (
            "str_replace_based_edit_tool",
            json!({"command": "create", "path": "/w/a", "file_text": "x"}),
            &["/w/a = whole"],
        ),
        ("fs_write", json!({"command": "create", "path": "a", "file_text": "x"}), &["a = whole"]),
        (
            "str-replace-editor",
            json!({"command": "str_replace", "path": "a", "old_str_1": "x", "new_str_1": "y",
                "old_str_start_line_number_1": 3, "old_str_2": "z", "new_str_2": ""}),
            &["a: x -> y x+, z ->  x1"],
        ),
        // The server of files of MCP, under both forms of its name.
        (
            "mcp__files__edit_file",
            json!({"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}),
            &["a: x -> y x1"],
        ),
        ("mcp__files__write_file", json!({"path": "a", "content": ""}), &["a = whole"]),
        // Windsurf.
        (
            "replace_file_content",
            json!({"TargetFile": "/w/a", "ReplacementChunks": [
                {"TargetContent": "x", "ReplacementContent": "y", "AllowMultiple": false},
            ]}),
            &["/w/a: x -> y x1"],
        ),
        // Roo Code, Cline.
        (
            "apply_diff",
            json!({"path": "a", "diff": "<<<<<<< SEARCH\n:start_line:3\n-------\nx\n=======\ny\n>>>>>>> REPLACE\n"}),
            &["a: x -> y x+"],
        ),
        (
            "replace_in_file",
            json!({"path": "a", "diff": "------- SEARCH\nx\n\nz\n=======\n+++++++ REPLACE\n\n<<<<<<< SEARCH\nb\n=======\nc\n>>>>>>> REPLACE"}),
            &["a: x\n\nz ->  x1, b -> c x1"],
        ),
        ("search_and_replace", json!({"path": "a", "search": "x", "replace": "y"}), &["a: x -> y x+"]),
    ]);
}

#[test]
fn what_is_no_edit_of_a_text_or_cannot_be_read_is_none() {
    for (name, input) in [
        ("Read", json!({"file_path": "/w/a"})),
        ("unknown", json!({"file_path": "/w/a", "old_string": "x", "new_string": "y"})),
        ("NotebookEdit", json!({"notebook_path": "/w/a.ipynb", "new_source": "x"})),
        ("edit_notebook", json!({"target_notebook": "a", "old_string": "x", "new_string": "y"})),
        ("Edit", json!({"file_path": "/w/a", "old_string": "", "new_string": "x"})),
        ("Edit", json!({"old_string": "x", "new_string": "y"})),
        ("Edit", json!({"file_path": "/w/a", "old_string": 1, "new_string": "y"})),
        ("Edit", json!({"File_Path": "/w/a", "old_string": "x", "new_string": "y"})),
        ("Edit", json!({"file_path": "/w/a", "old_string": "x", "old_str": "y", "new_string": "z"})),
        ("MultiEdit", json!({"file_path": "/w/a", "edits": ["x"]})),
        ("edit_file", json!({"target_file": "a", "instructions": "i", "code_edit": "x"})),
        ("search_and_replace", json!({"path": "a", "search": "x", "replace": "y", "use_regex": true})),
        ("write_file", json!({"path": "a", "content": "x", "mode": "append"})),
        ("append_file", json!({"path": "a", "content": "x"})),
        ("fs_write", json!({"command": "append", "path": "a", "new_str": "x"})),
        ("str_replace_based_edit_tool", json!({"command": "insert", "path": "a", "insert_line": 1})),
        ("replace_in_file", json!({"path": "a", "diff": "<<<<<<< SEARCH\nx\n======="})),
        ("replace_in_file", json!({"path": "a", "diff": "<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE"})),
        ("replace_in_file", json!({"path": "a", "diff": ">>>>>>> REPLACE"})),
        ("delete_file", json!({"path": "a"})),
        ("move_file", json!({"source": "a", "destination": "b"})),
        ("Bash", json!({"command": "sed -i s/a/b/ x"})),
    ] {
        assert_eq!(read(name, &input), Vec::<String>::new(), "{name} {input}");
    }
}

const PATCH: &str = "*** Begin Patch
*** Update File: src/a.rs
*** Move to: src/c.rs
@@ fn a() {
@@     loop {
 context
-old
+new
 
@@
-other
*** End of File
*** Add File: src/b.rs
+x
*** Delete File: src/d.rs
*** End Patch
";

const PATCHED: &[&str] = &["src/a.rs: fn a() {|loop { @ context|old|,  @ other", "src/b.rs = whole"];

#[test]
fn the_hunks_of_a_patch_are_what_it_takes_for_granted() {
    let all = |edits: Vec<FileEdit>| edits.iter().map(told).collect::<Vec<_>>();
    assert_eq!(all(edits("apply_patch", None, Input::Text(PATCH))), PATCHED);
    assert_eq!(read("apply_patch", &json!({"input": PATCH})), PATCHED);
    assert_eq!(read("shell", &json!({"command": ["apply_patch", PATCH]})), PATCHED);
    let here = format!("cd /w && apply_patch <<'EOF'\n{}EOF\n", PATCH.replace("src/b.rs", "/w/b.rs"));
    let moved = read("shell", &json!({"command": ["bash", "-lc", here]}));
    assert_eq!(moved, ["/w/b.rs = whole"], "relative paths begin where the command goes");
    let below = read("shell", &json!({"command": ["apply_patch", PATCH], "workdir": "/w/sub"}));
    assert_eq!(below[1], "/w/sub/src/b.rs = whole");
}

#[test]
fn one_operation_is_read_as_a_patch_of_one_file() {
    let update = json!({"operation": {"type": "update_file", "path": "a", "diff": "@@\n-x\n+y\n"}});
    assert_eq!(read("apply_patch_call", &update), ["a:  @ x"]);
    let create = json!({"operation": {"type": "create_file", "path": "a", "diff": "+y\n"}});
    assert_eq!(read("apply_patch_call", &create), ["a = whole"]);
    let delete = json!({"operation": {"type": "delete_file", "path": "a"}});
    assert_eq!(read("apply_patch_call", &delete), Vec::<String>::new());
}

#[test]
fn a_patch_that_is_none_or_changes_a_file_twice_is_not_judged() {
    for patch in [
        "",
        "*** Begin Patch\n*** End Patch",
        "*** Begin Patch\nhello\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\n@@\n+only\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\n@@\n-x\n*** Update File: a\n@@\n-y\n*** End Patch",
        "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n",
    ] {
        assert_eq!(edits("apply_patch", None, Input::Text(patch)), Vec::new(), "{patch}");
    }
}

#[test]
fn more_blocks_than_are_looked_for_are_none() {
    let many = |count: usize| {
        let edits: Vec<_> =
            (0..count).map(|n| json!({"old_string": format!("{n}"), "new_string": ""})).collect();
        read("MultiEdit", &json!({"file_path": "/w/a", "edits": edits})).len()
    };
    assert_eq!((many(MOST_BLOCKS), many(MOST_BLOCKS + 1)), (1, 0));
}
