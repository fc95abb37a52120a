//! The names that the operator and the gateway of a pod share: containers, objects, files, labels and annotations.

/// The label of a namespace whose pods are all injected; its value is [`ENABLED`].
pub const INJECTION_LABEL: &str = "postern.dev/injection";
pub const ENABLED: &str = "enabled";

/// The label or annotation of a namespace with [`INJECTION_LABEL`] that says what happens to pods without a gateway:
/// `Report` (the default) or `Delete`.
pub const UNGUARDED: &str = "postern.dev/unguarded";

/// The label or annotation, with the value `true`, by which a single pod asks to be injected.
pub const INJECT: &str = "postern.dev/inject";

/// The label, with the value `true`, of every injected pod: the operator watches pods by it.
pub const INJECTED_LABEL: &str = "postern.dev/injected";

/// The label, with the value [`DRAWN`], of every pod whose gateway's user ID Postern drew. Without it the backstops
/// demand that every container names its user: an image could have an ID that the pod's author chose as its `USER`.
pub const USER_ID_LABEL: &str = "postern.dev/user-id";
pub const DRAWN: &str = "drawn";

/// The label, with the value `true`, of a namespace whose injected pods must name a user for every container. The
/// chart's webhooks and admission policies read it.
pub const REQUIRE_RUN_AS_USER: &str = "postern.dev/require-run-as-user";

/// Further ports that others may connect to, comma-separated.
pub const INBOUND_PORTS: &str = "postern.dev/inbound-ports";
/// Asks for the service account's token to be mounted, with the value `true`.
pub const SERVICE_ACCOUNT_TOKEN: &str = "postern.dev/service-account-token";
/// Variables that hold placeholders: `ANTHROPIC_API_KEY=anthropic,OPENAI_API_KEY=openai`, each the name of a credential
/// or a placeholder as a policy writes it.
pub const PLACEHOLDERS: &str = "postern.dev/placeholders";

/// Asks for a companion that reads a volume for the gateway: `VOLUME:PATH`, as an agent mounts it (docs/workspace.md).
pub const WORKSPACE: &str = "postern.dev/workspace";

/// Resource requests and limits of Postern's containers: `cpu=20m,memory=64Mi`. Annotations of pods, and of namespaces
/// for all of their pods; a pod's own wins. Amounts outside of the chart's bounds are refused.
pub const GATEWAY_REQUESTS: &str = "postern.dev/gateway-requests";
pub const GATEWAY_LIMITS: &str = "postern.dev/gateway-limits";
pub const REDIRECT_REQUESTS: &str = "postern.dev/redirect-requests";
pub const REDIRECT_LIMITS: &str = "postern.dev/redirect-limits";
/// The image of both of Postern's containers, as a whole reference that the chart lists.
pub const GATEWAY_IMAGE: &str = "postern.dev/gateway-image";
/// One of [`LOG_LEVELS`]. The gateway reads it from its pod's annotations, also while it runs.
pub const LOG_LEVEL: &str = "postern.dev/log-level";
pub const LOG_LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// The revision of the policy, stamped on each pod by the operator so that kubelet refreshes its volumes at once.
pub const POLICY_REVISION: &str = "postern.dev/policy-revision";
/// A digest of `postern-ca` and `postern-credentials`, stamped for the same reason.
pub const SECRETS_REVISION: &str = "postern.dev/secrets-revision";
/// A digest of the gateway's settings and of the roots that they name, stamped for the same reason.
pub const SETTINGS_REVISION: &str = "postern.dev/settings-revision";

/// How often the same revision was stamped again, if kubelet did not refresh after the first stamp.
pub const REFRESH: &str = "postern.dev/refresh";

/// The first init container, which programs the redirect and exits.
pub const REDIRECT_CONTAINER: &str = "postern-redirect";
/// The gateway, a native sidecar, the second init container.
pub const GATEWAY_CONTAINER: &str = "postern-gateway";
/// The companion that reads a volume of the pod, a native sidecar, the third init container of pods with [`WORKSPACE`].
pub const WORKSPACE_CONTAINER: &str = "postern-workspace";
/// The prefix of Postern's containers and volumes. Others must not have it.
pub const CONTAINER_PREFIX: &str = "postern-";

/// The operator's objects in each namespace. Nobody else may write them.
pub const POLICY_CONFIG_MAP: &str = "postern-policy";
pub const CA_SECRET: &str = "postern-ca";
pub const CREDENTIALS_SECRET: &str = "postern-credentials";

/// Keys of `postern-policy`, and so files of [`POLICY_DIRECTORY`]. Policies are beside them, one per key:
/// `namespace-NAME.json` and `cluster-NAME.json`, or all of them in [`COMPRESSED_KEY`].
pub const REVISION_KEY: &str = "revision";
/// RFC 3339.
pub const SYNCED_AT_KEY: &str = "syncedAt";
/// The gateway's settings file.
pub const SETTINGS_KEY: &str = "settings";
/// Roots in PEM by which gateways verify upstreams, besides the system's; only if the chart has some.
pub const UPSTREAM_ROOTS_KEY: &str = "upstream-roots.pem";
/// All policies as one gzip file of YAML documents, in `binaryData`, if they would not fit uncompressed.
pub const COMPRESSED_KEY: &str = "policies.yaml.gz";
/// All policies as they are, in the form of [`COMPRESSED_KEY`], if gateways of the last minor version cannot read them.
/// The other keys then hold a form that those can read. A gateway prefers this one if it can read it.
pub const NEWEST_KEY: &str = "policies.newest.yaml.gz";
/// The revision of [`NEWEST_KEY`].
pub const NEWEST_REVISION_KEY: &str = "revision.newest";

/// Keys of `postern-ca`: the intermediate and the root after it; the intermediate's key (PKCS#8); the roots that agents
/// shall trust, two of them while the root rotates.
pub const CA_CERTIFICATE_KEY: &str = "ca-cert.pem";
pub const CA_KEY_KEY: &str = "ca-key.pem";
pub const ROOTS_KEY: &str = "roots.pem";

/// The mounts of these objects in the gateway's container.
pub const POLICY_DIRECTORY: &str = "/etc/postern/policy";
pub const CA_DIRECTORY: &str = "/etc/postern/ca";
pub const CREDENTIALS_DIRECTORY: &str = "/etc/postern/credentials";
/// CA files that agent containers bring along: `CONTAINER/FILE`, each appended to that container's bundle.
pub const OWN_ROOTS_DIRECTORY: &str = "/etc/postern/own-roots";
/// The downward API: `labels` and `annotations`.
pub const POD_INFO_DIRECTORY: &str = "/etc/podinfo";
/// An emptyDir with the status socket, and the gateway's own [`NAME_FILES`].
pub const RUN_DIRECTORY: &str = "/run/postern";

/// An emptyDir of the companion and the gateway, with the companion's socket; only in pods with [`WORKSPACE`].
pub const WORKSPACE_DIRECTORY: &str = "/run/postern-workspace";
pub const WORKSPACE_SOCKET: &str = "/run/postern-workspace/workspace.sock";

/// The files by which names are resolved. All containers of a pod share them and may write them, so the redirect writes
/// copies to [`RUN_DIRECTORY`], which the gateway's container mounts over them.
pub const NAME_FILES: [&str; 2] = [HOSTS_FILE, NAME_SERVERS_FILE];
pub const HOSTS_FILE: &str = "/etc/hosts";
pub const NAME_SERVERS_FILE: &str = "/etc/resolv.conf";

/// An emptyDir that the gateway writes and agents read: [`BUNDLE_FILE`], [`ADDED_FILE`] and [`JAVA_FILE`], and the same
/// below `CONTAINER/` for a container with CA files of its own.
pub const TRUST_DIRECTORY: &str = "/run/postern-trust";
/// The system's roots, those of the container, and Postern's.
pub const BUNDLE_FILE: &str = "ca-bundle.pem";
/// The container's own and Postern's roots, for clients that add them to their own.
pub const ADDED_FILE: &str = "ca.pem";
/// The bundle as a trust store of Java (JKS) with the password [`JAVA_PASSWORD`].
pub const JAVA_FILE: &str = "java.jks";
/// Not secret: the store holds only certificates.
pub const JAVA_PASSWORD: &str = "changeit";

/// An emptyDir of the gateway's alone, with its ledger; its container's restarts leave it as it is.
pub const LEDGER_DIRECTORY: &str = "/var/lib/postern";
/// The most bytes that the ledger of this pod may have: the volume was made for them.
pub const LEDGER_BYTES_VARIABLE: &str = "POSTERN_LEDGER_BYTES";

/// An emptyDir that the gateway writes, with the tool results that were cut out of requests; a sibling of
/// [`LEDGER_DIRECTORY`], so that neither is inside of the other.
pub const EVIDENCE_DIRECTORY: &str = "/var/lib/postern-evidence";
/// The same volume in the agent's containers, for reading alone.
pub const AGENT_EVIDENCE_DIRECTORY: &str = "/run/postern/evidence";
/// The most bytes of tool results that this pod may have: the volume was made for them.
pub const EVIDENCE_BYTES_VARIABLE: &str = "POSTERN_EVIDENCE_BYTES";

/// Variables of the gateway's container, from the downward API.
pub const POD_NAME_VARIABLE: &str = "POSTERN_POD";
pub const POD_NAMESPACE_VARIABLE: &str = "POSTERN_NAMESPACE";
pub const SERVICE_ACCOUNT_VARIABLE: &str = "POSTERN_SERVICE_ACCOUNT";
pub const NODE_VARIABLE: &str = "POSTERN_NODE";
/// The node's addresses, comma-separated: `status.hostIPs`.
pub const NODE_ADDRESSES_VARIABLE: &str = "POSTERN_NODE_ADDRESSES";
