//! The names under which keys travel, and those that only sound like it: data alone, with where each comes from.
//!
//! A header's name is compared in lower case. A query parameter's name is compared in lower case without `_`, `-`
//! and `.`, so that `api_key`, `API-Key` and `apiKey` are one row.

/// The last word of a header's name, behind a dash or alone, where the header carries a key.
///
/// It covers, of the vendors whose documents were read: `authorization` and its relatives (RFC 9110, 7235);
/// `x-api-key`, `dd-api-key`, `dd-application-key` (Datadog), `x-functions-key` (Azure Functions),
/// `ocp-apim-subscription-key` (Azure API Management, Cognitive Services), `x-rapidapi-key`, `fastly-key`,
/// `x-typesense-api-key`, `x-master-key`, `x-insert-key` (New Relic), `x-appwrite-key`, `x-auth-key` (Cloudflare);
/// `private-token`, `job-token`, `deploy-token` (GitLab), `x-vault-token` and `x-consul-token` (HashiCorp),
/// `circle-token` (CircleCI), `x-figma-token` (Figma), `x-shopify-access-token`, `x-subscription-token` (Brave),
/// `x-auth-token` (OpenStack), `x-amz-security-token` (AWS), `x-goog-iam-authorization-token`, `x-plex-token`,
/// `x-postmark-server-token`, `lightstep-access-token`, `x-ms-token-aad-access-token` (Azure App Service);
/// `x-hasura-admin-secret`, `cf-access-client-secret` (Cloudflare Access), `x-sentry-auth`,
/// `cf-access-jwt-assertion`, `x-goog-iap-jwt-assertion`, `signature` (RFC 9421), `x-appwrite-jwt`.
pub(super) const HEADER_WORDS: &[&str] = &[
    "accesskey",
    "accesstoken",
    "apikey",
    "apitoken",
    "assertion",
    "auth",
    "authentication",
    "authkey",
    "authorization",
    "authtoken",
    "bearer",
    "credential",
    "credentials",
    "jwt",
    "key",
    "passphrase",
    "passwd",
    "password",
    "pat",
    "pwd",
    "secret",
    "secretkey",
    "sessiontoken",
    "signature",
    "subscriptionkey",
    "token",
];

/// Headers that carry keys, which their last word does not show.
pub(super) const HEADERS: &[&str] = &[
    "cookie2",
    "dpop",                  // RFC 9449: a proof made with a key of the client's own
    "x-honeycomb-team",      // Honeycomb's API key
    "x-jfrog-art-api",       // Artifactory's API key
    "x-ms-client-principal", // Azure App Service: who the caller is
];

/// Endings of headers whose last word is one of the above, and which carry no key.
pub(super) const HARMLESS_HEADERS: &[&str] = &[
    "atlassian-token", // Jira, Confluence: `no-check`, against cross-site requests
    "cache-key",
    "cancel-token",
    "continuation-token", // Azure, AWS: where a list goes on
    "csrf-token",
    "cursor-token",
    "dedup-key",
    "deduplication-key",
    "idempotency-key", // Stripe, and the IETF's draft
    "next-token",      // AWS: where a list goes on
    "ordering-key",
    "page-token", // Google: where a list goes on
    "partition-key",
    "resume-token",
    "routing-key",
    "sec-websocket-key", // RFC 6455: a nonce
    "sort-key",
    "surrogate-key", // Fastly: a label for purging
    "sync-token",
    "xsrf-token",
];

/// Query parameters that carry keys or signatures made with one.
pub(super) const PARAMETERS: &[&str] = &[
    "accesskeyid",
    "auth",
    "authorization",
    "awsaccesskeyid", // AWS, signature version 2
    "bearer",
    "clientassertion", // RFC 7521
    "code",            // Azure Functions' access key
    "credential",
    "credentials",
    "googleaccessid",
    "hapikey", // HubSpot
    "hmac",
    "key",            // Google
    "keypairid",      // CloudFront's signed URLs
    "ossaccesskeyid", // Alibaba Cloud's signed URLs
    "pass",
    "qak",        // Tencent Cloud's signed URLs: `q-ak`
    "qsignature", // and `q-signature`
    "sig",        // Azure Storage's shared access signatures
];

/// Endings of query parameters that carry keys: `access_token`, `private_token`, `circle-token`, `client_secret`,
/// `subscription-key`, `oauth_signature`, `sentry_key`, `license_key`, `serviceKey`, …
pub(super) const PARAMETER_ENDINGS: &[&str] = &[
    "accesskey",
    "accountkey",
    "adminkey",
    "apikey",
    "applicationkey",
    "appkey",
    "authkey",
    "clientkey",
    "consumerkey",
    "functionkey",
    "functionskey",
    "jwt",
    "licensekey",
    "masterkey",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "pwd",
    "secret",
    "secretkey",
    "sentrykey",
    "servicekey",
    "sessionkey",
    "signature",
    "subscriptionkey",
    "token",
    "userkey",
    "writekey",
    "wskey",
];

/// Endings of query parameters that end in one of the above, and carry no key.
pub(super) const HARMLESS_PARAMETERS: &[&str] = &[
    "canceltoken",
    "clienttoken", // AWS: makes a call idempotent
    "continuationtoken",
    "csrftoken",
    "cursortoken",
    "deltatoken", // OData
    "nexttoken",
    "pagetoken",
    "resumetoken",
    "skiptoken", // OData
    "synctoken",
    "xsrftoken",
];

/// Beginnings of the parameters of signed URLs: AWS, Google Cloud Storage, Alibaba Cloud, Tencent Cloud, Volcano Engine.
pub(super) const PARAMETER_BEGINNINGS: &[&str] = &["xamz", "xcos", "xgoog", "xoss", "xtos"];

/// Words in a WebSocket subprotocol that carries a key (`openai-insecure-api-key.…`, `base64url.bearer.…`).
pub(super) const SUBPROTOCOL_WORDS: &[&str] =
    &["api-key", "apikey", "auth", "bearer", "ephemeral", "secret", "token"];

/// Cookies that hosts' load balancers and bot filters set and SDKs send back (openai-python does); they name no
/// account.
pub(super) const HARMLESS_COOKIES: &[&str] = &[
    "ARRAffinity",
    "ARRAffinitySameSite",
    "AWSALB",
    "AWSALBCORS",
    "AWSALBTG",
    "AWSALBTGCORS",
    "GCLB",
    "__cf_bm",
    "__cflb",
    "__cfruid",
    "_cfuvid",
    "cf_clearance",
];
