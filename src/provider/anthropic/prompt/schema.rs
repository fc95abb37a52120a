//! The schemas of Anthropic's own client tools, which the model knows and the agent does not send:
//! <https://platform.claude.com/docs/en/agents-and-tools/tool-use/bash-tool>, `text-editor-tool`, `memory-tool`.

/// A tool of the client whose schema is not in the request.
pub(super) struct KnownTool {
    /// In the way of a type's date: `bash_20250124`.
    prefix: &'static str,
    pub description: &'static str,
    pub schema: &'static str,
}

const KNOWN: [KnownTool; 5] = [
    KnownTool {
        prefix: "bash_",
        description: "Runs a command in a bash shell whose state is kept between calls.",
        schema: r#"{"type":"object","properties":{"command":{"type":"string","description":"The command to run."},"restart":{"type":"boolean","description":"Whether to restart the shell instead."}}}"#,
    },
    KnownTool { prefix: "text_editor_2024", ..WITH_UNDO },
    KnownTool { prefix: "text_editor_20250124", ..WITH_UNDO },
    KnownTool {
        prefix: "text_editor_",
        description: "Views, creates and edits text files.",
        schema: r#"{"type":"object","properties":{"command":{"type":"string","enum":["view","create","str_replace","insert"]},"path":{"type":"string","description":"The path of the file or directory."},"view_range":{"type":"array","items":{"type":"integer"},"description":"For view: the first and the last line, from 1; -1 is the end."},"file_text":{"type":"string","description":"For create: the content of the file."},"old_str":{"type":"string","description":"For str_replace: the text that is replaced; it must occur once."},"new_str":{"type":"string","description":"For str_replace: the text that replaces it."},"insert_line":{"type":"integer","description":"For insert: the line behind which the text is put; 0 is the beginning."},"insert_text":{"type":"string","description":"For insert: the text."}},"required":["command","path"]}"#,
    },
    KnownTool {
        prefix: "memory_",
        description: "Keeps notes in files below /memories, from conversation to conversation.",
        schema: r#"{"type":"object","properties":{"command":{"type":"string","enum":["view","create","str_replace","insert","delete","rename"]},"path":{"type":"string","description":"The path of the file or directory."},"view_range":{"type":"array","items":{"type":"integer"},"description":"For view: the first and the last line, from 1."},"file_text":{"type":"string","description":"For create: the content of the file."},"old_str":{"type":"string","description":"For str_replace: the text that is replaced; it must occur once."},"new_str":{"type":"string","description":"For str_replace: the text that replaces it."},"insert_line":{"type":"integer","description":"For insert: the line behind which the text is put."},"insert_text":{"type":"string","description":"For insert: the text."},"old_path":{"type":"string","description":"For rename: the present path."},"new_path":{"type":"string","description":"For rename: the new path."}},"required":["command"]}"#,
    },
];

/// Editors up to that of January 2025 undo, and insert a `new_str`.
const WITH_UNDO: KnownTool = KnownTool {
    prefix: "",
    description: "Views, creates and edits text files.",
    schema: r#"{"type":"object","properties":{"command":{"type":"string","enum":["view","create","str_replace","insert","undo_edit"]},"path":{"type":"string","description":"The path of the file or directory."},"view_range":{"type":"array","items":{"type":"integer"},"description":"For view: the first and the last line, from 1; -1 is the end."},"file_text":{"type":"string","description":"For create: the content of the file."},"old_str":{"type":"string","description":"For str_replace: the text that is replaced; it must occur once."},"new_str":{"type":"string","description":"For str_replace and insert: the new text."},"insert_line":{"type":"integer","description":"For insert: the line behind which the text is put; 0 is the beginning."}},"required":["command","path"]}"#,
};

/// The tool of a type of the client; none for types that have no schema here.
pub(super) fn known(tool_type: &str) -> Option<&'static KnownTool> {
    KNOWN.iter().find(|known| tool_type.starts_with(known.prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::json::{Document, Limits};

    #[test]
    fn every_schema_is_json_and_editors_undo_up_to_their_third_version() {
        for known in &KNOWN {
            assert!(Document::parse(known.schema.as_bytes(), Limits::default()).is_ok(), "{}", known.prefix);
        }
        for (kind, undoes) in [
            ("text_editor_20241022", true),
            ("text_editor_20250124", true),
            ("text_editor_20250429", false),
            ("text_editor_20250728", false),
        ] {
            assert_eq!(known(kind).unwrap().schema.contains("undo_edit"), undoes, "{kind}");
        }
        assert!(known("computer_20250124").is_none());
    }
}
