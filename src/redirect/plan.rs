//! What a redirect is made for: the gateway's UID and ports, and the ports of the pod that others may reach.

use std::collections::BTreeSet;

/// The most ports of gateway and pod together: more than any pod declares, and few enough for one message.
const MOST_PORTS: usize = 512;

/// How a network namespace shall be redirected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectPlan {
    /// The gateway's UID, the only one whose traffic may leave.
    pub(super) uid: u32,
    pub(super) ports: GatewayPorts,
    /// Declared ports of the pod, into which others may connect; the admin port is not among them.
    inbound: BTreeSet<u16>,
    pub(super) ipv6: Ipv6,
}

/// The ports that the gateway listens on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayPorts {
    pub transparent: u16,
    pub dns: u16,
    pub explicit: Option<u16>,
    pub reverse: Vec<u16>,
    pub admin: u16,
}

/// How IPv6 is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ipv6 {
    /// As IPv4.
    Redirected,
    /// The kernel cannot redirect it: only loopback traffic passes, not even the gateway's own leaves.
    Rejected,
}

/// Why a plan cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error(
        "--uid 0 would let root out of the namespace: run the gateway under a UID of its own and name that one"
    )]
    Root,
    #[error("--uid {0} is no user's: name the UID that the gateway runs under")]
    ReservedUid(u32),
    #[error("port 0 is no port that others can connect to: leave it out of --inbound-ports")]
    InboundZero,
    #[error("--inbound-ports lists {0} twice")]
    InboundTwice(u16),
    #[error(
        "--inbound-ports lists {port}, which is the gateway's {listener} port: others must not reach it, so move one of the two"
    )]
    InboundOwn { port: u16, listener: &'static str },
    #[error("--inbound-ports lists {0}, the gateway's admin port, which is open already: leave it out")]
    InboundAdmin(u16),
    #[error(
        "{0} ports are more than a plan takes ({MOST_PORTS}): declare those alone that others connect to"
    )]
    TooManyPorts(usize),
    #[error("the gateway's {0} port is 0, a new one at each start: give it a fixed port in the settings")]
    MovingPort(&'static str),
}

impl Default for GatewayPorts {
    /// The ports of a gateway whose settings name none.
    fn default() -> Self {
        Self { transparent: 15_001, dns: 15_053, explicit: Some(15_002), reverse: Vec::new(), admin: 15_090 }
    }
}

impl GatewayPorts {
    /// Every port with the name of its listener.
    fn named(&self) -> impl Iterator<Item = (&'static str, u16)> {
        [("transparent", self.transparent), ("DNS", self.dns), ("admin", self.admin)]
            .into_iter()
            .chain(self.explicit.map(|port| ("explicit", port)))
            .chain(self.reverse.iter().map(|port| ("reverse", *port)))
    }

    pub(super) fn all(&self) -> BTreeSet<u16> {
        self.named().map(|(_, port)| port).collect()
    }
}

impl RedirectPlan {
    /// A plan for this gateway, with these ports of the pod open to others.
    ///
    /// # Errors
    /// The UID is root's or nobody's, or a port is 0, listed twice, or the gateway's own.
    pub fn new(uid: u32, ports: GatewayPorts, inbound: &[u16]) -> Result<Self, PlanError> {
        match uid {
            0 => return Err(PlanError::Root),
            // The kernel reads (uid_t)-1 as "no change".
            u32::MAX => return Err(PlanError::ReservedUid(uid)),
            _ => {}
        }
        let number = ports.named().count() + inbound.len();
        if number > MOST_PORTS {
            return Err(PlanError::TooManyPorts(number));
        }
        if let Some((listener, _)) = ports.named().find(|(_, port)| *port == 0) {
            return Err(PlanError::MovingPort(listener));
        }
        let mut declared = BTreeSet::new();
        for &port in inbound {
            refuse_inbound(port, &ports)?;
            if !declared.insert(port) {
                return Err(PlanError::InboundTwice(port));
            }
        }
        Ok(Self { uid, ports, inbound: declared, ipv6: Ipv6::Redirected })
    }

    /// The same plan for a kernel that can or cannot redirect IPv6.
    #[must_use]
    pub fn with_ipv6(self, ipv6: Ipv6) -> Self {
        Self { ipv6, ..self }
    }

    /// The gateway's UID.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The gateway's ports.
    pub fn ports(&self) -> &GatewayPorts {
        &self.ports
    }

    /// How IPv6 is treated.
    pub fn ipv6(&self) -> Ipv6 {
        self.ipv6
    }

    /// Every port that others may connect to: the admin port and what was declared.
    pub fn open_ports(&self) -> BTreeSet<u16> {
        self.inbound.iter().copied().chain([self.ports.admin]).collect()
    }
}

fn refuse_inbound(port: u16, ports: &GatewayPorts) -> Result<(), PlanError> {
    if port == 0 {
        return Err(PlanError::InboundZero);
    }
    match ports.named().find(|(_, own)| *own == port) {
        None => Ok(()),
        Some(("admin", _)) => Err(PlanError::InboundAdmin(port)),
        Some((listener, _)) => Err(PlanError::InboundOwn { port, listener }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(inbound: &[u16]) -> Result<RedirectPlan, PlanError> {
        RedirectPlan::new(61_234, GatewayPorts::default(), inbound)
    }

    #[test]
    fn a_plan_needs_a_uid_that_is_neither_roots_nor_reserved() {
        assert_eq!(RedirectPlan::new(0, GatewayPorts::default(), &[]), Err(PlanError::Root));
        assert_eq!(
            RedirectPlan::new(u32::MAX, GatewayPorts::default(), &[]),
            Err(PlanError::ReservedUid(u32::MAX))
        );
        assert!(RedirectPlan::new(1, GatewayPorts::default(), &[]).is_ok());
    }

    #[test]
    fn an_inbound_port_is_neither_zero_nor_listed_twice_nor_the_gateways() {
        assert_eq!(plan(&[8080, 0]), Err(PlanError::InboundZero));
        assert_eq!(plan(&[8080, 9090, 8080]), Err(PlanError::InboundTwice(8080)));
        assert_eq!(plan(&[15_053]), Err(PlanError::InboundOwn { port: 15_053, listener: "DNS" }));
        assert_eq!(plan(&[15_090]), Err(PlanError::InboundAdmin(15_090)));
        assert_eq!(plan(&[9090, 8080]).unwrap().open_ports(), [8080, 9090, 15_090].into());
    }

    #[test]
    fn the_ports_of_a_plan_are_bounded() {
        let many: Vec<u16> = (20_000..21_000).collect();
        assert_eq!(plan(&many), Err(PlanError::TooManyPorts(1_004)));
    }

    #[test]
    fn the_gateways_ports_are_fixed() {
        let ports = GatewayPorts { reverse: vec![15_003, 0], ..GatewayPorts::default() };
        assert_eq!(RedirectPlan::new(1, ports, &[]), Err(PlanError::MovingPort("reverse")));
    }
}
