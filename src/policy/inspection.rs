//! What an inspected destination may be asked for: the endpoints of the rules that decided.

use std::sync::Arc;

use crate::event::Verdict;

use super::RuleId;
use super::path::{NormalPath, PathPattern};
use super::ruling::{AUDIT, Ruling};

/// What one Inspect rule grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) rule: RuleId,
    pub(super) enforcement: &'static str,
    /// None where the rule has no `endpoints`: everything.
    pub(super) endpoints: Option<Vec<Endpoint>>,
    pub(super) upgrade: bool,
}

/// One entry of `endpoints`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    /// None stands for every method; GET includes HEAD.
    pub(super) methods: Option<Vec<http::Method>>,
    pub(super) path: PathPattern,
}

/// The endpoints of one inspected destination: the equal rules of a tier are united, and each tier that has a
/// matching rule must allow a request.
#[derive(Debug, Clone)]
pub struct Inspection {
    tiers: Vec<Vec<Arc<Grant>>>,
    /// Only Audit policies select the pod: denials are recorded alone.
    audit_only: bool,
    /// The same destination with the Audit policies enforced, where that differs.
    audited: Option<Vec<Vec<Arc<Grant>>>>,
}

impl Inspection {
    pub(super) fn new(tiers: Vec<Vec<Arc<Grant>>>, audit_only: bool) -> Self {
        Self { tiers, audit_only, audited: None }
    }

    /// Records beside each request what these grants would have said.
    pub(super) fn with_audited(mut self, tiers: Vec<Vec<Arc<Grant>>>) -> Self {
        self.audited = Some(tiers);
        self
    }

    /// The inspection of a destination that `ruling` allows without naming endpoints: a Tunnel rule on a
    /// reverse listener, or what goes through because only Audit policies select the pod.
    pub fn unrestricted(ruling: &Ruling, audit_only: bool) -> Self {
        let grant = Grant {
            rule: ruling.rule.clone(),
            enforcement: ruling.enforcement,
            endpoints: None,
            upgrade: false,
        };
        Self::new(vec![vec![Arc::new(grant)]], audit_only)
    }

    /// Whether a WebSocket upgrade is granted: every rule that decided says so.
    pub fn upgrade_allowed(&self) -> bool {
        self.tiers.iter().flatten().all(|grant| grant.upgrade)
    }

    /// The verdict on an upgrade: Allow, Deny, or WouldDeny where only Audit policies select the pod.
    pub fn upgrade(&self) -> Ruling {
        if self.upgrade_allowed() {
            return self.allow(self.tiers.iter().flatten().next());
        }
        self.deny("upgrade", "No rule allows an upgrade of this connection".to_owned())
    }

    /// The endpoint decision of one request: Allow, Deny, or WouldDeny where only Audit policies select the pod.
    pub fn request(&self, method: &http::Method, path: &NormalPath) -> Ruling {
        match judge(&self.tiers, method, path) {
            Ok(grant) => self.allow(grant),
            Err(denying) => self.deny("endpoint", refusal(denying, path)),
        }
    }

    /// What Audit policies beside the enforced ones would have said of a request, where that differs.
    pub fn audited(&self, method: &http::Method, path: &NormalPath) -> Option<Ruling> {
        let audited = judge(self.audited.as_ref()?, method, path);
        match (judge(&self.tiers, method, path), audited) {
            (Ok(_), Err(denying)) => {
                Some(Ruling::builtin("endpoint", refusal(denying, path)).into_would_deny())
            }
            (Err(_), Ok(Some(grant))) => Some(Ruling {
                verdict: Verdict::Audit,
                rule: grant.rule.clone(),
                reason: "This rule would allow the request".to_owned(),
                enforcement: AUDIT,
            }),
            (Ok(_), Ok(_)) | (Err(_), Err(_) | Ok(None)) => None,
        }
    }

    fn allow(&self, grant: Option<&Arc<Grant>>) -> Ruling {
        let Some(grant) = grant else { return self.deny("default-deny", String::new()) };
        Ruling {
            verdict: Verdict::Allow,
            rule: grant.rule.clone(),
            reason: String::new(),
            enforcement: grant.enforcement,
        }
    }

    fn deny(&self, name: &str, reason: String) -> Ruling {
        let ruling = Ruling::builtin(name, reason);
        if self.audit_only { ruling.into_would_deny() } else { ruling }
    }
}

impl Grant {
    fn allows(&self, method: &http::Method, path: &NormalPath) -> bool {
        self.endpoints.as_ref().is_none_or(|all| all.iter().any(|endpoint| endpoint.covers(method, path)))
    }
}

impl Endpoint {
    fn covers(&self, method: &http::Method, path: &NormalPath) -> bool {
        let listed = |wanted: &http::Method| self.methods.as_ref().is_none_or(|all| all.contains(wanted));
        (listed(method) || (method == http::Method::HEAD && listed(&http::Method::GET)))
            && self.path.matches(path)
    }
}

/// The first grant that allows the request, where every tier has one; else the tier that has none.
fn judge<'a>(
    tiers: &'a [Vec<Arc<Grant>>],
    method: &http::Method,
    path: &NormalPath,
) -> Result<Option<&'a Arc<Grant>>, &'a [Arc<Grant>]> {
    let mut first = None;
    for tier in tiers {
        let grant = tier.iter().find(|grant| grant.allows(method, path)).ok_or(tier.as_slice())?;
        first = first.or(Some(grant));
    }
    Ok(first)
}

fn refusal(denying: &[Arc<Grant>], path: &NormalPath) -> String {
    let rules: Vec<&str> = denying.iter().map(|grant| grant.rule.as_str()).collect();
    let why = if path.is_ambiguous() {
        "The path can be read in different ways, so only an endpoint with the path /** covers it"
    } else {
        "The method and path are not among the endpoints"
    };
    format!("{why} of {}", rules.join(", "))
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn grant(rule: &str, endpoints: Option<&[(&[Method], &str)]>, upgrade: bool) -> Arc<Grant> {
        let endpoints = endpoints.map(|all| {
            let compile = |(methods, path): &(&[Method], &str)| Endpoint {
                methods: Some(methods.to_vec()),
                path: PathPattern::parse(path).unwrap(),
            };
            all.iter().map(compile).collect()
        });
        Arc::new(Grant { rule: RuleId::new(rule), enforcement: "Enforce", endpoints, upgrade })
    }

    fn verdict(inspection: &Inspection, method: &Method, path: &str) -> (Verdict, String) {
        let ruling = inspection.request(method, &NormalPath::parse(path));
        (ruling.verdict, ruling.rule.to_string())
    }

    #[test]
    fn get_includes_head_and_nothing_else() {
        let inspection =
            Inspection::new(vec![vec![grant("a", Some(&[(&[Method::GET], "/x")]), false)]], false);
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
        let inspection = Inspection::new(vec![vec![reads], vec![one, two]], false);
        assert_eq!(verdict(&inspection, &Method::GET, "/one/x").0, Verdict::Allow);
        assert_eq!(verdict(&inspection, &Method::GET, "/two/x").0, Verdict::Allow);
        assert_eq!(verdict(&inspection, &Method::POST, "/one/x").0, Verdict::Deny);
        let denied = inspection.request(&Method::GET, &NormalPath::parse("/three"));
        assert!(denied.reason.contains("one, two"), "{}", denied.reason);
    }

    #[test]
    fn an_upgrade_needs_the_word_of_every_rule() {
        let yes = grant("yes", None, true);
        let no = grant("no", None, false);
        assert!(Inspection::new(vec![vec![yes.clone()]], false).upgrade_allowed());
        assert!(!Inspection::new(vec![vec![yes.clone(), no.clone()]], false).upgrade_allowed());
        assert!(!Inspection::new(vec![vec![yes], vec![no]], false).upgrade_allowed());
    }

    #[test]
    fn what_only_audit_policies_deny_goes_through() {
        let inspection =
            Inspection::new(vec![vec![grant("a", Some(&[(&[Method::GET], "/x")]), false)]], true);
        assert_eq!(verdict(&inspection, &Method::GET, "/y").0, Verdict::WouldDeny);
        assert_eq!(inspection.upgrade().verdict, Verdict::WouldDeny);
    }

    #[test]
    fn an_audited_grant_is_told_only_where_it_differs() {
        let all = grant("all", None, false);
        let some = grant("some", Some(&[(&[Method::GET], "/x")]), false);
        let inspection = Inspection::new(vec![vec![all]], false).with_audited(vec![vec![some]]);
        assert!(inspection.audited(&Method::GET, &NormalPath::parse("/x")).is_none());
        let told = inspection.audited(&Method::GET, &NormalPath::parse("/y")).unwrap();
        assert_eq!((told.verdict, told.enforcement), (Verdict::WouldDeny, "Audit"));
        assert_eq!(verdict(&inspection, &Method::GET, "/y").0, Verdict::Allow);
    }
}
