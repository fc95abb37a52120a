//! Postern, the guarded door through which AI agents' traffic leaves: the modules in reading order.
//!
//! What is pure (no runtime, sockets, files, clocks): [`problem`], `yaml`, `fold`, `sha256`, [`call`], [`event`], [`policy`],
//! [`provider`], [`wire`], [`filter`].
//! What touches the world: [`credential`], [`tls`], [`redirect`], [`config`], [`ledger`], [`telemetry`], [`admin`],
//! [`drain`], [`dns`], [`proxy`].
//! [`command`] is where parts are joined, one file a subcommand.

pub mod cli;
pub mod command;

pub mod call;
pub mod event;
mod fold;
pub mod problem;
mod sha256;
mod yaml;

pub mod filter;
pub mod policy;
pub mod provider;
pub mod wire;

pub mod credential;
pub mod tls;

pub mod dns;
pub mod proxy;
pub mod redirect;

pub mod admin;
mod bind;
pub mod config;
pub mod drain;
pub mod ledger;
mod route;
pub mod telemetry;
