//! REDIRECTS: makes a network namespace a room with one door, through the gateway, and proves that it is one.
//!
//! [`plan`] says what is programmed and why, [`nft`] says it in the syntax of `nft`.

pub mod nft;
pub mod plan;
pub mod rule;
