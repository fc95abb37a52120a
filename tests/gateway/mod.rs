//! `postern gateway`, from outside: what comes in, what goes out, and what is said of it.

mod credentials;
mod drain;
mod events;
mod explicit;
mod limits;
mod refusals;
mod reload;
mod reverse;
mod streaming;
mod tls;
mod upgrades;

use crate::support::{Gateway, Pki, Setup, Upstream};

/// What most tests need: one upstream, `api.example.com`, behind a gateway that inspects it whole.
pub(crate) struct Inspected {
    pub(crate) upstreams: Pki,
    pub(crate) upstream: Upstream,
    pub(crate) gateway: Gateway,
}

pub(crate) const INSPECT_API: &str = "{name: api, hosts: [api.example.com], action: Inspect}";

pub(crate) fn inspected() -> Inspected {
    inspected_with(|setup| setup)
}

/// The same, changed before it starts.
pub(crate) fn inspected_with(change: impl FnOnce(Setup) -> Setup) -> Inspected {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = Upstream::tls(&upstreams, &["api.example.com"]);
    let setup =
        Setup::new(&upstreams).host("api.example.com", upstream.address()).destinations(&[INSPECT_API]);
    let gateway = change(setup).start();
    Inspected { upstreams, upstream, gateway }
}
