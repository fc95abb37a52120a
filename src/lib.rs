//! Postern, the guarded door through which AI agents' traffic leaves: the modules in reading order.
//!
//! What is pure (no runtime, sockets, files, clocks): [`problem`], `yaml`, `fold`, [`name`], `digest`, `rate`, `terminal`, `canary`, [`id`], [`decision`], [`call`], [`event`], [`policy`],
//! [`provider`], [`wire`], [`filter`], [`dlp`], `sarif`, [`stats`], [`tool_output`], [`trial`].
//! What touches the world: [`credential`], [`tls`], [`redirect`], [`config`], [`evidence`], [`ledger`], [`telemetry`], [`admin`],
//! `page`, [`drain`], [`dns`], [`workspace`], [`proxy`].
//! What operates Postern in a cluster, behind the feature `operator`: `api`, `operator`; [`pod`] is what it and the
//! gateway of a pod agree on.
//! [`command`] is where parts are joined, one file a subcommand.

pub mod cli;
pub mod command;
pub mod version;

pub mod call;
mod canary;
mod clients;
pub mod decision;
mod digest;
pub mod event;
pub mod file_path;
mod fold;
pub mod id;
pub mod name;
pub mod pod;
pub mod problem;
mod rate;
pub mod secret;
mod terminal;
mod yaml;

pub mod agent_api;
pub mod detection;
pub mod dlp;
pub mod filter;
pub mod lint;
pub mod policy;
pub mod provider;
mod sarif;
pub mod stats;
pub mod tool_output;
pub mod trial;
pub mod wire;

pub mod credential;
pub mod tls;

pub mod dns;
pub mod proxy;
pub mod redirect;

pub mod admin;
mod bind;
mod capacity;
pub mod config;
pub mod drain;
pub mod evidence;
pub mod ledger;
mod page;
mod route;
pub mod telemetry;
pub mod workspace;

#[cfg(feature = "operator")]
pub mod api;
#[cfg(feature = "operator")]
pub mod operator;
