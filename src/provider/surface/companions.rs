//! Hosts that agents dial beside their provider when they start: each was seen in a run of the agent that is named.
//!
//! A row opens nothing: where no rule names the host, its refusal is shown inside TLS, which agents read at once, where
//! a name that does not resolve or a refused CONNECT is tried again for seconds.

use crate::call::{Companion, Dialect, ProviderHosts};
use crate::name::host::DnsName;

/// The most rows: a namespace's CA may vouch for each of them.
#[cfg(test)]
const MOST: usize = 64;

const ANTHROPIC: ProviderHosts =
    ProviderHosts { hosts: &["api.anthropic.com"], dialects: &[Dialect::Anthropic] };
const OPENAI: ProviderHosts = ProviderHosts {
    hosts: &["api.openai.com", "*.api.openai.com", "chatgpt.com"],
    dialects: &[Dialect::OpenAIResponses],
};
const GEMINI: ProviderHosts = ProviderHosts {
    hosts: &["generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com"],
    dialects: &[Dialect::Gemini],
};
const COPILOT: ProviderHosts =
    ProviderHosts { hosts: &["api.githubcopilot.com", "**.githubcopilot.com"], dialects: &[] };
/// Of agents that speak to whatever provider they are given.
const ANY: &[ProviderHosts] = &[
    ANTHROPIC,
    OPENAI,
    GEMINI,
    COPILOT,
    ProviderHosts { hosts: &["openrouter.ai"], dialects: &[Dialect::OpenAIChat, Dialect::Bedrock] },
];

/// The table. Versions are those of the runs: Claude Code 2.1.330, Codex 0.169.0, Gemini CLI 0.61.0, opencode 1.18.33,
/// GitHub Copilot CLI 1.0.102; each began with an empty HOME, alone and in a terminal.
pub const COMPANIONS: &[Companion] = &[
    // Claude Code in a terminal: `GET /v1/oauth/hello`, without whose 200 it does not start; logins.
    Companion { host: "platform.claude.com", beside: &[ANTHROPIC] },
    // Claude Code that is given another base URL: settings, flags and telemetry go to its own host all the same.
    Companion { host: "api.anthropic.com", beside: &[ANTHROPIC] },
    // Claude Code in a terminal: `GET /claude-code-releases/…`, `/model-catalog/…`.
    Companion { host: "downloads.claude.ai", beside: &[ANTHROPIC] },
    // Codex, with an API key too: `GET /backend-api/codex/models`, `/backend-api/plugins/export/curated`.
    Companion { host: "chatgpt.com", beside: &[OPENAI] },
    // Codex: `POST /otlp/v1/metrics`.
    Companion { host: "ab.chatgpt.com", beside: &[OPENAI] },
    // Codex and opencode: plugins and releases. Copilot: `GET /copilot_internal/user`, without which it does not start.
    Companion { host: "api.github.com", beside: ANY },
    // Codex: plugins; Claude Code in a terminal: marketplaces; over https where ssh is refused.
    Companion { host: "github.com", beside: &[OPENAI, ANTHROPIC] },
    // Copilot: `POST /telemetry`.
    Companion { host: "telemetry.githubcopilot.com", beside: &[COPILOT] },
    // Gemini CLI: `POST /log`.
    Companion { host: "play.googleapis.com", beside: &[GEMINI] },
    // opencode: `GET /api.json`, its list of models.
    Companion { host: "models.opencode.ai", beside: ANY },
    // opencode, Gemini CLI and Claude Code in a terminal: whether there is a newer version.
    Companion { host: "registry.npmjs.org", beside: ANY },
    // Claude Code and Codex in a terminal: news; litellm 1.106.2 and aider 0.86.2: prices.
    Companion { host: "raw.githubusercontent.com", beside: ANY },
];

/// Whether a host is of the tables: an LLM provider's, or one that agents dial beside it.
pub fn is_listed(host: &DnsName) -> bool {
    super::surface(host).is_some() || COMPANIONS.iter().any(|companion| companion.host == host.as_str())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::policy::pattern::Pattern;

    #[test]
    fn the_table_is_short_and_each_row_is_one_exact_name_with_a_provider() {
        assert!(COMPANIONS.len() <= MOST);
        let names: BTreeSet<_> = COMPANIONS.iter().map(|companion| companion.host).collect();
        assert_eq!(names.len(), COMPANIONS.len());
        for companion in COMPANIONS {
            assert_eq!(DnsName::parse(companion.host).unwrap().as_str(), companion.host);
            assert!(!companion.beside.is_empty(), "{}", companion.host);
        }
    }

    #[test]
    fn the_provider_of_each_row_is_one_that_the_tables_know() {
        for host in COMPANIONS.iter().flat_map(|companion| companion.beside).flat_map(|beside| beside.hosts) {
            assert!(Pattern::parse(host).is_ok(), "{host}");
            let one = DnsName::parse(&host.replace("**.", "one.").replace('*', "one")).unwrap();
            assert!(super::super::surface(&one).is_some(), "{host}");
        }
    }

    #[test]
    fn hosts_of_providers_and_their_companions_are_listed_and_no_others() {
        let listed = |host: &str| is_listed(&DnsName::parse(host).unwrap());
        for host in ["api.anthropic.com", "claude.ai", "acme.openai.azure.com", "ab.chatgpt.com"] {
            assert!(listed(host), "{host}");
        }
        for host in ["x.ab.chatgpt.com", "evil.example.com", "gist.github.com", "anthropic.com"] {
            assert!(!listed(host), "{host}");
        }
    }
}
