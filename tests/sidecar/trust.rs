//! The roots that agents trust: written before they start, and again when they change.

use serde_json::json;

use super::{Pod, Volumes, borrowed, ca_keys};
use crate::support::journal::poll;
use crate::support::{Pki, Setup};

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";

fn trusting(setup: Setup) -> Setup {
    setup.set("/trust", json!({"directory": "trust", "roots": "ca/roots.pem", "ownRoots": "own"}))
}

fn read(pod: &Pod, name: &str) -> String {
    std::fs::read_to_string(pod.gateway.path().join("trust").join(name)).unwrap()
}

#[test]
fn agents_find_their_roots_once_the_gateway_is_ready() {
    let (corp, volumes) = (Pki::new("Corp CA"), Volumes::new());
    let posterns = std::fs::read_to_string(volumes.ca.certificate_path()).unwrap();
    let brought = std::fs::read_to_string(corp.certificate_path()).unwrap();
    let pod = volumes.start_with(|setup| {
        let own = setup.path().join("own/agent");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("SSL_CERT_FILE.pem"), format!("{brought}no PEM\n")).unwrap();
        trusting(setup)
    });
    assert_eq!(pod.gateway.admin("/readyz").status, 200);
    assert_eq!(read(&pod, "ca.pem").trim(), posterns.trim());
    assert!(read(&pod, "ca-bundle.pem").contains(posterns.trim()));
    let of_agent = read(&pod, "agent/ca.pem");
    assert_eq!(of_agent.matches(BEGIN).count(), 2, "{of_agent}");
    assert!(of_agent.contains(brought.trim()), "{of_agent}");
    for name in ["java.jks", "agent/java.jks"] {
        assert!(
            std::fs::read(pod.gateway.path().join("trust").join(name))
                .unwrap()
                .starts_with(&[0xfe, 0xed, 0xfe, 0xed])
        );
    }
}

#[test]
fn while_the_root_rotates_agents_trust_both() {
    let volumes = Volumes::new();
    let old = std::fs::read(volumes.ca.certificate_path()).unwrap();
    let mut pod = volumes.start_with(trusting);
    let next = Pki::new("Next Root");
    let mut keys = ca_keys(&next);
    keys[2].1.extend(old);

    pod.ca.publish(&borrowed(&keys));

    poll("both roots", || (read(&pod, "ca.pem").matches(BEGIN).count() == 2).then_some(()));
    let agent = pod.gateway.agent().trusting(next.roots());
    pod.gateway.wait_for("Policy", "Allow");
    assert_eq!(agent.get("https://api.example.com/echo").status, 200);
}

#[test]
fn where_roots_cannot_be_written_it_is_not_ready_and_says_why() {
    let pod = Volumes::new().start_with(|setup| {
        std::fs::write(setup.path().join("trust"), "in the way").unwrap();
        trusting(setup)
    });
    let ready = pod.gateway.admin("/readyz");
    assert_eq!(ready.status, 503);
    assert!(ready.text().contains("agents do not have the roots that they are to trust"), "{}", ready.text());

    std::fs::remove_file(pod.gateway.path().join("trust")).unwrap();

    poll("readiness", || (pod.gateway.admin("/readyz").status == 200).then_some(()));
    assert_eq!(read(&pod, "ca.pem").matches(BEGIN).count(), 1);
}
