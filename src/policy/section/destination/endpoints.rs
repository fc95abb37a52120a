//! What an inspected destination may be asked for: the endpoints of the rules that decided.

use std::fmt;
use std::sync::Arc;

use crate::call::{Dialect, Service, Vendor};
use crate::decision::{Decision, Enforcement, RuleId, Verdict};

use super::written::{Provider, Reach};
use crate::name::path::{NormalPath, PathPattern};

/// What one Inspect rule grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EndpointGrant {
    pub(super) rule: RuleId,
    pub(super) enforcement: Enforcement,
    /// None where the rule has no `endpoints`: everything, and at an LLM provider its inference endpoints.
    pub(super) endpoints: Option<Vec<Endpoint>>,
    /// The provider that the rule names for its hosts.
    pub(super) provider: Option<Provider>,
    pub(super) upgrade: bool,
    pub(super) reach: Reach,
}

/// One entry of `endpoints`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    /// None stands for every method; GET includes HEAD.
    pub(super) methods: Option<Vec<http::Method>>,
    pub(super) path: PathPattern,
}

/// One request, as an endpoint is chosen by it.
#[derive(Debug, Clone, Copy)]
pub struct EndpointQuery<'a> {
    pub method: &'a http::Method,
    pub path: &'a NormalPath,
    /// The service of an LLM provider that is asked; none at any other host.
    pub service: Option<Service>,
    /// Whether the request looks like inference at a host without a known provider.
    pub unknown_provider: bool,
}

/// The endpoints of one inspected destination: the equal rules of a tier are united, and each tier that has a
/// matching rule must allow a request.
#[derive(Debug, Clone)]
pub struct EndpointRules {
    tiers: Vec<Vec<Arc<EndpointGrant>>>,
    /// Only Audit policies select the pod: denials are recorded alone.
    audit_only: bool,
    /// The same destination with the Audit policies enforced, where that differs.
    audited: Option<Vec<Vec<Arc<EndpointGrant>>>>,
}

impl EndpointRules {
    pub(super) fn new(tiers: Vec<Vec<Arc<EndpointGrant>>>, audit_only: bool) -> Self {
        Self { tiers, audit_only, audited: None }
    }

    /// Records beside each request what these grants would have said.
    pub(super) fn with_audited(mut self, tiers: Vec<Vec<Arc<EndpointGrant>>>) -> Self {
        self.audited = Some(tiers);
        self
    }

    /// The inspection of a destination that `decision` allows without naming endpoints: a Tunnel rule on a
    /// reverse listener, or what goes through because only Audit policies select the pod.
    pub fn without_endpoints(decision: &Decision, audit_only: bool) -> Self {
        let grant = EndpointGrant {
            rule: decision.rule.clone().unwrap_or_else(|| RuleId::builtin("default-deny")),
            enforcement: decision.enforcement.unwrap_or(Enforcement::Enforce),
            endpoints: None,
            // A tunnel passes bytes unread.
            provider: Some(Provider::None),
            upgrade: false,
            reach: Reach::Origin,
        };
        Self::new(vec![vec![Arc::new(grant)]], audit_only)
    }

    /// Whether a WebSocket upgrade is granted: every rule that decided says so.
    pub fn upgrade_allowed(&self) -> bool {
        self.tiers.iter().flatten().all(|grant| grant.upgrade)
    }

    /// Who answers there: models of routes alone if any rule that decided says so. Where only Audit policies select the
    /// pod nothing is routed, and the host answers.
    pub fn reach(&self) -> Reach {
        let reach = self.tiers.iter().flatten().map(|grant| grant.reach).max();
        reach.filter(|_| !self.audit_only).unwrap_or(Reach::Origin)
    }

    /// Whether only some methods and paths are open: by a rule's endpoints, or by those of the provider.
    pub fn is_narrowed(&self, at_provider: bool) -> bool {
        self.tiers.iter().flatten().any(|grant| match &grant.endpoints {
            Some(listed) => !listed.iter().any(Endpoint::is_everything),
            None => at_provider,
        })
    }

    /// The dialect that a deciding rule names, the cluster's first. Rules name it for unknown hosts alone.
    pub fn provider(&self) -> Option<Dialect> {
        self.tiers.iter().flatten().find_map(|grant| grant.dialect())
    }

    /// The verdict on an upgrade: Allow, Deny, or WouldDeny where only Audit policies select the pod. At an LLM
    /// provider no rule opens one: nobody would look into it. A WebSocket that is looked into is not asked about here.
    pub fn upgrade(&self, at_provider: bool) -> Decision {
        if at_provider {
            let reason = "No WebSocket is opened to an LLM provider; ask over HTTP";
            return self.deny("upgrade", reason.to_owned());
        }
        if self.upgrade_allowed() {
            return self.allow(self.tiers.iter().flatten().next());
        }
        self.deny("upgrade", "No rule allows an upgrade of this connection".to_owned())
    }

    /// The endpoint decision of one request: Allow, Deny, or WouldDeny where only Audit policies select the pod.
    pub fn request(&self, asked: &EndpointQuery<'_>) -> Decision {
        match judge(&self.tiers, asked) {
            Ok(grant) => self.allow(grant),
            Err(denying) => {
                let (name, reason) = refusal(denying, asked);
                self.deny(name, reason)
            }
        }
    }

    /// The verdict on a request that no endpoint opens, for this reason: Deny, or WouldDeny where only Audit policies
    /// select the pod.
    pub fn refused(&self, reason: &str) -> Decision {
        self.deny("endpoint", reason.to_owned())
    }

    /// What Audit policies beside the enforced ones would have said of a request, where that differs.
    pub fn audited(&self, asked: &EndpointQuery<'_>) -> Option<Decision> {
        let audited = judge(self.audited.as_ref()?, asked);
        match (judge(&self.tiers, asked), audited) {
            (Ok(_), Err(denying)) => {
                let (name, reason) = refusal(denying, asked);
                Some(Decision::builtin(name, reason).into_would_deny())
            }
            (Err(_), Ok(Some(grant))) => {
                let reason = "This rule would allow the request";
                Some(Decision::by(grant.rule.clone(), Verdict::Audit, reason).under(Enforcement::Audit))
            }
            (Ok(_), Ok(_)) | (Err(_), Err(_) | Ok(None)) => None,
        }
    }

    fn allow(&self, grant: Option<&Arc<EndpointGrant>>) -> Decision {
        let Some(grant) = grant else { return self.deny("default-deny", String::new()) };
        Decision::by(grant.rule.clone(), Verdict::Allow, "").under(grant.enforcement)
    }

    fn deny(&self, name: &str, reason: String) -> Decision {
        let decision = Decision::builtin(name, reason);
        if self.audit_only { decision.into_would_deny() } else { decision }
    }
}

impl EndpointGrant {
    pub(super) fn allows(&self, asked: &EndpointQuery<'_>) -> bool {
        match (&self.endpoints, &asked.service) {
            (Some(listed), _) => listed.iter().any(|endpoint| endpoint.covers(asked.method, asked.path)),
            (None, Some(service)) => service.is_inference() && self.speaks(service),
            // Without `provider` in the rule, a provider's answers do not pass unguarded.
            (None, None) => !asked.unknown_provider || self.provider == Some(Provider::None),
        }
    }

    pub(super) fn dialect(&self) -> Option<Dialect> {
        self.provider.and_then(Provider::dialect)
    }

    /// Whether a service is of the dialect that the rule names; what belongs to no dialect is of each.
    fn speaks(&self, service: &Service) -> bool {
        self.dialect().is_none_or(|own| service.dialect.is_none_or(|dialect| dialect == own))
    }
}

impl fmt::Display for Endpoint {
    /// `GET, POST /path`, `any method /path`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.methods {
            None => f.write_str("any method")?,
            Some(methods) => {
                f.write_str(&methods.iter().map(http::Method::as_str).collect::<Vec<_>>().join(", "))?
            }
        }
        write!(f, " {}", self.path)
    }
}

impl Endpoint {
    fn is_everything(&self) -> bool {
        self.methods.is_none() && self.path == PathPattern::any()
    }

    fn covers(&self, method: &http::Method, path: &NormalPath) -> bool {
        let listed = |wanted: &http::Method| self.methods.as_ref().is_none_or(|all| all.contains(wanted));
        (listed(method) || (method == http::Method::HEAD && listed(&http::Method::GET)))
            && self.path.matches(path)
    }
}

/// The first grant that allows the request, where every tier has one; else the tier that has none.
fn judge<'a>(
    tiers: &'a [Vec<Arc<EndpointGrant>>],
    asked: &EndpointQuery<'_>,
) -> Result<Option<&'a Arc<EndpointGrant>>, &'a [Arc<EndpointGrant>]> {
    let mut first = None;
    for tier in tiers {
        let grant = tier.iter().find(|grant| grant.allows(asked)).ok_or(tier.as_slice())?;
        first = first.or(Some(grant));
    }
    Ok(first)
}

/// The built-in rule that denies a request which no grant of a tier allows, and the reason.
fn refusal(denying: &[Arc<EndpointGrant>], asked: &EndpointQuery<'_>) -> (&'static str, String) {
    let rules = denying.iter().map(|grant| grant.rule.as_str()).collect::<Vec<_>>().join(", ");
    if denying.iter().any(|grant| grant.allows(&EndpointQuery { unknown_provider: false, ..*asked })) {
        let reason = format!(
            "The request looks like one to an LLM provider, this host is known as none, and no tool rule would hold: \
             say `provider: …` in the rule, or `provider: None` ({rules})"
        );
        return ("provider-unknown", reason);
    }
    ("endpoint", unlisted(denying, asked, &rules))
}

fn unlisted(denying: &[Arc<EndpointGrant>], asked: &EndpointQuery<'_>, rules: &str) -> String {
    if asked.path.is_ambiguous() {
        return format!(
            "The path can be read in different ways, so only an endpoint with the path /** covers it of {rules}"
        );
    }
    let by_default = denying.iter().find(|grant| grant.endpoints.is_none());
    let (Some(service), Some(grant)) = (asked.service, by_default) else {
        return format!("The method and path are not among the endpoints of {rules}");
    };
    let vendor = match (service.vendor, grant.dialect()) {
        (Vendor::Custom, _) => "this LLM provider".to_owned(),
        (known, None) => known.as_str().to_owned(),
        (known, Some(dialect)) => format!("{} for {dialect:?}", known.as_str()),
    };
    format!(
        "The method and path are not among the inference endpoints of {vendor}, the only ones that are open without \
         a rule's `endpoints`, which {rules} may name"
    )
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::call::Api;

    fn grant(rule: &str, endpoints: Option<&[(&[Method], &str)]>, upgrade: bool) -> Arc<EndpointGrant> {
        let endpoints = endpoints.map(|all| {
            let compile = |(methods, path): &(&[Method], &str)| Endpoint {
                methods: Some(methods.to_vec()),
                path: PathPattern::parse(path).unwrap(),
            };
            all.iter().map(compile).collect()
        });
        Arc::new(EndpointGrant {
            rule: RuleId::new(rule),
            enforcement: Enforcement::Enforce,
            endpoints,
            provider: None,
            upgrade,
            reach: Reach::Origin,
        })
    }

    fn request(
        inspection: &EndpointRules,
        method: &Method,
        path: &str,
        service: Option<Service>,
    ) -> Decision {
        let path = NormalPath::parse(path);
        inspection.request(&EndpointQuery { method, path: &path, service, unknown_provider: false })
    }

    fn verdict(inspection: &EndpointRules, method: &Method, path: &str) -> (Verdict, String) {
        let decision = request(inspection, method, path, None);
        (decision.verdict, decision.rule_id().to_owned())
    }

    #[test]
    fn get_includes_head_and_nothing_else() {
        let inspection =
            EndpointRules::new(vec![vec![grant("a", Some(&[(&[Method::GET], "/x")]), false)]], false);
        assert_eq!(verdict(&inspection, &Method::HEAD, "/x"), (Verdict::Allow, "a".into()));
        assert_eq!(
            verdict(&inspection, &Method::POST, "/x"),
            (Verdict::Deny, "postern/builtin/endpoint".into())
        );
        assert_eq!(verdict(&inspection, &Method::OPTIONS, "/x").0, Verdict::Deny);
    }

    #[test]
    fn rules_of_a_tier_are_united_and_every_tier_must_allow() {
        let reads = grant("cluster", Some(&[(&[Method::GET], "/**")]), false);
        let one = grant("one", Some(&[(&[Method::GET, Method::POST], "/one/**")]), false);
        let two = grant("two", Some(&[(&[Method::GET], "/two/**")]), false);
        let inspection = EndpointRules::new(vec![vec![reads], vec![one, two]], false);
        assert_eq!(verdict(&inspection, &Method::GET, "/one/x").0, Verdict::Allow);
        assert_eq!(verdict(&inspection, &Method::GET, "/two/x").0, Verdict::Allow);
        assert_eq!(verdict(&inspection, &Method::POST, "/one/x").0, Verdict::Deny);
        let denied = request(&inspection, &Method::GET, "/three", None);
        assert!(denied.why().contains("one, two"), "{}", denied.why());
    }

    #[test]
    fn an_upgrade_needs_the_word_of_every_rule() {
        let yes = grant("yes", None, true);
        let no = grant("no", None, false);
        assert!(EndpointRules::new(vec![vec![yes.clone()]], false).upgrade_allowed());
        assert!(!EndpointRules::new(vec![vec![yes.clone(), no.clone()]], false).upgrade_allowed());
        assert!(!EndpointRules::new(vec![vec![yes], vec![no]], false).upgrade_allowed());
    }

    fn speaking(rule: &str, provider: Option<Provider>) -> Arc<EndpointGrant> {
        Arc::new(EndpointGrant { provider, ..EndpointGrant::clone(&grant(rule, None, true)) })
    }

    fn service(api: Api, dialect: Option<Dialect>) -> Option<Service> {
        Some(Service { vendor: Vendor::OpenAi, api, dialect })
    }

    #[test]
    fn without_endpoints_a_provider_is_open_for_inference_alone() {
        let inspection = EndpointRules::new(vec![vec![grant("a", None, false)]], false);
        let chat = service(Api::ChatCompletions, Some(Dialect::OpenAIChat));
        assert_eq!(request(&inspection, &Method::POST, "/x", chat).verdict, Verdict::Allow);
        let denied = request(&inspection, &Method::POST, "/x", service(Api::Other, None));
        assert_eq!(denied.rule_id(), "postern/builtin/endpoint");
        assert!(denied.why().contains("openai") && denied.why().contains("`endpoints`"), "{}", denied.why());
    }

    #[test]
    fn a_provider_in_a_rule_leaves_its_own_dialect_and_what_has_none() {
        let inspection =
            EndpointRules::new(vec![vec![speaking("a", Some(Provider::OpenAIResponses))]], false);
        let verdict = |api, dialect| request(&inspection, &Method::POST, "/x", service(api, dialect)).verdict;
        assert_eq!(verdict(Api::Responses, Some(Dialect::OpenAIResponses)), Verdict::Allow);
        assert_eq!(verdict(Api::Models, None), Verdict::Allow);
        assert_eq!(verdict(Api::ChatCompletions, Some(Dialect::OpenAIChat)), Verdict::Deny);
    }

    #[test]
    fn the_first_provider_that_a_rule_names_is_the_one_that_speaks() {
        let tiers =
            vec![vec![speaking("c", None)], vec![speaking("a", None), speaking("b", Some(Provider::Gemini))]];
        assert_eq!(EndpointRules::new(tiers, false).provider(), Some(Dialect::Gemini));
        assert_eq!(EndpointRules::new(vec![vec![speaking("c", None)]], false).provider(), None);
    }

    #[test]
    fn what_looks_like_inference_at_an_unknown_host_needs_the_word_of_every_tier() {
        let (silent, says) = (speaking("silent", None), speaking("says", Some(Provider::None)));
        let all: &[(&[Method], &str)] = &[(&[Method::POST], "/**")];
        let lists = grant("lists", Some(all), false);
        let other: &[(&[Method], &str)] = &[(&[Method::GET], "/**")];
        let reads = grant("reads", Some(other), false);
        let verdict = |tiers: &[&[&Arc<EndpointGrant>]], audit_only| {
            let tiers = tiers.iter().map(|tier| tier.iter().map(|grant| Arc::clone(grant)).collect());
            let path = NormalPath::parse("/v1/chat/completions");
            let asked =
                EndpointQuery { method: &Method::POST, path: &path, service: None, unknown_provider: true };
            let decision = EndpointRules::new(tiers.collect(), audit_only).request(&asked);
            (decision.verdict, decision.rule_id().to_owned())
        };
        let unknown = || "postern/builtin/provider-unknown".to_owned();
        assert_eq!(verdict(&[&[&silent]], false), (Verdict::Deny, unknown()));
        assert_eq!(verdict(&[&[&silent]], true), (Verdict::WouldDeny, unknown()));
        assert_eq!(verdict(&[&[&says]], false).0, Verdict::Allow);
        assert_eq!(verdict(&[&[&silent, &says]], false).0, Verdict::Allow);
        assert_eq!(verdict(&[&[&lists]], false).0, Verdict::Allow);
        assert_eq!(verdict(&[&[&silent], &[&says]], false), (Verdict::Deny, unknown()));
        assert_eq!(verdict(&[&[&says], &[&silent]], false), (Verdict::Deny, unknown()));
        assert_eq!(verdict(&[&[&reads]], false).1, "postern/builtin/endpoint");
    }

    #[test]
    fn no_rule_opens_a_websocket_to_a_provider() {
        let inspection = EndpointRules::new(vec![vec![speaking("a", None)]], false);
        assert_eq!(inspection.upgrade(false).verdict, Verdict::Allow);
        assert_eq!(inspection.upgrade(true).rule_id(), "postern/builtin/upgrade");
    }

    #[test]
    fn what_only_audit_policies_deny_goes_through() {
        let inspection =
            EndpointRules::new(vec![vec![grant("a", Some(&[(&[Method::GET], "/x")]), false)]], true);
        assert_eq!(verdict(&inspection, &Method::GET, "/y").0, Verdict::WouldDeny);
        assert_eq!(inspection.upgrade(false).verdict, Verdict::WouldDeny);
    }

    #[test]
    fn an_audited_grant_is_told_only_where_it_differs() {
        let all = grant("all", None, false);
        let some = grant("some", Some(&[(&[Method::GET], "/x")]), false);
        let inspection = EndpointRules::new(vec![vec![all]], false).with_audited(vec![vec![some]]);
        let audited = |path: &str| {
            let path = NormalPath::parse(path);
            let (method, service) = (&Method::GET, None);
            inspection.audited(&EndpointQuery { method, path: &path, service, unknown_provider: false })
        };
        assert!(audited("/x").is_none());
        let told = audited("/y").unwrap();
        assert_eq!((told.verdict, told.enforcement), (Verdict::WouldDeny, Some(Enforcement::Audit)));
        assert_eq!(verdict(&inspection, &Method::GET, "/y").0, Verdict::Allow);
    }
}
