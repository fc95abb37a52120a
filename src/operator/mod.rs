//! Operates Postern in a cluster: compiles policies into the objects that gateways mount, issues their CAs, injects pods.
//!
//! [`controller`] watches policies, pods and Secrets and keeps each namespace's objects (`objects`: how they are written);
//! [`authority`] is the CA behind them; [`injector`] changes and validates pods (pure); [`webhook`] answers the API server;
//! [`election`] chooses the replica that runs the controller.

pub mod authority;
pub mod cli;
pub mod controller;
pub mod election;
pub mod injector;
pub mod settings;
pub mod webhook;

mod amount;
mod objects;
