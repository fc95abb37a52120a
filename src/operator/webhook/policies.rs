//! Answers questions about policies by the code with which gateways read them. Pure.

use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, Operation};

use super::refusal::{RefusalStatus, named, refused};
use crate::api::accepted::accepted;
use crate::lint;
use crate::policy::document::Document;
use crate::policy::{Labels, Policy};
use crate::problem::Problem;

/// Refuses a policy that gateways could not use, with everything that is wrong with it.
///
/// A stored policy that a newer release does not accept any more may still be labelled, owned and deleted: an update
/// that does not change its spec is allowed with warnings.
pub(super) fn validate(request: AdmissionRequest<DynamicObject>) -> AdmissionResponse {
    let answer = AdmissionResponse::from(&request);
    let asked = match request.operation {
        Operation::Create | Operation::Update => request.sub_resource.is_none(),
        Operation::Delete | Operation::Connect => false,
    };
    if !asked {
        return answer;
    }
    let subject = named(&request);
    let Some(object) = request.object else {
        let message = format!("Postern cannot use {subject}: the review holds no object");
        return refused(answer, RefusalStatus::Invalid, message);
    };
    let unchanged = request.old_object.is_some_and(|old| old.data.get("spec") == object.data.get("spec"));
    let read = match serde_json::to_value(&object) {
        Ok(value) => accepted(&value),
        Err(_) => Err(vec![Problem::at("", "it cannot be written as JSON")]),
    };
    let problems = match read {
        Ok(document) => return warned(answer, "", &told_of(document)),
        Err(problems) => problems,
    };
    match problems.as_slice() {
        problems if unchanged => warned(answer, "Postern cannot use it: ", problems),
        problems => {
            let lines: Vec<String> = problems.iter().map(line).collect();
            let message = format!("Postern cannot use {subject}:\n{}", lines.join("\n"));
            refused(answer, RefusalStatus::Invalid, message)
        }
    }
}

/// What is told of a policy that can be used: what hardly anybody means, and what is missing unless another policy has it.
/// Which those are only the controller knows, so that nothing is refused for it; the judgement is the controller's.
fn told_of(document: Document) -> Vec<Problem> {
    let mut told = lint::warnings_of(&document);
    let alone = Policy::compile(&[document], &Labels::new()).err().unwrap_or_default();
    told.extend(alone.into_iter().map(|problem| {
        let message = format!("{}; without one that has it, the policy is not used", problem.message);
        Problem { message, ..problem }
    }));
    told
}

/// Allows the policy with each problem as a warning, behind these words.
fn warned(mut answer: AdmissionResponse, words: &str, problems: &[Problem]) -> AdmissionResponse {
    let warnings: Vec<_> = problems.iter().map(|problem| format!("{words}{}", line(problem))).collect();
    answer.warnings = Some(warnings).filter(|warnings| !warnings.is_empty());
    answer
}

/// The field and what is wrong with it. Lines and columns would be those of a text that the author does not have.
fn line(problem: &Problem) -> String {
    match problem.path.as_str() {
        "" => problem.message.clone(),
        path => format!("{path}: {}", problem.message),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::review::AdmissionQuestion;
    use super::super::testing::{judged, review};
    use super::*;

    fn policy(spec: Value, operation: &str) -> Value {
        let mut made = review("EgressPolicy", operation);
        let object = &mut made["request"]["object"];
        object["apiVersion"] = "postern.dev/v1alpha1".into();
        object["spec"] = spec;
        made
    }

    fn good() -> Value {
        json!({"destinations": [{"name": "api", "hosts": ["api.example.com"], "action": "Inspect"}]})
    }

    fn bad() -> Value {
        json!({"destinations": [{"hosts": ["a b"], "action": "Inspect"}, {"hosts": ["a.example"], "action": "Perhaps"}]})
    }

    fn asked(review: &Value) -> AdmissionResponse {
        judged(AdmissionQuestion::ValidatePolicy, review)
    }

    #[test]
    fn a_policy_that_gateways_can_use_is_admitted() {
        let answer = asked(&policy(good(), "CREATE"));
        assert!(answer.allowed, "{}", answer.result.message);
        assert_eq!(answer.warnings, None);
    }

    #[test]
    fn a_policy_that_says_what_hardly_anybody_means_is_admitted_with_warnings() {
        let slip =
            json!({"destinations": [{"name": "api", "hosts": ["api.antropic.com"], "action": "Inspect"}]});
        let answer = asked(&policy(slip, "CREATE"));
        assert!(answer.allowed);
        let warnings = answer.warnings.unwrap();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with("spec.destinations[0].hosts[0]: "), "{warnings:?}");
    }

    #[test]
    fn a_label_that_only_another_policy_could_have_is_told() {
        let routed = |to: &str| {
            json!({
                "modelProviders": [{"name": "own", "endpoint": "https://models.example.com/v1", "dialect": "OpenAIChat"}],
                "models": [{"name": "coder", "provider": "own"}],
                "routes": [{"name": "small", "match": {"models": ["*"]}, "to": [to]}],
            })
        };
        let answer = asked(&policy(routed("codre"), "CREATE"));
        let told = "spec.routes[0].to[0]: \"codre\": no model of this policy or of a cluster policy has this label; ";
        assert!(answer.allowed, "a cluster policy may have it");
        let warnings = answer.warnings.unwrap();
        assert!(warnings.len() == 1 && warnings[0].starts_with(told), "{warnings:?}");
        assert_eq!(asked(&policy(routed("coder"), "CREATE")).warnings, None);
    }

    #[test]
    fn a_directory_that_is_written_as_a_glob_is_refused() {
        let within = |path: &str| {
            json!({"tools": [{"name": "etc", "kind": "Read", "action": "Deny",
                "when": {"param": "paths", "operator": "Within", "values": [path]}}]})
        };
        let answer = asked(&policy(within("/etc/**"), "CREATE"));
        let said = answer.result.message;
        assert!(
            !answer.allowed && said.contains("spec.tools[0].when.values[0]: \"/etc/**\": is no pattern"),
            "{said}"
        );
        assert!(asked(&policy(within("/etc"), "CREATE")).allowed);
    }

    #[test]
    fn a_policy_with_problems_is_refused_with_every_path() {
        let answer = asked(&policy(bad(), "CREATE"));
        assert!(!answer.allowed);
        assert_eq!(answer.result.code, 422);
        let said = answer.result.message;
        assert!(said.starts_with("Postern cannot use EgressPolicy agents/agent:\n"), "{said}");
        for path in ["spec.destinations[0]", "spec.destinations[1].action"] {
            assert!(said.lines().any(|line| line.starts_with(path)), "{path} in {said}");
        }
    }

    #[test]
    fn a_policy_that_was_stored_so_is_admitted_with_warnings_while_its_rules_stay() {
        let mut made = policy(bad(), "UPDATE");
        made["request"]["oldObject"] = made["request"]["object"].clone();
        let answer = asked(&made);
        assert!(answer.allowed);
        assert!(
            answer
                .warnings
                .unwrap()
                .iter()
                .all(|warning| warning.starts_with("Postern cannot use it: spec."))
        );
        made["request"]["oldObject"]["spec"] = good();
        assert!(!asked(&made).allowed, "new rules are judged");
    }

    #[test]
    fn deleting_a_policy_and_telling_its_status_is_not_asked() {
        let mut deleted = policy(bad(), "DELETE");
        deleted["request"]["object"] = Value::Null;
        assert!(asked(&deleted).allowed);
        let mut told = policy(bad(), "UPDATE");
        told["request"]["subResource"] = "status".into();
        assert!(asked(&told).allowed);
    }

    #[test]
    fn a_review_without_an_object_is_refused() {
        let mut made = policy(good(), "CREATE");
        made["request"]["object"] = Value::Null;
        assert!(asked(&made).result.message.contains("holds no object"));
    }
}
