//! The CAs: a root for the cluster, and for each namespace an intermediate that can vouch for what its policies inspect.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::policy::document::Document;

/// The root that issues intermediates, and all roots that agents are to trust.
#[derive(Debug)]
pub struct Root {}

/// What an intermediate may vouch for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constraints {}

/// Why a namespace's CA is issued anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// There is none, or what is there cannot be read.
    Missing,
    /// Its constraints do not cover what policies inspect now, or permit more.
    Constraints,
    /// It has passed the part of its life after which it is replaced.
    Age,
    /// The root is another one, or the roots that agents are to trust are.
    Root,
}

/// What cannot be issued.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {}

impl Constraints {
    /// What these policies inspect, or deny by exact name.
    pub fn of(_documents: &[Document]) -> Self {
        Self {}
    }

    /// Whether the names are not limited, since a policy inspects every host.
    pub fn is_unconstrained(&self) -> bool {
        false
    }
}

impl Root {
    /// Reads the Secret of the root: `tls.crt` (with the chain above it, if any), `tls.key`, and `previous.crt`.
    pub fn load(_data: &BTreeMap<String, Vec<u8>>, _now: SystemTime) -> Result<Self, AuthorityError> {
        Ok(Self {})
    }

    /// Makes a root: the data of its Secret.
    pub fn generate(_now: SystemTime) -> Result<BTreeMap<String, Vec<u8>>, AuthorityError> {
        Ok(BTreeMap::new())
    }

    /// Why the CA of a namespace is due, from the data of its Secret; none while it is good.
    pub fn due(
        &self,
        _issued: Option<&BTreeMap<String, Vec<u8>>>,
        _wanted: &Constraints,
        _now: SystemTime,
    ) -> Option<Due> {
        None
    }

    /// Issues the CA of a namespace: the data of `postern-ca`.
    pub fn issue(
        &self,
        _namespace: &str,
        _wanted: &Constraints,
        _now: SystemTime,
    ) -> Result<BTreeMap<String, Vec<u8>>, AuthorityError> {
        Ok(BTreeMap::new())
    }
}
