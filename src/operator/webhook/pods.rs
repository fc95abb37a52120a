//! Answers questions about pods by the injector. Pure.

use k8s_openapi::api::core::v1::{Container, EphemeralContainer, Pod, SecurityContext};
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, Operation};
use serde_json::Value;

use super::review::{Circumstances, FORBIDDEN, INVALID, Taken, named, refused};
use crate::operator::injector;

/// The subresource by which containers are added to a pod that runs.
const EPHEMERAL: &str = "ephemeralcontainers";

/// The most containers or volumes of one kind: each takes a thousand times the bytes of an empty one once it is read.
const MAX_ITEMS: usize = 1_000;

/// Why a pod is refused.
struct Refusal {
    status: (u16, &'static str),
    sentences: Vec<String>,
}

/// Makes the pod one that the gateway guards, or says what stands against it.
pub(super) fn mutate(
    mut request: AdmissionRequest<DynamicObject>,
    circumstances: Circumstances<'_>,
) -> AdmissionResponse {
    let answer = AdmissionResponse::from(&request);
    let changeable = match request.operation {
        Operation::Create => request.sub_resource.is_none(),
        // A pod that is there already takes containers by this subresource, and nothing else of ours.
        Operation::Update => request.sub_resource.as_deref() == Some(EPHEMERAL),
        Operation::Delete | Operation::Connect => false,
    };
    if !changeable {
        return answer;
    }
    let subject = named(&request);
    let injected = read(request.object.take()).and_then(|pod| {
        injector::mutate(&pod, &known(&request, &pod, circumstances)?).map_err(Refusal::forbidden)
    });
    match injected.and_then(|injected| patched(answer.clone(), injected)) {
        Ok(patched) => patched,
        Err(refusal) => refusal.of(&subject, answer),
    }
}

/// Judges the pod as it will be stored.
pub(super) fn validate(
    mut request: AdmissionRequest<DynamicObject>,
    circumstances: Circumstances<'_>,
) -> AdmissionResponse {
    let answer = AdmissionResponse::from(&request);
    let judged = match request.operation {
        // The other subresources are no pods (a binding, an eviction) or hold nothing that a container is made of.
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
        let before = old.map(|old| read(Some(old))).transpose()?;
        Ok(injector::validate(&pod, before.as_ref(), &known(&request, &pod, circumstances)?))
    });
    match sentences.map_err(|refusal| refusal.of(&subject, answer.clone())) {
        Ok(sentences) if sentences.is_empty() => answer,
        Ok(sentences) => Refusal::forbidden(sentences).of(&subject, answer),
        Err(refused) => refused,
    }
}

impl Refusal {
    fn forbidden(sentences: Vec<String>) -> Self {
        Self { status: FORBIDDEN, sentences }
    }

    fn invalid(sentence: impl Into<String>) -> Self {
        Self { status: INVALID, sentences: vec![sentence.into()] }
    }

    fn of(self, subject: &str, answer: AdmissionResponse) -> AdmissionResponse {
        refused(answer, self.status, format!("Postern refuses {subject}:\n{}", self.sentences.join("\n")))
    }
}

fn read(object: Option<DynamicObject>) -> Result<Pod, Refusal> {
    let object = object.ok_or_else(|| Refusal::invalid("the review holds no object to judge"))?;
    for list in ["containers", "initContainers", "ephemeralContainers", "volumes"] {
        let items =
            object.data.pointer(&format!("/spec/{list}")).and_then(Value::as_array).map_or(0, Vec::len);
        if items > MAX_ITEMS {
            return Err(Refusal::invalid(format!("spec.{list} has {items} items: use at most {MAX_ITEMS}")));
        }
    }
    // The parser's words would repeat what is in the pod, which may be a secret.
    let said = "it cannot be read as a Pod of v1: a field is missing, or holds what it should not";
    object.try_parse().map_err(|_| Refusal::invalid(said))
}

/// The pod's namespace, which its request alone knows, and the user ID for its gateway.
fn known<'a>(
    request: &'a AdmissionRequest<DynamicObject>,
    pod: &Pod,
    circumstances: Circumstances<'a>,
) -> Result<injector::Circumstances<'a>, Refusal> {
    let namespace =
        request.namespace.as_deref().ok_or_else(|| Refusal::invalid("the request names no namespace"))?;
    let uid = (circumstances.draw)(&taken(pod)).ok_or_else(|| {
        let said =
            "no user ID from 60000 to 65533 is left to the gateway: let the pod's containers name fewer";
        Refusal::forbidden(vec![said.to_owned()])
    })?;
    Ok(injector::Circumstances { settings: circumstances.settings, namespace, uid })
}

fn patched(
    mut answer: AdmissionResponse,
    injected: injector::Injected,
) -> Result<AdmissionResponse, Refusal> {
    answer.warnings = Some(injected.warnings).filter(|warnings| !warnings.is_empty());
    if injected.patch.is_empty() {
        return Ok(answer);
    }
    // Writing a patch as JSON cannot fail; were it to, the pod may not start without it.
    answer.with_patch(injected.patch).map_err(|error| Refusal::invalid(error.to_string()))
}

/// Every user and group ID that the pod names.
fn taken(pod: &Pod) -> Taken {
    let mut taken = Taken::new();
    let Some(spec) = &pod.spec else { return taken };
    if let Some(context) = &spec.security_context {
        taken.extend([context.run_as_user, context.run_as_group, context.fs_group].into_iter().flatten());
        taken.extend(context.supplemental_groups.iter().flatten());
    }
    let of = |container: &Container| container.security_context.clone();
    let ephemeral = |container: &EphemeralContainer| container.security_context.clone();
    let contexts = spec.containers.iter().chain(spec.init_containers.iter().flatten()).filter_map(of);
    let all = contexts.chain(spec.ephemeral_containers.iter().flatten().filter_map(ephemeral));
    taken.extend(all.flat_map(|context: SecurityContext| {
        [context.run_as_user, context.run_as_group].into_iter().flatten()
    }));
    taken
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::review::{self, Question};
    use super::super::testing::{judged, review, settings};
    use super::*;

    fn asked(question: Question, review: &Value) -> AdmissionResponse {
        judged(question, review)
    }

    #[test]
    fn what_cannot_be_changed_is_not_mutated() {
        for (operation, subresource) in
            [("UPDATE", None), ("DELETE", None), ("CONNECT", Some("exec")), ("UPDATE", Some("status"))]
        {
            let mut made = review("Pod", operation);
            made["request"]["subResource"] = json!(subresource);
            let answer = asked(Question::MutatePod, &made);
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
            assert!(asked(Question::ValidatePod, &made).allowed, "{operation} {subresource:?}");
        }
    }

    #[test]
    fn what_is_no_pod_is_refused_in_words_that_repeat_nothing_of_it() {
        let mut made = review("Pod", "CREATE");
        made["request"]["object"]["spec"] = json!({"containers": "hunter2"});
        for question in [Question::MutatePod, Question::ValidatePod] {
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
        assert!(asked(Question::MutatePod, &made).result.message.contains("no object to judge"));
    }

    #[test]
    fn a_pod_of_more_containers_than_anybody_runs_is_refused_before_it_is_read() {
        let mut made = review("Pod", "CREATE");
        made["request"]["object"]["spec"] = json!({"containers": vec![json!({}); MAX_ITEMS + 1]});
        let said = asked(Question::MutatePod, &made).result.message;
        assert!(said.contains("spec.containers has 1001 items: use at most 1000"), "{said}");
    }

    #[test]
    fn a_request_without_a_namespace_is_refused() {
        let mut made = review("Pod", "CREATE");
        made["request"].as_object_mut().unwrap().remove("namespace");
        let said = asked(Question::ValidatePod, &made).result.message;
        assert!(said.contains("names no namespace"), "{said}");
    }

    #[test]
    fn the_gateway_gets_none_of_the_ids_that_the_pod_names() {
        let mut made = review("Pod", "CREATE");
        made["request"]["object"]["spec"] = json!({
            "securityContext": {"runAsUser": 1, "runAsGroup": 2, "fsGroup": 3, "supplementalGroups": [4, 5]},
            "containers": [{"name": "a", "securityContext": {"runAsUser": 6}}],
            "initContainers": [{"name": "b", "securityContext": {"runAsUser": 7, "runAsGroup": 8}}],
            "ephemeralContainers": [{"name": "c", "securityContext": {"runAsUser": 9}}],
        });
        let seen = std::cell::RefCell::new(Taken::new());
        let draw = |taken: &Taken| {
            seen.borrow_mut().extend(taken);
            None
        };
        let request = review::read(made.to_string().as_bytes()).unwrap();
        let settings = settings();
        let answer = mutate(request, Circumstances { settings: &settings, draw: &draw });
        assert_eq!(seen.into_inner(), (1..=9).collect());
        assert!(answer.result.message.contains("is left to the gateway"), "{}", answer.result.message);
    }
}
