//! Changes what flows: synchronous rewrites of a body, chunk by chunk. Pure.

pub mod scrub;

use bytes::Bytes;

/// A rewrite of one body in one direction. Chunking never matters: any split of the same bytes gives the same output.
pub trait Rewrite: Send {
    /// Takes the next chunk and appends to `out` what may go on now; it may hold bytes back.
    fn write(&mut self, chunk: Bytes, out: &mut Vec<Bytes>) -> Result<(), Refused>;

    /// The body has ended: releases all that was held back.
    fn finish(&mut self, out: &mut Vec<Bytes>) -> Result<(), Refused>;
}

/// A body that must not go on. The reason is fit for the agent's eyes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);
