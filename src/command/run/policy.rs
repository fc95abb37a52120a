//! Which policy a run is under: the one that is named, the user's own, or the built-in one; never one of the
//! working directory, which the agent may write.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::command::directories;
use crate::command::private_directory::PrivateDirectory;

/// Audit: known LLM hosts are inspected, the rest is tunnelled.
pub(super) const BUILT_IN: &str = include_str!("audit.yaml");

/// The user's policy, in the directory of [`directories::config`].
pub(in crate::command) const FILE: &str = "policy.yaml";

/// A policy, and how it came to be chosen.
pub(super) enum ChosenPolicy {
    Named(PathBuf),
    Users(PathBuf),
    BuiltIn(PathBuf),
}

impl ChosenPolicy {
    /// Chooses, and writes the built-in one down where that is it.
    pub(super) fn choose(named: Option<&Path>, place: &PrivateDirectory) -> anyhow::Result<Self> {
        if let Some(named) = named {
            let absolute =
                std::path::absolute(named).with_context(|| format!("{} cannot be found", named.display()))?;
            return Ok(Self::Named(absolute));
        }
        let users = directories::config()?.join(FILE);
        // A policy that cannot be read fails the gateway's start; the run does not go on without.
        if users.symlink_metadata().is_ok() {
            return Ok(Self::Users(users));
        }
        Ok(Self::BuiltIn(place.write("built-in.yaml", BUILT_IN.as_bytes())?))
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Named(path) | Self::Users(path) | Self::BuiltIn(path) => path,
        }
    }

    /// One line about it.
    pub(super) fn announcement(&self) -> String {
        match self {
            Self::Named(path) | Self::Users(path) => format!("policy {}", path.display()),
            Self::BuiltIn(_) => {
                "no policy of yours: the built-in one is in Audit mode, so that known LLM hosts \
                are inspected, the rest is tunnelled, and what a policy would deny is only recorded"
                    .to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::host::DnsName;
    use crate::policy::compile::Labels;
    use crate::policy::destination::{Action, Flow, Protocol};
    use crate::policy::{Policy, document};

    #[test]
    fn every_host_of_the_built_in_policy_is_a_known_providers() {
        let documents = document::parse("built-in.yaml", BUILT_IN).unwrap();
        let hosts = documents[0].spec.destinations.iter().filter_map(|rule| rule.hosts.as_ref()).flatten();
        for host in hosts {
            let name = DnsName::parse(&host.replace("**.", "a.b.").replace("*.", "a.")).unwrap();
            assert!(crate::provider::surface::surface(&name).is_some(), "{host}");
        }
    }

    #[test]
    fn the_built_in_policy_inspects_known_llm_hosts_and_tunnels_the_rest() {
        let documents = document::parse("built-in.yaml", BUILT_IN).unwrap();
        let policy = Policy::compile(&documents, &Labels::new()).unwrap();
        assert!(policy.audit_only());
        let action = |host: &str| {
            let name = DnsName::parse(host).unwrap();
            let flow = Flow { name: Some(&name), address: None, port: 443, protocol: Protocol::Tls };
            policy.destination(&flow).action
        };
        for host in [
            "api.anthropic.com",
            "api.openai.com",
            "eu.api.openai.com",
            "chatgpt.com",
            "team.openai.azure.com",
            "team.services.ai.azure.com",
            "api.business.githubcopilot.com",
            "generativelanguage.googleapis.com",
            "cloudcode-pa.googleapis.com",
            "us-central1-aiplatform.googleapis.com",
            "bedrock-runtime.eu-central-1.amazonaws.com",
            "bedrock-mantle.us-east-1.api.aws",
            "openrouter.ai",
            "api.mistral.ai",
            "us-east-1.api.x.ai",
        ] {
            assert!(matches!(action(host), Action::Inspect(_)), "{host}");
        }
        for host in ["github.com", "storage.googleapis.com", "s3.us-east-1.amazonaws.com", "api2.cursor.sh"] {
            assert!(matches!(action(host), Action::Tunnel { .. }), "{host}");
        }
    }
}
