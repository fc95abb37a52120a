//! Tokens of an answer of Anthropic Messages, as its stream says them one after another.

use crate::call::Usage;
use crate::wire::json::Value;

/// The counts so far. Input is counted in three parts that do not overlap.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    input: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    output: Option<u64>,
    thinking: Option<u64>,
}

impl Tokens {
    /// Takes the next `usage`. Numbers are of the whole answer so far; what is absent or null stays as it was.
    pub(super) fn take(&mut self, usage: Value<'_>) {
        let details = usage.get("output_tokens_details").ok().flatten();
        update(&mut self.input, usage, "input_tokens");
        update(&mut self.cache_read, usage, "cache_read_input_tokens");
        update(&mut self.cache_write, usage, "cache_creation_input_tokens");
        update(&mut self.output, usage, "output_tokens");
        if let Some(details) = details {
            update(&mut self.thinking, details, "thinking_tokens");
        }
    }

    pub(super) fn usage(&self) -> Usage {
        let parts = [self.input, self.cache_read, self.cache_write];
        let input = parts.iter().flatten().copied().reduce(u64::saturating_add);
        Usage {
            input,
            output: self.output,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            reasoning: self.thinking,
        }
    }
}

fn update(tokens: &mut Option<u64>, usage: Value<'_>, key: &str) {
    let number = usage.get(key).ok().flatten().and_then(Value::number_text);
    if let Some(number) = number.and_then(|number| number.parse().ok()) {
        *tokens = Some(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::json::{Document, Limits};

    fn taken(said: &[&str]) -> Usage {
        let mut tokens = Tokens::default();
        for usage in said {
            tokens.take(Document::parse(usage.as_bytes(), Limits::default()).unwrap().root());
        }
        tokens.usage()
    }

    #[test]
    fn all_input_counts_whether_it_came_from_a_cache_or_not() {
        let usage = r#"{"input_tokens":3,"cache_read_input_tokens":40,"cache_creation_input_tokens":500,
            "output_tokens":7,"output_tokens_details":{"thinking_tokens":5}}"#;
        let expected = Usage {
            input: Some(543),
            output: Some(7),
            cache_read: Some(40),
            cache_write: Some(500),
            reasoning: Some(5),
        };
        assert_eq!(taken(&[usage]), expected);
    }

    #[test]
    fn a_later_number_stands_in_the_place_of_the_earlier_and_null_changes_nothing() {
        let usage = taken(&[
            r#"{"input_tokens":3,"cache_read_input_tokens":40,"output_tokens":1}"#,
            r#"{"input_tokens":null,"output_tokens":65}"#,
            r#"{"input_tokens":9,"output_tokens":66}"#,
        ]);
        assert_eq!((usage.input, usage.output, usage.cache_read), (Some(49), Some(66), Some(40)));
        assert_eq!(taken(&[r#"{"output_tokens":1.5}"#]), Usage::default());
    }
}
