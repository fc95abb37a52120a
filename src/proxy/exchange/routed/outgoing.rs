//! Makes the head of a request to a provider of models: nothing of the agent's head is in it.

use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};

use super::super::target::UpstreamTarget;
use crate::call::{Api, Dialect, Service, Vendor};
use crate::credential::placement::{self, Placement};
use crate::policy::routing::{KeyIn, ModelProvider};
use crate::provider;
use crate::proxy::snapshot::Snapshot;
use crate::proxy::upstream::Origin;

/// The version of Messages that is asked for (protocols.md A; the API's only one since 2023).
const ANTHROPIC_VERSION: &str = "2023-06-01";
/// The longest `anthropic-beta` that goes on.
const MOST_BETAS: usize = 1_024;

/// Where requests to a provider go.
pub(super) fn origin(provider: &ModelProvider) -> Origin {
    let endpoint = &provider.endpoint;
    Origin { tls: endpoint.is_tls, host: endpoint.host.clone(), port: endpoint.port }
}

/// The API that is called at a provider.
pub(super) fn service(provider: &ModelProvider) -> Service {
    let dialect = provider.dialect;
    let surface = provider::spoken_at(provider.endpoint.host.name(), Some(dialect));
    let vendor = surface.map_or(Vendor::Custom, provider::surface::Surface::vendor);
    Service { vendor, api: api(dialect), dialect: Some(dialect) }
}

fn api(dialect: Dialect) -> Api {
    match dialect {
        Dialect::Anthropic => Api::Messages,
        Dialect::OpenAIChat => Api::ChatCompletions,
        Dialect::OpenAIResponses => Api::Responses,
        Dialect::Gemini => Api::GenerateContent,
        Dialect::Bedrock => Api::Converse,
    }
}

/// What is appended to the endpoint.
fn path_of(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Anthropic => "/messages",
        Dialect::OpenAIResponses => "/responses",
        // No provider has one of the last two (policy/section/model_provider).
        Dialect::OpenAIChat | Dialect::Gemini | Dialect::Bedrock => "/chat/completions",
    }
}

/// Whether the servers there are Anthropic's own: the first party's, those of Bedrock and those of Azure.
pub(super) fn is_anthropics_own(service: Service) -> bool {
    match service.vendor {
        Vendor::Anthropic | Vendor::Bedrock | Vendor::AzureOpenAi => {
            service.dialect == Some(Dialect::Anthropic)
        }
        Vendor::OpenAi
        | Vendor::Gemini
        | Vendor::VertexAi
        | Vendor::Copilot
        | Vendor::OpenRouter
        | Vendor::Groq
        | Vendor::DeepSeek
        | Vendor::Mistral
        | Vendor::XAi
        | Vendor::Perplexity
        | Vendor::Ollama
        | Vendor::Cohere
        | Vendor::Cursor
        | Vendor::AmazonQ
        | Vendor::Custom => false,
    }
}

/// The head of a request to a provider, with the placeholder of its credential, and where it goes. `asked` is the agent's
/// head, of which Anthropic's own servers are told the betas that the body may need.
///
/// # Errors
/// If the key of the provider may not stand there; the text is for people.
pub(super) fn made(
    snapshot: &Snapshot,
    provider: &ModelProvider,
    (streams, length): (bool, usize),
    asked: &HeaderMap,
) -> Result<(Parts, UpstreamTarget), String> {
    let service = service(provider);
    let path = format!("{}{}", provider.endpoint.path, path_of(provider.dialect));
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.method = Method::POST;
    if let Ok(path) = PathAndQuery::try_from(path) {
        parts.uri = Uri::from(path);
    }
    let head = &mut parts.headers;
    let accept = if streams { "text/event-stream" } else { "application/json" };
    let agent = concat!("postern/", env!("CARGO_PKG_VERSION"));
    head.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    head.insert(header::ACCEPT, HeaderValue::from_static(accept));
    head.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    head.insert(header::USER_AGENT, HeaderValue::from_static(agent));
    head.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    if provider.dialect == Dialect::Anthropic {
        head.insert("anthropic-version", HeaderValue::from_static(ANTHROPIC_VERSION));
        if let Some(betas) = is_anthropics_own(service).then(|| betas(asked)).flatten() {
            head.insert("anthropic-beta", betas);
        }
    }
    if let Some(placeholder) = provider.credential.as_ref().map(|credential| &credential.placeholder) {
        let (name, value) = match provider.key_in {
            KeyIn::Authorization => (header::AUTHORIZATION, format!("Bearer {}", placeholder.as_str())),
            KeyIn::XApiKey => (HeaderName::from_static("x-api-key"), placeholder.as_str().to_owned()),
            KeyIn::ApiKey => (HeaderName::from_static("api-key"), placeholder.as_str().to_owned()),
        };
        if let Ok(value) = HeaderValue::from_str(&value) {
            head.insert(name, value);
        }
    }
    let origin = origin(provider);
    let place = placement::Target { host: origin.host.name(), port: origin.port, secure: origin.tls };
    let credential = match placement::plan(&parts, snapshot.policy().credentials(), &place) {
        Placement::Attach(plan) => Some(plan),
        // The placeholder itself never goes out.
        Placement::Nothing if provider.credential.is_some() => {
            return Err("the key of its provider cannot be placed".to_owned());
        }
        Placement::Nothing => None,
        Placement::Deny(denial) => return Err(denial.decision.why().to_owned()),
    };
    Ok((parts, UpstreamTarget { origin, service: Some(service), credential }))
}

/// The betas that the agent asks for, but for the one that says how it logged in: a field made anew, of plain words.
fn betas(asked: &HeaderMap) -> Option<HeaderValue> {
    let is_plain = |beta: &&str| {
        !beta.is_empty()
            && !beta.starts_with("oauth")
            && beta.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let named = asked.get_all("anthropic-beta").iter().filter_map(|value| value.to_str().ok());
    let betas: Vec<&str> = named.flat_map(|value| value.split(',')).map(str::trim).filter(is_plain).collect();
    let betas = betas.join(",");
    let fits = !betas.is_empty() && betas.len() <= MOST_BETAS;
    fits.then(|| HeaderValue::from_str(&betas).ok()).flatten()
}
