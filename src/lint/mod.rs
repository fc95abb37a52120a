//! Warns of what a policy says and hardly anybody means: rules that no request and no call can meet, and names that are
//! nearly others. Every warning has its place and what to do; none stands against the policy's being used.

mod constant;
mod credentials;
mod hosts;
mod near;
mod routes;
mod shadowed;
mod suffix;
mod tools;

use crate::policy::document::Document;
use crate::policy::pattern::Pattern;
use crate::problem::Problem;

/// Judges documents that apply together, each in itself and all of them as what destinations there are.
///
/// The documents are those that compile: what is a mistake is told where they are read.
pub fn warnings(documents: &[Document]) -> Vec<Problem> {
    documents.iter().flat_map(|document| judge(document, documents, true)).collect()
}

/// Judges one document of several: what the others might hold is not missed.
pub fn warnings_of(document: &Document) -> Vec<Problem> {
    judge(document, std::slice::from_ref(document), false)
}

/// Judges a document among those that are known; `is_all` says whether there are no others.
fn judge(document: &Document, known: &[Document], is_all: bool) -> Vec<Problem> {
    let found = hosts::warnings(document, known)
        .into_iter()
        .chain(tools::warnings(document))
        .chain(credentials::warnings(document, known, is_all))
        .chain(shadowed::warnings(document, known, is_all))
        .chain(routes::warnings(document, known))
        .chain(constant::warnings(document))
        .chain(suffix::warnings(document));
    let mut located: Vec<_> = found.map(|problem| document.origin.locate(problem)).collect();
    located.sort_by_key(|problem| problem.position);
    located
}

/// Whether every host of the pattern `inner` is one of `outer`; false where either is no pattern.
pub(crate) fn covers_host(outer: &str, inner: &str) -> bool {
    match (Pattern::parse(outer), Pattern::parse(inner)) {
        (Ok(outer), Ok(inner)) => hosts::covers(&outer, &inner),
        (Ok(_) | Err(_), _) => false,
    }
}

/// A text in quotes, at a length that a message can bear.
fn quoted(text: &str) -> String {
    let short: String = text.chars().take(64).collect();
    if short.len() < text.len() { format!("{short:?}…") } else { format!("{short:?}") }
}

#[cfg(test)]
#[path = "deciding_tests.rs"]
mod deciding_tests;
#[cfg(test)]
#[path = "routes_tests.rs"]
mod routes_tests;
#[cfg(test)]
mod tests;
