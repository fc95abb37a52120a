//! Reads the answer of a routed model on its way: translated, or watched until it begins.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::call::turn::AnswerFailure;
use crate::provider::translate::MovedAnswer;
use crate::provider::translate::{AnswerReport, AnswerTranslation};
use crate::proxy::body::begun::{AnswerReader, AnswerStage};
use crate::proxy::budget::Reserved;

/// What an exchange's record learns of an answer, shared with its body.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedReport(Arc<Mutex<AnswerReport>>);

impl SharedReport {
    pub(crate) fn take(&self) -> AnswerReport {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, report: AnswerReport) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = report;
    }
}

/// An answer that is translated.
pub(super) struct Translated {
    translation: AnswerTranslation,
    report: SharedReport,
    failure: Option<AnswerFailure>,
    /// The room for what waits in it.
    reserved: Reserved,
    /// There was not enough.
    is_exhausted: bool,
}

impl Translated {
    pub(super) fn new(translation: AnswerTranslation, report: SharedReport, reserved: Reserved) -> Self {
        Self { translation, report, failure: None, reserved, is_exhausted: false }
    }

    fn step(
        &mut self,
        out: &mut VecDeque<Bytes>,
        step: impl FnOnce(&mut AnswerTranslation, &mut Vec<u8>) -> Result<(), AnswerFailure>,
    ) {
        let mut written = Vec::new();
        let mut stepped = step(&mut self.translation, &mut written);
        if self.reserved.set(self.translation.held()).is_err() {
            let used_up = "the gateway has no memory left for the answer";
            self.is_exhausted = true;
            stepped = stepped.and(self.translation.broken_off(used_up, &mut written));
        }
        if let Err(failure) = stepped {
            self.failure = Some(failure);
        }
        if !written.is_empty() {
            out.push_back(written.into());
        }
        if self.translation.is_over() {
            self.report.set(self.translation.report());
        }
    }
}

/// An agent that hangs up has what came until then.
impl Drop for Translated {
    fn drop(&mut self) {
        if !self.translation.is_over() {
            self.report.set(self.translation.report());
        }
    }
}

impl AnswerReader for Translated {
    fn write(&mut self, piece: Bytes, out: &mut VecDeque<Bytes>) {
        self.step(out, |translation, written| translation.write(&piece, written));
    }

    fn finish(&mut self, out: &mut VecDeque<Bytes>) {
        self.step(out, AnswerTranslation::finish);
    }

    fn broken_off(&mut self, out: &mut VecDeque<Bytes>) {
        self.step(out, |translation, written| {
            translation.broken_off("the model's server broke off its answer", written)
        });
    }

    fn begin(&mut self, out: &mut VecDeque<Bytes>) {
        self.step(out, |translation, written| {
            translation.commit_now(written);
            Ok(())
        });
    }

    fn ping(&mut self, out: &mut VecDeque<Bytes>) {
        self.step(out, |translation, written| {
            translation.ping(written);
            Ok(())
        });
    }

    fn stage(&self) -> AnswerStage {
        match (&self.failure, self.translation.is_committed(), self.translation.is_over()) {
            (Some(_), _, _) => AnswerStage::Failed,
            (None, _, true) => AnswerStage::Over,
            (None, true, false) => AnswerStage::Begun,
            (None, false, false) => AnswerStage::Waiting,
        }
    }

    fn has_piece(&self) -> bool {
        self.translation.has_piece()
    }

    fn failure(&mut self) -> Option<AnswerFailure> {
        self.failure.clone()
    }

    fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }
}

/// An answer in the agent's own API.
pub(super) struct Moved(pub(super) MovedAnswer);

impl AnswerReader for Moved {
    fn write(&mut self, piece: Bytes, out: &mut VecDeque<Bytes>) {
        self.0.write(piece, out);
    }

    fn finish(&mut self, out: &mut VecDeque<Bytes>) {
        self.0.finish(out);
    }

    fn broken_off(&mut self, _: &mut VecDeque<Bytes>) {
        self.0.broken_off();
    }

    fn begin(&mut self, out: &mut VecDeque<Bytes>) {
        self.0.begin(out);
    }

    // Its guard has a sign of life of the dialect, where something is held.
    fn ping(&mut self, _: &mut VecDeque<Bytes>) {}

    fn stage(&self) -> AnswerStage {
        match (self.0.failure(), self.0.is_begun()) {
            (Some(_), _) => AnswerStage::Failed,
            (None, true) => AnswerStage::Begun,
            (None, false) => AnswerStage::Waiting,
        }
    }

    // All that a model says begins it.
    fn has_piece(&self) -> bool {
        false
    }

    fn failure(&mut self) -> Option<AnswerFailure> {
        self.0.failure().cloned()
    }

    // What it holds is little, and counted as other pieces in transit are.
    fn is_exhausted(&self) -> bool {
        false
    }
}
