//! Judges calls that would write what a secret was replaced by, and so destroy the secret in the file.

use std::sync::Arc;

use serde_json::Value;

use super::{
    ByFacts, CallVerdict, FactsDeny, Input, Judge, Kind, SeenCall, ShellTerms, Start, Tool, ToolCall,
};

/// What every replacement begins with.
pub const PLACEHOLDER: &str = "[postern:";

const REASON: &str =
    "The value was withheld: leave that line as it is, or refer to the value by a variable or a file";

const UNKNOWN: &str =
    "A value was withheld, and only running the script would tell whether it writes what stands for it";

/// Judges as another judge does, for an answer to a request in which secrets were replaced.
pub struct Withheld(pub Arc<dyn Judge>);

/// What phase one says of a tool then: a call that may write waits for its input.
pub fn start(tool: &Tool<'_>, start: Start) -> Start {
    match start {
        Start::Allow(_) | Start::Observe if writes(tool) => Start::NeedsInput,
        start @ (Start::Allow(_) | Start::Observe | Start::Deny(_) | Start::NeedsInput) => start,
    }
}

/// What phase two says of a call then.
pub fn complete(call: &ToolCall<'_>, verdict: CallVerdict) -> CallVerdict {
    if verdict.decision.denies() || !writes(&call.tool) || !holds(&call.input) {
        return verdict;
    }
    CallVerdict::builtin("redacted-value", REASON)
}

/// What becomes of a call then whose input nobody can know before it runs: it may hold one.
pub fn unknown(tool: &Tool<'_>, verdict: CallVerdict) -> CallVerdict {
    if verdict.decision.denies() || !writes(tool) {
        return verdict;
    }
    CallVerdict::builtin("redacted-value", UNKNOWN)
}

fn writes(tool: &Tool<'_>) -> bool {
    tool.kinds.iter().any(|kind| matches!(kind, Kind::Write | Kind::Shell))
}

fn holds(input: &Input<'_>) -> bool {
    match input {
        Input::Json(value) => value_holds(value),
        Input::Text(text) => text.contains(PLACEHOLDER),
    }
}

fn value_holds(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(PLACEHOLDER),
        Value::Array(items) => items.iter().any(value_holds),
        Value::Object(entries) => {
            entries.iter().any(|(key, value)| key.contains(PLACEHOLDER) || value_holds(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

impl Judge for Withheld {
    fn denies(&self, writes: bool) -> bool {
        writes || self.0.denies(writes)
    }

    fn shell(&self) -> ShellTerms {
        self.0.shell()
    }

    fn start(&self, tool: &Tool<'_>) -> Start {
        start(tool, self.0.start(tool))
    }

    fn complete(&self, call: &ToolCall<'_>) -> CallVerdict {
        complete(call, self.0.complete(call))
    }

    fn unknown(&self, tool: &Tool<'_>) -> CallVerdict {
        unknown(tool, self.0.unknown(tool))
    }

    fn facts_deny(&self) -> FactsDeny {
        self.0.facts_deny()
    }

    fn by_facts(&self, call: &SeenCall<'_>) -> ByFacts {
        self.0.by_facts(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_can_know_before_it_runs_is_not_written() {
        let shell = Tool { kinds: &[Kind::Shell], ..Tool::named("exec") };
        let denied = unknown(&shell, CallVerdict::allowed());
        assert_eq!(denied.decision.rule_id(), "postern/builtin/redacted-value");
        assert!(!unknown(&Tool::named("look_up"), CallVerdict::allowed()).decision.denies());
    }
}
