//! REDIRECTS: makes a network namespace a room with one door, through the gateway, and proves that it is one.
//!
//! [`plan`] says what is programmed and why; [`nft`] and [`iptables`] say it in the syntax of those programs.
//! [`apply`] makes it true and verifies it, by `netlink` or by `restore`.

pub mod apply;
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
