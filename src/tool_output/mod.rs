//! READS results of tools. Pure.

pub mod diagnostics;
pub mod shortened;
