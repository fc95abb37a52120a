//! Looks at each text of a request to a model, and decides once all were looked at.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem;

use super::clean::Way;
use super::joined::Ends;
use super::replaced::looked;
use super::{Inspection, Searched, Settled, Site};
use crate::call::withheld::PLACEHOLDER;
use crate::call::{Denial, Role};
use crate::dlp::Sight;
use crate::policy::data_loss::{FindingAction, FindingPlace};
use crate::provider::request::marks::Form;
use crate::provider::request::{Detection, Looked, RequestItem, RequestText};

/// Finds what stands in the place of a secret.
static PLACEHOLDERS: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(PLACEHOLDER));

impl Detection for Inspection {
    fn look(&mut self, text: &RequestText<'_, '_>) -> Result<Looked, Denial> {
        let raw = inside(text);
        let has_placeholder = !text.is_key && PLACEHOLDERS.find(raw.as_bytes()).is_some();
        self.inspected.holds_placeholders |= has_placeholder;
        if has_placeholder {
            self.item = None;
        }
        if let Some(file) = self.file(text)
            && file.action == FindingAction::Redact
        {
            return Ok(looked(vec![file], &mut self.redacted));
        }
        self.attachment(text);
        let is_short = raw.len() < self.terms.shortest();
        if text.is_key && is_short {
            return Ok(Looked::default());
        }
        let sight = sight(text);
        let step = self.step(text, raw, sight);
        if let Some(after) = step.and_then(|step| self.clean.as_ref()?.after(step))
            && (text.is_key || self.neighbours.add_written(raw, text.form == Form::Text))
        {
            self.state = after;
            return Ok(Looked::default());
        }
        let (looked, is_clean) = self.look_anew(text, raw, (sight, is_short))?;
        if !is_clean {
            self.item = None;
        }
        if let Some(clean) = &self.clean {
            if !text.is_key {
                self.state = clean.state(self.neighbours.ends());
            }
            if let (Some(step), true) = (step, is_clean) {
                clean.add_step(step, self.state);
            }
        }
        Ok(looked)
    }

    fn enter(&mut self, item: &RequestItem<'_, '_>) -> bool {
        self.item = None;
        // Which file a call names depends on the tools that the request offers too: its results are always looked at.
        if self.clean.is_none() || item.answered().any(|call| self.named_by(item.prefix, &call).may_name) {
            return false;
        }
        let Some(clean) = &self.clean else { return false };
        let key = clean.key_of_item(self.state, self.terms.generation(), item);
        match clean.after(key) {
            Some(after) => self.state = after,
            None => self.item = Some(key),
        }
        self.item.is_none()
    }

    fn leave(&mut self) {
        if let (Some(clean), Some(key)) = (&self.clean, self.item.take()) {
            clean.add_step(key, self.state);
        }
    }

    fn pass(&mut self, text: &RequestText<'_, '_>) {
        let (raw, is_said) = (inside(text), text.form == Form::Text);
        if !self.neighbours.add_written(raw, is_said) {
            let words = text.value.text().unwrap_or_default();
            self.neighbours.add(&Ends::of(&words, (words.len(), 0)), is_said);
        }
    }

    fn conclude(&mut self, is_attested: bool) -> Result<Vec<String>, Denial> {
        self.denied()?;
        if is_attested && !self.redacted.is_empty() {
            return Err(Denial::builtin(
                "subscription-edit",
                "A secret in this request would have to be replaced, and the body of a request with the login of a Claude \
                 subscription must stay as it is. Rewind to before the secret, set CLAUDE_CODE_ATTRIBUTION_HEADER=0 for the \
                 agent, let it use an API key, or allow the value by its hash (dataLoss.allow)",
            ));
        }
        self.inspected.holds_placeholders |= !self.redacted.is_empty();
        Ok(std::mem::take(&mut self.redacted).into_iter().collect())
    }

    fn holds_placeholders(&self) -> bool {
        self.inspected.holds_placeholders
    }
}

/// A string as JSON writes it, without its quotes.
fn inside<'d>(text: &RequestText<'_, 'd>) -> &'d str {
    let raw = text.value.raw();
    raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')).unwrap_or(raw)
}

impl Inspection {
    /// The name of a text behind those before it.
    fn step(&self, text: &RequestText<'_, '_>, raw: &str, sight: Sight) -> Option<u128> {
        let kind = u8::from(text.is_key) << 1 | u8::from(text.form == Form::Text);
        let way = (self.terms.generation(), way(sight));
        Some(self.clean.as_ref()?.key_of_step(self.state, raw.as_bytes(), way, kind))
    }

    /// Looks at a text and its seams, which were not found clean together. Whether they are.
    fn look_anew(
        &mut self,
        text: &RequestText<'_, '_>,
        raw: &str,
        (sight, is_short): (Sight, bool),
    ) -> Result<(Looked, bool), Denial> {
        let key = self.clean.as_ref().filter(|_| !is_short);
        let key = key.map(|clean| clean.key(raw.as_bytes(), (self.terms.generation(), way(sight))));
        let is_known = self.is_clean(key);
        if is_known && let Some(ends) = Ends::written(raw) {
            let is_clean = self.join(text, &ends)?;
            return Ok((Looked::default(), is_clean));
        }
        let Some(words) = text.value.text() else { return Ok((Looked::default(), false)) };
        let mut found = Vec::new();
        if !is_short && !is_known {
            found = self.searched(text, &words, (sight, self.place(text)))?;
            if found.is_empty() {
                self.remember(key);
            }
        }
        let first = found.iter().map(|found| found.range.start).min().unwrap_or(words.len());
        let last = found.iter().map(|found| found.range.end).max().unwrap_or(0);
        let is_clean = self.join(text, &Ends::of(&words, (first, last)))? && found.is_empty();
        Ok((looked(found, &mut self.redacted), is_clean))
    }

    /// Never one that carries a key: what a policy allows here, it allows at every host, so a text in which all is allowed is
    /// remembered as clean.
    fn place(&self, text: &RequestText<'_, '_>) -> FindingPlace {
        let is_vouched = self.is_vouched;
        match (text.is_key, text.form) {
            (true, _) => FindingPlace::Rest,
            (false, Form::Sealed) => FindingPlace::OfModel { is_vouched },
            (false, Form::Text) if text.role.is_of_model() => FindingPlace::OfModel { is_vouched },
            (false, Form::Text) => FindingPlace::Told,
            (false, Form::Name | Form::Definition | Form::Data | Form::FileName | Form::Nested) => {
                FindingPlace::Rest
            }
        }
    }

    fn searched(
        &mut self,
        text: &RequestText<'_, '_>,
        words: &str,
        (sight, place): (Sight, FindingPlace),
    ) -> Result<Vec<Settled>, Denial> {
        let tool = text.tool();
        let site = Site {
            place,
            role: Some(text.role),
            tool,
            location: &|| text.place.to_string(),
            described: &|| described(text, tool),
        };
        let Searched { mut settled, .. } = self.search(words.as_bytes(), sight, &site)?;
        self.freed(words, (sight, &site), &mut settled)?;
        Ok(settled)
    }

    pub(super) fn is_clean(&self, key: Option<u128>) -> bool {
        key.is_some_and(|key| self.clean.as_ref().is_some_and(|clean| clean.has(key)))
    }

    pub(super) fn remember(&self, key: Option<u128>) {
        if let (Some(key), Some(clean)) = (key, &self.clean) {
            clean.add(key);
        }
    }

    /// Looks at the seams between this text and those before it. Whether they are clean.
    fn join(&mut self, text: &RequestText<'_, '_>, ends: &Ends<'_>) -> Result<bool, Denial> {
        if text.is_key {
            return Ok(true);
        }
        let is_said = text.form == Form::Text;
        let mut neighbours = std::mem::take(&mut self.neighbours);
        let mut is_clean = true;
        let joined = neighbours.seams(ends, is_said).try_for_each(|seam| {
            is_clean &= self.seam(text, seam)?;
            Ok(())
        });
        neighbours.add(ends, is_said);
        self.neighbours = neighbours;
        joined.map(|()| is_clean)
    }

    /// Looks at one seam. Whether it is clean.
    fn seam(&mut self, text: &RequestText<'_, '_>, [before, behind]: [&[u8]; 2]) -> Result<bool, Denial> {
        if before.len() + behind.len() < self.terms.shortest() {
            return Ok(true);
        }
        let key = self.clean.as_ref().map(|clean| clean.key_of_seam(self.terms.generation(), before, behind));
        if self.is_clean(key) {
            return Ok(true);
        }
        let (terms, bytes) = (self.terms.clone(), [before, behind].concat());
        let mut divided = Vec::new();
        let searched = terms.scan(&bytes, Sight::Sealed, &mut self.budget, &mut divided);
        searched.map_err(super::bound)?;
        divided.retain(|found| found.range.start < before.len() && found.range.end > before.len());
        if divided.is_empty() {
            self.remember(key);
        }
        let site = Site {
            place: FindingPlace::Rest,
            role: Some(text.role),
            tool: None,
            location: &|| text.place.to_string(),
            described: &|| "two texts that follow each other".to_owned(),
        };
        for found in &divided {
            self.settle(found, &site);
        }
        Ok(divided.is_empty())
    }
}

fn way(sight: Sight) -> Way {
    match sight {
        Sight::Whole => Way::Whole,
        Sight::Sealed => Way::Sealed,
    }
}

/// How closely a text is looked at: random data and pictures are not decoded.
fn sight(text: &RequestText<'_, '_>) -> Sight {
    match text.form {
        Form::Sealed => Sight::Sealed,
        Form::Data if binary(text.value.raw()).is_some() => Sight::Sealed,
        Form::Text | Form::Name | Form::Definition | Form::Data | Form::FileName | Form::Nested => {
            Sight::Whole
        }
    }
}

/// How base64 of files begins that hold no text, and what each is.
const MAGICS: [(&str, &str); 10] = [
    ("iVBORw0KGgo", "png"),
    ("/9j/", "jpeg"),
    ("R0lGOD", "gif"),
    ("UklGR", "riff"),
    ("JVBERi0", "pdf"),
    ("UEsDB", "zip"),
    ("SUQz", "mp3"),
    ("//uQ", "mp3"),
    ("T2dnUw", "ogg"),
    ("ZkxhQ", "flac"),
];

/// What kind of such a file a string holds, alone or in a `data:` URL.
pub(super) fn binary(raw: &str) -> Option<&'static str> {
    let inside = raw.trim_start_matches('"');
    let coded = match inside.strip_prefix("data:") {
        Some(url) => url.split_once(";base64,").map_or("", |(_, coded)| coded),
        None => inside,
    };
    MAGICS.iter().find(|(magic, _)| coded.starts_with(magic)).map(|(_, kind)| *kind)
}

pub(super) fn described(text: &RequestText<'_, '_>, tool: Option<&str>) -> String {
    let what: Cow<'_, str> = match (text.is_key, text.role) {
        (true, _) => "a key".into(),
        (false, Role::System) => "the system prompt".into(),
        (false, Role::User) => "what the user said".into(),
        (false, Role::Assistant) => "what the model said".into(),
        (false, Role::ToolCall) => {
            tool.map_or("a tool call".into(), |tool| format!("a call of {tool}").into())
        }
        (false, Role::ToolResult) => {
            tool.map_or("a tool's result".into(), |tool| format!("the result of {tool}").into())
        }
        (false, Role::ToolDefinition) => "the definition of a tool".into(),
        (false, Role::Attachment) => "an attachment".into(),
        (false, Role::Metadata) => "a parameter".into(),
        (false, Role::Other) => "a part that is not known".into(),
    };
    match text.place.message() {
        Some(number) => format!("{what} in message {number}"),
        None => what.into_owned(),
    }
}
