//! Writes a [`Prompt`] as a request of OpenAI Chat Completions:
//! <https://platform.openai.com/docs/api-reference/chat/create>
//!
//! The same prompt becomes the same bytes, and the messages of a turn are a prefix of those of the next one, so that the
//! model's server finds them in its cache. Strings are copied as they stand in the agent's request.

pub(super) mod draft;
mod messages;
mod names;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
mod tools;
mod write;

pub use names::SentNames;

use super::transform::{self, Transforms};
use crate::call::Vendor;
use crate::call::turn::Notes;
use crate::call::turn::prompt::{Prompt, Unsayable};
use crate::provider::translate::read_params;
use crate::wire::json::KnownParts;
use draft::Draft;

/// What policy says about the model that is asked.
#[derive(Debug, Clone, Copy)]
pub struct ChatTerms<'a> {
    /// The model as its server calls it.
    pub model: &'a str,
    /// The name that policies have for it; thinking is signed with it.
    pub label: &'a str,
    pub vendor: Vendor,
    /// The most tokens of an answer.
    pub max_tokens: Option<u64>,
    pub images: Images,
    pub effort: EffortTerms,
    /// A JSON object whose members are put where the body has no such key; empty for none.
    pub params: &'a str,
    pub transforms: Transforms,
}

/// What is done with pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Images {
    #[default]
    Send,
    /// A text says that there was one.
    Omit,
}

/// What is done with the effort that the agent asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EffortTerms {
    #[default]
    Drop,
    /// It becomes `reasoning_effort`.
    Map,
}

/// A request as it is sent, and what its answer has to be read with.
#[derive(Debug)]
pub struct ChatRequest {
    pub body: Vec<u8>,
    /// The strings of the body that are the agent's, byte for byte.
    pub known: KnownParts,
    /// The names of tools that were changed.
    pub names: SentNames,
    /// Whether the tool `ExitTool` is ours: a call of it is the model's answer.
    pub has_exit_tool: bool,
    /// What was dropped or mended, by the reader of the prompt too.
    pub notes: Notes,
}

/// Writes a request.
///
/// # Errors
/// If two tools would have the same name, or `params` is no object.
pub fn ask(prompt: &Prompt<'_>, terms: &ChatTerms<'_>) -> Result<ChatRequest, Unsayable> {
    let mut notes = prompt.notes.clone();
    let mut names = names::Namer::default();
    let (tools, choice) = tools::draft(prompt, &mut names, &mut notes)?;
    let messages = messages::draft(prompt, terms, &mut names, &mut notes)?;
    let names = names.finish()?;
    notes.add_some("tool_name", names.len());
    let mut draft = Draft::new(prompt, terms, messages, tools, choice, &mut notes);
    transform::transform_request(&mut draft, terms);
    draft.note_losses(&mut notes);
    let params = read_params(terms.params)?;
    let (body, copies) = write::body(&draft, terms, params.as_ref());
    let known = copies.found_in(&body);
    Ok(ChatRequest { body, known, names, has_exit_tool: draft.has_exit_tool, notes })
}
