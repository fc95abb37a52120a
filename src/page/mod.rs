//! Shows events to a browser on this machine: one embedded page, and the answers that it reads.

mod access;
mod columns;
mod files;
mod live;
mod row;
mod serve;
mod window;

pub(crate) use live::LivePage;
pub(crate) use serve::PageServer;
