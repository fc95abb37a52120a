//! The black-box tests: the built executable, real sockets on the loopback, our own upstreams and authorities.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

mod command_line;
mod demo;
mod doctor;
mod gateway;
mod parity;
mod policies;
mod providers;
mod recorded;
mod routing;
mod run;
mod shell;
mod sidecar;
mod support;
mod threats;
mod ui;
