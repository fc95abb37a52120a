//! Reviews and settings for the tests of this module.

use std::convert::Infallible;
use std::future::{Pending, Ready, pending, ready};
use std::task::{Context, Poll};

use futures_util::future::Either;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use kube::core::admission::AdmissionResponse;
use serde_json::{Value, json};
use tower_service::Service;

use super::review::{self, AdmissionQuestion, ReviewFacts};
use crate::operator::injector::Annotations;
use crate::operator::settings::Settings;
use crate::pod;

/// A review of the object `agents/agent`, the object being empty but for its name.
pub(super) fn review(kind: &str, operation: &str) -> Value {
    let kind_of = json!({"group": "", "version": "v1", "kind": kind});
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": kind_of,
            "resource": {"group": "", "version": "v1", "resource": "objects"},
            "name": "agent",
            "namespace": "agents",
            "operation": operation,
            "userInfo": {"username": "someone"},
            "object": {"apiVersion": "v1", "kind": kind, "metadata": {"name": "agent", "namespace": "agents"}},
            "dryRun": false,
        },
    })
}

/// The answer to a review.
pub(super) fn judged(question: AdmissionQuestion, made: &Value) -> AdmissionResponse {
    let settings = settings();
    let request = review::read(made.to_string().as_bytes()).unwrap();
    let annotations = &Annotations::new();
    review::answer(question, request, ReviewFacts { settings: &settings, annotations, random: 7 })
}

/// An API server with the namespace `agents`, which chooses a level of the log, and with none that is called otherwise;
/// of `unreadable` it says nothing, and of `slow` it never answers.
pub(super) fn api() -> Client {
    Client::new(ScriptedApi, "default")
}

#[derive(Clone)]
struct ScriptedApi;

impl Service<Request<Body>> for ScriptedApi {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future =
        Either<Ready<Result<Response<Body>, Infallible>>, Pending<Result<Response<Body>, Infallible>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (status, answer) = match request.uri().path() {
            "/api/v1/namespaces/agents" => {
                let metadata = json!({"name": "agents", "annotations": {pod::LOG_LEVEL: "debug"}});
                let types = ["PartialObjectMetadata", "meta.k8s.io/v1"];
                (200, json!({"kind": types[0], "apiVersion": types[1], "metadata": metadata}))
            }
            "/api/v1/namespaces/slow" => return Either::Right(pending()),
            "/api/v1/namespaces/unreadable" => (500, failure(500, "InternalError")),
            _ => (404, failure(404, "NotFound")),
        };
        let body = Body::from(answer.to_string().into_bytes());
        Either::Left(ready(Ok(Response::builder().status(status).body(body).unwrap())))
    }
}

fn failure(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "by the test", "reason": reason, "code": code})
}

/// Settings as the chart writes them, with the shortest drain.
pub(super) fn settings() -> Settings {
    serde_json::from_value(json!({
        "namespace": "postern-system",
        "serviceAccount": "postern-operator",
        "gateway": {"image": "gateway:test", "settings": "policy: {path: /etc/postern/policy}"},
    }))
    .unwrap()
}
