//! Judges the edits in the calls of an answer by what the workspace says of the files (ADR 0032).
//!
//! A guard asks about a call in the middle of a read, so that the companion is asked there too, by a blocking exchange over
//! a Unix socket: an answer waits for at most 50 ms in all, and a companion that was late is left alone for a while.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::call::{
    ByFacts, CallVerdict, EditBlock, EditCheck, EditTerms, FactsDeny, FileChange, FileEdit, FileState, Judge,
    Judgement, Kind, SeenCall, ShellTerms, Start, Tool, ToolCall,
};
use crate::decision::Decision;
use crate::provider::kind::edit;
use crate::proxy::snapshot::Snapshot;
use crate::terminal;
use crate::workspace::PATIENCE;
use crate::workspace::protocol::{WorkspaceAnswer, WorkspaceQuestion};

/// The most files of one answer that are remembered as changed.
const MOST_CHANGED: usize = 1024;

/// The longest path that a refusal shows, in characters.
const SHOWN: usize = 160;

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
    /// The files that allowed calls of the answer change, as they name them: what the calls find there is not there yet.
    changed: BTreeSet<String>,
}

impl Default for AnswerEdits {
    fn default() -> Self {
        Self(Mutex::new(EditState { patience: PATIENCE, changed: BTreeSet::new() }))
    }
}

/// An edit that does not fit its file.
struct Misfit {
    is_overwrite: bool,
    reason: String,
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
        if verdict.decision.denies() {
            return verdict;
        }
        let mut verdict = verdict;
        if writes(call) {
            for edit in edit::edits(call.tool.name, call.tool.namespace, call.input) {
                let Some((check, misfit)) = self.check(snapshot, &terms, &edit) else { continue };
                verdict.edit = verdict.edit.max(Some(check));
                if let Some(misfit) = misfit {
                    verdict = apply(&terms, &misfit, verdict);
                }
                if verdict.decision.denies() {
                    return verdict;
                }
            }
        }
        self.remember(call);
        verdict
    }

    /// Remembers the files that an allowed call changes.
    fn remember(&self, call: &ToolCall<'_>) {
        let own = call.facts.into_iter().chain(call.derived);
        let paths = own.filter(|facts| facts.kind == Kind::Write).flat_map(|facts| &facts.paths);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for path in paths {
            if state.changed.len() < MOST_CHANGED {
                state.changed.insert(path.clone().into_owned());
            }
        }
    }

    /// What the workspace says of one edit; none where no policy asks.
    fn check(
        &self,
        snapshot: &Snapshot,
        terms: &EditTerms,
        edit: &FileEdit,
    ) -> Option<(EditCheck, Option<Misfit>)> {
        let is_asked = |judgement: &Judgement| {
            judgement.denies() || judgement.decision.would_deny() || judgement.audited.is_some()
        };
        let (is_overwrite, blocks) = match &edit.change {
            FileChange::Overwrite if is_asked(&terms.overwrite) => (true, &[][..]),
            FileChange::Replace(blocks) if is_asked(&terms.mismatch) => (false, blocks.as_slice()),
            FileChange::Overwrite | FileChange::Replace(_) => return None,
        };
        let patience = {
            let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if !is_overwrite && state.changed.contains(&edit.path) {
                return Some((EditCheck::Pending, None));
            }
            state.patience
        };
        let Some(state) = self.ask(snapshot, terms, edit, (blocks, patience)) else {
            return Some((EditCheck::Unavailable, None));
        };
        let FileState::Text { bytes, sha256, counts } = state else { return Some((EditCheck::NoText, None)) };
        let path = || shown(&edit.path);
        let reason = if is_overwrite {
            (bytes > 0).then(|| overwriting(&path(), bytes, &sha256))
        } else {
            mismatch(blocks, &counts).map(|found| found.reason(&path(), &sha256))
        };
        Some(match reason {
            Some(reason) => (EditCheck::Misses, Some(Misfit { is_overwrite, reason })),
            None => (EditCheck::Fits, None),
        })
    }

    /// What the workspace knows of a file; none where it does not say.
    fn ask(
        &self,
        snapshot: &Snapshot,
        terms: &EditTerms,
        edit: &FileEdit,
        (blocks, patience): (&[EditBlock], Duration),
    ) -> Option<FileState> {
        let workspace = snapshot.workspace()?;
        let question = WorkspaceQuestion::File {
            path: edit.path.clone(),
            directory: terms.directory.as_deref().map(str::to_owned),
            blocks: blocks.to_vec(),
        };
        let asked = Instant::now();
        let answer = workspace.ask_in_passing(&question, patience);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.patience = state.patience.saturating_sub(asked.elapsed());
        match answer {
            Ok(WorkspaceAnswer::File(state)) => Some(state),
            Ok(WorkspaceAnswer::Page(_) | WorkspaceAnswer::Refused(_)) => None,
            Err(error) => {
                tracing::debug!(%error, "an edit was not judged");
                None
            }
        }
    }
}

/// Whether a call is asked about as one that writes.
fn writes(call: &ToolCall<'_>) -> bool {
    match call.facts {
        Some(facts) => facts.kind == Kind::Write,
        None => call.tool.kinds.contains(&Kind::Write),
    }
}

/// Adds what policies say of an edit that does not fit.
fn apply(terms: &EditTerms, misfit: &Misfit, verdict: CallVerdict) -> CallVerdict {
    let Judgement { decision, audited } =
        if misfit.is_overwrite { terms.overwrite.clone() } else { terms.mismatch.clone() };
    let because = |decision| Decision { reason: Some(misfit.reason.clone().into()), ..decision };
    let mut verdict = verdict;
    verdict.audited.extend(audited.filter(Decision::would_deny).map(because));
    if decision.denies() || (decision.would_deny() && !verdict.decision.would_deny()) {
        verdict.decision = because(decision);
    } else if decision.would_deny() {
        verdict.audited.push(because(decision));
    }
    verdict
}

fn overwriting(path: &str, bytes: u64, sha256: &str) -> String {
    format!(
        "{path} is there already, a text of {bytes} bytes with the SHA-256 {sha256}. Read it, then change it by an edit, \
         or write another file"
    )
}

/// The first block that does not fit.
struct Mismatch {
    /// From 1.
    number: usize,
    blocks: usize,
    count: u64,
    is_patch: bool,
}

/// The first of these blocks that stands in the file otherwise than it has to.
fn mismatch(blocks: &[EditBlock], counts: &[u64]) -> Option<Mismatch> {
    let mut counted = blocks.iter().zip(counts).zip(1..);
    let ((block, count), number) = counted.find(|((block, count), _)| !block.expected().fits(**count))?;
    let is_patch = matches!(block, EditBlock::Lines { .. });
    Some(Mismatch { number, blocks: blocks.len(), count: *count, is_patch })
}

impl Mismatch {
    fn reason(&self, path: &str, sha256: &str) -> String {
        let Self { number, blocks, count, is_patch } = *self;
        let of = if blocks == 1 { String::new() } else { format!(", block {number} of {blocks}") };
        let stands = match (is_patch, count) {
            (true, _) => {
                "the lines that the patch takes for granted do not stand there, in their order".to_owned()
            }
            (false, 0) => "the text to replace stands there 0 times".to_owned(),
            (false, count) => {
                format!("the text to replace stands there {count} times, not as often as the call says")
            }
        };
        format!("{path}{of}: {stands}. Read the file again, then edit (its SHA-256 is {sha256})")
    }
}

/// A path that a model chose, in one line and not too long: its end tells more.
fn shown(path: &str) -> String {
    let plain = terminal::plain(path).replace('"', "'");
    let skipped = plain.chars().count().saturating_sub(SHOWN);
    let end: String = plain.chars().skip(skipped).collect();
    if skipped == 0 { format!("\"{end}\"") } else { format!("\"…{end}\"") }
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
