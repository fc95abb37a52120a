//! The gateway as the injector puts it beside an agent: its files are volumes that the operator and kubelet write.

mod authority;
mod environment;
mod policy;
mod readiness;
mod trust;
mod versions;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use postern::pod::{POLICY_REVISION, REVISION_KEY, SYNCED_AT_KEY};
use postern::policy::{compile, document};
use rustls::RootCertStore;
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::support::{Gateway, Pki, Setup, Upstream, Volume};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

const INSPECT: &str = r#"{"name":"api","hosts":["api.example.com"],"action":"Inspect"}"#;
const TUNNEL: &str = r#"{"name":"api","hosts":["api.example.com"],"action":"Tunnel"}"#;
const DENY: &str = r#"{"name":"no-api","hosts":["api.example.com"],"action":"Deny"}"#;

/// A gateway with the volumes that it reads.
struct Pod {
    upstream: Upstream,
    gateway: Gateway,
    policy: Volume,
    info: Volume,
    ca: Volume,
    roots: Arc<RootCertStore>,
}

impl Pod {
    /// Roots that trust the CA which the gateway began with.
    fn ca_roots(&self) -> Arc<RootCertStore> {
        Arc::clone(&self.roots)
    }
}

/// What stands in the volumes before the gateway starts: a policy that inspects `api.example.com`, the labels and
/// annotations of a coder, and a CA.
struct Volumes {
    policy: Published,
    info: (String, String),
    ca: Pki,
}

/// The keys of `postern-policy`.
#[derive(Clone)]
struct Published {
    documents: Vec<(String, Vec<u8>)>,
    revision: String,
    synced_at: String,
}

impl Published {
    /// Documents, each with these destinations for pods with this `app`; vouched for so long ago.
    fn new(policies: &[(&str, &str)], ago: Duration) -> Self {
        let documents: Vec<_> = policies
            .iter()
            .map(|(app, destinations)| {
                let text = format!(
                    r#"{{"apiVersion":"postern.dev/v1alpha1","kind":"EgressPolicy","metadata":{{"name":"{app}","namespace":"agents"}},"spec":{{"podSelector":{{"matchLabels":{{"app":"{app}"}}}},"destinations":[{destinations}]}}}}"#
                );
                (format!("namespace-{app}.json"), text.into_bytes())
            })
            .collect();
        let parsed: Vec<_> = documents
            .iter()
            .flat_map(|(name, text)| document::parse(name, std::str::from_utf8(text).unwrap()).unwrap())
            .collect();
        Self { documents, revision: compile::revision(&parsed), synced_at: ago_as_text(ago) }
    }

    /// For the coder alone, vouched for just now.
    fn of(destinations: &str) -> Self {
        Self::new(&[("coder", destinations)], Duration::ZERO)
    }

    /// The same documents, vouched for so long ago.
    fn synced(&self, ago: Duration) -> Self {
        Self { synced_at: ago_as_text(ago), ..self.clone() }
    }

    fn keys(&self) -> Vec<(&str, &[u8])> {
        let documents = self.documents.iter().map(|(name, text)| (name.as_str(), text.as_slice()));
        let of_operator =
            [(REVISION_KEY, self.revision.as_bytes()), (SYNCED_AT_KEY, self.synced_at.as_bytes())];
        documents.chain(of_operator).chain([("settings", b"the gateway's".as_slice())]).collect()
    }
}

impl Volumes {
    fn new() -> Self {
        Self {
            policy: Published::of(INSPECT),
            info: ("app=\"coder\"\n".to_owned(), "note=\"x\"\n".to_owned()),
            ca: Pki::new("Postern Test CA"),
        }
    }

    fn publishing(policy: Published) -> Self {
        Self { policy, ..Self::new() }
    }

    /// Lays them out in this setup's directory, and has its settings name them.
    fn lay_out(self, setup: Setup) -> (Setup, [Volume; 3]) {
        let policy = Volume::new(&setup.path().join("policy"), &self.policy.keys());
        let (labels, annotations) = &self.info;
        let info = Volume::new(
            &setup.path().join("podinfo"),
            &[("labels", labels.as_bytes()), ("annotations", annotations.as_bytes())],
        );
        let ca = Volume::new(&setup.path().join("ca"), &borrowed(&ca_keys(&self.ca)));
        let setup = setup
            .set(
                "/policy",
                json!({"path": "policy", "labels": "podinfo/labels", "annotations": "podinfo/annotations"}),
            )
            .set("/interception/caCertificate", "ca/ca-cert.pem")
            .set("/interception/caKey", "ca/ca-key.pem");
        (setup, [policy, info, ca])
    }

    fn start(self) -> Pod {
        self.start_with(|setup| setup)
    }

    fn start_with(self, change: impl FnOnce(Setup) -> Setup) -> Pod {
        let upstreams = Pki::new("Upstream Test CA");
        let upstream = Upstream::tls(&upstreams, &["api.example.com"]);
        let setup = Setup::new(&upstreams).host("api.example.com", upstream.address());
        let roots = self.ca.roots();
        let (setup, [policy, info, ca]) = self.lay_out(setup);
        Pod { upstream, gateway: change(setup).start(), policy, info, ca, roots }
    }
}

/// Why it is not ready, or what is worth knowing.
fn reasons(gateway: &Gateway) -> String {
    gateway.status()["reasons"].as_array().unwrap().iter().map(|reason| format!("{reason}\n")).collect()
}

fn stamp(revision: &str) -> String {
    format!("{POLICY_REVISION}=\"{revision}\"\n")
}

/// The keys of `postern-ca`.
fn ca_keys(ca: &Pki) -> Vec<(&'static str, Vec<u8>)> {
    let read = |path: &Path| std::fs::read(path).unwrap();
    let certificate = read(&ca.certificate_path());
    vec![
        ("ca-cert.pem", certificate.clone()),
        ("ca-key.pem", read(&ca.key_path())),
        ("roots.pem", certificate),
    ]
}

fn borrowed<'a>(keys: &'a [(&'static str, Vec<u8>)]) -> Vec<(&'a str, &'a [u8])> {
    keys.iter().map(|(key, content)| (*key, content.as_slice())).collect()
}

fn ago_as_text(ago: Duration) -> String {
    OffsetDateTime::from(SystemTime::now() - ago).format(&Rfc3339).unwrap()
}
