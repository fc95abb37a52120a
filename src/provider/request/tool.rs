//! What a request says of a tool that it offers: its definition's digest, and whether calls of it may change files.

use std::slice;
use std::sync::LazyLock;

use quick_cache::sync::Cache;

use crate::call::{Kind, Shape, ToolDefinition};
use crate::provider::kind::{self, Offered};
use crate::wire::json::Value;

/// What definitions say, by the tool's name and the definition's digest: a conversation repeats its tools in every turn,
/// and to read one costs several times its digest.
static SHAPES: LazyLock<Cache<(String, String), Option<Shape>>> = LazyLock::new(|| Cache::new(512));

/// The longest definition of which that is remembered, in bytes, so that all of it stays below some MiB.
const REMEMBERED: usize = 4 << 10;

/// What a tool is called, the digest of its definition as it stands in the request, and what its parameters say.
pub(in crate::provider) fn definition(name: &str, definition: Value<'_>) -> ToolDefinition {
    let tool = hosted(name, definition);
    let read = || kind::shape(name, definition);
    if name.len() + definition.raw().len() > REMEMBERED {
        return ToolDefinition { shape: read(), ..tool };
    }
    let key = (tool.name, tool.sha256);
    let shape = SHAPES.get(&key).unwrap_or_else(|| {
        let shape = read();
        SHAPES.insert(key.clone(), shape.clone());
        shape
    });
    ToolDefinition { name: key.0, sha256: key.1, shape }
}

/// The same of a tool that the provider runs: its parameters say nothing of what happens here.
pub(in crate::provider) fn hosted(name: &str, definition: Value<'_>) -> ToolDefinition {
    let sha256 = crate::digest::sha256_hex(definition.raw().as_bytes());
    ToolDefinition { name: name.to_owned(), sha256, shape: None }
}

/// Whether a call of this tool may change files: by itself, or by other calls that it holds.
pub(in crate::provider) fn may_write(tool: &ToolDefinition) -> bool {
    let known = kind::tool(&tool.name, None, false, &Offered::new(slice::from_ref(tool)));
    // Nothing is inferred of a tool that has no definition here: the provider runs it.
    let counts = tool.shape.is_some() || !known.is_inferred();
    (counts && known.kinds.contains(&Kind::Write)) || kind::wrapper(&tool.name).is_some()
}
