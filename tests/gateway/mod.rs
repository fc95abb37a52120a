//! `postern gateway`, from outside: what comes in, what goes out, and what is said of it.

mod agent_door;
mod companions;
mod credentials;
mod dns;
mod drain;
mod events;
mod evidence;
mod explicit;
mod ledger;
mod limits;
mod logs;
mod mcp;
mod refusals;
mod reload;
mod reverse;
mod rules;
mod streaming;
mod tls;
mod traces;
mod upgrades;
mod verify;

use crate::support::upstream::{Builder, Gate, Reply, Seen, Step};
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
    behind(Upstream::build(), change)
}

/// The same, where every answer is `first`, a wait for the gate, and `last`.
pub(crate) fn halting(gate: &Gate, last: Step) -> Inspected {
    halting_with(gate, last, |setup| setup)
}

pub(crate) fn halting_with(gate: &Gate, last: Step, change: impl FnOnce(Setup) -> Setup) -> Inspected {
    let gate = gate.clone();
    let script = move |_: &Seen| {
        let steps = vec![Step::Data("first".into()), Step::Wait(gate.clone()), last.clone()];
        Some(Reply::streaming(steps))
    };
    behind(Upstream::build().script(script), change)
}

pub(crate) fn behind(upstream: Builder, change: impl FnOnce(Setup) -> Setup) -> Inspected {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = upstream.identity(upstreams.leaf(&["api.example.com"])).start();
    let setup =
        Setup::new(&upstreams).host("api.example.com", upstream.address()).destinations(&[INSPECT_API]);
    let gateway = change(setup).start();
    Inspected { upstreams, upstream, gateway }
}

/// A collector behind TLS that takes every export by gRPC.
fn grpc_collector(pki: &Pki) -> Upstream {
    let takes = |seen: &Seen| {
        (seen.method == "POST").then(|| {
            Reply::of(200, &b"\0\0\0\0\0"[..])
                .header("content-type", "application/grpc")
                .header("grpc-status", "0")
        })
    };
    Upstream::build().identity(pki.leaf(&["localhost"])).script(takes).start()
}
