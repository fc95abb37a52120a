//! What a request says of a tool that it offers: its definition's digest, and whether calls of it may change files.

use std::slice;

use crate::call::{Kind, ToolDefinition};
use crate::provider::kind::{self, Offered};
use crate::wire::json::Value;

/// What a tool is called, the digest of its definition as it stands in the request, and what its parameters say.
pub(in crate::provider) fn definition(name: &str, definition: Value<'_>) -> ToolDefinition {
    ToolDefinition { shape: kind::shape(name, definition), ..hosted(name, definition) }
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
