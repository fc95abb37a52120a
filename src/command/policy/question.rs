//! What `policy explain` is asked about: an event, or the few fields of one that a decision needs.

use std::borrow::Cow;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::call::{Facts, Input, Kind, KindsBy, Tool, ToolCall, ToolDefinition};
use crate::config::source;
use crate::policy::Policy;
use crate::policy::destination::{Flow, Protocol};
use crate::policy::explain::{Explanation, Said};
use crate::policy::inspection::Asked;
use crate::policy::name::Host;
use crate::policy::path::NormalPath;
use crate::provider::answer::ask;
use crate::provider::kind::{Offered, Seen};
use crate::provider::surface::looks_like_inference;
use crate::provider::{self, kind};
use crate::wire::json::{Document, Limits};

/// The largest question that is read.
const MOST_BYTES: u64 = 4 << 20;

/// An event's groups that are looked at; what else an event has is passed over.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Question {
    tool_call: Option<AskedCall>,
    destination: Option<AskedDestination>,
    http: Option<AskedRequest>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AskedCall {
    name: String,
    #[serde(default)]
    namespace: Option<String>,
    /// A mapping of parameters, or the text of a custom tool. None: only what the call's start decides is known.
    #[serde(default)]
    input: Option<Value>,
    /// The tool's definition as the request has it. Without one, the kinds of a tool that the catalogue does not know are
    /// inferred from the input.
    #[serde(default)]
    definition: Option<Value>,
    /// What kind of tool it is, where the catalogue does not know it or is to be overruled.
    #[serde(default)]
    kind: Option<Kind>,
    /// With a kind: what is run, read, written or fetched, where the input's own parameters do not say it.
    #[serde(default)]
    commands: Vec<String>,
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    urls: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AskedDestination {
    host: String,
    #[serde(default)]
    port: Option<u16>,
    #[serde(default)]
    protocol: Option<AskedProtocol>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
enum AskedProtocol {
    Tls,
    Http,
    Opaque,
    /// Bytes that are neither plainly TLS or HTTP nor plainly another protocol.
    Unclear,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AskedRequest {
    method: String,
    path: String,
}

impl Question {
    /// Reads a file, or standard input where the path is `-`.
    ///
    /// # Errors
    /// It cannot be read, or is no question.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = if path == Path::new("-") {
            let mut text = String::new();
            io::stdin()
                .take(MOST_BYTES)
                .read_to_string(&mut text)
                .context("standard input cannot be read")?;
            text
        } else {
            source::read_text(path, MOST_BYTES).map_err(|problem| anyhow::anyhow!("{problem}"))?
        };
        let place =
            if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
        Self::parse(&text).with_context(|| format!("{place} is no call or request that could be explained"))
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        // A line of events is JSON, whose texts YAML could take for something else.
        let json = text.trim_start().starts_with('{').then(|| serde_json::from_str::<Self>(text));
        let question = match json {
            Some(Ok(question)) => question,
            Some(Err(_)) | None => serde_yaml::from_str::<Self>(text)?,
        };
        if question.tool_call.is_none() && question.destination.is_none() {
            bail!(
                "it has neither `toolCall: {{name, input}}` nor `destination: {{host, port}}`; write one of them"
            );
        }
        Ok(question)
    }

    /// Asks a policy about it: about the tool call where there is one.
    ///
    /// # Errors
    /// A host or a method that is none.
    pub(super) fn ask(&self, policy: &Policy) -> anyhow::Result<Explanation> {
        match (&self.tool_call, &self.destination) {
            (Some(call), _) => Ok(call.ask(policy)),
            (None, Some(destination)) => destination.ask(policy, self.http.as_ref()),
            (None, None) => bail!("it has neither `toolCall` nor `destination`"),
        }
    }
}

impl AskedCall {
    fn ask(&self, policy: &Policy) -> Explanation {
        let is_text = self.input.as_ref().is_some_and(|input| parsed(input).is_none() && input.is_string());
        let offered = self.offered();
        let known = kind::tool(&self.name, self.namespace.as_deref(), is_text, &offered);
        let tool = match self.kind {
            Some(_) => Tool { kinds: self.kind.as_slice(), by: KindsBy::Catalogue, ..known },
            None => known,
        };
        let Some(input) = &self.input else { return policy.explain_start(&tool) };
        let parsed = parsed(input);
        let input = match (&parsed, input) {
            (Some(parsed), _) => Input::Json(parsed),
            (None, Value::String(text)) => Input::Text(text),
            (None, value) => Input::Json(value),
        };
        if self.kind.is_some() {
            let facts = self.facts();
            return policy.explain_call(&ToolCall { tool, input, facts: facts.as_ref() });
        }
        as_judged(policy, &offered, &ToolCall { tool, input, facts: None })
    }

    /// The tool's definition, as a request has it.
    fn offered(&self) -> Offered {
        let text = self.definition.as_ref().map(Value::to_string).unwrap_or_default();
        let document = Document::parse(text.as_bytes(), Limits::default()).ok();
        let shape = document.and_then(|document| kind::shape(&self.name, document.root()));
        let name = match &self.namespace {
            Some(namespace) => format!("{namespace}.{}", self.name),
            None => self.name.clone(),
        };
        Offered::new(&[ToolDefinition { name, sha256: String::new(), shape }])
    }

    /// What is written of it besides the input; none where nothing is.
    fn facts(&self) -> Option<Facts<'_>> {
        let kind = self
            .kind
            .filter(|_| !self.commands.is_empty() || !self.paths.is_empty() || !self.urls.is_empty())?;
        let texts = |all: &'_ [String]| all.iter().map(|text| Cow::Owned(text.clone())).collect();
        Some(Facts {
            commands: texts(&self.commands),
            paths: texts(&self.paths),
            urls: texts(&self.urls),
            ..Facts::new(kind)
        })
    }
}

/// The object that a text holds: an event keeps the input as the text it came in.
fn parsed(input: &Value) -> Option<Value> {
    input.as_str().and_then(|text| serde_json::from_str(text).ok()).filter(Value::is_object)
}

/// Explains a call as what it is taken for: of several kinds, that by which it is decided.
fn as_judged(policy: &Policy, offered: &Offered, call: &ToolCall<'_>) -> Explanation {
    let Tool { name, namespace, .. } = call.tool;
    let (verdict, _) = ask(policy, offered, (name, namespace), call.input);
    let decided = Said::from(&verdict.decision);
    let Seen { tool, facts } = kind::read(name, namespace, call.input, offered);
    let explain = |facts: Option<&Facts<'_>>| policy.explain_call(&ToolCall { tool, facts, ..*call });
    let mut explained = facts.iter().flatten().map(|facts| explain(Some(facts)));
    explained.find(|explanation| explanation.decision == decided).unwrap_or_else(|| explain(None))
}

impl AskedDestination {
    fn ask(&self, policy: &Policy, request: Option<&AskedRequest>) -> anyhow::Result<Explanation> {
        let host = Host::parse(&self.host).with_context(|| format!("destination.host: {:?}", self.host))?;
        let protocol = match (self.protocol, self.port) {
            (Some(AskedProtocol::Http), _) | (None, Some(80)) => Protocol::Http,
            (Some(AskedProtocol::Opaque), _) => Protocol::Opaque,
            (Some(AskedProtocol::Unclear), _) => Protocol::Unclear,
            (Some(AskedProtocol::Tls), _) | (None, _) => Protocol::Tls,
        };
        let port = self.port.unwrap_or(if protocol == Protocol::Http { 80 } else { 443 });
        let flow = Flow { name: host.name(), address: host.ip(), port, protocol };
        let Some(request) = request else { return Ok(policy.explain_destination(&flow, None)) };
        let method = http::Method::from_bytes(request.method.as_bytes())
            .with_context(|| format!("http.method: {:?} is no method", request.method))?;
        let path = NormalPath::parse(request.path.split(['?', '#']).next().unwrap_or_default());
        let surface = provider::spoken_at(host.name(), policy.provider_at(&flow));
        let service = surface.map(|surface| surface.service(&method, &path, false));
        let unknown_provider = service.is_none() && looks_like_inference(&method, &path);
        let asked = Asked { method: &method, path: &path, service, unknown_provider };
        Ok(policy.explain_destination(&flow, Some(&asked)))
    }
}
