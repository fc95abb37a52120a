//! Where the API server asks: `/pods/mutate`, `/pods/validate`, `/pods/users`, `/policies/validate`, over TLS.
//!
//! What is answered is decided in [`review`], `pods` and `policies`, which are pure; `serve` moves the bytes,
//! `namespaces` asks what a pod's namespace says, [`certificate`] decides which certificate is served next, and [`keeping`] fetches and stores it.

pub mod certificate;
pub mod keeping;
pub mod review;

mod bundle;
mod intake;
mod namespaces;
mod pods;
mod policies;
mod serve;
#[cfg(test)]
mod serve_tests;

#[cfg(test)]
mod testing;

pub use serve::{Webhook, serve};
