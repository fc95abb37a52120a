//! Decides: what users write, compiled into what an exchange asks. Pure.
//!
//! [`document`] is what users write, [`compile`] makes a [`Policy`] of it, [`destination`] asks it about flows,
//! [`tool`] about tool calls, [`hosted`] about what runs at a provider.
//! [`crate::name`] holds the canonical forms that both sides are compared in.

pub mod document;
mod field;
mod lower;
mod mistake;
mod read;
mod source;

pub mod compile;
mod conflict;
mod index;
mod ports;
mod rule;
pub mod selector;

mod condition;
pub mod tool;

pub mod allowance;
pub mod hosted;
pub mod limits;
pub mod outcome;
mod permission;
mod settings;

pub mod companion;
pub mod destination;
pub mod explain;
pub mod inspection;
pub mod listing;
mod naming;
pub mod outlook;
pub mod vouched;

pub mod address;
pub mod age;
pub mod credential;

pub mod pattern;

pub use compile::{Labels, Policy, Selected};
pub use mistake::is_quoted;
