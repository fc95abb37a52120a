//! Tools that a request offers: which of them the client runs, and which go.

use super::present;
use crate::call::Denial;
use crate::provider::request::{RequestEditor, definition};
use crate::wire::json::Value;

/// Types of tools that the client runs, whatever else they say (`Tool` of OpenAI's SDKs).
const CLIENT: [&str; 6] =
    ["function", "custom", "apply_patch", "local_shell", "computer", "computer_use_preview"];

/// The tools of a request that stay, for the places that name tools.
#[derive(Debug, Default)]
pub(super) struct OfferedTools {
    kept: Vec<NamedTool>,
    stripped: Vec<NamedTool>,
}

#[derive(Debug, PartialEq, Eq)]
struct NamedTool {
    kind: String,
    /// Which of several servers, of type `mcp`.
    server: Option<String>,
}

/// The rest of an array of tools.
pub(super) enum Sifted<'d> {
    /// All but these.
    Without(Vec<Value<'d>>),
    /// Nothing: the entry that holds the array is removed.
    Nothing,
}

/// Takes hosted tools out of an object's `tools`.
///
/// # Errors
/// If one of them may not be asked for, or cannot be read.
pub(super) fn read<'d>(
    editor: &mut RequestEditor<'d>,
    root: Value<'d>,
    offered: &mut OfferedTools,
) -> Result<(), Denial> {
    let Some(tools) = present(editor, root, "tools")? else { return Ok(()) };
    match sift(editor, tools, None, offered)? {
        Sifted::Without(removed) => removed.into_iter().try_for_each(|tool| editor.remove(tool)),
        Sifted::Nothing => editor.remove(tools),
    }
}

/// Asks about each of an array's tools, and edits nothing yet.
///
/// # Errors
/// As for [`read`].
pub(super) fn sift<'d>(
    editor: &mut RequestEditor<'d>,
    tools: Value<'d>,
    namespace: Option<&str>,
    offered: &mut OfferedTools,
) -> Result<Sifted<'d>, Denial> {
    let Some(items) = tools.items() else { return Err(Denial::unparseable("tools", "no array")) };
    let (mut removed, mut kept) = (Vec::new(), false);
    for tool in items {
        match sift_one(editor, tool, namespace, offered)? {
            Sifted::Without(inner) => {
                removed.extend(inner);
                kept = true;
            }
            Sifted::Nothing => removed.push(tool),
        }
    }
    Ok(if kept || removed.is_empty() { Sifted::Without(removed) } else { Sifted::Nothing })
}

fn sift_one<'d>(
    editor: &mut RequestEditor<'d>,
    tool: Value<'d>,
    namespace: Option<&str>,
    offered: &mut OfferedTools,
) -> Result<Sifted<'d>, Denial> {
    if let Some(duplicate) = tool.duplicate() {
        return Err(Denial::unparseable("tools", duplicate));
    }
    let Some(kind) = editor.get(tool, "type")?.and_then(Value::text) else {
        return Err(Denial::unparseable("tools", "a tool without a type"));
    };
    let name = editor.get(tool, "name")?.and_then(Value::text);
    if kind == "namespace"
        && let Some(inner) = present(editor, tool, "tools")?
    {
        let name = name.unwrap_or_default();
        let path = namespace.map_or_else(|| name.to_string(), |outer| format!("{outer}.{name}"));
        return sift(editor, inner, Some(&path), offered);
    }
    let server = editor.get(tool, "server_label")?.and_then(Value::text).map(Into::into);
    let named = NamedTool { kind: kind.to_string(), server };
    if kind != "namespace" && !is_client(editor, tool, &kind)? && editor.strips_tool(&kind)? {
        offered.stripped.push(named);
        return Ok(Sifted::Nothing);
    }
    offered.kept.push(named);
    let name = name.unwrap_or(kind);
    let name = namespace.map_or_else(|| name.to_string(), |outer| format!("{outer}.{name}"));
    editor.facts.tools.push(definition(&name, tool));
    Ok(Sifted::Without(Vec::new()))
}

/// Whether the client runs a tool of this type, as it is written here.
fn is_client<'d>(editor: &RequestEditor<'d>, tool: Value<'d>, kind: &str) -> Result<bool, Denial> {
    Ok(match kind {
        "shell" => match present(editor, tool, "environment")? {
            Some(environment) => editor.get(environment, "type")?.is_some_and(|kind| kind.says("local")),
            None => false,
        },
        "tool_search" => editor.get(tool, "execution")?.is_some_and(|by| by.says("client")),
        kind => CLIENT.contains(&kind),
    })
}

impl OfferedTools {
    /// Whether anything was taken out.
    pub(super) fn is_less(&self) -> bool {
        !self.stripped.is_empty()
    }

    /// Whether nothing is left to be called.
    pub(super) fn is_nothing(&self) -> bool {
        self.kept.is_empty()
    }

    /// Whether this object, which names a tool by its type and perhaps its server, names none that is left.
    pub(super) fn has_lost<'d>(&self, editor: &RequestEditor<'d>, name: Value<'d>) -> Result<bool, Denial> {
        let kind = editor.get(name, "type")?.and_then(Value::text);
        let server = editor.get(name, "server_label")?.and_then(Value::text);
        let is_meant = |named: &NamedTool| {
            let is_server = server.is_none() || named.server.as_deref() == server.as_deref();
            Some(named.kind.as_str()) == kind.as_deref() && is_server
        };
        Ok(self.stripped.iter().any(is_meant) && !self.kept.iter().any(is_meant))
    }

    /// Whether all tools of a family were taken out: `web_search` is that of `web_search_preview` too.
    pub(super) fn has_lost_family(&self, family: &str) -> bool {
        let is_of = |named: &NamedTool| {
            let rest = named.kind.strip_prefix(family);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        self.stripped.iter().any(is_of) && !self.kept.iter().any(is_of)
    }
}
