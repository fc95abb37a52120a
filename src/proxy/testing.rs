//! A gateway for unit tests: nothing listens, and nothing is intercepted.

use std::path::Path;
use std::sync::Arc;

use super::Gateway;
use super::snapshot::{Interception, Snapshot, SnapshotParts};
use super::upstream::Places;
use crate::config::Settings;
use crate::credential::Store;
use crate::drain::Drain;
use crate::ledger::Ledger;
use crate::policy::{Labels, Policy, document};
use crate::telemetry::Metrics;
use crate::tls::roots::{TlsSettings, UpstreamTls};

/// The policies `agents/p`, `agents/q` and so on with these specs.
pub(crate) fn policy(specs: &[&str]) -> Policy {
    let documents = specs.iter().zip('p'..).map(|(spec, name)| {
        let spec: String = spec.lines().map(|line| format!("  {line}\n")).collect();
        format!(
            "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: {name}, namespace: agents}}\n\
             spec:\n{spec}"
        )
    });
    compiled(&documents.collect::<Vec<_>>().join("---\n"))
}

/// The policy of these documents.
pub(crate) fn compiled(text: &str) -> Policy {
    Policy::compile(&document::parse("policy.yaml", text).unwrap(), &Labels::new()).unwrap()
}

/// A gateway under the policy `agents/p` with this spec, whose events go nowhere.
pub(crate) fn gateway(spec: &str) -> Arc<Gateway> {
    let settings = Settings::parse("policy: {path: policy.yaml}", Path::new("/"), "settings.yaml").unwrap();
    let parts = SnapshotParts {
        settings: Arc::new(settings),
        policy: policy(&[spec]),
        interception: Interception::Off,
        credentials: Arc::new(Store::load((&[], &[]), None, &|_| None)),
        evidence: None,
        tls: Arc::new(UpstreamTls::load(&TlsSettings::default(), &[]).unwrap()),
        proxy_credentials: None,
        own: Vec::new(),
        places: Places::new(1),
        cluster: Vec::new(),
        listeners: Vec::new(),
    };
    let (drain, metrics) = (Drain::default(), Arc::new(Metrics::new().unwrap()));
    let ledger = Ledger::start(Vec::new(), None, Arc::clone(&metrics)).unwrap();
    Gateway::new(Snapshot::new(parts, drain.clone()), ledger, metrics, drain, None, Arc::default())
}
