//! The operator's settings: one YAML file, written by the chart.

use std::time::Duration;

use k8s_openapi::api::core::v1::{EnvVar, ResourceRequirements};
use serde::{Deserialize, Deserializer, de};

use crate::config::quantity;

/// What the operator runs with.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// Postern's own namespace.
    pub namespace: String,
    /// The operator's service account there: the only writer of what it keeps.
    pub service_account: String,
    /// The name of the Lease by which replicas elect who runs the controller.
    #[serde(default = "lease")]
    pub lease: String,
    #[serde(default)]
    pub webhook: Webhook,
    #[serde(default)]
    pub admin: Admin,
    #[serde(default)]
    pub root: Root,
    pub gateway: Gateway,
    #[serde(default)]
    pub redirect: Redirect,
    #[serde(default)]
    pub injection: Injection,
}

/// Where the API server asks.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Webhook {
    pub port: u16,
    /// The Service in front of it: `SERVICE.NAMESPACE.svc` is what its certificate is for.
    pub service: String,
    /// The Secret (`kubernetes.io/tls`) that all replicas serve with.
    pub certificate: String,
    /// Who makes that certificate.
    pub source: CertificateSource,
    /// The names of the webhook configurations whose `caBundle` is kept.
    pub mutating: String,
    pub validating: String,
}

/// Who makes the webhook's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum CertificateSource {
    /// The operator, which also patches `caBundle` and rotates both.
    SelfManaged,
    /// cert-manager, whose injector patches `caBundle`: the Secret is only read.
    CertManager,
}

/// `/healthz`, `/readyz` and `/metrics`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Admin {
    pub port: u16,
}

/// The CA at the root of every gateway's.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Root {
    /// The Secret in Postern's namespace: `tls.crt`, `tls.key` and what `authority::Root` keeps there.
    pub secret: String,
    pub source: RootSource,
    /// For how long agents are given the next root beside the present one before anything is issued by it, like `168h`
    /// or `7d`: longer than agents run, since a process reads its roots when it starts.
    #[serde(deserialize_with = "duration")]
    pub distribution: Duration,
}

/// Who makes the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum RootSource {
    /// The operator, once, where there is no such Secret yet.
    Generated,
    /// Somebody else, cert-manager among them: the Secret is only read.
    Given,
}

/// What is put into pods as the gateway.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Gateway {
    /// The image of both of Postern's containers.
    pub image: String,
    #[serde(default = "pull_policy")]
    pub image_pull_policy: String,
    #[serde(default)]
    pub resources: ResourceRequirements,
    /// Further variables of the gateway's container, those of OpenTelemetry among them.
    #[serde(default)]
    pub env: Vec<EnvVar>,
    /// The text of the settings file of every gateway.
    pub settings: String,
    /// Roots in PEM that gateways verify upstreams by besides the system's; where there are any, `settings` names them as
    /// `pod::UPSTREAM_ROOTS_KEY` in `pod::POLICY_DIRECTORY`.
    #[serde(default)]
    pub upstream_roots: String,
}

/// The first init container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Redirect {
    pub resources: ResourceRequirements,
}

/// What is asked of pods.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Injection {
    /// Paths of the node that pods may mount, they and what is below.
    pub host_paths: Vec<String>,
    /// Drivers of inline CSI volumes that pods may have, besides those that hold certificates and secrets alone.
    pub csi_drivers: Vec<String>,
}

impl Default for Webhook {
    fn default() -> Self {
        Self {
            port: 8443,
            service: "postern-webhook".to_owned(),
            certificate: "postern-webhook-tls".to_owned(),
            source: CertificateSource::SelfManaged,
            mutating: "postern".to_owned(),
            validating: "postern".to_owned(),
        }
    }
}

impl Default for Admin {
    fn default() -> Self {
        Self { port: 8080 }
    }
}

impl Default for Root {
    fn default() -> Self {
        Self {
            secret: "postern-root-ca".to_owned(),
            source: RootSource::Generated,
            distribution: Duration::from_secs(7 * 24 * 60 * 60),
        }
    }
}

fn lease() -> String {
    "postern-operator".to_owned()
}

fn pull_policy() -> String {
    "IfNotPresent".to_owned()
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    quantity::duration(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}
