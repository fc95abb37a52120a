//! REDIRECTS: makes a network namespace a room with one door, through the gateway, and proves that it is one.
//!
//! [`plan`] holds the parameters and [`chains`] the rules with their reasons; [`nft`] and [`iptables`] write them in the
//! syntax of those programs. [`apply`] programs and verifies them, by `netlink` or by `restore`.

pub mod apply;
pub mod chains;
mod error;
pub mod iptables;
mod netlink;
pub mod nft;
pub mod owners;
pub mod plan;
mod restore;
pub mod rule;
mod saved;

pub use error::RedirectError;
