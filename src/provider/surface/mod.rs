//! Which LLM API is spoken at which host: tables, one file per family of vendors, and the look-up in them.
//!
//! What a table does not list is no inference endpoint, and is closed unless a rule opens it: batches, files, stored
//! conversations, agents and jobs of the provider carry tools and data past whoever looks at inference alone.

mod amazon;
mod anthropic;
mod azure;
mod companions;
mod compatible;
mod copilot;
mod google;
mod openai;
mod others;
mod shape;

pub use companions::{COMPANIONS, is_listed};
pub use shape::looks_like_inference;

use std::collections::HashMap;
use std::sync::LazyLock;

use http::Method;

use super::endpoint::{EndpointMethod, Mount};
use super::{adapter, bedrock};
use crate::call::{Api, Dialect, Service, Vendor};
use crate::name::host::DnsName;
use crate::name::lenient;
use crate::name::path::{NormalPath, PathPattern};

/// The endpoints of one vendor at some hosts.
struct HostFamily {
    vendor: Vendor,
    /// Names; `*` is a label or a part of one, `**.` in front one label or more.
    hosts: &'static [&'static str],
    mounts: &'static [Mount],
}

const FAMILIES: &[HostFamily] = &[
    anthropic::API,
    anthropic::PLATFORM,
    anthropic::WEBSITE,
    openai::API,
    openai::CHATGPT,
    azure::FOUNDRY,
    google::GEMINI,
    google::VERTEX,
    google::CLAUDE,
    google::FIREBASE,
    google::CODE_ASSIST_LOGIN,
    amazon::BEDROCK,
    amazon::BEDROCK_CONTROL,
    amazon::BEDROCK_AGENTS,
    amazon::BEDROCK_MANTLE,
    amazon::CLAUDE,
    amazon::Q,
    copilot::COPILOT,
    compatible::OPENROUTER,
    compatible::GROQ,
    compatible::DEEPSEEK,
    compatible::MISTRAL,
    compatible::XAI,
    compatible::PERPLEXITY,
    compatible::OLLAMA,
    compatible::COHERE,
    compatible::CURSOR,
    others::AT_V1,
    others::Z_AI,
    others::FIREWORKS,
    others::DASHSCOPE,
    others::VOLCENGINE,
    others::REPLICATE,
    others::HUGGING_FACE,
    others::KIMI,
    others::DEEPINFRA,
    others::GITHUB_MODELS,
    others::OTHER_BASES,
];

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(Catalogue::new);

/// Returns the surface of a known host; an exact name wins over patterns.
pub fn surface(host: &DnsName) -> Option<&'static Surface> {
    let catalogue = &*CATALOGUE;
    let number = catalogue.exact.get(host.as_str()).copied();
    let number = number.or_else(|| {
        let mut patterns = catalogue.patterns.iter();
        patterns.find(|pattern| pattern.fits(host.as_str())).map(|pattern| pattern.number)
    });
    catalogue.surfaces.get(number?)
}

/// The hosts of all known providers, as the tables write them: names, and patterns with `*`.
pub fn hosts() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().flat_map(|family| family.hosts).copied()
}

/// Returns the surface of an unknown host whose dialect a rule names.
pub(super) fn of_dialect(dialect: Dialect) -> Option<&'static Surface> {
    CATALOGUE.custom.iter().find(|(own, _)| *own == dialect).map(|(_, surface)| surface)
}

/// The APIs at a host.
#[derive(Debug)]
pub struct Surface {
    vendor: Vendor,
    endpoints: Vec<SurfaceEndpoint>,
    /// Whether models are named by ARN, with an escaped slash in the path.
    has_arns: bool,
    /// Whether a verb may end a path (Google's custom methods): a model's name has none where it is read.
    has_verbs: bool,
}

#[derive(Debug)]
struct SurfaceEndpoint {
    call: EndpointMethod,
    path: PathPattern,
    /// The same in lower case.
    lower: PathPattern,
    api: Api,
    dialect: Option<Dialect>,
}

impl Surface {
    /// Who serves the host.
    pub fn vendor(&self) -> Vendor {
        self.vendor
    }

    /// What a request is; `websocket` says whether it asks to become one.
    pub fn service(&self, method: &Method, path: &NormalPath, websocket: bool) -> Service {
        let read =
            if self.has_arns && path.is_ambiguous() { bedrock::without_arn(path.as_str()) } else { None };
        let path = read.as_ref().unwrap_or(path);
        let is_verb = self.has_verbs && path.as_str().contains(':');
        let mut listed =
            self.endpoints.iter().filter(|endpoint| !is_verb || endpoint.call != EndpointMethod::Get);
        let endpoint = listed.find(|endpoint| endpoint.covers(method, path, websocket));
        let (api, dialect) = endpoint.map_or((Api::Other, None), |endpoint| (endpoint.api, endpoint.dialect));
        Service { vendor: self.vendor, api, dialect }
    }

    /// Whether a server that is not strict could take this request, which is no endpoint's, for one of an endpoint whose
    /// requests are read: by its path, or by a body that its method has no use for.
    pub fn is_disguised(&self, method: &Method, path: &NormalPath, has_body: bool) -> bool {
        let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::DELETE);
        if reads && !has_body {
            return false;
        }
        let guarded =
            self.endpoints.iter().filter(|it| it.dialect.is_some() && it.call == EndpointMethod::Post);
        lenient::readings(path.as_str()).into_iter().any(|reading| {
            let reading = NormalPath::parse(&self.without_arn(reading));
            guarded.clone().any(|endpoint| endpoint.lower.matches(&reading))
        })
    }

    /// A path whose model is named by ARN, which has slashes of its own, with a model that has none.
    fn without_arn(&self, path: String) -> String {
        let model = path.strip_prefix("/model/").filter(|_| self.has_arns);
        match model.and_then(|rest| rest.rsplit_once('/')) {
            Some((_, operation)) => format!("/model/arn/{operation}"),
            None => path,
        }
    }
}

impl SurfaceEndpoint {
    fn covers(&self, method: &Method, path: &NormalPath, websocket: bool) -> bool {
        let is_called = match self.call {
            EndpointMethod::Get => !websocket && matches!(*method, Method::GET | Method::HEAD),
            EndpointMethod::Post => !websocket && *method == Method::POST,
            EndpointMethod::WebSocket => websocket && *method == Method::GET,
        };
        is_called && self.path.matches(path)
    }
}

/// The tables, indexed for look-ups.
struct Catalogue {
    surfaces: Vec<Surface>,
    exact: HashMap<&'static str, usize>,
    patterns: Vec<HostPattern>,
    custom: Vec<(Dialect, Surface)>,
}

impl Catalogue {
    fn new() -> Self {
        let mut exact = HashMap::new();
        let mut patterns = Vec::new();
        for (number, family) in FAMILIES.iter().enumerate() {
            for host in family.hosts {
                if host.contains('*') {
                    patterns.push(HostPattern::new(host, number));
                } else {
                    exact.insert(*host, number);
                }
            }
        }
        // The longer a pattern, the more it says of a host.
        patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.text.len()));
        let custom = Dialect::ALL.iter().map(|dialect| (*dialect, HostFamily::custom(*dialect).compiled()));
        let custom = custom.collect();
        Self { surfaces: FAMILIES.iter().map(HostFamily::compiled).collect(), exact, patterns, custom }
    }
}

impl HostFamily {
    /// What is spoken at hosts of which a rule's `provider` alone says that it is this dialect.
    fn custom(dialect: Dialect) -> Self {
        Self { vendor: Vendor::Custom, hosts: &[], mounts: adapter(dialect).mounts() }
    }

    fn compiled(&self) -> Surface {
        let has_arns = self.mounts.iter().any(|mount| mount.of.dialect == Some(Dialect::Bedrock));
        let mut rows = self.mounts.iter().flat_map(|mount| mount.of.rows);
        let has_verbs = rows.any(|(_, path, _)| path.contains(':'));
        Surface { vendor: self.vendor, endpoints: self.endpoints().collect(), has_arns, has_verbs }
    }

    fn endpoints(&self) -> impl Iterator<Item = SurfaceEndpoint> {
        self.mounts.iter().flat_map(|mount| {
            let based = mount.at.iter().flat_map(|base| mount.of.rows.iter().map(move |row| (base, row)));
            based.filter_map(|(base, (call, path, api))| {
                // A row that is no pattern opens nothing; a test finds it.
                let text = format!("{base}{path}");
                let path = PathPattern::parse(&text).ok()?;
                let lower = PathPattern::parse(&text.to_lowercase()).ok()?;
                Some(SurfaceEndpoint { call: *call, path, lower, api: *api, dialect: mount.of.dialect })
            })
        })
    }
}

/// A pattern of `hosts`, and the family's number.
struct HostPattern {
    text: &'static str,
    /// The text after its last `*`.
    ending: &'static str,
    number: usize,
}

impl HostPattern {
    fn new(text: &'static str, number: usize) -> Self {
        Self { text, ending: text.rsplit('*').next().unwrap_or(text), number }
    }

    /// Whether it covers a name. Nearly every pattern is out by its ending.
    fn fits(&self, host: &str) -> bool {
        if !host.ends_with(self.ending) {
            return false;
        }
        if let Some(suffix) = self.text.strip_prefix("**.") {
            // Every place at which the rest may begin; labels before it are not looked at.
            return host.match_indices('.').any(|(at, _)| labels_fit(suffix, &host[at + 1..]));
        }
        labels_fit(self.text, host)
    }
}

fn labels_fit(pattern: &str, host: &str) -> bool {
    let mut labels = host.split('.');
    pattern.split('.').all(|own| labels.next().is_some_and(|label| label_fits(own, label)))
        && labels.next().is_none()
}

fn label_fits(pattern: &str, label: &str) -> bool {
    pattern.split_once('*').map_or(pattern == label, |(beginning, ending)| {
        label
            .strip_prefix(beginning)
            .and_then(|rest| rest.strip_suffix(ending))
            .is_some_and(|run| !run.is_empty())
    })
}

#[cfg(test)]
mod tests;
