//! The service account's token: what whoever runs here may ask of the cluster.

use std::path::Path;

use super::Finding;
use crate::tls::gate::Surroundings;

/// Where Kubernetes mounts it.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Whether a token is mounted. What it permits only the API server knows, and nothing here asks it.
pub(super) fn look(surroundings: Surroundings) -> Option<Finding> {
    surroundings.kubernetes.then(|| of(Path::new(TOKEN)))
}

fn of(token: &Path) -> Finding {
    if !token.exists() {
        return Finding::ok("token", "no token of the service account is mounted here");
    }
    let text = format!(
        "{} is mounted: what its service account may do, whoever runs here may; with `get secrets` it reads the CA and \
         the keys of this namespace",
        token.display()
    );
    Finding::warn("token", text).remedy(
        "leave it out (automountServiceAccountToken: false), or see that `kubectl auth can-i get secrets \
         --as=system:serviceaccount:NAMESPACE:NAME` says no",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::doctor::State;

    #[test]
    fn a_token_that_is_mounted_is_warned_of() {
        let directory = tempfile::tempdir().unwrap();
        let token = directory.path().join("token");
        assert_eq!(of(&token).state, FindingState::Ok);
        std::fs::write(&token, "x").unwrap();
        let finding = of(&token);
        assert_eq!(finding.state, FindingState::Warn);
        assert!(finding.found.contains("get secrets") && finding.remedy.is_some());
        assert!(look(Surroundings { intercept: true, kubernetes: false }).is_none(), "a laptop has none");
    }
}
