//! Answers names: the agent's resolver, which asks nobody and gives each name an address of its own.
//!
//! [`answer`] decides what is said to one question, [`table`] which address stands for which name (both pure);
//! [`Resolver`] joins them with policy, events and metrics, and [`serve`] is UDP and TCP.

pub mod answer;
mod places;
mod resolver;
mod serve;
mod sockets;
pub mod table;

pub use resolver::{Emit, Judge, Resolver};
pub use serve::serve;
pub use sockets::{Sockets, bind};
pub use table::Names;
