//! Reads the definition of a tool: its digest, and whether calls of it may change files.

use std::slice;
use std::sync::LazyLock;

use quick_cache::sync::Cache;

use crate::call::{Kind, ToolDefinition};
use crate::provider::kind::{self, Offered};
use crate::wire::json::Value;

/// Tools by their definitions: a conversation repeats them in every turn, and to compare a definition with a remembered
/// one costs a tenth of its digest.
static SEEN: LazyLock<Cache<Box<str>, ToolDefinition>> = LazyLock::new(|| Cache::new(256));

/// The longest definition that is remembered, in bytes: all of them stay below some MiB.
const REMEMBERED: usize = 16 << 10;

/// Returns a tool's name, the digest of its definition's bytes, and the shape of its parameters.
pub(in crate::provider) fn definition(name: &str, definition: Value<'_>) -> ToolDefinition {
    let raw = definition.raw();
    // The same definition may stand in another namespace, where the tool has another name.
    if let Some(tool) = SEEN.get(raw).filter(|tool| tool.name == name) {
        return tool;
    }
    let tool = ToolDefinition { shape: kind::shape(name, definition), ..hosted(name, definition) };
    if name.len() + raw.len() <= REMEMBERED {
        SEEN.insert(raw.into(), tool.clone());
    }
    tool
}

/// Returns a hosted tool's name and digest, without a shape: nothing runs here.
pub(in crate::provider) fn hosted(name: &str, definition: Value<'_>) -> ToolDefinition {
    let sha256 = crate::digest::sha256_hex(definition.raw().as_bytes());
    ToolDefinition { name: name.to_owned(), sha256, shape: None }
}

/// Whether a call of this tool may change files: by itself, or by other calls that it holds.
pub(in crate::provider) fn may_write(tool: &ToolDefinition) -> bool {
    let known = kind::tool(&tool.name, None, false, &Offered::new(slice::from_ref(tool)));
    // Nothing is inferred of a tool that has no definition here: the provider runs it.
    let counts = tool.shape.is_some() || !known.is_inferred();
    (counts && known.kinds.iter().any(|kind| matches!(kind, Kind::Write | Kind::Shell)))
        || kind::wrapper(&tool.name).is_some()
}
