//! Edits a request of Chat Completions that another server of the same dialect answers.

use crate::call::turn::prompt::Unsayable;
use crate::provider::translate::{MovedBody, MovedTerms, Moving};
use crate::wire::json::Document;

/// Replaces the model, puts in `params`, and lowers the limits; every other byte stays.
///
/// # Errors
/// If the body is no object, has a key twice, or `params` is no object.
pub fn moved_chat(document: &Document<'_>, terms: &MovedTerms<'_>) -> Result<MovedBody, Unsayable> {
    let mut moving = Moving::new(document, terms)?;
    moving.cap("max_tokens", terms.max_tokens)?;
    moving.cap("max_completion_tokens", terms.max_tokens)?;
    Ok(moving.finish())
}
