//! What the operator and the gateway of a pod agree on: names of containers, objects, files, labels and annotations.

/// The label of a namespace whose pods are all injected; its value is [`ENABLED`].
pub const INJECTION_LABEL: &str = "postern.dev/injection";
pub const ENABLED: &str = "enabled";

/// The label or annotation of a namespace that says what becomes of pods without a gateway where [`INJECTION_LABEL`] is
/// set: `Report` (the default) or `Delete`.
pub const UNGUARDED: &str = "postern.dev/unguarded";

/// The label or annotation by which a single pod asks to be injected, with the value `true`.
pub const INJECT: &str = "postern.dev/inject";

/// The label of every injected pod, with the value `true`: what the operator watches.
pub const INJECTED_LABEL: &str = "postern.dev/injected";

/// The label of every pod whose gateway's user ID Postern drew, with the value [`DRAWN`]. Without it the backstops demand a
/// user of every container: an image could have an ID that the pod's author chose as its `USER`.
pub const USER_ID_LABEL: &str = "postern.dev/user-id";
pub const DRAWN: &str = "drawn";

/// The label of a namespace whose injected pods say of every container which user it runs as, with the value `true`. The
/// chart's webhooks and admission policies read it.
pub const REQUIRE_RUN_AS_USER: &str = "postern.dev/require-run-as-user";

/// Further ports that others may connect to, comma-separated.
pub const INBOUND_PORTS: &str = "postern.dev/inbound-ports";
/// Asks for the service account's token to be mounted, with the value `true`.
pub const SERVICE_ACCOUNT_TOKEN: &str = "postern.dev/service-account-token";
/// Variables that hold placeholders: `ANTHROPIC_API_KEY=anthropic,OPENAI_API_KEY=openai`, each the name of a credential
/// or a placeholder as a policy writes it.
pub const PLACEHOLDERS: &str = "postern.dev/placeholders";

/// Of pods, and of namespaces for all of their pods; a pod's own wins. What the chart's bounds do not have is refused.
/// What Postern's containers ask for and are held to: `cpu=20m,memory=64Mi`.
pub const GATEWAY_REQUESTS: &str = "postern.dev/gateway-requests";
pub const GATEWAY_LIMITS: &str = "postern.dev/gateway-limits";
pub const REDIRECT_REQUESTS: &str = "postern.dev/redirect-requests";
pub const REDIRECT_LIMITS: &str = "postern.dev/redirect-limits";
/// The image of both of Postern's containers: one that the chart lists, whole.
pub const GATEWAY_IMAGE: &str = "postern.dev/gateway-image";
/// One of [`LOG_LEVELS`]. The gateway reads it from its pod's annotations, also while it runs.
pub const LOG_LEVEL: &str = "postern.dev/log-level";
pub const LOG_LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// The revision of the policy, stamped on each pod by the operator so that kubelet refreshes its volumes at once.
pub const POLICY_REVISION: &str = "postern.dev/policy-revision";
/// A digest of `postern-ca` and `postern-credentials`, stamped for the same reason.
pub const SECRETS_REVISION: &str = "postern.dev/secrets-revision";

/// How often kubelet was asked again to refresh, where a stamp alone did not do.
pub const REFRESH: &str = "postern.dev/refresh";

/// The first init container, which programs the redirect and exits.
pub const REDIRECT_CONTAINER: &str = "postern-redirect";
/// The gateway, a native sidecar, the second init container.
pub const GATEWAY_CONTAINER: &str = "postern-gateway";
/// No container of anybody else's has a name that begins so.
pub const CONTAINER_PREFIX: &str = "postern-";

/// The objects that the operator keeps in each namespace. Nobody else may write them.
pub const POLICY_CONFIG_MAP: &str = "postern-policy";
pub const CA_SECRET: &str = "postern-ca";
pub const CREDENTIALS_SECRET: &str = "postern-credentials";

/// Keys of `postern-policy`, and so files of [`POLICY_DIRECTORY`]. Policies stand beside them, one a key:
/// `namespace-NAME.json` and `cluster-NAME.json`, or all of them in [`COMPRESSED_KEY`].
pub const REVISION_KEY: &str = "revision";
/// RFC 3339.
pub const SYNCED_AT_KEY: &str = "syncedAt";
/// The gateway's settings file.
pub const SETTINGS_KEY: &str = "settings";
/// Roots in PEM that gateways verify upstreams by besides the system's; only where the chart is given some.
pub const UPSTREAM_ROOTS_KEY: &str = "upstream-roots.pem";
/// All policies as one file of YAML documents, gzip, in `binaryData`: where they would not fit as they are.
pub const COMPRESSED_KEY: &str = "policies.yaml.gz";
/// Where gateways of the last minor version could not read all policies as they are: as they are, as in
/// [`COMPRESSED_KEY`]. The other keys then hold what those gateways can read. A gateway follows this one where it can.
pub const NEWEST_KEY: &str = "policies.newest.yaml.gz";
/// The revision of [`NEWEST_KEY`].
pub const NEWEST_REVISION_KEY: &str = "revision.newest";

/// Keys of `postern-ca`: the intermediate and the root after it; the intermediate's key (PKCS#8); the roots that agents
/// are to trust, two of them while the root rotates.
pub const CA_CERTIFICATE_KEY: &str = "ca-cert.pem";
pub const CA_KEY_KEY: &str = "ca-key.pem";
pub const ROOTS_KEY: &str = "roots.pem";

/// Where the gateway's container has them.
pub const POLICY_DIRECTORY: &str = "/etc/postern/policy";
pub const CA_DIRECTORY: &str = "/etc/postern/ca";
pub const CREDENTIALS_DIRECTORY: &str = "/etc/postern/credentials";
/// Files of CAs that agent containers bring along: `CONTAINER/FILE`, each appended to that container's bundle.
pub const OWN_ROOTS_DIRECTORY: &str = "/etc/postern/own-roots";
/// The downward API: `labels` and `annotations`.
pub const POD_INFO_DIRECTORY: &str = "/etc/podinfo";
/// An emptyDir with the status socket, and the gateway's own [`NAME_FILES`].
pub const RUN_DIRECTORY: &str = "/run/postern";

/// What names are resolved by. All containers of a pod share these files and may write them, so that the redirect keeps
/// its own in [`RUN_DIRECTORY`], which the gateway's container mounts over them.
pub const NAME_FILES: [&str; 2] = [HOSTS_FILE, NAME_SERVERS_FILE];
pub const HOSTS_FILE: &str = "/etc/hosts";
pub const NAME_SERVERS_FILE: &str = "/etc/resolv.conf";

/// An emptyDir that the gateway writes and agents read: [`BUNDLE_FILE`], [`ADDED_FILE`] and [`JAVA_FILE`], and the same
/// below `CONTAINER/` for a container with roots of its own.
pub const TRUST_DIRECTORY: &str = "/run/postern-trust";
/// The system's roots, those of the container, and Postern's.
pub const BUNDLE_FILE: &str = "ca-bundle.pem";
/// The container's own and Postern's roots, for clients that add to what they have.
pub const ADDED_FILE: &str = "ca.pem";
/// The bundle as a trust store of Java (JKS) with the password [`JAVA_PASSWORD`].
pub const JAVA_FILE: &str = "java.jks";
/// No secret: the store holds certificates alone.
pub const JAVA_PASSWORD: &str = "changeit";

/// Variables of the gateway's container, from the downward API.
pub const POD_NAME_VARIABLE: &str = "POSTERN_POD";
pub const POD_NAMESPACE_VARIABLE: &str = "POSTERN_NAMESPACE";
pub const SERVICE_ACCOUNT_VARIABLE: &str = "POSTERN_SERVICE_ACCOUNT";
pub const NODE_VARIABLE: &str = "POSTERN_NODE";
/// The node's addresses, comma-separated: `status.hostIPs`.
pub const NODE_ADDRESSES_VARIABLE: &str = "POSTERN_NODE_ADDRESSES";
