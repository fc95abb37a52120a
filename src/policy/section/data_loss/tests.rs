//! Tests of the table: what becomes of a secret by place, confidence, host and policies.

use super::*;
use crate::name::host::Host;
use crate::policy::Policy;
use crate::policy::document::parse;

/// The action for a secret of this kind, in this place, on its way to a host.
fn action(policies: &[&str], id: &str, place: FindingPlace, host: &str) -> (FindingAction, String) {
    let text: Vec<String> = policies
        .iter()
        .enumerate()
        .map(|(number, spec)| {
            let kind = if number == 0 { "EgressPolicy" } else { "ClusterEgressPolicy" };
            let namespace = if number == 0 { ", namespace: a" } else { "" };
            format!("apiVersion: postern.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: p{number}{namespace}}}\nspec: {spec}\n")
        })
        .collect();
    let documents = parse("p.yaml", &text.join("---\n")).unwrap_or_else(|problems| panic!("{problems:?}"));
    let policy = Policy::compile(&documents, &Default::default()).unwrap();
    let detectors = Arc::clone(Detectors::shared());
    let detector = detectors.iter().find(|detector| detector.id == id).unwrap();
    let asked = AskedFinding {
        detector,
        confidence: detector.confidence,
        sha256: &[7; 32],
        place,
        host: &Host::parse(host).unwrap(),
    };
    let verdict = policy.judge_finding(&asked);
    let rule = verdict.decision.map(|decision| decision.rule_id().to_owned()).unwrap_or_default();
    (verdict.action, rule)
}

const TOKEN: &str = "gitlab-token";
const BUILTIN: &str = "postern/builtin/outbound-exfiltration";

#[test]
fn without_a_policy_about_it_the_table_decides() {
    for (place, expected, rule) in [
        (FindingPlace::Told, FindingAction::Redact, ""),
        (FindingPlace::OfModel { is_vouched: true }, FindingAction::Audit, ""),
        (FindingPlace::OfModel { is_vouched: false }, FindingAction::Deny, BUILTIN),
        (FindingPlace::Carrier, FindingAction::Deny, BUILTIN),
        (FindingPlace::Rest, FindingAction::Deny, BUILTIN),
    ] {
        assert_eq!(action(&["{}"], TOKEN, place, "a.example"), (expected, rule.to_owned()), "{place:?}");
        assert_eq!(action(&["{}"], "jwt", place, "a.example").0, FindingAction::Audit, "{place:?}");
    }
    assert_eq!(action(&["{}"], TOKEN, FindingPlace::Carrier, "gitlab.com").0, FindingAction::Allow);
    assert_eq!(action(&["{}"], TOKEN, FindingPlace::Rest, "gitlab.com").0, FindingAction::Deny);
}

#[test]
fn what_is_written_decides_and_of_several_policies_the_strictest() {
    let told = |policies: &[&str]| action(policies, TOKEN, FindingPlace::Told, "a.example");
    let (deny, audit) = ("{dataLoss: {action: Deny}}", "{dataLoss: {action: Audit}}");
    assert_eq!(told(&[deny]), (FindingAction::Deny, "a/p0/dataLoss".to_owned()));
    assert_eq!(told(&[audit]).0, FindingAction::Audit);
    assert_eq!(told(&[audit, deny]), (FindingAction::Deny, "-/p1/dataLoss".to_owned()));
    assert_eq!(told(&["{dataLoss: {action: Allow}}", "{}"]).0, FindingAction::Allow);
    let medium = "{dataLoss: {confidence: Medium}}";
    assert_eq!(action(&[medium], "jwt", FindingPlace::Told, "a.example").0, FindingAction::Redact);
    let allowed = format!("{{dataLoss: {{allow: [{{detector: {TOKEN}, sha256: '{}'}}]}}}}", "07".repeat(32));
    assert_eq!(told(&[&allowed]).0, FindingAction::Allow);
    assert_eq!(told(&[&allowed, "{dataLoss: {}}"]).0, FindingAction::Redact, "the cluster does not allow it");
}

#[test]
fn audit_policies_change_nothing_and_tell_what_they_would() {
    let told = |policies: &[&str]| action(policies, TOKEN, FindingPlace::Told, "a.example");
    assert_eq!(told(&["{enforcement: Audit}"]), (FindingAction::Audit, BUILTIN.to_owned()));
    let beside = ["{dataLoss: {action: Audit}}", "{enforcement: Audit, dataLoss: {action: Deny}}"];
    assert_eq!(told(&beside), (FindingAction::Audit, "-/p1/dataLoss".to_owned()));
}

#[test]
fn mistakes_are_told_where_they_stand() {
    let text = "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {name: p, namespace: a}\nspec:\n  dataLoss:\n    \
        allow: [{detector: nobody, sha256: 12}]\n    home: [{detector: gitlab-token, hosts: ['a*b']}]\n    \
        patterns: [{name: x, regex: '[a-z]+'}, {name: x, regex: 'corp_('}]\n    values: [{name: v}]\n    detectors: [Secrets]\n";
    let told: Vec<String> = parse("p.yaml", text).unwrap_err().iter().map(ToString::to_string).collect();
    for expected in [
        "spec.dataLoss.allow[0].detector: \"nobody\": there is no such detector",
        "spec.dataLoss.allow[0].sha256: expected",
        "spec.dataLoss.home[0].hosts[0]",
        "spec.dataLoss.patterns[0].regex: every branch needs a literal",
        "spec.dataLoss.patterns[1].name: the name `x` is taken",
        "spec.dataLoss.patterns[1].regex",
        "spec.dataLoss.values[0]: needs a source",
        "spec.dataLoss.action: say what is done about the detectors",
    ] {
        assert!(told.iter().any(|line| line.contains(expected)), "{expected}: {told:#?}");
    }
}
