//! Values that expressions compute with.

use std::borrow::Cow;
use std::sync::Arc;

use time::OffsetDateTime;

use super::fields::{Facts, Finding, Tool};

#[derive(Debug, Clone)]
pub(super) enum Value<'a> {
    Bool(bool),
    Int(i64),
    Text(Cow<'a, str>),
    Time(OffsetDateTime),
    /// In nanoseconds.
    Duration(i64),
    List(List<'a>),
    Object(Object<'a>),
}

/// A list: of a literal or a function, or one of the facts, which is not copied.
#[derive(Debug, Clone)]
pub(super) enum List<'a> {
    Values(Arc<[Value<'a>]>),
    Texts(&'a [&'a str]),
    Tools(&'a [Tool<'a>]),
    Findings(&'a [Finding<'a>]),
}

/// What has fields.
#[derive(Debug, Clone, Copy)]
pub(super) enum Object<'a> {
    Event(&'a Facts<'a>),
    Tool(&'a Tool<'a>),
    Finding(&'a Finding<'a>),
}

impl<'a> Value<'a> {
    /// The same value, whose texts are not copied.
    pub(super) fn borrowed(&'a self) -> Self {
        if let Self::Text(text) = self { Value::Text(Cow::Borrowed(text)) } else { self.clone() }
    }
}

impl<'a> List<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Values(values) => values.len(),
            Self::Texts(texts) => texts.len(),
            Self::Tools(tools) => tools.len(),
            Self::Findings(findings) => findings.len(),
        }
    }

    pub(super) fn get(&self, number: usize) -> Option<Value<'a>> {
        match self {
            Self::Values(values) => values.get(number).cloned(),
            Self::Texts(texts) => texts.get(number).map(|text| Value::Text(Cow::Borrowed(text))),
            Self::Tools(tools) => tools.get(number).map(|tool| Value::Object(Object::Tool(tool))),
            Self::Findings(findings) => {
                findings.get(number).map(|finding| Value::Object(Object::Finding(finding)))
            }
        }
    }
}
