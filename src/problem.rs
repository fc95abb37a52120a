//! One thing wrong in what a user wrote, and where it stands.

use std::fmt;

/// A problem in a policy, a settings file or a certificate, worded so that its author can mend it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file it stands in, as the user named it; empty where there is none.
    pub file: String,
    /// Line and column, both from 1, where the parser knows them.
    pub position: Option<(usize, usize)>,
    /// The field, in the form `spec.tools[2].when.any[0]`; empty for the whole document.
    pub path: String,
    /// What is wrong and what was expected.
    pub message: String,
}

impl Problem {
    /// A problem at a field.
    pub fn at(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { file: String::new(), position: None, path: path.into(), message: message.into() }
    }

    /// The same problem, said of a file.
    #[must_use]
    pub fn in_file(mut self, file: impl Into<String>) -> Self {
        self.file = file.into();
        self
    }
}

impl fmt::Display for Problem {
    /// `policy.yaml:12:5: spec.destinations[0].action: expected Inspect, Tunnel or Deny`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}:", self.file)?;
            if let Some((line, column)) = self.position {
                write!(f, "{line}:{column}:")?;
            }
            write!(f, " ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}
