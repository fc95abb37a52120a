//! The catalogue of minting endpoints, one row each: data alone. A new one is a new row.

/// The endpoints of one provider.
pub(super) struct Family {
    /// Names, of which one part may be `*`; empty: wherever the path is met, since gateways and self-hosted
    /// servers have names of their own.
    pub(super) hosts: &'static [&'static str],
    /// The calls, the path (`*` one segment or the beginning of one, `**` any number), and what is handed out.
    pub(super) endpoints: &'static [(Calls, &'static str, &'static str)],
}

/// Which methods of an endpoint count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Calls {
    All,
    /// All but GET, HEAD and OPTIONS.
    Writes,
}

use Calls::{All, Writes};

pub(super) const CATALOGUE: &[Family] = &[
    OAUTH,
    OPENAI,
    OPENAI_ANYWHERE,
    ANTHROPIC,
    GEMINI,
    GOOGLE,
    GOOGLE_TOKENS,
    AWS,
    AZURE,
    GITHUB,
    GITHUB_WEB,
    GITHUB_ANYWHERE,
    GITLAB,
    FORGES,
    PACKAGES,
    CONTAINERS,
    SPEECH,
    ROUTERS,
    PLATFORMS,
    CLUSTERS,
];

/// RFC 6749, 8628, 8693, 7591 at their usual paths.
const OAUTH: Family = Family {
    hosts: &[],
    endpoints: &[
        (Writes, "/**/oauth/token", "OAuth token"),
        (Writes, "/**/oauth/access_token", "OAuth token"),
        (Writes, "/**/oauth2/token", "OAuth token"),
        (Writes, "/**/oauth2/*/token", "OAuth token"),
        (Writes, "/**/oauth2/access_token", "OAuth token"),
        (Writes, "/**/oauth2/exchange", "OAuth token"),
        (Writes, "/**/oauth/device/code", "OAuth device code"),
        (Writes, "/**/oauth2/*/devicecode", "OAuth device code"),
        (Writes, "/**/oauth/register", "OAuth client"),
        (Writes, "/**/openid-connect/token", "OAuth token"),
    ],
};

/// <https://platform.openai.com/docs/api-reference/administration>; regional hosts are `us.` and `eu.`.
const OPENAI: Family = Family {
    hosts: &["api.openai.com", "*.api.openai.com"],
    endpoints: &[
        (Writes, "/v1/organization/**", "administration of keys, service accounts and members"),
        (Writes, "/v1/dashboard/**", "administration of keys"),
    ],
};

/// <https://platform.openai.com/docs/api-reference/realtime-sessions>, which Azure, xAI and gateways speak too.
const OPENAI_ANYWHERE: Family = Family {
    hosts: &[],
    endpoints: &[
        (Writes, "/**/realtime/client_secrets", "ephemeral key"),
        (Writes, "/**/realtime/*/client_secrets", "ephemeral key"),
        (Writes, "/**/realtime/sessions", "ephemeral key"),
        (Writes, "/**/realtime/transcription_sessions", "ephemeral key"),
        (Writes, "/**/realtimeapi/sessions", "ephemeral key"),
        (Writes, "/**/live/client_secrets", "ephemeral key"),
        (Writes, "/**/live/sessions", "session with a key of its own"),
        (Writes, "/**/chatkit/sessions", "client secret"),
        (Writes, "/**/chatkit/sessions/*/refresh", "client secret"),
    ],
};

/// <https://platform.claude.com/docs/en/api/admin-api>, and what Claude Code's login calls.
const ANTHROPIC: Family = Family {
    hosts: &["api.anthropic.com", "console.anthropic.com", "platform.claude.com", "claude.ai"],
    endpoints: &[
        (Writes, "/v1/organizations/**", "administration of keys and members"),
        (Writes, "/api/oauth/claude_cli/create_api_key", "API key"),
        (Writes, "/api/organizations/**/api_keys", "API key"),
        (Writes, "/v1/environments/**/keys", "environment key"),
        (Writes, "/v1/tunnels/**", "tunnel token"),
    ],
};

/// <https://ai.google.dev/gemini-api/docs/ephemeral-tokens>
const GEMINI: Family = Family {
    hosts: &[],
    endpoints: &[
        (Writes, "/*/auth_tokens", "ephemeral token"),
        (Writes, "/*/authtokens", "ephemeral token"),
        (Writes, "/*/auth_tokens:create", "ephemeral token"),
    ],
};

/// <https://cloud.google.com/iam/docs/reference/credentials/rest>, on any host: `*.mtls` and private endpoints.
const GOOGLE: Family = Family {
    hosts: &[],
    endpoints: &[
        (All, "/**/*:generateaccesstoken", "access token"),
        (All, "/**/*:generateidtoken", "identity token"),
        (All, "/**/*:signjwt", "signed token"),
        (All, "/**/*:signblob", "signature"),
        (Writes, "/*/projects/*/serviceaccounts/*/keys", "service account key"),
        (Writes, "/*/projects/*/serviceaccounts/*/keys:upload", "service account key"),
        (Writes, "/*/projects/*/locations/*/keys", "API key"),
        (All, "/*/projects/*/locations/*/keys/*/keystring", "API key"),
        (Writes, "/*/projects/*/locations/*/keys/*:undelete", "API key"),
        (Writes, "/*/projects/*/serviceaccounts/*/hmackeys", "HMAC key"),
        (Writes, "/storage/*/projects/*/hmackeys", "HMAC key"),
    ],
};

const GOOGLE_TOKENS: Family = Family {
    hosts: &[
        "sts.googleapis.com",
        "oauth2.googleapis.com",
        "securetoken.googleapis.com",
        "accounts.google.com",
    ],
    endpoints: &[(Writes, "/**", "OAuth token")],
};

/// The whole hosts: the action stands in the body or in `x-amz-target`.
const AWS: Family = Family {
    hosts: &[
        "sts.amazonaws.com",
        "sts.*.amazonaws.com",
        "sts-fips.*.amazonaws.com",
        "iam.amazonaws.com",
        "iam-fips.amazonaws.com",
        "oidc.*.amazonaws.com",
        "portal.sso.*.amazonaws.com",
        "rolesanywhere.*.amazonaws.com",
        "cognito-identity.*.amazonaws.com",
        "cognito-idp.*.amazonaws.com",
        "*.signin.aws.amazon.com",
        "signin.aws.amazon.com",
    ],
    endpoints: &[(All, "/**", "temporary credentials or access keys")],
};

/// <https://learn.microsoft.com/rest/api/>: keys of a resource, and Cognitive Services' token service.
const AZURE: Family = Family {
    hosts: &[],
    endpoints: &[
        (Writes, "/**/sts/v1.0/issuetoken", "access token"),
        (Writes, "/**/sts/v1.0/fetchtoken", "access token"),
        (Writes, "/subscriptions/**/listkeys", "keys of a resource"),
        (Writes, "/subscriptions/**/listsecrets", "keys of a resource"),
        (Writes, "/subscriptions/**/listcredentials", "keys of a resource"),
        (Writes, "/subscriptions/**/listaccountsas", "signed URL"),
        (Writes, "/subscriptions/**/listservicesas", "signed URL"),
        (Writes, "/subscriptions/**/regeneratekey", "keys of a resource"),
        (Writes, "/subscriptions/**/regeneratekeys", "keys of a resource"),
        (Writes, "/subscriptions/**/regeneratecredential", "keys of a resource"),
        (Writes, "/*/applications/*/addpassword", "client secret"),
        (Writes, "/*/applications/*/addkey", "client secret"),
        (Writes, "/*/serviceprincipals/*/addpassword", "client secret"),
        (Writes, "/*/serviceprincipals/*/addkey", "client secret"),
    ],
};

/// <https://docs.github.com/rest>
const GITHUB: Family = Family {
    hosts: &["api.github.com", "*.ghe.com"],
    endpoints: &[
        (Writes, "/user/keys", "SSH key"),
        (Writes, "/user/gpg_keys", "signing key"),
        (Writes, "/user/ssh_signing_keys", "signing key"),
        (Writes, "/repos/*/*/keys", "deploy key"),
        (Writes, "/authorizations/**", "personal token"),
        (Writes, "/applications/*/token", "OAuth token"),
        (Writes, "/applications/*/token/scoped", "OAuth token"),
        (All, "/copilot_internal/**/token", "session token"),
    ],
};

const GITHUB_WEB: Family = Family {
    hosts: &["github.com", "*.ghe.com"],
    endpoints: &[
        (Writes, "/login/device/code", "OAuth device code"),
        (Writes, "/settings/tokens/**", "personal token"),
        (Writes, "/settings/personal-access-tokens/**", "personal token"),
        (Writes, "/settings/keys/**", "SSH key"),
        (Writes, "/settings/ssh/**", "SSH key"),
        (Writes, "/*/*/settings/keys/**", "deploy key"),
        (Writes, "/github-copilot/**/token", "session token"),
    ],
};

/// Paths long enough to be known on a GitHub Enterprise Server of any name, below `/api/v3` or not.
const GITHUB_ANYWHERE: Family = Family {
    hosts: &[],
    endpoints: &[
        (Writes, "/**/app/installations/*/access_tokens", "installation token"),
        (Writes, "/**/app-manifests/*/conversions", "App key"),
        (Writes, "/**/actions/runners/registration-token", "runner token"),
        (Writes, "/**/actions/runners/remove-token", "runner token"),
        (Writes, "/**/actions/runners/generate-jitconfig", "runner token"),
        (Writes, "/api/v3/user/keys", "SSH key"),
        (Writes, "/api/v3/user/gpg_keys", "signing key"),
        (Writes, "/api/v3/user/ssh_signing_keys", "signing key"),
        (Writes, "/api/v3/repos/*/*/keys", "deploy key"),
        (Writes, "/api/v3/authorizations/**", "personal token"),
        (Writes, "/api/v3/admin/users/*/authorizations", "personal token"),
    ],
};

/// <https://docs.gitlab.com/api/rest/>; a project's id may be its path, hence `**`.
const GITLAB: Family = Family {
    hosts: &[],
    endpoints: &[
        (Writes, "/api/v4/user/personal_access_tokens", "personal token"),
        (Writes, "/api/v4/users/*/personal_access_tokens", "personal token"),
        (Writes, "/api/v4/users/*/impersonation_tokens", "impersonation token"),
        (Writes, "/api/v4/personal_access_tokens/*/rotate", "personal token"),
        (Writes, "/api/v4/projects/**/access_tokens", "project token"),
        (Writes, "/api/v4/projects/**/access_tokens/*/rotate", "project token"),
        (Writes, "/api/v4/groups/**/access_tokens", "group token"),
        (Writes, "/api/v4/groups/**/access_tokens/*/rotate", "group token"),
        (Writes, "/api/v4/groups/**/service_accounts/**", "service account token"),
        (Writes, "/api/v4/**/deploy_tokens", "deploy token"),
        (Writes, "/api/v4/projects/**/deploy_keys", "deploy key"),
        (Writes, "/api/v4/projects/**/triggers", "trigger token"),
        (Writes, "/api/v4/user/keys", "SSH key"),
        (Writes, "/api/v4/users/*/keys", "SSH key"),
        (Writes, "/api/v4/user/runners", "runner token"),
        (Writes, "/api/v4/runners", "runner token"),
        (Writes, "/api/v4/**/reset_registration_token", "runner token"),
        (Writes, "/api/v4/runners/**/reset_authentication_token", "runner token"),
        (Writes, "/api/v4/**/cluster_agents/*/tokens", "agent token"),
        (All, "/jwt/auth", "registry token"),
        (Writes, "/-/user_settings/personal_access_tokens/**", "personal token"),
    ],
};

/// Gitea, Forgejo, Bitbucket.
const FORGES: Family = Family {
    hosts: &[],
    endpoints: &[
        (Writes, "/api/v1/users/*/tokens", "personal token"),
        (Writes, "/api/v1/user/keys", "SSH key"),
        (Writes, "/api/v1/user/applications/oauth2/**", "OAuth client"),
        (Writes, "/api/v1/repos/*/*/keys", "deploy key"),
        (All, "/api/v1/**/runners/registration-token", "runner token"),
        (Writes, "/2.0/users/*/ssh-keys", "SSH key"),
        (Writes, "/2.0/repositories/*/*/deploy-keys", "deploy key"),
        (Writes, "/rest/access-tokens/**", "access token"),
        (Writes, "/rest/ssh/*/keys", "SSH key"),
    ],
};

/// npm, PyPI, crates.io, RubyGems.
const PACKAGES: Family = Family {
    hosts: &[],
    endpoints: &[
        (Writes, "/**/-/npm/v1/tokens", "npm token"),
        (Writes, "/**/-/npm/v1/oidc/token/exchange/**", "npm token"),
        (Writes, "/**/-/user/*", "npm token"),
        (Writes, "/**/-/v1/login", "npm token"),
        (Writes, "/_/oidc/**", "PyPI token"),
        (Writes, "/api/v1/me/tokens", "crates.io token"),
        (Writes, "/api/v1/trusted_publishing/tokens", "crates.io token"),
        (All, "/api/v1/api_key", "RubyGems key"),
        (Writes, "/api/v1/oidc/**", "RubyGems key"),
    ],
};

const CONTAINERS: Family = Family {
    hosts: &["auth.docker.io", "hub.docker.com", "ghcr.io", "quay.io"],
    endpoints: &[
        (All, "/token", "registry token"),
        (All, "/v2/auth", "registry token"),
        (Writes, "/v2/auth/token", "access token"),
        (Writes, "/v2/users/login", "session token"),
        (Writes, "/v2/access-tokens/**", "access token"),
    ],
};

/// ElevenLabs, Deepgram, AssemblyAI, Cartesia.
const SPEECH: Family = Family {
    hosts: &[],
    endpoints: &[
        (All, "/v1/single-use-token/**", "single-use token"),
        (All, "/v1/convai/conversation/token", "session token"),
        (All, "/v1/convai/conversation/get-signed-url", "signed URL"),
        (All, "/v1/convai/conversation/get_signed_url", "signed URL"),
        (Writes, "/v1/auth/grant", "access token"),
        (Writes, "/v1/projects/*/keys", "API key"),
        (Writes, "/v2/realtime/token", "temporary token"),
        (All, "/v3/token", "temporary token"),
        (Writes, "/access-token", "access token"),
    ],
};

/// OpenRouter, xAI, Perplexity, Mistral, LiteLLM.
const ROUTERS: Family = Family {
    hosts: &[],
    endpoints: &[
        (Writes, "/api/v1/keys", "API key"),
        (Writes, "/api/v1/auth/keys/**", "API key"),
        (Writes, "/auth/teams/*/api-keys", "API key"),
        (Writes, "/generate_auth_token", "API key"),
        (Writes, "/**/key/generate", "API key"),
        (Writes, "/**/key/*/regenerate", "API key"),
        (Writes, "/**/service-account/generate", "API key"),
    ],
};

/// Stripe, Slack, Cloudflare, Vercel.
const PLATFORMS: Family = Family {
    hosts: &[],
    endpoints: &[
        (Writes, "/v1/ephemeral_keys", "ephemeral key"),
        (Writes, "/api/oauth.v2.access", "OAuth token"),
        (Writes, "/api/oauth.v2.exchange", "OAuth token"),
        (Writes, "/api/tooling.tokens.rotate", "configuration token"),
        (Writes, "/client/v4/user/tokens/**", "API token"),
        (Writes, "/client/v4/accounts/*/tokens/**", "API token"),
        (Writes, "/*/user/tokens", "API token"),
    ],
};

/// Kubernetes, Vault.
const CLUSTERS: Family = Family {
    hosts: &[],
    endpoints: &[
        (Writes, "/api/v1/namespaces/*/serviceaccounts/*/token", "service account token"),
        (Writes, "/apis/certificates.k8s.io/**", "client certificate"),
        (Writes, "/v1/auth/token/**", "Vault token"),
        (Writes, "/v1/auth/*/login/**", "Vault token"),
        (All, "/v1/*/creds/*", "dynamic secret"),
    ],
};
