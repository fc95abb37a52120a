//! `tools` of a request: what the client executes stays, what the provider would execute is asked about.

use super::fields;
use crate::call::{Denial, ToolDefinition};
use crate::provider::gemini::fields::{MessageFields, repeated};
use crate::provider::request::{RequestEditor, definition, may_write};
use crate::wire::json::Value;

/// The fields of a tool that the client executes. Every other one, known or not, is the provider's.
const DECLARATIONS: &str = "functionDeclarations";
const COMPUTER_USE: &str = "computerUse";

/// The functions that stay when the provider's own tools are removed.
#[derive(Debug, Default)]
pub(super) struct OfferedFunctions {
    pub(super) declared: Vec<ToolDefinition>,
    /// Whether functions are offered that are known to provider and client without a declaration.
    pub(super) predefined: bool,
    /// The provider's tools that stay, by field.
    pub(super) hosted: Vec<String>,
    /// Whether any was taken out.
    pub(super) stripped: bool,
}

/// One object of `tools`, which may have several tools.
struct Element<'d> {
    object: Value<'d>,
    /// Fields that are taken out.
    cuts: Vec<Value<'d>>,
    /// Whether a field stays.
    stays: bool,
}

/// Reads `tools`, and takes out what policy does not allow; an object that loses all of its fields goes with them.
///
/// # Errors
/// If policy refuses a tool, or what stands there has not one reading.
pub(super) fn read<'d>(
    editor: &mut RequestEditor<'d>,
    message: &MessageFields<'d>,
) -> Result<OfferedFunctions, Denial> {
    let mut offered = OfferedFunctions::default();
    let Some(tools) = message.at("tools") else { return Ok(offered) };
    let elements: Result<Vec<_>, Denial> =
        repeated(tools).map(|object| element(editor, object, &mut offered)).collect();
    let elements = elements?;
    offered.stripped = elements.iter().any(|element| !element.cuts.is_empty());
    editor.facts.writes |= offered.declared.iter().any(may_write);
    if offered.stripped {
        cut(editor, tools, &elements)?;
    }
    Ok(offered)
}

fn element<'d>(
    editor: &mut RequestEditor<'d>,
    object: Value<'d>,
    offered: &mut OfferedFunctions,
) -> Result<Element<'d>, Denial> {
    let mut element = Element { object, cuts: Vec::new(), stays: false };
    for field in fields(object, "tools")?.iter() {
        match &*field.name {
            DECLARATIONS => declare(field.value, &mut offered.declared)?,
            COMPUTER_USE => offered.predefined = true,
            hosted => {
                if editor.strips_tool(hosted)? {
                    element.cuts.push(field.value);
                    continue;
                }
                offered.hosted.push(hosted.to_owned());
            }
        }
        element.stays = true;
    }
    Ok(element)
}

fn declare(declarations: Value<'_>, declared: &mut Vec<ToolDefinition>) -> Result<(), Denial> {
    for declaration in repeated(declarations) {
        let name = fields(declaration, DECLARATIONS)?.text("name");
        let Some(name) = name else {
            return Err(Denial::unparseable(DECLARATIONS, "a declaration has no name; give it one"));
        };
        declared.push(definition(&name, declaration));
    }
    Ok(())
}

fn cut<'d>(editor: &mut RequestEditor<'d>, tools: Value<'d>, elements: &[Element<'d>]) -> Result<(), Denial> {
    if !elements.iter().any(|element| element.stays) {
        return editor.remove(tools);
    }
    for element in elements.iter().filter(|element| !element.cuts.is_empty()) {
        if !element.stays {
            editor.remove(element.object)?;
            continue;
        }
        for field in &element.cuts {
            editor.remove(*field)?;
        }
    }
    Ok(())
}
