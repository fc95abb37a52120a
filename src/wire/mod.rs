//! Frames the bytes of a connection: which protocol they are, where messages begin and end, how they are coded. Pure.

pub mod client_hello;
pub mod coding;
pub mod event_stream;
pub mod excerpt;
pub mod first_bytes;
pub mod http1;
mod inflow;
pub mod json;
pub mod json_array;
pub(crate) mod percent;
mod signature;
pub mod sse;
pub mod websocket;
