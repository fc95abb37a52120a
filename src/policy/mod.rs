//! Decides: what users write, compiled into what an exchange asks. Pure.
//!
//! [`document`] is what users write, [`section`] has its parts, [`compile`] makes a [`Policy`] of several documents,
//! which is asked about flows ([`destination`]), tool calls ([`tool`]) and requests to models.
//! [`crate::name`] holds the canonical forms that both sides are compared in.

pub mod document;
mod field;
mod lower;
mod mistake;
mod read;
mod source;

pub mod compile;
mod scope;
pub mod section;
pub mod selector;

mod condition;
pub mod pattern;

pub mod allowance;
pub mod outcome;
pub mod ruling;
mod terms;

pub mod explain;
pub mod listing;
mod shown;

pub mod address;
pub mod age;

use std::fmt;
use std::sync::Arc;

pub use compile::{Labels, Policy, Selected};
pub use mistake::is_quoted;
pub use section::destination::{companion, inspection, outlook, vouched};
pub use section::{credential, destination, limits, tool};

/// A rule's stable id: `namespace/policy/rule`, `-/policy/rule` or `postern/builtin/NAME`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(Arc<str>);

impl RuleId {
    /// The id of a rule of a policy.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id of something that is built in, `postern/builtin/NAME`.
    pub fn builtin(name: &str) -> Self {
        Self(format!("postern/builtin/{name}").into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
