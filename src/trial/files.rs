//! The files of the workspace that a test says: edits of calls are judged by them, as the gateway does by its companion's.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::call::{
    ByFacts, CallVerdict, EditBlock, FactsDeny, FileState, Judge, SeenCall, ShellTerms, Start, Tool,
    ToolCall, edit,
};
use crate::policy::Policy;
use crate::provider::kind::edit::fit::ChangedFiles;
use crate::workspace::occurrences;

/// Texts by their paths; relative ones begin where those of calls do (`shell.directory`).
pub type Files = BTreeMap<PathBuf, String>;

/// Judges as another judge does, and the edits of one answer besides.
pub(super) struct FilesJudge {
    judge: Arc<dyn Judge>,
    policy: Arc<Policy>,
    files: Files,
    changed: Mutex<ChangedFiles>,
}

impl FilesJudge {
    /// Judges edits by these files; without any, as a gateway without a workspace, which judges none.
    pub(super) fn over(judge: Arc<dyn Judge>, policy: &Arc<Policy>, files: Option<&Files>) -> Arc<dyn Judge> {
        match files {
            None => judge,
            Some(files) => {
                let (policy, files) = (Arc::clone(policy), files.clone());
                Arc::new(Self { judge, policy, files, changed: Mutex::default() })
            }
        }
    }

    /// Returns what is known of a file.
    fn state(&self, path: &str, directory: Option<&str>, blocks: &[EditBlock]) -> Option<FileState> {
        let asked = located(Path::new(path), directory);
        let found = self.files.iter().find(|(path, _)| located(path, directory) == asked);
        match found {
            Some((_, text)) if text.contains('\0') => Some(FileState::NotText),
            Some((_, text)) => occurrences::state(text, blocks, || false),
            None => Some(FileState::Missing),
        }
    }
}

/// A path below the directory where relative ones begin.
fn located(path: &Path, directory: Option<&str>) -> PathBuf {
    let whole = Path::new(directory.unwrap_or_default()).join(path);
    whole.components().filter(|part| *part != Component::CurDir).collect()
}

impl Judge for FilesJudge {
    fn denies(&self, writes: bool) -> bool {
        self.judge.denies(writes)
    }

    fn shell(&self) -> ShellTerms {
        self.judge.shell()
    }

    fn start(&self, tool: &Tool<'_>) -> Start {
        edit::start(self.policy.edits().as_ref(), tool, self.judge.start(tool))
    }

    fn complete(&self, call: &ToolCall<'_>) -> CallVerdict {
        let verdict = self.judge.complete(call);
        let Some(terms) = self.policy.edits() else { return verdict };
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        changed.judge(&terms, call, verdict, &mut |edit, blocks| {
            self.state(&edit.path, terms.directory.as_deref(), blocks)
        })
    }

    fn unknown(&self, tool: &Tool<'_>) -> CallVerdict {
        self.judge.unknown(tool)
    }

    fn facts_deny(&self) -> FactsDeny {
        self.judge.facts_deny()
    }

    fn by_facts(&self, call: &SeenCall<'_>) -> ByFacts {
        self.judge.by_facts(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_begins_in_the_directory_of_the_policy() {
        assert_eq!(located(Path::new("./a/b"), Some("/w")), Path::new("/w/a/b"));
        assert_eq!(located(Path::new("/a/./b"), Some("/w")), Path::new("/a/b"));
        assert_eq!(located(Path::new("./a"), None), Path::new("a"));
    }
}
