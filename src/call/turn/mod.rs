//! A turn between an agent and a model in no vendor's words: what is asked, as plain data over raw JSON.
//!
//! The agent's dialect reads its request into a [`prompt::Prompt`], and the model's dialect writes that.

mod notes;
pub mod prompt;
mod text;

pub use notes::Notes;
pub use text::{Text, escape};
