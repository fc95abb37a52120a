//! What is told of a tool that a request offers.

use aws_lc_rs::digest::{SHA256, digest};

use crate::call::ToolDefinition;
use crate::wire::json::Value;

/// A tool by its name, and by the hash of its definition as it stands in the request.
pub(super) fn of(name: &str, definition: Value<'_>) -> ToolDefinition {
    let hash = digest(&SHA256, definition.raw().as_bytes());
    let sha256 = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    ToolDefinition { name: name.to_owned(), sha256 }
}
