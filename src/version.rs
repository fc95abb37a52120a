//! Which build this is, as `--version` says it.

/// The version, with the commit and the features that it was built from: `0.1.0 (commit 23e769250f1c, features: none)`.
/// The part in parentheses is written by `build.rs`.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("POSTERN_BUILD"), ")");
