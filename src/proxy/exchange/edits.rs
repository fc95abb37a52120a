//! Judges the edits in the calls of an answer by what the workspace says of the files (ADR 0032).
//!
//! A guard asks about a call in the middle of a read, so that the companion is asked there too, by a blocking exchange over
//! a Unix socket: an answer waits for at most 50 ms in all, and a companion that was late is left alone for a while.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::call::{
    ByFacts, CallVerdict, EditBlock, EditTerms, FactsDeny, FileEdit, FileState, Judge, SeenCall, ShellTerms,
    Start, Tool, ToolCall,
};
use crate::provider::kind::edit::fit::ChangedFiles;
use crate::proxy::snapshot::Snapshot;
use crate::workspace::PATIENCE;
use crate::workspace::protocol::{WorkspaceAnswer, WorkspaceQuestion};

/// Judges as another judge does, and the edits of one answer besides.
pub(crate) struct EditJudge {
    judge: Arc<dyn Judge>,
    snapshot: Arc<Snapshot>,
    edits: AnswerEdits,
}

impl EditJudge {
    /// Judges edits where a policy asks for it and there is a workspace; else the judge alone does.
    pub(crate) fn over(judge: Arc<dyn Judge>, snapshot: &Arc<Snapshot>) -> Arc<dyn Judge> {
        if !snapshot.judges_edits() {
            return judge;
        }
        Arc::new(Self { judge, snapshot: Arc::clone(snapshot), edits: AnswerEdits::default() })
    }
}

/// What one answer has asked of the workspace, and what it changes.
pub(crate) struct AnswerEdits(Mutex<EditState>);

struct EditState {
    /// How long the answer may still wait.
    patience: Duration,
    changed: ChangedFiles,
}

impl Default for AnswerEdits {
    fn default() -> Self {
        Self(Mutex::new(EditState { patience: PATIENCE, changed: ChangedFiles::default() }))
    }
}

impl AnswerEdits {
    /// Says of a call what the workspace knows, where nothing else denies it.
    pub(crate) fn complete(
        &self,
        snapshot: &Snapshot,
        call: &ToolCall<'_>,
        verdict: CallVerdict,
    ) -> CallVerdict {
        let Some(terms) = snapshot.policy().edits().filter(|_| snapshot.judges_edits()) else {
            return verdict;
        };
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let EditState { patience, changed } = &mut *state;
        changed.judge(&terms, call, verdict, &mut |edit, blocks| {
            let asked = Instant::now();
            let answer = ask(snapshot, &terms, edit, (blocks, *patience));
            *patience = patience.saturating_sub(asked.elapsed());
            answer
        })
    }
}

/// What the workspace knows of a file; none where it does not say.
fn ask(
    snapshot: &Snapshot,
    terms: &EditTerms,
    edit: &FileEdit,
    (blocks, patience): (&[EditBlock], Duration),
) -> Option<FileState> {
    let question = WorkspaceQuestion::File {
        path: edit.path.clone(),
        directory: terms.directory.as_deref().map(str::to_owned),
        blocks: blocks.to_vec(),
    };
    match snapshot.workspace()?.ask_in_passing(&question, patience) {
        Ok(WorkspaceAnswer::File(state)) => Some(state),
        Ok(WorkspaceAnswer::Page(_) | WorkspaceAnswer::Refused(_)) => None,
        Err(error) => {
            tracing::debug!(%error, "an edit was not judged");
            None
        }
    }
}

impl Judge for EditJudge {
    fn denies(&self, writes: bool) -> bool {
        self.judge.denies(writes)
    }

    fn shell(&self) -> ShellTerms {
        self.judge.shell()
    }

    fn start(&self, tool: &Tool<'_>) -> Start {
        self.judge.start(tool)
    }

    fn complete(&self, call: &ToolCall<'_>) -> CallVerdict {
        self.edits.complete(&self.snapshot, call, self.judge.complete(call))
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
