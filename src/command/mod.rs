//! Where parts are joined: one file a subcommand.

pub mod status;
