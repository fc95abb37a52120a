//! Says of the values of a request's document whose text each is, and which are no text.

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::quality::RandomState;

use crate::call::Role;
use crate::wire::json::{Kind, Value};

/// How a value is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// Text that a part of may be replaced in.
    Text,
    /// A name, an id or a parameter: another one would be something else.
    Name,
    /// The definition of a tool: its descriptions are text, all else are names and parameters.
    Definition,
    /// Random data that the provider made, and takes unchanged alone.
    Sealed,
    /// The content of an attachment: base64, a `data:` URL, or text.
    Data,
    /// The name of an attached file.
    FileName,
    /// A document that was read by itself.
    Nested,
}

/// What is known of a value, and of all that stands in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub role: Role,
    pub form: Form,
    /// The call that it is, or that it is the result of.
    pub call: Option<CallNumber>,
}

/// A call of a request, by its place among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallNumber(u32);

/// A call of a tool that stands in a request.
#[derive(Debug)]
pub struct MarkedCall<'d> {
    pub name: Cow<'d, str>,
    pub namespace: Option<Cow<'d, str>>,
    /// JSON, or a string that holds JSON or the text of a custom tool.
    pub input: Option<Value<'d>>,
    /// What its result names it by.
    pub id: Option<Cow<'d, str>>,
}

/// A text that a tool of the agent gave back.
#[derive(Debug, Clone, Copy)]
pub struct MarkedResult<'d> {
    /// A string.
    pub text: Value<'d>,
    pub call: Option<CallNumber>,
    /// Whether the agent says that it is an error.
    pub is_error: bool,
}

/// The marks of one document. What has none is [`Role::Metadata`].
#[derive(Debug, Default)]
pub struct Marks<'d> {
    marks: Vec<(Value<'d>, Mark)>,
    calls: Vec<MarkedCall<'d>>,
    /// Hashed with a seed that is random for each request: who chooses ids cannot see which of them share a place.
    by_id: HashMap<Cow<'d, str>, CallNumber, RandomState>,
    results: Vec<MarkedResult<'d>>,
}

impl Mark {
    pub(super) const ROOT: Self = Self { role: Role::Metadata, form: Form::Name, call: None };
}

impl<'d> Marks<'d> {
    /// Marks a value and all that stands in it; a later mark of the same value counts.
    pub(in crate::provider) fn set(&mut self, value: Value<'d>, role: Role, form: Form) {
        self.set_of(value, (role, form), None);
    }

    /// As [`Self::set`], for a part of a call or of its result.
    pub(in crate::provider) fn set_of(
        &mut self,
        value: Value<'d>,
        (role, form): (Role, Form),
        call: Option<CallNumber>,
    ) {
        self.marks.push((value, Mark { role, form, call }));
    }

    /// Notes the text of a result of the agent's tools, or each text of one in parts: strings, and the member `text` of
    /// objects. What else stands there is no text.
    pub(in crate::provider) fn result(
        &mut self,
        content: Value<'d>,
        call: Option<CallNumber>,
        is_error: bool,
    ) {
        let texts = items(content).filter_map(|part| match part.kind() {
            Kind::String => Some(part),
            Kind::Object => member(part, "text").filter(|text| text.kind() == Kind::String),
            Kind::Array | Kind::Null | Kind::Bool | Kind::Number => None,
        });
        self.results.extend(texts.map(|text| MarkedResult { text, call, is_error }));
    }

    /// The calls, in the order in which they were added.
    pub(super) fn into_calls(self) -> Vec<MarkedCall<'d>> {
        self.calls
    }

    /// The texts of results, in the order in which they were noted.
    pub(super) fn results(&self) -> &[MarkedResult<'d>] {
        &self.results
    }

    /// What users said before the model said anything, by which a conversation is known again: texts in the order of the
    /// document.
    pub(super) fn opening(&self) -> Vec<Value<'d>> {
        let mut marks: Vec<_> = self.marks.iter().collect();
        marks.sort_by_key(|(value, _)| value.span().start);
        let is_model = |role| matches!(role, Role::Assistant | Role::ToolCall | Role::ToolResult);
        let before = marks.into_iter().take_while(|(_, mark)| !is_model(mark.role));
        let said = before.filter(|(value, mark)| {
            mark.role == Role::User && mark.form == Form::Text && value.kind() == Kind::String
        });
        said.map(|(value, _)| *value).collect()
    }

    /// Marks a value as text.
    pub(in crate::provider) fn text(&mut self, value: Value<'d>, role: Role) {
        self.set(value, role, Form::Text);
    }

    /// Adds a call, by whose id its result is known later.
    pub(in crate::provider) fn call(&mut self, call: MarkedCall<'d>) -> Option<CallNumber> {
        let number = CallNumber(u32::try_from(self.calls.len()).ok()?);
        if let Some(id) = &call.id {
            self.by_id.insert(id.clone(), number);
        }
        self.calls.push(call);
        Some(number)
    }

    /// The call of this id.
    pub(in crate::provider) fn called(&self, id: &str) -> Option<CallNumber> {
        self.by_id.get(id).copied()
    }

    /// The call that the id in this member names.
    pub(in crate::provider) fn answers(&self, object: Value<'d>, key: &str) -> Option<CallNumber> {
        self.called(&member(object, key)?.text()?)
    }

    /// The number of a call from 0, in the order in which they were added.
    pub(super) fn place_of(number: CallNumber) -> usize {
        number.0 as usize
    }

    pub fn call_at(&self, number: CallNumber) -> Option<&MarkedCall<'d>> {
        self.calls.get(number.0 as usize)
    }

    /// The marks by where their values begin, in the order of the document.
    pub(super) fn sorted(&self) -> Vec<(usize, Mark)> {
        let mut marks: Vec<_> = self.marks.iter().map(|(value, mark)| (value.span().start, *mark)).collect();
        // Of equal ones the order stays, so that the last is the latest. No two values begin at the same byte.
        marks.sort_by_key(|(start, _)| *start);
        marks
    }
}

/// The member of an object; of a key that stands twice, which is denied elsewhere where it matters, none.
pub(in crate::provider) fn member<'d>(object: Value<'d>, key: &str) -> Option<Value<'d>> {
    object.get(key).ok().flatten().filter(|value| !value.is_null())
}

/// The text of a member.
pub(in crate::provider) fn member_text<'d>(object: Value<'d>, key: &str) -> Option<Cow<'d, str>> {
    member(object, key)?.text()
}

/// The items of an array, else the value itself.
pub(in crate::provider) fn items<'d>(value: Value<'d>) -> impl Iterator<Item = Value<'d>> {
    let single = (value.kind() != Kind::Array).then_some(value);
    value.items().into_iter().flatten().chain(single)
}

/// The values of an object's entries with this key: the next reader may take any of those that stand there.
pub(in crate::provider) fn named<'d>(
    object: Value<'d>,
    key: &'static str,
) -> impl Iterator<Item = Value<'d>> {
    let entries = object.entries().filter(|_| object.may_have(key)).into_iter().flatten();
    entries.filter(move |entry| entry.key.says(key)).map(|entry| entry.value)
}

/// The entries of an object, with their keys as text.
pub(in crate::provider) fn entries<'d>(object: Value<'d>) -> impl Iterator<Item = (Cow<'d, str>, Value<'d>)> {
    let entries = object.entries().into_iter().flatten();
    entries.filter_map(|entry| Some((entry.key.text()?, entry.value)))
}
