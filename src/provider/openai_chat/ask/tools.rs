//! Drafts the tools of a request, and the choice among them.

use std::borrow::Cow;
use std::collections::HashSet;

use super::draft::{Choice, Tool};
use super::names::Namer;
use crate::call::turn::Notes;
use crate::call::turn::prompt::{Prompt, ToolChoice, Unsayable};

/// Returns the tools and the choice. Servers refuse a choice without tools.
pub(super) fn draft<'d>(
    prompt: &'d Prompt<'d>,
    names: &mut Namer<'d>,
    notes: &mut Notes,
) -> Result<(Vec<Tool<'d>>, Option<Choice<'d>>), Unsayable> {
    let mut seen = HashSet::new();
    let mut tools = Vec::with_capacity(prompt.tools.len());
    for tool in &prompt.tools {
        let name = names.sent(&tool.name);
        if !seen.insert(name.clone()) {
            return Err(Unsayable::new("two tools would have one name"));
        }
        tools.push(Tool { name, description: tool.description.clone(), schema: tool.schema });
    }
    let is_sent = |name: &Cow<'_, str>| seen.contains(name);
    let choice = prompt.choice.as_ref().map(|choice| match choice {
        ToolChoice::Auto => Choice::Auto,
        ToolChoice::Any => Choice::Required,
        ToolChoice::None => Choice::None,
        ToolChoice::Tool(name) => Choice::Function(names.sent(name)),
    });
    if tools.is_empty() {
        notes.add_some("tool_choice", usize::from(choice.is_some()));
        return Ok((tools, None));
    }
    let choice = choice.map(|choice| match choice {
        Choice::Function(name) if !is_sent(&name) => {
            notes.add("tool_choice");
            Choice::Auto
        }
        same @ (Choice::Auto | Choice::Required | Choice::None | Choice::Function(_)) => same,
    });
    Ok((tools, choice))
}
