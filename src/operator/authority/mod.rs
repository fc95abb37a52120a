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
    /// Reads the Secret of the root: `tls.crt` and `tls.key`; while it rotates also `next.crt` and `next.key`, which
    /// agents trust already and nothing is issued by yet; `previous.crt`, which they still trust.
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

    /// The data of the root's Secret where its rotation goes on now: a next root is made, or becomes the root.
    pub fn advanced(
        &self,
        _asked: bool,
        _now: SystemTime,
    ) -> Result<Option<BTreeMap<String, Vec<u8>>>, AuthorityError> {
        Ok(None)
    }

    /// Issues the CA of a namespace: the data of `postern-ca`. Roots that `issued` told agents to trust, and that are
    /// still valid, stay among those that they are to trust.
    pub fn issue(
        &self,
        _namespace: &str,
        _wanted: &Constraints,
        _issued: Option<&BTreeMap<String, Vec<u8>>>,
        _now: SystemTime,
    ) -> Result<BTreeMap<String, Vec<u8>>, AuthorityError> {
        Ok(BTreeMap::new())
    }
}
