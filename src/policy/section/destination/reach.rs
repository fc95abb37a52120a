//! Whether a host is reached at all, or models of routes alone answer there (routing.md 12.1, `reach`).

use super::decide::{Action, Flow, Protocol};
use super::written::Reach;
use crate::decision::Decision;
use crate::name::host::Host;
use crate::policy::Policy;
use crate::policy::scope::{Mode, PolicyScope};

impl Policy {
    /// Who answers at this host and port, as TLS or plain HTTP: the stricter of all rules that decide about either. It is
    /// [`Reach::Origin`] where nothing is inspected.
    pub fn reach(&self, host: &Host, port: u16) -> Reach {
        let of = |protocol| {
            let flow = Flow { name: host.name(), address: host.ip(), port, protocol };
            match self.destination(&flow).action {
                Action::Inspect(inspection) => inspection.reach(),
                Action::Tunnel { .. } | Action::Deny { .. } => Reach::Origin,
            }
        };
        of(Protocol::Tls).max(of(Protocol::Http))
    }

    /// The denial of a host by a Deny rule of any tier that is enforced, whatever would allow it.
    pub(in crate::policy) fn denial_of(
        &self,
        host: &Host,
        port: u16,
        protocol: Protocol,
    ) -> Option<Decision> {
        if self.mode == Mode::AuditOnly {
            return None;
        }
        let flow = Flow { name: host.name(), address: host.ip(), port, protocol };
        self.meet(&flow, PolicyScope::Enforced).deny.map(|(rule, _)| rule.ruling())
    }
}
