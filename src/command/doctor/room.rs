//! The network namespace: what the kernel does here and now with what whoever runs this sends.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use super::Finding;
use crate::canary::{CANARY_V4, CANARY_V6};
use crate::config::Settings;
use crate::route;
use crate::tls::gate::Surroundings;

/// A redirected connection never leaves the machine, so it is accepted at once or not at all.
const PATIENCE: Duration = Duration::from_secs(1);
/// Ports that nobody means: the canaries' own.
const TCP: u16 = 1;
const UDP: u16 = 9;
const DNS: u16 = 53;
/// A question for the address of `postern.invalid` (RFC 1035, section 4; RFC 6761, section 6.4).
const QUESTION: &[u8] = b"\x70\x6f\x01\0\0\x01\0\0\0\0\0\0\x07postern\x07invalid\0\0\x01\0\x01";
const REMEDY: &str = "run `postern redirect --uid UID` in this network namespace before the agent starts, UID being the gateway's: as root, with NET_ADMIN";

/// The outcome of dialling an address that exists nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DialOutcome {
    Answered,
    Refused,
    /// The kernel did not send it.
    Rejected,
    /// It left, as far as can be told.
    Left,
}

/// Where nothing asks for a redirect, nothing is sent.
pub(super) fn look(surroundings: Surroundings, settings: Option<&Settings>) -> Vec<Finding> {
    let asked = settings.is_some_and(|settings| settings.listeners.transparent.is_some());
    if !asked && !surroundings.kubernetes {
        return vec![cooperative()];
    }
    let families = [("IPv4", IpAddr::V4(CANARY_V4)), ("IPv6", IpAddr::V6(CANARY_V6))];
    let mut findings = Vec::new();
    for (family, canary) in families {
        match route::is_there(canary) {
            Ok(true) => {}
            Ok(false) => {
                findings.push(Finding::ok("way out", format!("{family}: there is no route out")));
                continue;
            }
            Err(error) => {
                let text = format!("{family}: it could not be tried ({error})");
                findings.push(Finding::warn("way out", text).remedy("look again"));
                continue;
            }
        }
        findings.push(connections(family, fate(connect(canary))));
        findings.push(datagrams(family, fate(send(canary, UDP, &[]).map(|_| DialOutcome::Left))));
        findings.push(names(family, fate(ask(canary))));
    }
    findings
}

fn cooperative() -> Finding {
    Finding::not_enforced(
        "way out",
        "`postern run` is cooperative: it sets proxy variables, and a program that ignores them (Java, Node before 22.21), or speaks UDP, goes around the gateway",
    )
    .remedy(
        "run what is not trusted in a network namespace that `postern redirect` made a room with one door",
    )
}

fn connections(family: &str, fate: DialOutcome) -> Finding {
    match fate {
        DialOutcome::Answered => Finding::ok(
            "way out",
            format!("{family}, TCP: a connection to an address that is nowhere was answered here: it is redirected"),
        ),
        DialOutcome::Refused => Finding::warn(
            "way out",
            format!("{family}, TCP: a connection was refused: it is redirected to a gateway that does not run, or somebody outside refused it"),
        )
        .remedy("start the gateway, and look again"),
        DialOutcome::Rejected => Finding::ok("way out", format!("{family}, TCP: nothing is let out")),
        DialOutcome::Left => Finding::not_enforced("way out", format!("{family}, TCP: connections leave around the gateway"))
            .remedy(REMEDY),
    }
}

fn datagrams(family: &str, fate: DialOutcome) -> Finding {
    match fate {
        DialOutcome::Rejected => Finding::ok("way out", format!("{family}, UDP: rejected at once")),
        DialOutcome::Answered | DialOutcome::Refused | DialOutcome::Left => {
            Finding::not_enforced("way out", format!("{family}, UDP: datagrams leave around the gateway"))
                .remedy(REMEDY)
        }
    }
}

fn names(family: &str, fate: DialOutcome) -> Finding {
    match fate {
        DialOutcome::Answered => {
            Finding::ok("names", format!("{family}: whatever DNS server is asked, the gateway answers"))
        }
        DialOutcome::Rejected => {
            Finding::warn("names", format!("{family}: DNS is let out to nobody, and nobody answers"))
                .remedy("write listeners.dns: {} in the gateway's settings")
        }
        DialOutcome::Refused | DialOutcome::Left => Finding::not_enforced(
            "names",
            format!("{family}: no answer: DNS leaves around the gateway, or its resolver does not run"),
        )
        .remedy(REMEDY),
    }
}

fn connect(to: IpAddr) -> io::Result<DialOutcome> {
    TcpStream::connect_timeout(&SocketAddr::new(to, TCP), PATIENCE).map(|_| DialOutcome::Answered)
}

fn send(to: IpAddr, port: u16, bytes: &[u8]) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(route::unspecified(to))?;
    socket.connect((to, port))?;
    socket.send(bytes)?;
    Ok(socket)
}

fn ask(to: IpAddr) -> io::Result<DialOutcome> {
    let socket = send(to, DNS, QUESTION)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut answer = [0; 512];
    socket.recv(&mut answer)?;
    Ok(DialOutcome::Answered)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "what is not known to be held back is not")]
fn fate(outcome: io::Result<DialOutcome>) -> DialOutcome {
    outcome.unwrap_or_else(|error| match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => DialOutcome::Refused,
        ErrorKind::PermissionDenied => DialOutcome::Rejected,
        _ => DialOutcome::Left,
    })
}

#[cfg(test)]
mod tests {
    use super::super::FindingState;
    use super::*;

    #[test]
    fn without_a_redirect_nothing_is_called_enforced() {
        let finding = &look(Surroundings { intercept: true, kubernetes: false }, None)[0];
        assert_eq!(finding.state, FindingState::NotEnforced);
        for finding in [
            connections("IPv4", DialOutcome::Left),
            datagrams("IPv4", DialOutcome::Left),
            names("IPv4", DialOutcome::Left),
        ] {
            assert_eq!(finding.state, FindingState::NotEnforced);
            assert!(finding.remedy.is_some());
        }
    }

    #[test]
    fn what_is_redirected_answered_or_rejected_is_enforced() {
        for finding in [
            connections("IPv6", DialOutcome::Answered),
            datagrams("IPv6", DialOutcome::Rejected),
            names("IPv6", DialOutcome::Answered),
        ] {
            assert_eq!(finding.state, FindingState::Ok);
        }
        assert_eq!(
            connections("IPv4", DialOutcome::Refused).state,
            FindingState::Warn,
            "a gateway that is dead"
        );
        assert_eq!(fate(Err(ErrorKind::TimedOut.into())), DialOutcome::Left);
    }
}
