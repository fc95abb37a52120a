//! Where tool results that are cut out of requests are kept, and how much of them.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::value;
use crate::evidence::EvidenceTerms;
use crate::file_path::FilePath;
use crate::pod::EVIDENCE_DIRECTORY;
use crate::problem::Problem;

/// Ages from this to that: a file is touched once a minute, and no conversation rests for longer.
const LEAST_AGE: Duration = Duration::from_secs(5 * 60);
const MOST_AGE: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// The least bytes that are worth keeping.
const LEAST_BYTES: u64 = 1 << 20;

/// The longest `agentPath`: it is in each text that a model reads in the place of what was left out.
const LONGEST_PATH: usize = 256;

/// Settings of `evidence`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct EvidenceSettings {
    /// The directory that the gateway writes; it must be there.
    pub directory: FilePath,
    /// The same directory as the agent reads it. Without it, markers name the gateway's own address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_path: Option<String>,
    /// How long a text is kept after a request last carried it.
    #[serde(deserialize_with = "value::duration", serialize_with = "value::show_duration")]
    pub max_age: Duration,
    /// How large the files may become together, in bytes.
    #[serde(deserialize_with = "value::size")]
    pub max_bytes: u64,
    /// Whether `/mcp` has the tool `read_evidence`.
    pub mcp: bool,
}

impl Default for EvidenceSettings {
    fn default() -> Self {
        Self {
            directory: FilePath::default(),
            agent_path: None,
            max_age: Duration::from_secs(24 * 60 * 60),
            max_bytes: 256 << 20,
            mcp: false,
        }
    }
}

impl EvidenceSettings {
    /// What is wrong with them.
    pub(super) fn mistakes(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut add = |field: &str, message: &str| problems.push(Problem::at(field, message));
        if self.directory.as_os_str().is_empty() {
            add("evidence.directory", "is required: where the gateway writes tool results");
        }
        if let Some(why) = self.agent_path.as_deref().and_then(refuse_path) {
            add("evidence.agentPath", why);
        }
        if !(LEAST_AGE..=MOST_AGE).contains(&self.max_age) {
            add("evidence.maxAge", "must be from 5m to 90d");
        }
        if self.max_bytes < LEAST_BYTES {
            add("evidence.maxBytes", "must be 1MiB or more");
        }
        problems
    }

    /// Whether the directory is the volume that injected pods have for it.
    pub fn is_a_pods_volume(&self) -> bool {
        &*self.directory == Path::new(EVIDENCE_DIRECTORY)
    }

    /// The same in a pod whose volume was made for so many bytes: kubelet ends a pod whose volume is over its limit.
    #[must_use]
    pub fn fitting(mut self, bytes: Option<u64>) -> Self {
        if let Some(bytes) = bytes.filter(|_| self.is_a_pods_volume()) {
            self.max_bytes = self.max_bytes.min(bytes.max(LEAST_BYTES));
        }
        self
    }

    /// What the store needs of them.
    pub fn terms(&self) -> EvidenceTerms {
        EvidenceTerms {
            directory: self.directory.to_path_buf(),
            agent_path: self.agent_path.clone(),
            max_age: self.max_age,
            max_bytes: self.max_bytes,
            offers_tool: self.mcp,
        }
    }
}

/// Why this is no path that an agent reads in a marker, and by which it finds a file.
pub(crate) fn refuse_path(path: &str) -> Option<&'static str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'-');
    let is_odd = |segment: &str| matches!(segment, "" | "." | "..");
    let segments = path.strip_prefix('/').map(|rest| rest.trim_end_matches('/').split('/'));
    match segments {
        None => Some("must be absolute: the directory as the agent's own processes read it"),
        Some(_) if path.len() > LONGEST_PATH => Some("must have 256 characters at most"),
        Some(_) if !path.bytes().all(is_plain) => {
            Some("may have letters, digits, `/`, `.`, `_` and `-` alone")
        }
        Some(mut segments) => {
            segments.any(is_odd).then_some("must be a directory below `/`, without `.`, `..` or `//`")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_for_agents_is_absolute_and_plain() {
        for path in ["/run/postern/evidence", "/e", "/home/me/.local/state/postern/evidence/"] {
            assert_eq!(refuse_path(path), None, "{path}");
        }
        let long = format!("/{}", "x".repeat(LONGEST_PATH));
        for path in
            ["", "/", "run/e", "./e", "/a/../b", "/a/./b", "//a", "/a//b", "/a b", "/a\n", "/\u{e9}", &long]
        {
            assert!(refuse_path(path).is_some(), "{path:?}");
        }
    }

    #[test]
    fn in_a_pod_no_more_is_kept_than_its_volume_was_made_for() {
        let at = |directory: &str, bytes| {
            let settings = EvidenceSettings { directory: directory.into(), ..EvidenceSettings::default() };
            settings.fitting(bytes).max_bytes
        };
        assert_eq!(at(EVIDENCE_DIRECTORY, Some(64 << 20)), 64 << 20);
        assert_eq!(at(EVIDENCE_DIRECTORY, Some(1 << 30)), 256 << 20);
        assert_eq!(at(EVIDENCE_DIRECTORY, None), 256 << 20);
        assert_eq!(at("/data", Some(64 << 20)), 256 << 20);
    }
}
