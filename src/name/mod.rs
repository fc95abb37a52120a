//! Names of hosts and paths in their canonical forms: whatever compares two of them compares these. Pure.

pub mod gateway;
pub mod host;
pub mod lenient;
pub mod path;
