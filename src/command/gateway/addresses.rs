//! The addresses of this pod, of its node and of its API server: what settings need not name.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::pod::NODE_ADDRESSES_VARIABLE;
use crate::problem::Problem;

/// Where kubelet says in every container how the API server is reached from its pod.
const API_SERVER: [&str; 2] = ["KUBERNETES_SERVICE_HOST", "KUBERNETES_PORT_443_TCP_ADDR"];

/// Every address of every interface but loopback, as the kernel lists them; none where it does not.
///
/// # Errors
/// A list is there and cannot be read: without it the pod itself could be reached.
pub(super) fn own() -> Result<Vec<IpAddr>, Problem> {
    let v4 = table("/proc/net/fib_trie")?;
    let v6 = table("/proc/net/if_inet6")?;
    let mut addresses: Vec<IpAddr> = local_v4(&v4).map(IpAddr::V4).collect();
    addresses.extend(local_v6(&v6).map(IpAddr::V6));
    addresses.retain(|ip| !ip.is_loopback());
    addresses.sort_unstable();
    addresses.dedup();
    Ok(addresses)
}

/// A table of the kernel's; empty where it keeps none, without IPv6 or on another system.
fn table(path: &str) -> Result<String, Problem> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read
            .map_err(|error| Problem::unread("", format!("cannot be read: {error}"), &error).in_file(path)),
    }
}

/// The addresses of the API server and of the node, as the environment of a pod has them; none elsewhere. A name in
/// the place of an address (some managed clusters write one) is passed over: no address rule covers it.
pub(super) fn cluster(variable: impl Fn(&str) -> Option<String>) -> Vec<IpAddr> {
    let texts = API_SERVER.into_iter().chain([NODE_ADDRESSES_VARIABLE]).filter_map(variable);
    let mut addresses: Vec<IpAddr> = Vec::new();
    for text in texts {
        let items = text.split(',').map(|item| item.trim().trim_start_matches('[').trim_end_matches(']'));
        addresses
            .extend(items.filter_map(|item| item.parse::<IpAddr>().ok()).filter(|ip| !ip.is_unspecified()));
    }
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// The local addresses of a `fib_trie`: a leaf's address is the line before `/32 host LOCAL`.
fn local_v4(trie: &str) -> impl Iterator<Item = Ipv4Addr> + '_ {
    trie.lines().zip(trie.lines().skip(1)).filter_map(|(leaf, kind)| {
        let address = leaf.trim_start().strip_prefix("|-- ")?.parse().ok()?;
        kind.contains("/32 host LOCAL").then_some(address)
    })
}

/// The addresses of `if_inet6`: 32 hex digits at the start of each line.
fn local_v6(table: &str) -> impl Iterator<Item = Ipv6Addr> + '_ {
    table.lines().filter_map(|line| {
        let digits = line.split_whitespace().next().filter(|digits| digits.len() == 32)?;
        u128::from_str_radix(digits, 16).ok().map(Ipv6Addr::from_bits)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_server_and_the_node_are_read_from_the_environment() {
        let of = |pairs: &[(&str, &str)]| {
            let value =
                |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            cluster(value).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(of(&[]), Vec::<String>::new());
        assert_eq!(
            of(&[
                ("KUBERNETES_SERVICE_HOST", "10.96.0.1"),
                ("KUBERNETES_PORT_443_TCP_ADDR", "10.96.0.1"),
                ("POSTERN_NODE_ADDRESSES", "192.0.2.7, 2001:db8::7"),
            ]),
            ["10.96.0.1", "192.0.2.7", "2001:db8::7"]
        );
        assert_eq!(of(&[("KUBERNETES_SERVICE_HOST", "[fd00::1]")]), ["fd00::1"]);
        assert_eq!(
            of(&[
                ("KUBERNETES_SERVICE_HOST", "api.example.com"),
                ("KUBERNETES_PORT_443_TCP_ADDR", "10.0.0.1")
            ]),
            ["10.0.0.1"]
        );
    }

    #[test]
    fn local_addresses_are_read_from_the_kernels_tables() {
        let trie = "Local:\n  +-- 10.0.0.0/24 2 0 2\n     |-- 10.0.0.0\n        /24 link UNICAST\n     |-- 10.0.0.7\n        /32 host LOCAL\n     |-- 10.0.0.255\n        /32 link BROADCAST\n";
        assert_eq!(local_v4(trie).collect::<Vec<_>>(), [Ipv4Addr::new(10, 0, 0, 7)]);
        let table = "fe800000000000000000000000000001 02 40 20 80     eth0\nbad line\n";
        assert_eq!(local_v6(table).collect::<Vec<_>>(), ["fe80::1".parse::<Ipv6Addr>().unwrap()]);
    }
}
