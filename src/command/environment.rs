//! The environment of this process: its variables, and what they say about interception.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::tls::gate::Surroundings;

/// Returns a variable of the environment; none where it is not UTF-8.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).and_then(|value| value.into_string().ok())
}

/// Returns whether this process is to end TLS, and whether it runs in Kubernetes.
pub(crate) fn read() -> Surroundings {
    Surroundings {
        intercept: std::env::var_os("POSTERN_INTERCEPT").is_some_and(|value| value == "1"),
        kubernetes: std::env::var_os("KUBERNETES_SERVICE_HOST").is_some_and(|value| !value.is_empty()),
    }
}

/// Keeps those files of roots that were there when this process first looked: one that appears later may be somebody
/// else's.
pub(crate) fn keep_first_roots(files: &mut Vec<PathBuf>) {
    static FIRST: OnceLock<BTreeSet<PathBuf>> = OnceLock::new();
    let first = FIRST.get_or_init(|| files.iter().filter(|file| file.exists()).cloned().collect());
    files.retain(|file| first.contains(file));
}
