//! The gateway's own name, under which agents ask it: never resolved, dialled or inspected.

use super::host::{DnsName, NameError};

/// The name. `internal` is reserved for private use (ICANN, 2024).
pub const NAME: &str = "postern.internal";

/// Where it says why an event was denied, before the event's id.
pub const WHY: &str = "http://postern.internal/why/";

/// Where it serves the texts that were cut out of requests, before the id of one.
pub const EVIDENCE: &str = "http://postern.internal/evidence/";

/// What such addresses have in common, whatever listener they are asked at.
pub const EVIDENCE_PLACES: [&str; 2] = ["postern.internal/evidence/", "/.postern/evidence/"];

/// The tool of the gateway by which agents read them.
pub const READ_EVIDENCE: &str = "read_evidence";

/// Where a listener that stands for one upstream serves the same, before a path; the upstream never has it.
pub const BELOW: &str = "/.postern/";

/// The port on which it is served, in plain HTTP.
pub const PORT: u16 = 80;

/// Whether it is the gateway's own name.
pub fn is_own(name: &DnsName) -> bool {
    name.as_str() == NAME
}

/// Refuses the gateway's own name where a rule or a setting names a host: it would hold nowhere, since the gateway answers
/// there itself.
///
/// # Errors
/// In words.
pub fn refuse_own(name: DnsName) -> Result<DnsName, NameError> {
    match is_own(&name) {
        true => {
            Err(NameError("the gateway answers at postern.internal itself: no rule can open or close it"))
        }
        false => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_evidence_are_those_of_the_gateways_addresses() {
        let [own, below] = EVIDENCE_PLACES;
        assert_eq!(EVIDENCE, format!("http://{own}"));
        assert_eq!((own, below), (&*format!("{NAME}/evidence/"), &*format!("{BELOW}evidence/")));
    }

    #[test]
    fn the_gateways_name_is_one_in_every_spelling_and_names_below_it_are_others() {
        let is_own = |text| is_own(&DnsName::parse(text).unwrap());
        assert!(is_own("postern.internal") && is_own("Postern.INTERNAL."));
        assert!(
            !is_own("a.postern.internal")
                && !is_own("postern.internal.example")
                && !is_own("xpostern.internal")
        );
    }
}
