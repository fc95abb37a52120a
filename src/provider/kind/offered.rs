//! The tools that a request offers and the catalogue does not know by their whole names, by what their calls are called.

use std::borrow::Cow;
use std::sync::Arc;

use crate::call::name::spellings;
use crate::call::{Shape, ToolDefinition};
use crate::fold::fold;

/// What the definitions of a request say of tools.
#[derive(Debug, Clone, Default)]
pub struct Offered(Arc<[(String, Shape)]>);

impl Offered {
    /// Those of a request's tools of which there is anything to say.
    pub fn new(tools: &[ToolDefinition]) -> Self {
        let shaped = tools.iter().filter_map(|tool| Some((spelling(&tool.name), tool.shape.clone()?)));
        Self(shaped.collect())
    }

    /// What is said of the tool that a call names; of several definitions, all that they say.
    pub(super) fn find(&self, name: &str, namespace: Option<&str>) -> Option<Cow<'_, Shape>> {
        if self.0.is_empty() {
            return None;
        }
        let called = match namespace {
            Some(namespace) => spelling(&format!("{namespace}.{name}")),
            None => spelling(name),
        };
        let mut all = self.0.iter().filter(|(name, _)| *name == called).map(|(_, shape)| shape);
        let first = Cow::Borrowed(all.next()?);
        Some(all.fold(first, |one, other| Cow::Owned(one.into_owned().or(other))))
    }
}

/// The shortest spelling of a name, which all spellings of one tool share.
fn spelling(name: &str) -> String {
    let mut all = Vec::new();
    spellings(&fold(name), &mut all);
    all.pop().unwrap_or_default()
}
