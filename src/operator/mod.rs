//! Operates Postern in a cluster: compiles policies into what gateways mount, issues their CAs, injects them into pods.
//!
//! [`controller`] watches policies, pods and secrets and keeps each namespace's objects; [`authority`] is the CA behind
//! them; [`injector`] says what becomes of a pod (pure); [`webhook`] is where the API server asks; [`election`] says which
//! replica runs the controller.

pub mod authority;
pub mod cli;
pub mod controller;
pub mod election;
pub mod injector;
pub mod settings;
pub mod webhook;

mod amount;
