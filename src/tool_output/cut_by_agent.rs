//! Results that the agent itself has shortened already: what a cut would keep is not all of them, and must not be called that.

/// Whether an agent says in a text that it left a part of it out.
///
/// Claude Code 2.1.330 does so in the middle of what a failed command printed, Codex 0.169.0 in the middle and at the
/// beginning, the Gemini CLI 0.61.0 too. A tool that prints the same words has its result left as it is.
pub fn is_cut_by_agent(text: &str) -> bool {
    starts_shortened(text)
        || has_gap(text, "\n... [", " characters truncated] ...\n")
        || has_gap(text, "…", " tokens truncated…")
}

fn starts_shortened(text: &str) -> bool {
    const STARTS: &[&str] = &[
        "<persisted-output>\n",
        "Warning: truncated output (original token count: ",
        "Output too large. Showing first ",
    ];
    STARTS.iter().any(|start| text.starts_with(start))
}

/// Whether a number stands between these words.
fn has_gap(text: &str, before: &str, after: &str) -> bool {
    memchr::memmem::find_iter(text.as_bytes(), after).any(|at| {
        let text = text.get(..at).unwrap_or_default();
        let rest = text.trim_end_matches(|c: char| c.is_ascii_digit() || c == ',');
        rest.len() < text.len() && rest.ends_with(before)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_s_own_words_are_known() {
        for text in [
            "<persisted-output>\nOutput too large (157.1KB). Full output saved to: /home/dev/.claude/a.txt\n",
            "Exit code 1\ntest_a PASSED\ntest_shop.py::test\n\n... [19977 characters truncated] ...\n\n15%]\ntest_b PASSED\n",
            "Warning: truncated output (original token count: 40219)\nTotal output lines: 2019\n\n====\n",
            "test_refund_0245 PASSED      …30219 tokens truncated…       [ 87%]\n",
            "Output too large. Showing first 8,000 and last 32,000 characters. For full output see: /home/dev/a.txt\n",
        ] {
            assert!(is_cut_by_agent(text), "{text}");
        }
    }

    #[test]
    fn words_that_only_sound_like_them_are_not() {
        for text in [
            "",
            "... [characters truncated] ...\n",
            "\n... [ characters truncated] ...\n",
            "log: 12 characters truncated] ...\n",
            "… tokens truncated…",
            "a test of truncated output (original token count: 3)",
            "the file says: Output too large. Showing first 8,000",
        ] {
            assert!(!is_cut_by_agent(text), "{text}");
        }
    }
}
