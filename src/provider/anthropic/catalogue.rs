//! Which tools of Anthropic Messages the client executes, and what belongs together of those that the provider does.

/// The types in `tools[]` that the client executes; an entry without a type is `custom`. Every other type is taken for
/// one that the provider executes, so that a new one is closed until somebody has looked at it.
const CLIENT: [&str; 13] = [
    "custom",
    "bash_20241022",
    "bash_20250124",
    "text_editor_20241022",
    "text_editor_20250124",
    "text_editor_20250429",
    "text_editor_20250728",
    "computer_20241022",
    "computer_20250124",
    "computer_20251124",
    "memory_20250818",
    "computer_toolset_20260801",
    "browser_toolset_20260801",
];

/// The tool that connects to MCP servers, declared in `tools[]` or by `mcp_servers` alone.
pub(super) const MCP_TOOLSET: &str = "mcp_toolset";

/// The type by which policy is asked about `container` and `container_upload` in a request without code execution.
pub(super) const CONTAINER: &str = "container";

pub(super) const CODE_EXECUTION: &str = "code_execution";
pub(super) const TOOL_SEARCH: &str = "tool_search_tool";
pub(super) const WEB_FETCH: &str = "web_fetch";
pub(super) const ADVISOR: &str = "advisor";

/// Whether the client executes tools of exactly this type.
pub(super) fn is_client(tool_type: &str) -> bool {
    CLIENT.contains(&tool_type)
}

/// The `toolset_name` in calls of a toolset; none if it is no toolset of the client.
pub(super) fn toolset(tool_type: &str) -> Option<&'static str> {
    match tool_type {
        "computer_toolset_20260801" => Some("computer"),
        "browser_toolset_20260801" => Some("browser"),
        _ => None,
    }
}

/// Whether a type is some version of a family. Nothing is allowed or denied by this, only kept consistent.
pub(super) fn is_of(tool_type: &str, family: &str) -> bool {
    tool_type.strip_prefix(family).is_some_and(|version| version.is_empty() || version.starts_with('_'))
}

/// The family of the tool that a `server_tool_use` of this name belongs to.
pub(super) fn family(call: &str) -> &str {
    match call {
        "bash_code_execution" | "text_editor_code_execution" => CODE_EXECUTION,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_types_are_the_clients() {
        for kept in CLIENT {
            assert!(is_client(kept), "{kept}");
        }
        for other in
            ["bash", "bash_20270101", "Custom", "custom ", "", "web_search_20250305", "memory_2025081"]
        {
            assert!(!is_client(other), "{other}");
        }
    }

    #[test]
    fn versions_of_a_family_belong_together() {
        assert!(is_of("code_execution_20260120", CODE_EXECUTION));
        assert!(is_of("tool_search_tool_regex", TOOL_SEARCH));
        assert!(is_of("web_fetch", WEB_FETCH));
        assert!(!is_of("web_fetcher_20260101", WEB_FETCH));
        assert!(is_of("code_execution_20250825", family("bash_code_execution")));
    }
}
