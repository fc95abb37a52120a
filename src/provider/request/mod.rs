//! Reads a request: asks policy about it, edits it, and gathers its facts.

mod count;
mod detect;
pub mod marks;
mod named_files;
pub mod results;
#[cfg(test)]
pub(crate) mod testing;
mod tool;

use self::marks::Marks;
use crate::call::{
    Api, BlockedCall, BlockedCalls, Change, Decision, Denial, HostedAction, Judgement, RequestFacts, Terms,
};
use crate::provider::adapter::{Adapter, ModelRequestHead};
use crate::provider::answer::member::find;
use crate::wire::json::{Document, EditError, Edits, KnownParts, Limits, Value};

pub use detect::{Detection, Looked, NamedCall, Redaction, RequestItem, RequestText, TextPlace, is_plain};
pub(in crate::provider) use tool::{definition, hosted, may_write};

/// How many hosted tools one request may have: policy is asked about each, and each is recorded.
const MOST_HOSTED: usize = 4096;

/// Reads one request's document and gathers what is to be changed in it.
pub struct RequestEditor<'d> {
    document: &'d Document<'d>,
    terms: &'d dyn Terms,
    blocked: Option<&'d BlockedCalls>,
    detection: Option<&'d mut (dyn Detection + 'd)>,
    edits: Edits<'d>,
    /// The facts of the request; the adapter fills them.
    pub facts: RequestFacts,
    changes: Vec<Change>,
    recorded: Vec<Decision>,
    /// About how many hosted tools policy was asked.
    hosted: usize,
    /// The decision by which the first hosted tool was removed.
    lost: Option<Decision>,
    /// Whether the model does not need the removed tools.
    excused: bool,
}

/// What a request comes to.
#[derive(Debug)]
pub struct EditedRequest {
    pub facts: RequestFacts,
    /// The edited body; none where the original goes on.
    pub body: Option<Vec<u8>>,
    /// What is known of the edited body.
    pub known: KnownParts,
    /// The changes; where only Audit policies select the pod, those that would have been made.
    pub changes: Vec<Change>,
    /// The decisions to record beside the request's own verdict: audits and removals.
    pub recorded: Vec<Decision>,
}

/// Reads the body of one request: asks policy about it, and edits it. `blocked` has the calls that were blocked in
/// conversations which the provider keeps; `detection` looks at every text that is sent on.
///
/// # Errors
/// If the request must not go on, or cannot be understood.
pub fn read(
    adapter: &dyn Adapter,
    head: &ModelRequestHead<'_>,
    (body, limits): (&[u8], Limits),
    (terms, blocked): (&dyn Terms, &BlockedCalls),
    detection: Option<&mut dyn Detection>,
) -> Result<EditedRequest, Denial> {
    let document = document((body, limits), &KnownParts::default())?;
    read_document(adapter, head, &document, (terms, blocked), detection)
}

/// The document of a body, of which some strings are known.
///
/// # Errors
/// If it is no JSON.
pub fn document<'a>((body, limits): (&'a [u8], Limits), known: &KnownParts) -> Result<Document<'a>, Denial> {
    Document::parse_known(body, limits, known).map_err(|error| Denial::unparseable("the body", error))
}

/// As [`read`], of a body that is a document already.
///
/// # Errors
/// As [`read`].
pub fn read_document(
    adapter: &dyn Adapter,
    head: &ModelRequestHead<'_>,
    document: &Document<'_>,
    (terms, blocked): (&dyn Terms, &BlockedCalls),
    detection: Option<&mut dyn Detection>,
) -> Result<EditedRequest, Denial> {
    let detection = detection.map(|detection| detection as &mut dyn Detection);
    read_marked(adapter, head, document, (terms, blocked), detection).map(|(edited, _)| edited)
}

/// As [`read_document`], with the marks of the document; none where nothing looked at its texts.
///
/// # Errors
/// As [`read`].
pub fn read_marked<'d>(
    adapter: &dyn Adapter,
    head: &ModelRequestHead<'_>,
    document: &'d Document<'d>,
    (terms, blocked): (&'d dyn Terms, &'d BlockedCalls),
    detection: Option<&'d mut dyn Detection>,
) -> Result<(EditedRequest, Option<Marks<'d>>), Denial> {
    let mut editor = RequestEditor::new(document, terms).with_blocked(blocked);
    if let Some(detection) = detection {
        editor.detection = Some(detection);
    }
    adapter.request(head, &mut editor)?;
    if head.service.api != Api::CountTokens {
        editor.misses_no_tools()?;
    }
    let marks = editor.detect("", |editor, marks| adapter.mark(head, editor, marks))?;
    editor.facts.is_attested = adapter.is_attested(head, &editor);
    editor.conclude()?;
    Ok((editor.finish(), marks))
}

/// Refuses a body that is no JSON, or that has a key twice in one object: policy has no question about it. Nothing is no
/// body.
///
/// # Errors
/// Then.
pub fn one_reading(body: &[u8], limits: Limits) -> Result<(), Denial> {
    if body.is_empty() {
        return Ok(());
    }
    let document = document((body, limits), &KnownParts::default())?;
    document.first_duplicate().map_or(Ok(()), |duplicate| Err(Denial::unparseable("the body", duplicate)))
}

impl<'d> RequestEditor<'d> {
    pub fn new(document: &'d Document<'d>, terms: &'d dyn Terms) -> Self {
        let edits = Edits::new(document);
        let (facts, changes, recorded) = (RequestFacts::default(), Vec::new(), Vec::new());
        let (lost, excused) = (None, false);
        let (blocked, detection) = (None, None);
        Self {
            document,
            terms,
            blocked,
            detection,
            edits,
            facts,
            changes,
            recorded,
            hosted: 0,
            lost,
            excused,
        }
    }

    /// Gives it the calls that were blocked in conversations which the provider keeps.
    #[must_use]
    pub fn with_blocked(self, blocked: &'d BlockedCalls) -> Self {
        Self { blocked: Some(blocked), ..self }
    }

    /// The calls that were blocked in the answer or conversation of this id.
    pub fn blocked(&self, scope: &str) -> Vec<BlockedCall> {
        self.blocked.map(|blocked| blocked.of(scope)).unwrap_or_default()
    }

    pub fn root(&self) -> Value<'d> {
        self.document.root()
    }

    pub fn document(&self) -> &'d Document<'d> {
        self.document
    }

    /// The value of an entry.
    ///
    /// # Errors
    /// If the key stands twice, or in another case, which servers in Go read: the provider may take the other value.
    pub fn get(&self, object: Value<'d>, key: &str) -> Result<Option<Value<'d>>, Denial> {
        let value = find(object, key).map_err(|respelled| Denial::unparseable(key, respelled))?;
        if object.duplicate().is_none() {
            return Ok(value);
        }
        object.get(key).map_err(|duplicate| Denial::unparseable(key, duplicate))
    }

    /// Asks about a tool of this type that the provider would run. `true`: the caller takes it out.
    ///
    /// # Errors
    /// If the request is to be refused for it.
    pub fn strips(&mut self, tool_type: &str) -> Result<bool, Denial> {
        self.hosted += 1;
        if self.hosted > MOST_HOSTED {
            let reason = format!("the request asks for more than {MOST_HOSTED} tools that the provider runs");
            return Err(Denial::builtin("bound", reason));
        }
        let hosted = self.terms.hosted_tool(tool_type);
        self.recorded.extend(hosted.audited);
        match hosted.action {
            HostedAction::Refuse => Err(hosted.decision.into()),
            HostedAction::Strip => {
                self.recorded.push(hosted.decision);
                self.changes.push(Change::HostedTool(tool_type.to_owned()));
                Ok(true)
            }
            HostedAction::Keep => {
                if hosted.decision.would_deny() {
                    self.recorded.push(hosted.decision);
                }
                Ok(false)
            }
        }
    }

    /// As [`Self::strips`], for an entry of a list of tools: without it, the model may have no tool left.
    ///
    /// # Errors
    /// As for [`Self::strips`].
    pub fn strips_tool(&mut self, tool_type: &str) -> Result<bool, Denial> {
        let strips = self.strips(tool_type)?;
        if strips && self.lost.is_none() {
            self.lost = self.recorded.last().cloned();
        }
        Ok(strips)
    }

    /// Whether hosted tools were taken out and the request offers no other.
    pub fn has_lost_all(&self) -> bool {
        self.lost.is_some() && self.facts.tools.is_empty()
    }

    /// Says that the model does not miss hosted tools: it may call none, the client's tools are known to the conversation,
    /// or the request is none for an answer.
    pub fn excuse(&mut self) {
        self.excused = true;
    }

    /// Refuses a request that asked for nothing but hosted tools, such as an agent's own request for a search: without
    /// them the model would invent what they found. To be asked once all of the request was read.
    ///
    /// # Errors
    /// Then, by the rule that takes them out.
    pub fn misses_no_tools(&self) -> Result<(), Denial> {
        let missed = self.lost.as_ref().filter(|_| self.has_lost_all() && !self.excused);
        let Some(decision) = missed else { return Ok(()) };
        let why = decision.reason.as_deref().unwrap_or_default();
        let reason = format!("{why}; the request has no other tool, and the model would invent its results");
        Err(Decision { reason: Some(reason.into()), ..decision.clone() }.into())
    }

    /// Asks about a way to hosted tools that no edit removes, such as a model that always searches.
    ///
    /// # Errors
    /// If policy does not allow the type.
    pub fn refuses(&mut self, tool_type: &str) -> Result<(), Denial> {
        let hosted = self.terms.hosted_tool(tool_type);
        self.recorded.extend(hosted.audited);
        if hosted.action != HostedAction::Keep {
            return Err(hosted.decision.into());
        }
        if hosted.decision.would_deny() {
            self.recorded.push(hosted.decision);
        }
        Ok(())
    }

    /// Asks about a conversation that is kept at the provider; the denial names what asks for it.
    ///
    /// # Errors
    /// If policy does not allow it.
    pub fn keeps_state(&mut self, what: &str) -> Result<(), Denial> {
        let judgement = self.terms.provider_state();
        self.judged(judgement, what)
    }

    /// Asks about a URL that the provider would fetch; the denial names where it stands.
    ///
    /// # Errors
    /// If policy does not allow it.
    pub fn fetches(&mut self, place: &str) -> Result<(), Denial> {
        let judgement = self.terms.url_sources();
        self.judged(judgement, place)
    }

    /// Whether conversations may be kept at the provider, nothing being recorded.
    pub fn may_keep_state(&self) -> bool {
        !self.terms.provider_state().denies()
    }

    fn judged(&mut self, judgement: Judgement, what: &str) -> Result<(), Denial> {
        // The decision is the same for every place of a request, so that it is recorded once.
        let audited = judgement.audited.filter(|audited| !self.recorded.contains(audited));
        self.recorded.extend(audited);
        let mut decision = judgement.decision;
        if decision.denies() {
            let reason = decision.reason.take().unwrap_or_default();
            decision.reason = Some(format!("{reason} ({what})").into());
            return Err(decision.into());
        }
        if decision.would_deny() && !self.recorded.contains(&decision) {
            self.recorded.push(decision);
        }
        Ok(())
    }

    /// Whether edits are made at all. Where only Audit policies select the pod none is: the methods below do nothing.
    pub fn may_edit(&self) -> bool {
        self.terms.may_edit()
    }

    /// Whether anything is edited so far.
    pub fn is_edited(&self) -> bool {
        !self.edits.is_empty()
    }

    /// Reads a document that stands in this one as text (base64 in Bedrock's count of tokens). Returns its edited bytes;
    /// none where they stay.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn nested(
        &mut self,
        inner: &Document<'_>,
        read: impl FnOnce(&mut RequestEditor<'_>) -> Result<(), Denial>,
    ) -> Result<Option<Vec<u8>>, Denial> {
        let mut editor = RequestEditor::new(inner, self.terms);
        if let Some(detection) = &mut self.detection {
            editor.detection = Some(&mut **detection);
        }
        read(&mut editor)?;
        let drafted = editor.finish();
        self.facts = drafted.facts;
        self.changes.extend(drafted.changes);
        self.recorded.extend(drafted.recorded);
        Ok(drafted.body)
    }

    /// Removes an array's item or, by its value, an object's entry, with every edit inside of it.
    ///
    /// # Errors
    /// Where another edit replaces an array or object around it.
    pub fn remove(&mut self, value: Value<'d>) -> Result<(), Denial> {
        self.edit(|edits| edits.remove(value))
    }

    /// Replaces a value by other JSON.
    ///
    /// # Errors
    /// Where another edit replaces the same bytes.
    pub fn replace(&mut self, value: Value<'d>, json: impl Into<String>) -> Result<(), Denial> {
        self.edit(|edits| edits.replace(value, json))
    }

    /// Adds an entry at an object's end.
    ///
    /// # Errors
    /// As for [`Self::replace`], and where the object has the key.
    pub fn insert(&mut self, object: Value<'d>, key: &str, json: &str) -> Result<(), Denial> {
        self.edit(|edits| edits.insert(object, key, json))
    }

    /// Adds an item at an array's end.
    ///
    /// # Errors
    /// As for [`Self::replace`].
    pub fn append(&mut self, array: Value<'d>, json: impl Into<String>) -> Result<(), Denial> {
        self.edit(|edits| edits.append(array, json))
    }

    /// Notes what was changed beside hosted tools, in stable words.
    pub fn changed(&mut self, what: &'static str) {
        let change = Change::Other(what);
        if self.may_edit() && !self.changes.contains(&change) {
            self.changes.push(change);
        }
    }

    fn edit(&mut self, edit: impl FnOnce(&mut Edits<'d>) -> Result<(), EditError>) -> Result<(), Denial> {
        if !self.terms.may_edit() {
            return Ok(());
        }
        edit(&mut self.edits).map_err(|error| Denial::unparseable("", error))
    }

    /// Returns the edited request.
    pub fn finish(self) -> EditedRequest {
        let body = (!self.edits.is_empty()).then(|| self.edits.apply());
        let known = body.as_ref().map(|body| self.edits.known(body)).unwrap_or_default();
        EditedRequest { facts: self.facts, body, known, changes: self.changes, recorded: self.recorded }
    }
}
