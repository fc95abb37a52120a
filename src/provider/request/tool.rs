//! What a request says of a tool that it offers: its definition's digest, and whether calls of it may change files.

use crate::call::{Kind, ToolDefinition};
use crate::provider::answer::{Form, wraps};
use crate::provider::kind;
use crate::wire::json::Value;

/// What a tool is called, and the digest of its definition as it stands in the request.
pub(in crate::provider) fn definition(name: &str, definition: Value<'_>) -> ToolDefinition {
    ToolDefinition { name: name.to_owned(), sha256: crate::digest::sha256_hex(definition.raw().as_bytes()) }
}

/// Whether a call of this tool may change files: by itself, or by other calls that it holds.
pub(in crate::provider) fn may_write(name: &str) -> bool {
    kind::tool(name, None, false).kinds.contains(&Kind::Write)
        || [Form::Json, Form::Text].into_iter().any(|form| wraps(name, form))
}
