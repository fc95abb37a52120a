//! The admission webhook: `/pods/mutate`, `/pods/validate`, `/pods/users` and `/policies/validate`, over TLS.
//!
//! [`review`], `pods` and `policies` decide the answers (pure; `refusal` is their form), `serve` moves the bytes, `intake`
//! reads them, `namespaces` reads the annotations of a pod's namespace. [`certificate`] decides which certificate is served
//! next, [`serving_certificate`] fetches, stores and publishes it (`bundle`: in the webhook configurations).

pub mod certificate;
pub mod review;
pub mod serving_certificate;

mod bundle;
mod intake;
mod namespaces;
mod pods;
mod policies;
mod refusal;
mod serve;
#[cfg(test)]
mod serve_tests;

#[cfg(test)]
mod testing;

pub use serve::{AdmissionWebhook, serve};
