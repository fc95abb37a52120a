//! By which variables of their environment the agents' clients are told whom to trust.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// Whose file stands in the place of the roots that a client has, so that it holds all of them.
pub(crate) const WHOLE_ROOTS: &[&str] = &[
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "AWS_CA_BUNDLE",
    "CODEX_CA_CERTIFICATE",
    "CARGO_HTTP_CAINFO",
    "PIP_CERT",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
];

/// Whose file is added to the roots that a client has.
pub(crate) const ADDED_ROOTS: &[&str] = &["NODE_EXTRA_CA_CERTS", "DENO_CERT"];

/// The files of roots that an environment names by any of these variables, each once.
pub(crate) fn named_roots(variable: &dyn Fn(&str) -> Option<String>) -> BTreeSet<PathBuf> {
    let values = WHOLE_ROOTS.iter().chain(ADDED_ROOTS).filter_map(|name| variable(name));
    values.filter(|value| !value.is_empty()).map(PathBuf::from).collect()
}
