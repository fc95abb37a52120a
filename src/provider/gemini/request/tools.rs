//! `tools` of a request: what the client executes stays, what the provider would execute is asked about.

use super::fields;
use crate::call::{Denial, ToolDefinition};
use crate::provider::gemini::fields::{Fields, repeated};
use crate::provider::request::{Draft, definition, may_write};
use crate::wire::json::Value;

/// The fields of a tool that the client executes. Every other one, known or not, is the provider's.
const DECLARATIONS: &str = "functionDeclarations";
const COMPUTER_USE: &str = "computerUse";

/// What is offered to the model once the provider's own tools are taken out.
#[derive(Debug, Default)]
pub(super) struct Offered {
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
/// Where policy refuses a tool, or what stands there has not one reading.
pub(super) fn read<'d>(draft: &mut Draft<'d>, message: &Fields<'d>) -> Result<Offered, Denial> {
    let mut offered = Offered::default();
    let Some(tools) = message.at("tools") else { return Ok(offered) };
    let elements: Result<Vec<_>, Denial> =
        repeated(tools).map(|object| element(draft, object, &mut offered)).collect();
    let elements = elements?;
    offered.stripped = elements.iter().any(|element| !element.cuts.is_empty());
    draft.facts.writes |= offered.declared.iter().any(may_write);
    if offered.stripped {
        cut(draft, tools, &elements)?;
    }
    Ok(offered)
}

fn element<'d>(
    draft: &mut Draft<'d>,
    object: Value<'d>,
    offered: &mut Offered,
) -> Result<Element<'d>, Denial> {
    let mut element = Element { object, cuts: Vec::new(), stays: false };
    for field in fields(object, "tools")?.iter() {
        match &*field.name {
            DECLARATIONS => declare(field.value, &mut offered.declared)?,
            COMPUTER_USE => offered.predefined = true,
            hosted => {
                if draft.strips_tool(hosted)? {
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

fn cut<'d>(draft: &mut Draft<'d>, tools: Value<'d>, elements: &[Element<'d>]) -> Result<(), Denial> {
    if !elements.iter().any(|element| element.stays) {
        return draft.remove(tools);
    }
    for element in elements.iter().filter(|element| !element.cuts.is_empty()) {
        if !element.stays {
            draft.remove(element.object)?;
            continue;
        }
        for field in &element.cuts {
            draft.remove(*field)?;
        }
    }
    Ok(())
}
