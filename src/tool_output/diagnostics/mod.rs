//! Tells lines that look like diagnostics of compilers, linters and test runners.

/// Whether a line, without its break, looks like a diagnostic.
pub fn is_diagnostic(line: &str) -> bool {
    line.starts_with("error") || line.contains(": error")
}
