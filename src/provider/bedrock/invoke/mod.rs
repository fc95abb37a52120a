//! InvokeModel: the native API of each vendor's models, whole or as base64 in the frames of an event stream.

mod family;
mod request;
mod transcript;

pub(super) use request::{mark, read};
pub(super) use transcript::InvokeTranscript;
