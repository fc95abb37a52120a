//! Answers questions about pods by the injector. Pure.

use k8s_openapi::api::core::v1::Pod;
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, Operation};
use serde::Deserialize;
use serde_json::Value;

use super::refusal::{RefusalStatus, named, refused};
use crate::operator::injector::{self, Annotations};
use crate::operator::settings::Settings;

/// The facts beside the review by which a question is answered.
#[derive(Clone, Copy)]
pub struct ReviewFacts<'a> {
    pub settings: &'a Settings,
    /// The annotations of a new pod's namespace.
    pub annotations: &'a Annotations,
    /// The random number by which the gateway's user ID is drawn.
    pub random: u32,
}

/// The subresource by which ephemeral containers are added to a running pod.
const EPHEMERAL: &str = "ephemeralcontainers";

/// The most containers of one kind, and the most volumes: once it is read, each takes a thousand times the bytes of an
/// empty one, and containers are compared with each other.
const MAX_CONTAINERS: usize = 128;
const MAX_VOLUMES: usize = 1_000;

/// Why a pod is refused.
struct PodRefusal {
    status: RefusalStatus,
    sentences: Vec<String>,
}

/// Injects the gateway into the pod, or refuses the pod with the reasons.
pub(super) fn mutate(
    mut request: AdmissionRequest<DynamicObject>,
    circumstances: ReviewFacts<'_>,
) -> AdmissionResponse {
    let answer = AdmissionResponse::from(&request);
    let changeable = match request.operation {
        Operation::Create => request.sub_resource.is_none(),
        // A running pod gets containers only by this subresource.
        Operation::Update => request.sub_resource.as_deref() == Some(EPHEMERAL),
        Operation::Delete | Operation::Connect => false,
    };
    if !changeable {
        return answer;
    }
    let subject = named(&request);
    let (object, old) = (request.object.take(), request.old_object.take());
    let injected = read(object).and_then(|pod| {
        let injected = match request.operation {
            Operation::Update => injector::mutate_ephemeral(&pod, old.map(read_some).transpose()?.as_ref()),
            Operation::Create | Operation::Delete | Operation::Connect => {
                injector::mutate(&pod, &known(&request, &pod, circumstances)?)
            }
        };
        injected.map_err(PodRefusal::forbidden)
    });
    match injected.and_then(|injected| patched(answer.clone(), injected)) {
        Ok(patched) => patched,
        Err(refusal) => refusal.of(&subject, answer),
    }
}

/// Validates the pod as it will be stored.
pub(super) fn validate(
    mut request: AdmissionRequest<DynamicObject>,
    circumstances: ReviewFacts<'_>,
) -> AdmissionResponse {
    let answer = AdmissionResponse::from(&request);
    let judged = match request.operation {
        // The other subresources are no pods (a binding, an eviction) or do not change containers.
        Operation::Create | Operation::Update => {
            matches!(request.sub_resource.as_deref(), None | Some(EPHEMERAL | "resize"))
        }
        Operation::Delete | Operation::Connect => false,
    };
    if !judged {
        return answer;
    }
    let subject = named(&request);
    let (object, old) = (request.object.take(), request.old_object.take());
    let sentences = read(object).and_then(|pod| {
        let before = old.map(read_some).transpose()?;
        Ok(injector::validate(&pod, before.as_ref(), &known(&request, &pod, circumstances)?))
    });
    match sentences.map_err(|refusal| refusal.of(&subject, answer.clone())) {
        Ok(sentences) if sentences.is_empty() => answer,
        Ok(sentences) => PodRefusal::forbidden(sentences).of(&subject, answer),
        Err(refused) => refused,
    }
}

/// Refuses a new pod with a container that names no user. The webhook's selector limits this to namespaces that demand
/// it.
pub(super) fn demand_users(mut request: AdmissionRequest<DynamicObject>) -> AdmissionResponse {
    let answer = AdmissionResponse::from(&request);
    if request.operation != Operation::Create || request.sub_resource.is_some() {
        return answer;
    }
    let subject = named(&request);
    let sentences = read(request.object.take()).map(|pod| injector::demand_users(&pod));
    match sentences {
        Ok(sentences) if sentences.is_empty() => answer,
        Ok(sentences) => PodRefusal::forbidden(sentences).of(&subject, answer),
        Err(refusal) => refusal.of(&subject, answer),
    }
}

impl PodRefusal {
    fn forbidden(sentences: Vec<String>) -> Self {
        Self { status: RefusalStatus::Forbidden, sentences }
    }

    fn invalid(sentence: impl Into<String>) -> Self {
        Self { status: RefusalStatus::Invalid, sentences: vec![sentence.into()] }
    }

    fn of(self, subject: &str, answer: AdmissionResponse) -> AdmissionResponse {
        refused(answer, self.status, format!("Postern refuses {subject}:\n{}", self.sentences.join("\n")))
    }
}

fn read(object: Option<DynamicObject>) -> Result<Value, PodRefusal> {
    read_some(object.ok_or_else(|| PodRefusal::invalid("the review holds no object to judge"))?)
}

fn read_some(object: DynamicObject) -> Result<Value, PodRefusal> {
    let bounds = [
        ("containers", MAX_CONTAINERS),
        ("initContainers", MAX_CONTAINERS),
        ("ephemeralContainers", MAX_CONTAINERS),
        ("volumes", MAX_VOLUMES),
    ];
    for (list, most) in bounds {
        let items =
            object.data.pointer(&format!("/spec/{list}")).and_then(Value::as_array).map_or(0, Vec::len);
        if items > most {
            return Err(PodRefusal::invalid(format!("spec.{list} has {items} items: use at most {most}")));
        }
    }
    // The parser's words would repeat parts of the pod, which may be secret.
    let unreadable = "it cannot be read as a Pod of v1: a field is missing, or holds what it should not";
    let pod = serde_json::to_value(object).map_err(|_| PodRefusal::invalid(unreadable))?;
    Pod::deserialize(&pod).map_err(|_| PodRefusal::invalid(unreadable))?;
    Ok(pod)
}

/// The facts for the injector: the pod's namespace is only in the request, and the gateway's user ID is drawn here.
fn known<'a>(
    request: &'a AdmissionRequest<DynamicObject>,
    pod: &Value,
    circumstances: ReviewFacts<'a>,
) -> Result<injector::InjectionFacts<'a>, PodRefusal> {
    let namespace =
        request.namespace.as_deref().ok_or_else(|| PodRefusal::invalid("the request names no namespace"))?;
    let uid = injector::draw(pod, circumstances.random);
    let ReviewFacts { settings, annotations, .. } = circumstances;
    Ok(injector::InjectionFacts { settings, namespace, annotations, uid })
}

fn patched(
    mut answer: AdmissionResponse,
    injected: injector::Injected,
) -> Result<AdmissionResponse, PodRefusal> {
    answer.warnings = Some(injected.warnings).filter(|warnings| !warnings.is_empty());
    if injected.patch.is_empty() {
        return Ok(answer);
    }
    // Serialising a patch cannot fail. If it did, the pod must not start without it.
    answer.with_patch(injected.patch).map_err(|error| PodRefusal::invalid(error.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::review::AdmissionQuestion;
    use super::super::testing::{judged, review};
    use super::*;

    fn asked(question: AdmissionQuestion, review: &Value) -> AdmissionResponse {
        judged(question, review)
    }

    #[test]
    fn what_cannot_be_changed_is_not_mutated() {
        for (operation, subresource) in
            [("UPDATE", None), ("DELETE", None), ("CONNECT", Some("exec")), ("UPDATE", Some("status"))]
        {
            let mut made = review("Pod", operation);
            made["request"]["subResource"] = json!(subresource);
            let answer = asked(AdmissionQuestion::MutatePod, &made);
            assert!(answer.allowed && answer.patch.is_none(), "{operation} {subresource:?}");
        }
    }

    #[test]
    fn a_pod_that_is_deleted_or_that_only_tells_its_status_is_not_judged() {
        for (operation, subresource) in
            [("DELETE", None), ("UPDATE", Some("status")), ("CREATE", Some("binding"))]
        {
            let mut made = review("Pod", operation);
            made["request"]["subResource"] = json!(subresource);
            made["request"]["object"] = Value::Null;
            assert!(asked(AdmissionQuestion::ValidatePod, &made).allowed, "{operation} {subresource:?}");
        }
    }

    #[test]
    fn what_is_no_pod_is_refused_in_words_that_repeat_nothing_of_it() {
        let mut made = review("Pod", "CREATE");
        made["request"]["object"]["spec"] = json!({"containers": "hunter2"});
        for question in [AdmissionQuestion::MutatePod, AdmissionQuestion::ValidatePod] {
            let answer = asked(question, &made);
            assert!(!answer.allowed);
            assert_eq!((answer.result.code, answer.result.reason.as_str()), (422, "Invalid"));
            let said = answer.result.message;
            assert!(
                said.starts_with("Postern refuses Pod agents/agent:\n") && !said.contains("hunter2"),
                "{said}"
            );
        }
        made["request"]["object"] = Value::Null;
        assert!(asked(AdmissionQuestion::MutatePod, &made).result.message.contains("no object to judge"));
    }

    #[test]
    fn a_pod_of_more_containers_than_anybody_runs_is_refused_before_it_is_read() {
        let mut made = review("Pod", "CREATE");
        made["request"]["object"]["spec"] = json!({"containers": vec![json!({}); MAX_CONTAINERS + 1]});
        let said = asked(AdmissionQuestion::MutatePod, &made).result.message;
        assert!(said.contains("spec.containers has 129 items: use at most 128"), "{said}");
    }

    #[test]
    fn a_request_without_a_namespace_is_refused() {
        let mut made = review("Pod", "CREATE");
        made["request"].as_object_mut().unwrap().remove("namespace");
        let said = asked(AdmissionQuestion::ValidatePod, &made).result.message;
        assert!(said.contains("names no namespace"), "{said}");
    }

    #[test]
    fn the_patch_makes_it_a_pod_that_is_then_admitted_and_a_warning_is_passed_on() {
        let mut made = review("Pod", "CREATE");
        made["request"]["object"]["spec"] = json!({"containers": [{"name": "agent", "image": "agent:test"}]});
        let answer = asked(AdmissionQuestion::MutatePod, &made);
        assert!(answer.allowed, "{}", answer.result.message);
        let patch: json_patch::Patch = serde_json::from_slice(&answer.patch.unwrap()).unwrap();
        json_patch::patch(&mut made["request"]["object"], &patch).unwrap();
        assert_eq!(made["request"]["object"]["spec"]["initContainers"][1]["name"], "postern-gateway");
        let answer = asked(AdmissionQuestion::ValidatePod, &made);
        assert!(answer.allowed, "{}", answer.result.message);
    }

    #[test]
    fn a_pod_that_would_get_past_the_gateway_is_refused_with_every_sentence() {
        let mut made = review("Pod", "CREATE");
        made["request"]["object"]["spec"] =
            json!({"hostNetwork": true, "hostPID": true, "containers": [{"name": "agent", "image": "a"}]});
        let answer = asked(AdmissionQuestion::MutatePod, &made);
        assert_eq!((answer.allowed, answer.result.code), (false, 403));
        let said = answer.result.message;
        assert!(said.starts_with("Postern refuses Pod agents/agent:\n"), "{said}");
        assert!(said.contains("hostNetwork") && said.contains("hostPID"), "{said}");
    }

    #[test]
    fn where_the_namespace_demands_users_every_container_names_one() {
        let mut made = review("Pod", "CREATE");
        let user = json!({"runAsUser": 1000});
        made["request"]["object"]["spec"] = json!({
            "initContainers": [{"name": "setup", "image": "a"}],
            "containers": [{"name": "agent", "image": "a", "securityContext": user}],
        });
        let answer = asked(AdmissionQuestion::DemandUsers, &made);
        assert_eq!((answer.allowed, answer.result.code), (false, 403));
        let said = answer.result.message;
        assert!(said.contains("spec.initContainers[0].securityContext.runAsUser is missing"), "{said}");
        assert!(!said.contains("spec.containers"), "{said}");
        made["request"]["object"]["spec"]["securityContext"] = user;
        assert!(asked(AdmissionQuestion::DemandUsers, &made).allowed, "the pod names one for all");
        // Postern's own containers name theirs.
        let patch = asked(AdmissionQuestion::MutatePod, &made).patch.unwrap();
        let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
        json_patch::patch(&mut made["request"]["object"], &patch).unwrap();
        assert!(asked(AdmissionQuestion::DemandUsers, &made).allowed);
        made["request"]["operation"] = "UPDATE".into();
        made["request"]["object"]["spec"]["securityContext"] = Value::Null;
        assert!(
            asked(AdmissionQuestion::DemandUsers, &made).allowed,
            "a pod that runs already keeps its user"
        );
    }

    #[test]
    fn a_container_that_is_added_to_a_guarded_pod_is_hardened() {
        let mut made = review("Pod", "CREATE");
        made["request"]["object"]["spec"] = json!({"containers": [{"name": "agent", "image": "agent:test"}]});
        let patch = asked(AdmissionQuestion::MutatePod, &made).patch.unwrap();
        let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
        json_patch::patch(&mut made["request"]["object"], &patch).unwrap();
        made["request"]["oldObject"] = made["request"]["object"].clone();
        made["request"]["object"]["spec"]["ephemeralContainers"] =
            json!([{"name": "debug", "image": "busybox"}]);
        made["request"]["operation"] = "UPDATE".into();
        made["request"]["subResource"] = EPHEMERAL.into();
        let patch = asked(AdmissionQuestion::MutatePod, &made).patch.unwrap();
        let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
        assert!(
            patch.iter().all(|operation| operation.path().as_str().starts_with("/spec/ephemeralContainers")),
            "{patch}"
        );
        json_patch::patch(&mut made["request"]["object"], &patch).unwrap();
        let answer = asked(AdmissionQuestion::ValidatePod, &made);
        assert!(answer.allowed, "{}", answer.result.message);
    }
}
