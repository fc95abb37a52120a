//! The shape of the tables: endpoints of an API, and where a vendor puts them.

use crate::call::{Api, Dialect};

/// How an endpoint is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointMethod {
    /// GET, and HEAD with it.
    Get,
    Post,
    /// A GET that asks to become a WebSocket; a plain GET of that path is another endpoint.
    WebSocket,
}

/// The inference endpoints of one API: how each is called, its path below a base in the language of a rule's
/// `endpoints`, and what it is.
#[derive(Debug)]
pub struct Endpoints {
    pub dialect: Option<Dialect>,
    pub rows: &'static [(EndpointMethod, &'static str, Api)],
}

/// An API, and the bases (beginnings of paths) at which a vendor has it.
#[derive(Debug)]
pub struct Mount {
    pub at: &'static [&'static str],
    pub of: &'static Endpoints,
}

/// The list of models, which vendors spell alike.
pub(super) const MODELS: Endpoints = Endpoints {
    dialect: None,
    rows: &[(EndpointMethod::Get, "/models", Api::Models), (EndpointMethod::Get, "/models/*", Api::Models)],
};
