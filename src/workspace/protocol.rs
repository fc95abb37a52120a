//! What the gateway asks the companion beside a workspace, and what that answers. Pure.
//!
//! A connection of the Unix socket carries one question and one answer. Each is JSON behind its length, four bytes, the
//! highest first. A question is at most [`MOST_QUESTION`] long and an answer [`MOST_ANSWER`]; neither end reserves more
//! than has come.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::call::{EditBlock, FileState};

/// The longest question, in bytes: the texts of a call's input, with escapes.
pub const MOST_QUESTION: usize = 4 << 20;

/// The longest answer, in bytes.
pub const MOST_ANSWER: usize = 256 << 10;

/// How long the length is, in bytes.
pub const PREFIX: usize = 4;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum WorkspaceQuestion {
    /// The outlines of the source files, the highest directories first.
    Map,
    /// What is in a directory, or the outline of a file.
    Anatomy { path: String },
    /// Whether a file is a text, and how often each block stands in it. A relative path begins in the directory, at the root
    /// where there is none.
    File { path: String, directory: Option<String>, blocks: Vec<EditBlock> },
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum WorkspaceAnswer {
    /// Lines for the agent.
    Page(String),
    File(FileState),
    /// There is no answer, for this reason.
    Refused(String),
}

/// Why a message is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    #[error("the message is longer than {0} bytes")]
    TooLong(usize),
    #[error("the message is not understood")]
    Malformed,
}

/// A message behind its length.
///
/// # Errors
/// It is longer than `most`.
pub fn framed(message: &impl Serialize, most: usize) -> Result<Vec<u8>, ProtocolError> {
    let json = serde_json::to_vec(message).map_err(|_| ProtocolError::Malformed)?;
    let length = u32::try_from(json.len()).ok().filter(|_| json.len() <= most);
    let length = length.ok_or(ProtocolError::TooLong(most))?;
    Ok([&length.to_be_bytes()[..], &json].concat())
}

/// The length of the message behind this prefix.
///
/// # Errors
/// It is longer than `most`.
pub fn length(prefix: [u8; PREFIX], most: usize) -> Result<usize, ProtocolError> {
    let length = usize::try_from(u32::from_be_bytes(prefix)).unwrap_or(usize::MAX);
    if length > most { Err(ProtocolError::TooLong(most)) } else { Ok(length) }
}

/// The message that this JSON is.
///
/// # Errors
/// It is none.
pub fn parsed<T: DeserializeOwned>(json: &[u8]) -> Result<T, ProtocolError> {
    serde_json::from_slice(json).map_err(|_| ProtocolError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Occurrences;

    #[test]
    fn a_question_comes_out_as_it_went_in() {
        let search = EditBlock::Text {
            search: "a\n\u{202e}\"".to_owned(),
            replace: String::new(),
            expected: Occurrences::Exactly(2),
        };
        let lines = EditBlock::Lines { below: vec!["fn a".to_owned()], old: vec![String::new()] };
        for question in [
            WorkspaceQuestion::Map,
            WorkspaceQuestion::Anatomy { path: "src".to_owned() },
            WorkspaceQuestion::File { path: "/w/a".to_owned(), directory: None, blocks: vec![search, lines] },
        ] {
            let framed = framed(&question, MOST_QUESTION).unwrap();
            let (prefix, json) = framed.split_first_chunk::<PREFIX>().unwrap();
            assert_eq!(length(*prefix, MOST_QUESTION), Ok(json.len()));
            assert_eq!(parsed::<WorkspaceQuestion>(json), Ok(question));
        }
    }

    #[test]
    fn what_is_too_long_is_neither_sent_nor_reserved() {
        let long = WorkspaceAnswer::Page("x".repeat(MOST_ANSWER));
        assert_eq!(framed(&long, MOST_ANSWER), Err(ProtocolError::TooLong(MOST_ANSWER)));
        assert_eq!(length([0xff; PREFIX], MOST_ANSWER), Err(ProtocolError::TooLong(MOST_ANSWER)));
        assert_eq!(length([0, 4, 0, 1], MOST_ANSWER), Err(ProtocolError::TooLong(MOST_ANSWER)));
        assert_eq!(length([0, 4, 0, 0], MOST_ANSWER), Ok(MOST_ANSWER));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for json in ["", "{", "\"other\"", r#"{"anatomy":{"path":"a","more":1}}"#, r#"{"file":{"path":"a"}}"#]
        {
            assert_eq!(parsed::<WorkspaceQuestion>(json.as_bytes()), Err(ProtocolError::Malformed), "{json}");
        }
    }
}
