//! The ways in: an agent's connection becomes HTTP that is read, or bytes that only pass.

mod connect;
mod flow;
pub(crate) mod framed;
mod intercept;
pub(crate) mod listener;
pub(crate) mod names;
mod pace;
mod rewind;
pub(crate) mod session;
mod sniff;
mod transparent;
pub(crate) mod tunnel;
