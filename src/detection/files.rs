//! Files by their names: what a call named, of which a result tells, and what is attached.

use super::request::{binary, described};
use super::{Inspection, MayName, Settled};
use crate::call::Role;
use crate::decision::Decision;
use crate::dlp::Confidence;
use crate::event::Finding;
use crate::policy::Policy;
use crate::policy::data_loss::{FindingAction, FindingPlace, FindingVerdict, NamedFile};
use crate::provider::request::marks::Form;
use crate::provider::request::{NamedCall, RequestText};

/// Decides about the name of a file in a form that goes to a host that is no model's. Returns the fact, and the decision where
/// it is denied or would be.
pub fn settle_named(policy: &Policy, path: &str) -> Option<(Finding, FindingAction, Option<Decision>)> {
    let file = NamedFile::of(path)?;
    let FindingVerdict { action, decision } = policy.judge_file(file, FindingPlace::Rest);
    if action == FindingAction::Allow {
        return None;
    }
    let finding = Finding {
        location: "multipart/filename".to_owned(),
        length: path.len() as u64,
        ..fact(file, action)
    };
    let reason = format!("A part of the form is a file that holds credentials ({})", file.kind());
    Some((finding, action, decision.map(|decision| Decision { reason: Some(reason.into()), ..decision })))
}

/// What an event tells of a named file, wherever it stands.
fn fact(file: NamedFile, action: FindingAction) -> Finding {
    Finding {
        detector: file.detector().into(),
        kind: file.kind().into(),
        confidence: Confidence::High.as_str().into(),
        action: action.as_str().into(),
        ..Finding::default()
    }
}

impl Inspection {
    /// Decides about a text that is the content of a named file, or the name of one. Returns what is done with all of it.
    pub(super) fn file(&mut self, text: &RequestText<'_, '_>) -> Option<Settled> {
        let (file, place) = self.named_file(text)?;
        self.item = None;
        let FindingVerdict { action, decision } = self.policy.judge_file(file, place);
        if action == FindingAction::Allow {
            return None;
        }
        let (detector, length) = (file.detector().to_owned(), text.value.text()?.len());
        let tool = text.tool();
        let finding = Finding {
            role: Some(text.role.as_str().into()),
            tool: tool.map(str::to_owned),
            location: text.place.to_string(),
            length: length as u64,
            ..fact(file, action)
        };
        self.inspected.findings.push(finding);
        self.inspected.actions.push((detector.clone(), action));
        self.decided(decision, || {
            let (what, place) = (described(text, tool), &text.place);
            format!(
                "A file that holds credentials ({}) is named: {what} ({place}). Leave it out",
                file.kind()
            )
        });
        let (range, sha256) = (0..length, [0; 32]);
        Some(Settled { range, detector, sha256, confidence: Confidence::High, action })
    }

    /// Records the kind and the size of an attachment that holds no text.
    pub(super) fn attachment(&mut self, text: &RequestText<'_, '_>) {
        let kind = (text.form == Form::Data && !text.is_key).then(|| binary(text.value.raw())).flatten();
        if kind.is_some() {
            self.item = None;
        }
        self.inspected.findings.extend(kind.map(|kind| Finding {
            detector: kind.into(),
            kind: "Binary".into(),
            // It is never acted on.
            confidence: Confidence::Low.as_str().into(),
            role: Some(text.role.as_str().into()),
            location: text.place.to_string(),
            length: text.value.raw().len() as u64,
            action: FindingAction::Audit.as_str().into(),
            ..Finding::default()
        }));
    }

    fn named_file(&mut self, text: &RequestText<'_, '_>) -> Option<(NamedFile, FindingPlace)> {
        let (is_result, place) = match (text.role, text.form) {
            (Role::Attachment, Form::FileName) => (false, FindingPlace::Rest),
            (Role::ToolResult, Form::Text) => (true, FindingPlace::Told),
            (Role::Attachment, Form::Data | Form::Text) => (true, FindingPlace::Rest),
            _ => return None,
        };
        if text.is_key || text.place.is_name() {
            return None;
        }
        let file = if is_result { self.file_of_call(text) } else { NamedFile::of(&text.value.text()?) };
        Some((file?, place))
    }

    /// The file that the call named of which the text is the result.
    fn file_of_call(&mut self, text: &RequestText<'_, '_>) -> Option<NamedFile> {
        self.named_by(text.place.prefix(), &text.call?).file
    }

    /// What a call of a document at this place may name, looked up where it was asked for before.
    pub(super) fn named_by(&mut self, prefix: &'static str, named: &NamedCall<'_, '_>) -> MayName {
        *self.calls.entry((prefix, named.number)).or_insert_with(|| {
            let may_name =
                named.call.input.is_some_and(|input| NamedFile::may_stand_in(input.raw().as_bytes()));
            let file = may_name.then(|| named.files().iter().find_map(|path| NamedFile::of(path))).flatten();
            MayName { may_name, file }
        })
    }
}
