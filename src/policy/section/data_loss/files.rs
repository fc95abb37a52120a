//! Files by their names: those that hold credentials, and places that are nobody's business (record.md, section 1.1).
//!
//! They count where a call names them as files; prose, code and listings name nothing.

use super::DataLoss;
use super::written::DetectorGroup;
use crate::call::{Kind, Tool, ToolCall};
use crate::decision::{Decision, Verdict};
use crate::policy::scope::PolicyScope;

/// Names of files that hold credentials, in lower case.
const FILES: &[&str] = &[
    ".dockercfg",
    ".env",
    ".git-credentials",
    ".htpasswd",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    "_netrc",
    "application_default_credentials.json",
    "credentials",
    "credentials.json",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
    "kubeconfig",
    "shadow",
];

/// Endings of such names.
const ENDINGS: &[&str] =
    &[".jks", ".kdbx", ".key", ".keystore", ".kubeconfig", ".p12", ".pem", ".pfx", ".ppk"];

/// Endings of `.env` files that are examples.
const EXAMPLES: &[&str] = &["default", "defaults", "dist", "example", "sample", "template"];

/// Directories that are protected with all that is in them.
const DIRECTORIES: &[&str] = &[".aws", ".azure", ".gnupg", ".kube", ".ssh", "gcloud", "secrets"];

/// The group that a path belongs to.
fn group(path: &str) -> Option<DetectorGroup> {
    let path = path.trim().to_lowercase().replace('\\', "/");
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let is_environment = matches!(parts[..], ["proc", _, "environ"]) && path.starts_with('/');
    if is_environment || parts.iter().any(|part| DIRECTORIES.contains(part)) {
        return Some(DetectorGroup::ProtectedPaths);
    }
    let name = parts.last()?;
    let is_environment = name.strip_prefix(".env.").is_some_and(|ending| !EXAMPLES.contains(&ending));
    let is_file =
        FILES.contains(name) || ENDINGS.iter().any(|ending| name.ends_with(ending)) || is_environment;
    is_file.then_some(DetectorGroup::CredentialFiles)
}

impl DataLoss {
    /// Whether calls that name files could be denied.
    pub(in crate::policy) fn denies_files(&self, scope: PolicyScope) -> bool {
        self.visible(scope).any(|part| part.stance.files.iter().any(|denies| *denies))
    }

    /// The same of a tool.
    pub(in crate::policy) fn is_about(&self, tool: &Tool<'_>, scope: PolicyScope) -> bool {
        let names = |kind: &Kind| matches!(kind, Kind::Read | Kind::Write | Kind::Shell);
        self.denies_files(scope) && tool.kinds.iter().any(names)
    }

    /// The denial of a call that names a file of a group which a policy denies.
    pub(in crate::policy) fn file_denial(&self, call: &ToolCall<'_>, scope: PolicyScope) -> Option<Decision> {
        if !self.denies_files(scope) {
            return None;
        }
        let facts = call.facts.into_iter().chain(call.derived);
        let groups: Vec<DetectorGroup> =
            facts.flat_map(|facts| &facts.paths).filter_map(|path| group(path)).collect();
        self.visible(scope).find_map(|part| {
            let denied = groups.iter().find(|group| part.stance.denies_group(**group))?;
            let reason = match denied {
                DetectorGroup::ProtectedPaths => "The call names a protected place (ProtectedPaths)",
                DetectorGroup::CredentialFiles | DetectorGroup::Secrets => {
                    "The call names a file that holds credentials (CredentialFiles)"
                }
            };
            Some(Decision::by(part.rule.clone(), Verdict::Deny, reason))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_names_and_places() {
        for path in [
            ".env",
            "/w/.env.local",
            "a/id_rsa",
            "~/.netrc",
            "C:\\Users\\a\\.npmrc",
            "tls/server.key",
            "x.PEM",
        ] {
            assert_eq!(group(path), Some(DetectorGroup::CredentialFiles), "{path}");
        }
        for path in [
            "~/.ssh/config",
            "/home/a/.aws/credentials",
            "/proc/self/environ",
            "/var/run/secrets/k/token",
            "/home/a/.kube/config",
        ] {
            assert_eq!(group(path), Some(DetectorGroup::ProtectedPaths), "{path}");
        }
        for path in [
            ".env.example",
            "id_rsa.pub",
            "src/environ.rs",
            "docs/secrets.md",
            "keys.rs",
            "proc/1/environ.txt",
            "",
        ] {
            assert_eq!(group(path), None, "{path}");
        }
    }
}
