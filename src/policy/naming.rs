//! Which names are answered by the gateway's resolver (design section 3, DNS).

use super::compile::{Mode, Policy};
use super::destination::{Flow, Protocol};
use crate::decision::Decision;
use crate::name::host::DnsName;

/// Where questions about names go. No rule's ports are compared with it: which port a name is wanted for is known
/// only once a connection comes.
const DOMAIN: u16 = 53;

impl Policy {
    /// Whether the resolver answers a name: a host rule names it, whatever its action and ports, or only Audit
    /// policies select the pod. A Deny rule counts, so that its refusal can be shown to the one who asked.
    ///
    /// # Errors
    /// The denial, where nothing names it.
    pub fn answers(&self, name: &DnsName) -> Result<(), Decision> {
        let answered = match self.mode {
            Mode::Missing | Mode::Unselected => false,
            Mode::AuditOnly => true,
            Mode::Enforced { .. } => self.names(name),
        };
        if answered {
            return Ok(());
        }
        let flow = Flow { name: Some(name), address: None, port: DOMAIN, protocol: Protocol::Opaque };
        Err(self.refusal(&flow))
    }

    fn names(&self, name: &DnsName) -> bool {
        let mut named = false;
        self.index.walk(Some(name), None, |_, group| {
            named |= self.visible(group, self.sight()).next().is_some();
        });
        named
    }
}
