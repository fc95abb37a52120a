//! Answers one question about the workspace.

use std::time::Instant;

use super::EFFORT;
use super::occurrences;
use super::protocol::WorkspaceQuestion as Question;
use super::protocol::{MOST_ANSWER, WorkspaceAnswer};
use super::root::{Root, Unread};
use super::survey;
use crate::call::{EditBlock, FileState};

/// Answers a question that was asked at this time.
pub(super) fn answer(root: &Root, question: &Question, asked: Instant) -> WorkspaceAnswer {
    let is_late = || asked.elapsed() > EFFORT;
    match question {
        Question::Map => page(survey::map(root, is_late)),
        Question::Anatomy { path } => match root.locate(path, None) {
            None => refused("It is not in the workspace"),
            Some(path) => match survey::anatomy(root, &path, is_late) {
                Ok(text) => page(text),
                Err(Unread::Missing) => refused("There is no such file or directory"),
                Err(Unread::NotText) => {
                    refused("It is no directory and no text of at most 1 MiB, or a link is on its way")
                }
            },
        },
        Question::File { path, directory, blocks } => match root.locate(path, directory.as_deref()) {
            None => WorkspaceAnswer::File(FileState::Outside),
            Some(path) => match root.text(&path) {
                Ok(text) => file(&text, blocks, is_late),
                Err(Unread::Missing) => WorkspaceAnswer::File(FileState::Missing),
                Err(Unread::NotText) => WorkspaceAnswer::File(FileState::NotText),
            },
        },
    }
}

fn file(text: &str, blocks: &[EditBlock], is_late: impl Fn() -> bool) -> WorkspaceAnswer {
    match occurrences::state(text, blocks, is_late) {
        Some(state) => WorkspaceAnswer::File(state),
        None => refused("There was no time to look for every block"),
    }
}

fn page(text: String) -> WorkspaceAnswer {
    if text.len() < MOST_ANSWER / 2 { WorkspaceAnswer::Page(text) } else { refused("The page is too long") }
}

fn refused(why: &str) -> WorkspaceAnswer {
    WorkspaceAnswer::Refused(why.to_owned())
}
