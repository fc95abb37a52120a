//! The search domains that clients in this pod try names under.

use std::fs;

use crate::name::host::DnsName;

/// Reads the domains of /etc/resolv.conf, which all containers of a pod begin with; none where it cannot be read.
pub(super) fn read() -> Vec<DnsName> {
    parse(&fs::read_to_string("/etc/resolv.conf").unwrap_or_default())
}

/// The last `search` or `domain` line decides (resolv.conf(5)).
fn parse(text: &str) -> Vec<DnsName> {
    let mut lines = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        matches!(words.next(), Some("search" | "domain")).then_some(words)
    });
    lines.next_back().into_iter().flatten().filter_map(|word| DnsName::parse(word).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_decides_and_what_is_no_name_is_passed_over() {
        let text = "# search a.example\nnameserver 10.96.0.10\ndomain old.example\n\
                    search agents.svc.cluster.local svc.cluster.local cluster.local. .\noptions ndots:5\n";
        let domains: Vec<_> = parse(text).iter().map(ToString::to_string).collect();
        assert_eq!(domains, ["agents.svc.cluster.local", "svc.cluster.local", "cluster.local"]);
        assert_eq!(parse("nameserver 10.96.0.10\n"), []);
    }
}
