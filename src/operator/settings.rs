//! The operator's settings: one YAML file, written by the chart.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::{EnvVar, ResourceRequirements};
use serde::{Deserialize, Deserializer, de};

use super::amount::{Amount, RESOURCES};
use crate::config::{quantity, source};
use crate::digest::content_name;
use crate::problem::Problem;
use crate::telemetry::log::Format;
use crate::{config, pod};

const MAX_BYTES: u64 = 1 << 20;
/// The prefix of the gateway's own variables.
pub(super) const VARIABLE_PREFIX: &str = "POSTERN_";

/// The operator's settings.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// Postern's own namespace.
    pub namespace: String,
    /// The operator's service account there, the only one that may write the operator's objects.
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
    #[serde(default)]
    pub log: Log,
    pub gateway: Gateway,
    #[serde(default)]
    pub redirect: Redirect,
    #[serde(default)]
    pub injection: Injection,
    #[serde(default)]
    pub credentials: Credentials,
}

/// The admission webhook.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Webhook {
    pub port: u16,
    /// The Service in front of it. Its certificate is for `SERVICE.NAMESPACE.svc`.
    pub service: String,
    /// The Secret (`kubernetes.io/tls`) that all replicas serve with.
    pub certificate: String,
    /// Who makes that certificate.
    pub source: CertificateSource,
    /// The names of the webhook configurations whose `caBundle` is kept.
    pub mutating: String,
    pub validating: String,
    /// For how long a replica that was told to stop still answers, like `5s`: the API server may still send it
    /// requests.
    #[serde(deserialize_with = "duration")]
    pub drain: Duration,
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

/// The operator's own log.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Log {
    pub format: Format,
}

/// The CA at the root of every gateway's.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Root {
    /// The Secret in Postern's namespace: `tls.crt`, `tls.key` and what `authority::Root` keeps there.
    pub secret: String,
    pub source: RootSource,
    /// For how long agents get the next root beside the present one before it issues anything, like `168h` or `7d`:
    /// longer than agents run, since a process reads its roots when it starts.
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

/// The gateway's container.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Gateway {
    /// The image of both of Postern's containers.
    pub image: String,
    #[serde(default = "pull_policy")]
    pub image_pull_policy: String,
    #[serde(default)]
    pub resources: ResourceRequirements,
    #[serde(default)]
    pub resource_bounds: Bounds,
    /// Images that annotations may name besides `image`.
    #[serde(default)]
    pub canary_images: Vec<String>,
    /// Former images, which other replicas may still inject. Annotations may not name them.
    #[serde(default)]
    pub former_images: Vec<String>,
    /// Further variables of the gateway's container, those of OpenTelemetry among them.
    #[serde(default)]
    pub env: Vec<EnvVar>,
    /// The text of the settings file of every gateway.
    pub settings: String,
    /// Roots in PEM by which gateways verify upstreams, besides the system's. If there are any, `settings` names them
    /// as `pod::UPSTREAM_ROOTS_KEY` in `pod::POLICY_DIRECTORY`.
    #[serde(default)]
    pub upstream_roots: String,
}

impl Gateway {
    /// Names what is published beside the policies: settings and roots. Pods are stamped with it.
    #[must_use]
    pub fn revision(&self) -> String {
        content_name(format!("{}\0{}", self.settings, self.upstream_roots).as_bytes())
    }
}

/// The redirect's container, the first init container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Redirect {
    pub resources: ResourceRequirements,
    pub resource_bounds: Bounds,
}

/// The bounds within which annotations choose a container's requests and limits, by resource. A resource that is not in
/// `most` cannot be chosen.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Bounds {
    pub least: BTreeMap<String, String>,
    pub most: BTreeMap<String, String>,
}

/// What injected pods may have.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Injection {
    /// Paths of the node that pods may mount, with everything below.
    pub host_paths: Vec<String>,
    /// Drivers of inline CSI volumes that pods may have, besides those with nothing but certificates and secrets.
    pub csi_drivers: Vec<String>,
    /// Name servers that pods may name, such as a node-local cache; gateways resolve by them.
    pub nameservers: Vec<String>,
    /// Namespaces that the webhook is not called for, besides kube-system and Postern's own: their pods get no gateway,
    /// whatever their labels say.
    pub excluded_namespaces: Vec<String>,
    /// Levels of the log that annotations may name.
    pub log_levels: Vec<String>,
}

/// The sources of the keys that policies refer to.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Credentials {
    /// The namespaces that `secretKeyRef.namespace` of a ClusterEgressPolicy may name.
    pub source_namespaces: Vec<String>,
}

impl Gateway {
    /// The most bytes of the ledger that `settings` put into [`pod::LEDGER_DIRECTORY`]; none where they do not. A mistake in
    /// them is told elsewhere.
    pub fn ledger_bytes(&self) -> Option<u64> {
        let ledger = self.read_settings()?.ledger?;
        ledger.is_in_a_pods_volume().then_some(ledger.max_bytes)
    }

    /// The most bytes of the tool results that `settings` keep in [`pod::EVIDENCE_DIRECTORY`]; none where they do not.
    pub fn evidence_bytes(&self) -> Option<u64> {
        let evidence = self.read_settings()?.evidence?;
        evidence.is_a_pods_volume().then_some(evidence.max_bytes)
    }

    fn read_settings(&self) -> Option<config::Settings> {
        config::Settings::parse(&self.settings, Path::new(pod::POLICY_DIRECTORY), "").ok()
    }
}

impl Settings {
    /// Reads a settings file.
    ///
    /// # Errors
    /// Everything that is wrong with it, and with the gateways' settings in it.
    pub fn read(path: &Path) -> Result<Self, Vec<Problem>> {
        let text = source::read_text(path, MAX_BYTES).map_err(|problem| vec![problem])?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Reads the text of a settings file.
    ///
    /// # Errors
    /// The first value of a wrong type, or else everything that is wrong with the values.
    pub fn parse(text: &str, file: &str) -> Result<Self, Vec<Problem>> {
        let settings: Self = serde_yaml::from_str(text).map_err(|error| vec![unread(&error, file)])?;
        let problems = settings.problems(file);
        if problems.is_empty() { Ok(settings) } else { Err(problems) }
    }

    /// Whether the webhook is not called for pods of this namespace.
    pub fn is_exempt(&self, namespace: &str) -> bool {
        let excluded = self.injection.excluded_namespaces.iter().map(String::as_str);
        excluded.chain(["kube-system", &self.namespace]).any(|exempt| exempt == namespace)
    }

    /// Problems of the bounds of annotations, and of the source namespaces.
    fn choices(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let bounds =
            [("gateway", &self.gateway.resource_bounds), ("redirect", &self.redirect.resource_bounds)];
        for (container, bounds) in bounds {
            for (kind, part) in [("least", &bounds.least), ("most", &bounds.most)] {
                for (name, amount) in part {
                    let message = match Amount::parse(amount) {
                        Err(error) => format!("{amount:?}: {error}"),
                        Ok(_) if RESOURCES.contains(&name.as_str()) => continue,
                        Ok(_) => format!("is none of {}", RESOURCES.join(", ")),
                    };
                    problems.push(Problem::at(format!("{container}.resourceBounds.{kind}.{name}"), message));
                }
            }
        }
        for (at, level) in self.injection.log_levels.iter().enumerate() {
            if !pod::LOG_LEVELS.contains(&level.as_str()) {
                let message = format!("`{level}` is none of {}", pod::LOG_LEVELS.join(", "));
                problems.push(Problem::at(format!("injection.logLevels[{at}]"), message));
            }
        }
        for (at, namespace) in self.credentials.source_namespaces.iter().enumerate() {
            let message = match namespace.as_str() {
                "" => "it is empty; give a name",
                name if name == self.namespace => {
                    "it is Postern's own namespace, which holds the root's key; keep keys in another one"
                }
                _ => continue,
            };
            problems.push(Problem::at(format!("credentials.sourceNamespaces[{at}]"), message));
        }
        problems
    }

    fn problems(&self, file: &str) -> Vec<Problem> {
        let Self { webhook, admin, root, gateway, .. } = self;
        let mut problems = Vec::new();
        for (path, value) in [
            ("namespace", &self.namespace),
            ("serviceAccount", &self.service_account),
            ("lease", &self.lease),
            ("webhook.service", &webhook.service),
            ("webhook.certificate", &webhook.certificate),
            ("webhook.mutating", &webhook.mutating),
            ("webhook.validating", &webhook.validating),
            ("root.secret", &root.secret),
            ("gateway.image", &gateway.image),
        ] {
            if value.is_empty() {
                problems.push(Problem::at(path, "it is empty; give a name").in_file(file));
            }
        }
        if webhook.port == admin.port {
            let message = format!("port {} is the webhook's too; give each its own", admin.port);
            problems.push(Problem::at("admin.port", message).in_file(file));
        }
        if !["Always", "IfNotPresent", "Never"].contains(&gateway.image_pull_policy.as_str()) {
            let message = format!("`{}` is none of Always, IfNotPresent, Never", gateway.image_pull_policy);
            problems.push(Problem::at("gateway.imagePullPolicy", message).in_file(file));
        }
        for (at, variable) in gateway.env.iter().enumerate() {
            let message = match variable.name.as_str() {
                "" => "a variable without a name; give one".to_owned(),
                name if name.starts_with(VARIABLE_PREFIX) => {
                    format!(
                        "{name} is Postern's to set; remove it, and see gateway.settings for what it would change"
                    )
                }
                _ => continue,
            };
            problems.push(Problem::at(format!("gateway.env[{at}].name"), message).in_file(file));
        }
        problems.extend(self.choices().into_iter().map(|problem| problem.in_file(file)));
        let inner = format!("{file} (gateway.settings)");
        let read = config::Settings::parse(&gateway.settings, Path::new(pod::POLICY_DIRECTORY), &inner);
        problems.extend(read.err().unwrap_or_default());
        problems
    }
}

/// The parser's error as a problem, with its line and column.
fn unread(error: &serde_yaml::Error, file: &str) -> Problem {
    let text = error.without_snippet().to_string();
    let text = text.lines().next().unwrap_or_default();
    let reason = text.split_once(" at line ").map_or(text, |(reason, _)| reason);
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let position = error.location().map(|at| (number(at.line()), number(at.column())));
    let message = format!("{reason}; the chart's values say what may stand here");
    Problem { position, ..Problem::at("", message) }.in_file(file)
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
            drain: Duration::from_secs(5),
        }
    }
}

impl Default for Injection {
    fn default() -> Self {
        Self {
            host_paths: Vec::new(),
            csi_drivers: Vec::new(),
            nameservers: Vec::new(),
            excluded_namespaces: Vec::new(),
            log_levels: pod::LOG_LEVELS.map(str::to_owned).to_vec(),
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

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "namespace: postern-system
serviceAccount: postern-operator
webhook: {port: 9443, drain: 0s}
gateway:
  image: gateway:test
  settings: |
    policy: {path: /etc/postern/policy}
";

    fn said(text: &str) -> Vec<String> {
        let problems = Settings::parse(text, "config.yaml").unwrap_err();
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_not_said_has_defaults() {
        let settings = Settings::parse(GOOD, "config.yaml").unwrap();
        assert_eq!((settings.webhook.port, settings.admin.port), (9443, 8080));
        assert_eq!(settings.webhook.certificate, "postern-webhook-tls");
        assert_eq!(settings.lease, "postern-operator");
        assert_eq!(settings.log.format, Format::Text);
    }

    #[test]
    fn the_format_of_the_log_is_one_of_two_words() {
        let json = GOOD.replace("serviceAccount:", "log: {format: Json}\nserviceAccount:");
        assert_eq!(Settings::parse(&json, "config.yaml").unwrap().log.format, Format::Json);
        assert!(said(&json.replace("Json", "json"))[0].contains("json"));
    }

    #[test]
    fn namespaces_that_the_webhook_is_not_asked_about_are_exempt() {
        let text = format!("{GOOD}injection: {{excludedNamespaces: [legacy]}}\n");
        let settings = Settings::parse(&text, "config.yaml").unwrap();
        let exempt = |name: &str| settings.is_exempt(name);
        assert!(["legacy", "kube-system", "postern-system"].into_iter().all(exempt));
        assert!(!exempt("agents"));
    }

    #[test]
    fn what_cannot_be_read_is_said_with_its_place() {
        let typo = GOOD.replace("serviceAccount", "serviceAcount");
        assert!(said(&typo)[0].starts_with("config.yaml:2:1: "), "{:?}", said(&typo));
        assert!(said(&typo)[0].contains("serviceAcount"), "{:?}", said(&typo));
        let port = GOOD.replace("9443", "70000");
        assert!(said(&port)[0].starts_with("config.yaml:3:"), "{:?}", said(&port));
        assert!(said("namespace: [")[0].starts_with("config.yaml:"));
        assert!(said("")[0].contains("config.yaml"));
    }

    #[test]
    fn everything_that_is_wrong_with_what_is_said_is_told() {
        let text = GOOD
            .replace("namespace: postern-system", "namespace: ''")
            .replace("9443", "8080")
            .replace("image: gateway:test", "image: ''\n  imagePullPolicy: Sometimes");
        let told = said(&text);
        for path in ["namespace: ", "gateway.image: ", "admin.port: ", "gateway.imagePullPolicy: "] {
            assert!(
                told.iter().any(|line| line.starts_with(&format!("config.yaml: {path}"))),
                "{path} in {told:?}"
            );
        }
    }

    #[test]
    fn no_variable_of_postern_s_is_set_in_passing() {
        let text = GOOD.replace(
            "image: gateway:test",
            "image: gateway:test\n  env: [{name: OTEL_SERVICE_NAME, value: a}, {name: POSTERN_INTERCEPT, value: '0'}, {name: ''}]",
        );
        let told = said(&text);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].starts_with("config.yaml: gateway.env[1].name: POSTERN_INTERCEPT is Postern's"),
            "{told:?}"
        );
    }

    #[test]
    fn bounds_levels_and_namespaces_of_keys_are_judged() {
        let more = "credentials: {sourceNamespaces: [keys, postern-system]}
injection: {logLevels: [info, verbose]}
redirect: {resourceBounds: {most: {cpu: '1', pods: '1'}, least: {memory: lots}}}
";
        let told = said(&format!("{GOOD}{more}"));
        assert_eq!(told.len(), 4, "{told:?}");
        for part in [
            "redirect.resourceBounds.most.pods: is none of cpu, memory, ephemeral-storage",
            "redirect.resourceBounds.least.memory: \"lots\": expected an amount",
            "injection.logLevels[1]: `verbose` is none of error, warn, info, debug, trace",
            "credentials.sourceNamespaces[1]: it is Postern's own namespace",
        ] {
            assert!(told.iter().any(|line| line.contains(part)), "{part}: {told:?}");
        }
    }

    #[test]
    fn the_settings_of_gateways_are_read_as_gateways_read_them() {
        let told = said(&GOOD.replace("policy: {path", "polcy: {path"));
        assert!(told.iter().any(|line| line.starts_with("config.yaml (gateway.settings):1:1: ")), "{told:?}");
    }

    #[test]
    fn the_time_of_distribution_is_written_with_its_unit() {
        let read = |text: &str| serde_yaml::from_str::<Root>(text).map(|root| root.distribution.as_secs());
        assert_eq!(read("distribution: 168h").unwrap(), 604_800);
        assert_eq!(read("source: Given").unwrap(), 604_800);
        assert!(read("distribution: 168").unwrap_err().to_string().contains("expected a duration"));
    }

    #[test]
    fn what_the_chart_renders_is_read() {
        let manifests = include_str!("../../deploy/postern.yaml");
        let (_, rest) = manifests.split_once("\n  config.yaml: |\n").unwrap();
        let text: String =
            rest.split("\n---").next().unwrap().lines().map(|line| format!("{line}\n")).collect();
        let settings = Settings::parse(&text, "config.yaml").unwrap();
        assert_eq!(settings.namespace, "postern-system");
        assert_eq!(settings.root.distribution, Duration::from_secs(7 * 24 * 60 * 60));
        assert!(settings.gateway.settings.contains("fromEnv: POSTERN_NODE_ADDRESSES"));
    }
}
