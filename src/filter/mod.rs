//! Changes what flows: synchronous rewrites of a body, chunk by chunk. Pure.

pub mod bound;
pub mod detect;
pub mod scrub;

use bytes::Bytes;
use http::HeaderMap;

use crate::call::Denial;

/// A rewrite of one body in one direction. Chunking never matters: any split of the same bytes gives the same output.
pub trait Rewrite: Send {
    /// Takes the next chunk and appends to `out` what may go on now; it may hold bytes back.
    fn write(&mut self, chunk: Bytes, out: &mut Vec<Bytes>) -> Result<(), Refused>;

    /// The body has ended: releases all that was held back.
    fn finish(&mut self, out: &mut Vec<Bytes>) -> Result<(), Refused>;

    /// Takes the fields behind a body that has ended.
    fn trailers(&mut self, _: &HeaderMap) -> Result<(), Refused> {
        Ok(())
    }

    /// Whether bytes are held that [`Self::let_go`] releases.
    fn is_holding(&self) -> bool {
        false
    }

    /// Releases what is held while the sender may be waiting for an answer to it. The body may go on.
    fn let_go(&mut self, _: &mut Vec<Bytes>) -> Result<(), Refused> {
        Ok(())
    }

    /// Whether the body comes out as long as it goes in.
    fn keeps_length(&self) -> bool {
        false
    }
}

/// Why a body must not go on. The reasons are fit for the agent's eyes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(&'static str),
    /// Policy denies it.
    #[error("the body is denied")]
    Denied(Denial),
}
