//! Redirected beside CONNECT, in a network namespace of this run's own; what `just bench-redirect` runs as root.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use super::client::{Client, Way};
use super::gateway::{API, COLD, Gateway, MODEL, PLAIN, TUNNEL, executable, settings};
use super::load::{Load, read};
use super::pki::Pki;
use super::{Comparison, Unit, rounds, show, upstream};

/// The user that the redirect exempts.
const UID: u32 = 65_351;
/// Connections of one request each, for the connection tracking table.
const SHORT: usize = 10_000;

const REDIRECTED: Comparison = Comparison {
    names: ["CONNECT", "redirect"],
    ways: [Way::Gateway, Way::Redirected],
    loads: &[
        ("h1, 1 connection", Unit::Latency, Load::Requests { connections: 1, streams: 1 }),
        ("h1, 32 connections", Unit::Rate, Load::Requests { connections: 32, streams: 1 }),
        ("h2, 2 x 16 streams", Unit::Rate, Load::Requests { connections: 2, streams: 16 }),
        ("new connections", Unit::Rate, Load::Connections { cold: false }),
        ("down", Unit::Bytes, Load::Down { name: PLAIN }),
        ("up", Unit::Bytes, Load::Up { name: PLAIN }),
        ("down, tunnelled", Unit::Bytes, Load::Down { name: TUNNEL }),
    ],
};

const RESOLVED: Comparison = Comparison {
    names: ["address", "name"],
    ways: [Way::Redirected, Way::Resolved],
    loads: &[("new connections", Unit::Rate, Load::Connections { cold: false })],
};

pub(crate) async fn run() {
    make_a_way_out();
    let directory = tempfile::tempdir().unwrap();
    let pki = Pki::new(directory.path());
    let upstream = upstream::serve(pki.server(&[API, PLAIN, MODEL, TUNNEL, "*.cold.bench.test"])).await;
    let more = "listeners: {transparent: {}, dns: {}, explicit: {}}\n";
    let text = settings(upstream, COLD);
    let rest = text.split_once('\n').unwrap().1.replace("127.0.0.1:0", "127.0.0.1:15090");
    std::fs::write(directory.path().join("settings.yaml"), format!("{more}{rest}")).unwrap();
    open_to_all(directory.path());
    let config = directory.path().join("settings.yaml");
    let mut redirect = Command::new(executable());
    redirect.args(["redirect", "--uid", &UID.to_string(), "--config"]).arg(config);
    assert!(redirect.status().unwrap().success(), "the redirect was not programmed");

    let gateway = Gateway::with_settings(directory.path(), Command::new(executable()).uid(UID).gid(UID));
    let client = Client::new(upstream, gateway.address, &pki);
    for comparison in [&REDIRECTED, &RESOLVED] {
        show(comparison, &rounds(comparison, [(&client, &gateway); 2]).await);
    }
    short_connections(&client).await;
}

/// A network whose other end is nobody's: everything has a route, and nothing is answered but by the gateway.
fn make_a_way_out() {
    for line in [
        "link set lo up",
        "link add out type veth peer name nobody",
        "address add 10.0.0.2/24 dev out",
        "link set out up",
        "link set nobody up",
        "route add default via 10.0.0.1",
    ] {
        let made = Command::new("ip").args(line.split(' ')).status().unwrap();
        assert!(made.success(), "`ip {line}` failed: run this as root in a network namespace of its own");
    }
}

/// The gateway reads its files as another user.
fn open_to_all(directory: &Path) {
    std::fs::set_permissions(directory, PermissionsExt::from_mode(0o777)).unwrap();
    for file in std::fs::read_dir(directory).unwrap() {
        std::fs::set_permissions(file.unwrap().path(), PermissionsExt::from_mode(0o644)).unwrap();
    }
}

/// What is left in the connection tracking table of the namespace after many short connections.
async fn short_connections(client: &Arc<Client>) {
    let before = tracked();
    for _ in 0..SHORT {
        let mut sender = client.open(Way::Redirected, API, false).await;
        let answer = sender.send(API, "/v1/messages", client.question()).await;
        read(answer.into_body(), |_| ()).await;
    }
    println!(
        "\n{SHORT} redirected connections of one request each, none failed: {} entries of {} in the connection \
         tracking table, {before} before",
        tracked(),
        proc("nf_conntrack_max"),
    );
}

fn tracked() -> String {
    proc("nf_conntrack_count")
}

fn proc(name: &str) -> String {
    std::fs::read_to_string(format!("/proc/sys/net/netfilter/{name}")).unwrap().trim().to_owned()
}
