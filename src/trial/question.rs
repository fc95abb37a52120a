//! What a policy is asked about: an event, or the few fields of one that a decision needs.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::document::TestCall;
use super::facts::KnownFacts;
use super::files::{Files, FilesJudge};
use super::judged::{self, KnownInput};
use crate::call::{Facts, Input, Judge, Kind, KindsBy, SeenCall, Tool, ToolCall, ToolDefinition};
use crate::digest::sha256_hex;
use crate::event::{API_VERSION, Event};
use crate::name::host::Host;
use crate::name::path::NormalPath;
use crate::policy::destination::{EndpointQuery, Flow, Protocol};
use crate::policy::explain::Explanation;
use crate::policy::rule::Place;
use crate::policy::{KnownRequest, Policy};
use crate::provider::answer::{GuardLimits, GuardSettings, InputForm};
use crate::provider::kind::Offered;
use crate::provider::surface::looks_like_inference;
use crate::provider::{self, kind};
use crate::wire::json::{Document, Limits};

/// A tool whose commands a shell reads.
const SHELL: &str = "bash";

/// An event's groups that are looked at; what else an event has is passed over.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Question {
    api_version: String,
    /// Of an event.
    kind: String,
    tool_call: Option<AskedCall>,
    destination: Option<AskedDestination>,
    http: Option<AskedRequest>,
    provider: Option<AskedModel>,
    decision: Option<Recorded>,
    /// Of a question about a call: the texts of the workspace.
    files: Option<Files>,
}

/// What is known beside the question, for rules over facts.
#[derive(Debug, Clone, Copy)]
pub enum Asked<'a> {
    /// The event that the question is.
    Event(&'a Event),
    /// The time, if that is known.
    At(Option<SystemTime>),
}

/// Why nothing can be asked.
#[derive(Debug, thiserror::Error)]
pub enum QuestionError {
    #[error("{0}")]
    Unreadable(String),
    #[error(
        "it has neither `toolCall: {{name, input}}` nor `destination: {{host, port}}`; write one of them"
    )]
    AboutNothing,
    #[error("`commands`, `paths` and `urls` say what a call of a `kind` is about; write its kind, too")]
    WithoutKind,
    #[error("destination.host: {0:?}: {1}")]
    Host(String, String),
    #[error("http.method: {0:?} is no method")]
    Method(String),
}

/// What an event says was decided.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Recorded {
    pub verdict: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
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
    /// The names of the tools that the request offers: `shell.files: Native` asks for them.
    #[serde(default)]
    offers: Vec<String>,
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
    /// Of an event: the input is a text.
    #[serde(default)]
    custom: bool,
    #[serde(default)]
    input_sha256: Option<String>,
    #[serde(default)]
    incomplete: bool,
    #[serde(default)]
    computed: bool,
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

/// What routes ask of a request to a model.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AskedModel {
    model: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AskedRequest {
    method: String,
    path: String,
}

impl Question {
    /// A question about a call of a test, with the files of its workspace.
    pub(super) fn about_call(call: &TestCall, files: Option<&Files>) -> Self {
        let call = call.clone();
        let asked = AskedCall {
            name: call.name,
            namespace: call.namespace,
            input: call.input,
            definition: call.definition,
            offers: call.offers,
            kind: call.kind,
            commands: call.commands,
            paths: call.paths,
            urls: call.urls,
            ..AskedCall::default()
        };
        Self { tool_call: Some(asked), files: files.cloned(), ..Self::default() }
    }

    /// Reads a question in YAML or JSON, or the line of an event.
    ///
    /// # Errors
    /// It is no question.
    pub fn parse(text: &str) -> Result<Self, QuestionError> {
        // A line of events is JSON, whose texts YAML could take for something else.
        let json = text.trim_start().starts_with('{').then(|| serde_json::from_str::<Self>(text));
        let question = match json {
            Some(Ok(question)) => question,
            Some(Err(_)) | None => serde_yaml::from_str::<Self>(text)
                .map_err(|error| QuestionError::Unreadable(error.to_string()))?,
        };
        if question.tool_call.is_none() && question.destination.is_none() {
            return Err(QuestionError::AboutNothing);
        }
        if question.tool_call.as_ref().is_some_and(|call| call.kind.is_none() && call.has_facts()) {
            return Err(QuestionError::WithoutKind);
        }
        Ok(question)
    }

    /// Asks a policy about it: about the tool call where there is one.
    ///
    /// # Errors
    /// A host or a method that is none.
    pub fn ask(
        &self,
        policy: &Arc<Policy>,
        bounds: GuardLimits,
        asked: Asked<'_>,
    ) -> Result<Explanation, QuestionError> {
        let of_event = match asked {
            Asked::Event(event) => KnownFacts::of_event(event),
            Asked::At(_) => None,
        };
        let (explanation, of_question) = match (&self.tool_call, &self.destination) {
            (Some(call), _) => {
                let known = (Place::Call, call.facts_of_rules(asked, self.is_event()));
                (call.ask((policy, bounds), self.is_event(), self.files.as_ref()), known)
            }
            (None, Some(destination)) => {
                let known = (Place::Request, destination.facts_of_rules(self.http.as_ref()));
                (destination.ask(policy, self.http.as_ref(), self.model())?, known)
            }
            (None, None) => return Err(QuestionError::AboutNothing),
        };
        let (place, known) = of_event.unwrap_or(of_question);
        Ok(known.explain(policy, place, explanation))
    }

    /// The model that is asked for.
    fn model(&self) -> Option<&str> {
        self.provider.as_ref()?.model.as_deref()
    }

    /// What the gateway decided, of an event that says so.
    pub fn recorded(&self) -> Option<&Recorded> {
        let decides = matches!(self.kind.as_str(), "Connection" | "Request" | "ToolCall");
        self.decision.as_ref().filter(|_| self.is_event() && decides)
    }

    fn is_event(&self) -> bool {
        self.api_version == API_VERSION
    }
}

impl AskedCall {
    fn ask(
        &self,
        (policy, bounds): (&Arc<Policy>, GuardLimits),
        is_event: bool,
        files: Option<&Files>,
    ) -> Explanation {
        let offered = self.offered();
        if self.kind.is_some() && !is_event {
            return self.as_said(policy, &offered);
        }
        let (form, input) = self.input(is_event);
        let asking = match input {
            _ if self.computed => KnownInput::Computed,
            _ if self.incomplete => KnownInput::Incomplete(form),
            Some(input) => KnownInput::Whole(form, input),
            None if is_event => KnownInput::Withheld(form),
            None => KnownInput::Start(form),
        };
        let tool = (self.name(is_event), self.namespace.as_deref());
        let settings = judged::settings(policy, bounds, offered);
        let judge = FilesJudge::over(Arc::clone(&settings.judge), policy, files);
        judged::explain(policy, GuardSettings { judge, ..settings }, tool, &asking)
    }

    /// What rules over facts may know of it.
    fn facts_of_rules(&self, asked: Asked<'_>, is_event: bool) -> KnownFacts {
        let now = match asked {
            Asked::At(now) => now,
            Asked::Event(_) => None,
        };
        let (form, input) = self.input(is_event);
        let (name, namespace) = (self.name(is_event), self.namespace.as_deref());
        let known = kind::tool(name, namespace, form == InputForm::Text, &self.offered());
        let call = SeenCall {
            name,
            namespace,
            kinds: self.kind.as_ref().map_or(known.kinds, std::slice::from_ref).into(),
            has_all_kinds: true,
            input_bytes: input.as_ref().map(|input| input.len() as u64),
        };
        let facts = KnownFacts::of_call(now).called(&call);
        if input.is_none() { facts.without_input() } else { facts }
    }

    /// An event has the namespace in front of the name, too.
    fn name(&self, is_event: bool) -> &str {
        let bare = self.namespace.as_deref().filter(|_| is_event).and_then(|namespace| {
            self.name.strip_prefix(namespace)?.strip_prefix('.').filter(|name| !name.is_empty())
        });
        bare.unwrap_or(&self.name)
    }

    /// The input as the model wrote it, where it is known.
    fn input(&self, is_event: bool) -> (InputForm, Option<Cow<'_, str>>) {
        match &self.input {
            None if self.custom => (InputForm::Text, None),
            None => (InputForm::Json, None),
            Some(Value::String(text)) if is_event => {
                let form = if self.custom { InputForm::Text } else { InputForm::Json };
                (form, Some(Cow::Borrowed(text.as_str())).filter(|text| self.is_whole(text)))
            }
            Some(Value::String(text)) => {
                let is_object = serde_json::from_str::<Value>(text).is_ok_and(|json| json.is_object());
                (if is_object { InputForm::Json } else { InputForm::Text }, Some(Cow::Borrowed(text)))
            }
            Some(json) => (InputForm::Json, Some(Cow::Owned(json.to_string()))),
        }
    }

    /// Whether a text is the input itself: what is left of it under `toolInputs: Redacted` has another hash.
    fn is_whole(&self, text: &str) -> bool {
        self.input_sha256
            .as_deref()
            .is_none_or(|hash| hash.len() != 64 || hash == sha256_hex(text.as_bytes()))
    }

    /// A call whose kind is said.
    fn as_said(&self, policy: &Policy, offered: &Offered) -> Explanation {
        let (form, input) = self.input(false);
        let known = kind::tool(&self.name, self.namespace.as_deref(), form == InputForm::Text, offered);
        let tool = Tool { kinds: self.kind.as_slice(), by: KindsBy::Catalogue, ..known };
        let facts = self.facts();
        // What is written of the call beside an input says what it does without one.
        let Some(text) = input.or_else(|| facts.as_ref().map(|_| Cow::Borrowed("{}"))) else {
            return policy.explain_start(&tool);
        };
        let json = serde_json::from_str::<Value>(&text).ok().filter(|_| form == InputForm::Json);
        let input = json.as_ref().map_or(Input::Text(&text), Input::Json);
        // Commands that are written beside an input are read as those of a shell.
        let commands = serde_json::json!({"commands": self.commands});
        let read = kind::read_commands((SHELL, None), Input::Json(&commands), offered, &policy.shell(), &[]);
        let is_shell = facts.as_ref().is_some_and(|facts| facts.kind == Kind::Shell);
        let shell = read.facts.and_then(|facts| facts.into_iter().next()).and_then(|facts| facts.shell);
        let facts = facts.map(|facts| Facts { shell: shell.filter(|_| is_shell), ..facts });
        let derived: &[Facts<'_>] = if is_shell { &read.derived } else { &[] };
        policy.explain_call(&ToolCall { tool, input, facts: facts.as_ref(), derived })
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
        let offered = self.offers.iter().map(|name| (name.clone(), None)).chain([(name, shape)]);
        let tools: Vec<_> =
            offered.map(|(name, shape)| ToolDefinition { name, sha256: String::new(), shape }).collect();
        Offered::with_file_tools(&tools)
    }

    fn has_facts(&self) -> bool {
        !self.commands.is_empty() || !self.paths.is_empty() || !self.urls.is_empty()
    }

    /// What is written of it besides the input; none where nothing is.
    fn facts(&self) -> Option<Facts<'_>> {
        let kind = self.kind.filter(|_| self.has_facts())?;
        let texts = |all: &'_ [String]| all.iter().map(|text| Cow::Owned(text.clone())).collect();
        Some(Facts {
            commands: texts(&self.commands),
            paths: texts(&self.paths),
            urls: texts(&self.urls),
            ..Facts::new(kind)
        })
    }
}

impl AskedDestination {
    /// What rules over facts may know of it.
    fn facts_of_rules(&self, request: Option<&AskedRequest>) -> KnownFacts {
        let path = request
            .map(|request| NormalPath::parse(request.path.split(['?', '#']).next().unwrap_or_default()));
        let request = request.zip(path.as_ref()).map(|(request, path)| (request.method.as_str(), path));
        KnownFacts::of_head((&self.host, self.port.unwrap_or(443)), request)
    }

    fn ask(
        &self,
        policy: &Policy,
        request: Option<&AskedRequest>,
        model: Option<&str>,
    ) -> Result<Explanation, QuestionError> {
        let host =
            Host::parse(&self.host).map_err(|why| QuestionError::Host(self.host.clone(), why.to_string()))?;
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
            .map_err(|_| QuestionError::Method(request.method.clone()))?;
        let path = NormalPath::parse(request.path.split(['?', '#']).next().unwrap_or_default());
        let surface = provider::spoken_at(host.name(), policy.provider_at(&flow));
        let service = surface.map(|surface| surface.service(&method, &path, false));
        let unknown_provider = service.is_none() && looks_like_inference(&method, &path);
        let asked = EndpointQuery { method: &method, path: &path, service, unknown_provider };
        let mut explanation = policy.explain_destination(&flow, Some(&asked));
        let dialect = service.filter(|service| method == http::Method::POST && service.may_be_routed());
        if let Some(dialect) = dialect.and_then(|service| service.dialect) {
            let reach = policy.reach(&host, port);
            let request = KnownRequest { host: &host, dialect, model, reach };
            explanation.rules.extend(policy.explain_routes(&request));
        }
        Ok(explanation)
    }
}
