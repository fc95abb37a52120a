//! The tools that a request offers and the catalogue does not know by their whole names, by what their calls are called.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use crate::call::name::spellings;
use crate::call::{Kind, Shape, ToolDefinition};
use crate::fold::fold;

/// The tools that a request defines.
#[derive(Debug, Clone, Default)]
pub struct Offered(Arc<OfferedDefinitions>);

/// Tools by name; their names are only spelled out once a call asks: most answers call nothing.
#[derive(Debug, Default)]
struct OfferedDefinitions {
    shapes: Vec<(String, Arc<Shape>)>,
    spellings: OnceLock<Vec<String>>,
    /// The first tools that read and write a file, where they are asked for.
    reader: Option<String>,
    writer: Option<String>,
}

impl Offered {
    /// Those of a request's tools of which there is anything to say.
    pub fn new(tools: &[ToolDefinition]) -> Self {
        let shaped =
            tools.iter().filter_map(|tool| Some((tool.name.clone(), Arc::clone(tool.shape.as_ref()?))));
        Self(Arc::new(OfferedDefinitions { shapes: shaped.collect(), ..OfferedDefinitions::default() }))
    }

    /// The same with the tools that commands are told to leave files to.
    pub fn with_file_tools(tools: &[ToolDefinition]) -> Self {
        let first = |kind| {
            let mut names = tools.iter().map(|tool| &tool.name);
            names.find(|name| super::is_file_tool(name, kind)).cloned()
        };
        let (reader, writer) = (first(Kind::Read), first(Kind::Write));
        let shaped =
            tools.iter().filter_map(|tool| Some((tool.name.clone(), Arc::clone(tool.shape.as_ref()?))));
        let definitions =
            OfferedDefinitions { shapes: shaped.collect(), reader, writer, ..Default::default() };
        Self(Arc::new(definitions))
    }

    /// The offered tool that does what a command of this kind does.
    pub(super) fn file_tool(&self, kind: Kind) -> Option<String> {
        match kind {
            Kind::Read => self.0.reader.clone(),
            Kind::Write => self.0.writer.clone(),
            Kind::Shell | Kind::Fetch => None,
        }
    }

    /// What is said of the tool that a call names; of several definitions, all that they say.
    pub(super) fn find(&self, name: &str, namespace: Option<&str>) -> Option<Cow<'_, Shape>> {
        let OfferedDefinitions { shapes, spellings, .. } = &*self.0;
        if shapes.is_empty() {
            return None;
        }
        let called = match namespace {
            Some(namespace) => spelling(&format!("{namespace}.{name}")),
            None => spelling(name),
        };
        let spellings = spellings.get_or_init(|| shapes.iter().map(|(name, _)| spelling(name)).collect());
        let named = spellings.iter().zip(shapes).filter(|(name, _)| **name == called);
        let mut all = named.map(|(_, (_, shape))| &**shape);
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
