//! Says of the edits of a call whether they fit the files that a workspace knows (docs/workspace.md). Pure.

use std::collections::BTreeSet;

use super::edits;
use crate::call::{
    CallVerdict, EditBlock, EditCheck, EditTerms, FileChange, FileEdit, FileState, Judgement, Kind, ToolCall,
};
use crate::decision::Decision;
use crate::terminal;

/// The most files of one answer that are remembered as changed.
const MOST_CHANGED: usize = 1024;

/// The longest path that a refusal shows, in characters.
const SHOWN: usize = 160;

/// The files that allowed calls of one answer change, as the calls name them: what later calls find there is not there yet.
#[derive(Debug, Default)]
pub struct ChangedFiles(BTreeSet<String>);

/// Returns what is known of the file of an edit, with how often these blocks stand in it; none where nobody can say.
pub type AskFile<'a> = &'a mut dyn FnMut(&FileEdit, &[EditBlock]) -> Option<FileState>;

/// An edit that does not fit its file.
struct Misfit {
    is_overwrite: bool,
    reason: String,
}

impl ChangedFiles {
    /// Adds to the verdict about a call what its files say of it. A call that is denied already is not asked about.
    pub fn judge(
        &mut self,
        terms: &EditTerms,
        call: &ToolCall<'_>,
        verdict: CallVerdict,
        ask: AskFile<'_>,
    ) -> CallVerdict {
        if verdict.decision.denies() {
            return verdict;
        }
        let mut verdict = verdict;
        if writes(call) {
            for edit in edits(call.tool.name, call.tool.namespace, call.input) {
                let Some((check, misfit)) = self.check(terms, &edit, ask) else { continue };
                verdict.edit = verdict.edit.max(Some(check));
                if let Some(misfit) = misfit {
                    verdict = apply(terms, &misfit, verdict);
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
    fn remember(&mut self, call: &ToolCall<'_>) {
        let own = call.facts.into_iter().chain(call.derived);
        let paths = own.filter(|facts| facts.kind == Kind::Write).flat_map(|facts| &facts.paths);
        for path in paths {
            if self.0.len() < MOST_CHANGED {
                self.0.insert(path.clone().into_owned());
            }
        }
    }

    /// Returns what became of one edit; none where no policy asks.
    fn check(
        &self,
        terms: &EditTerms,
        edit: &FileEdit,
        ask: AskFile<'_>,
    ) -> Option<(EditCheck, Option<Misfit>)> {
        let is_asked = |judgement: &Judgement| {
            judgement.denies() || judgement.decision.would_deny() || judgement.audited.is_some()
        };
        let (is_overwrite, blocks) = match &edit.change {
            FileChange::Overwrite if is_asked(&terms.overwrite) => (true, &[][..]),
            FileChange::Replace(blocks) if is_asked(&terms.mismatch) => (false, blocks.as_slice()),
            FileChange::Overwrite | FileChange::Replace(_) => return None,
        };
        if !is_overwrite && self.0.contains(&edit.path) {
            return Some((EditCheck::Pending, None));
        }
        let Some(state) = ask(edit, blocks) else { return Some((EditCheck::Unavailable, None)) };
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
