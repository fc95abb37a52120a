//! Decides: what users write, compiled into what an exchange asks. Pure.
//!
//! [`document`] is what users write, [`section`] has its parts, [`compile`] makes a [`Policy`] of several documents,
//! which is asked about flows ([`destination`]), tool calls ([`tool`]) and requests to models.
//! [`crate::name`] holds the canonical forms that both sides are compared in.

pub mod document;
mod lower;
mod mistake;
mod source;

pub mod compile;
mod scope;
pub mod section;
pub mod selector;

pub mod cel;
mod condition;
pub mod pattern;

pub mod allowance;
pub mod outcome;
pub mod routing;
mod terms;

pub mod explain;
pub mod listing;
mod shown;

pub mod address;
pub mod age;

pub use compile::{Labels, Policy, Selected};
pub use mistake::is_quoted;
pub use section::destination::{companion, vouched};
pub use section::route::KnownRequest;
pub use section::{credential, data_loss, destination, limits, rule, tool, tool_outputs};
