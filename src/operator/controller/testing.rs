//! A scripted API server that answers from memory, and short ways to say what is in a cluster.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use http::{Method, Request, Response};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Client;
use kube::api::DynamicObject;
use kube::client::Body;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;
use serde_json::{Value, json};
use tower_service::Service;

use super::candidate::PolicyCandidate;
use super::guarded::Guarded;
use super::metrics::OperatorMetrics;
use super::policies::Readings;
use super::watch::{Writers, stores};
use super::{Controller, report};
use crate::operator::settings::Settings;
use crate::policy::compile::Labels;
use crate::policy::document::Kind;

/// A policy of the namespace `agents` with this spec (YAML at two spaces).
pub(super) fn policy(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: {name}, namespace: agents}}\nspec:\n  {spec}\n"
    )
}

/// The same for the cluster.
pub(super) fn cluster_policy(name: &str, spec: &str) -> String {
    policy(name, spec)
        .replace("kind: EgressPolicy", "kind: ClusterEgressPolicy")
        .replace(", namespace: agents", "")
}

/// The object of a policy, as the API server has it.
pub(super) fn object(text: &str) -> DynamicObject {
    let value: Value = serde_yaml::from_str(text).unwrap();
    let mut object: DynamicObject = serde_json::from_value(value).unwrap();
    object.metadata.uid = object.metadata.name.clone().map(|name| format!("uid-{name}"));
    object.metadata.generation = Some(1);
    object
}

/// A policy as the controller has read it.
pub(super) fn candidate(text: &str) -> PolicyCandidate {
    Readings::default().read(kind(text), &object(text)).candidate.clone()
}

fn kind(text: &str) -> Kind {
    if text.contains("kind: ClusterEgressPolicy") { Kind::ClusterEgressPolicy } else { Kind::EgressPolicy }
}

pub(super) fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// A cluster, and the controller of it.
pub(super) struct Cluster {
    pub(super) server: FakeApiServer,
    pub(super) controller: Controller,
    writers: Writers,
}

impl Cluster {
    /// One with the namespace `agents`, which is labelled for injection, and a root that was read.
    pub(super) async fn new() -> Self {
        let server = FakeApiServer::default();
        let text = "namespace: postern-system\nserviceAccount: postern-operator\ngateway: {image: gateway, settings: \"a: b\"}\ncredentials: {sourceNamespaces: [keys]}";
        let settings: Settings = serde_yaml::from_str(text).unwrap();
        let (watched, writers) = stores();
        let client = Client::new(server.clone(), "default");
        let controller =
            Controller::new(client, Arc::new(settings), Arc::new(OperatorMetrics::new().unwrap()), watched);
        let mut cluster = Self { server, controller, writers };
        cluster.listed();
        cluster.namespace("agents", &[("postern.dev/injection", "enabled")]);
        cluster.controller.look_at_root(std::time::SystemTime::now()).await.unwrap();
        cluster.server.forget();
        cluster
    }

    /// The operator was upgraded, and gives gateways these settings.
    pub(super) fn gateway_settings(&mut self, settings: &str) {
        let all = Arc::make_mut(&mut self.controller.settings);
        settings.clone_into(&mut all.gateway.settings);
    }

    /// Everything that is watched is listed, and there is nothing yet.
    fn listed(&mut self) {
        let Writers { policies, cluster_policies, namespaces, pods, others, .. } = &mut self.writers;
        others.apply_watcher_event(&Event::InitDone);
        policies.apply_watcher_event(&Event::InitDone);
        cluster_policies.apply_watcher_event(&Event::InitDone);
        namespaces.apply_watcher_event(&Event::InitDone);
        pods.apply_watcher_event(&Event::InitDone);
    }

    pub(super) fn namespace(&mut self, name: &str, pairs: &[(&str, &str)]) {
        let value =
            json!({ "metadata": { "name": name, "labels": labels(pairs), "uid": format!("uid-{name}") } });
        let namespace: PartialObjectMeta<Namespace> = serde_json::from_value(value).unwrap();
        self.writers.namespaces.apply_watcher_event(&Event::Apply(namespace));
    }

    /// Applies a policy; another one of the same name is its next generation.
    pub(super) fn policy(&mut self, text: &str) {
        let mut object = object(text);
        let path = path(&object);
        let before = self.server.object(&path).and_then(|value| value["metadata"]["generation"].as_i64());
        object.metadata.generation = Some(before.unwrap_or_default() + 1);
        self.server.put(&path, serde_json::to_value(&object).unwrap());
        self.seen(kind(text), object);
    }

    /// What the watch of a kind sees.
    pub(super) fn seen(&mut self, kind: Kind, object: DynamicObject) {
        let writer = match kind {
            Kind::EgressPolicy => &mut self.writers.policies,
            Kind::ClusterEgressPolicy => &mut self.writers.cluster_policies,
        };
        writer.apply_watcher_event(&Event::Apply(object));
    }

    /// An injected pod of `agents` that runs.
    pub(super) fn pod(&mut self, name: &str, pairs: &[(&str, &str)]) {
        let value = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "name": name, "namespace": "agents", "labels": labels(pairs), "uid": format!("uid-{name}") },
            "spec": {
                "containers": [],
                "initContainers": [{ "name": "postern-redirect" }, { "name": "postern-gateway" }],
            },
            "status": { "phase": "Running", "podIP": "192.0.2.7" },
        });
        self.labelled_pod(value);
    }

    /// A pod of `agents` that is labelled as injected, as it stands.
    pub(super) fn labelled_pod(&mut self, value: Value) {
        let pod: Pod = serde_json::from_value(value.clone()).unwrap();
        let name = pod.metadata.name.clone().unwrap();
        self.server.put(&format!("/api/v1/namespaces/agents/pods/{name}"), value);
        self.writers.pods.apply_watcher_event(&Event::Apply(Guarded::of(&pod)));
    }

    /// A pod without a gateway, its metadata beside its name and UID being these.
    pub(super) fn bare_pod(&mut self, namespace: &str, name: &str, more: &Value) {
        let mut value = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "name": name, "namespace": namespace, "uid": format!("uid-{name}") },
            "spec": { "containers": [] },
        });
        json_patch::merge(&mut value["metadata"], more);
        self.server.put(&format!("/api/v1/namespaces/{namespace}/pods/{name}"), value.clone());
        let pod: PartialObjectMeta<Pod> = serde_json::from_value(value).unwrap();
        self.writers.others.apply_watcher_event(&Event::Apply(pod));
    }

    /// The pod without a gateway has ended, or is gone.
    pub(super) fn bare_pod_ends(&mut self, namespace: &str, name: &str) {
        let value = json!({ "metadata": { "name": name, "namespace": namespace } });
        let pod: PartialObjectMeta<Pod> = serde_json::from_value(value).unwrap();
        self.writers.others.apply_watcher_event(&Event::Delete(pod));
    }

    /// The watch sees the pod in another phase.
    pub(super) fn pod_is(&mut self, name: &str, phase: &str) {
        let path = format!("/api/v1/namespaces/agents/pods/{name}");
        let mut value = self.server.object(&path).unwrap();
        value["status"]["phase"] = phase.into();
        self.server.put(&path, value);
        self.pod_seen(name);
    }

    /// The watch sees the pod as the API server has it.
    pub(super) fn pod_seen(&mut self, name: &str) {
        let value = self.server.object(&format!("/api/v1/namespaces/agents/pods/{name}")).unwrap();
        let pod: Pod = serde_json::from_value(value).unwrap();
        self.writers.pods.apply_watcher_event(&Event::Apply(Guarded::of(&pod)));
    }

    /// The pod as the watch has it.
    pub(super) fn guarded(&self, name: &str) -> Arc<Guarded> {
        self.controller.watched.pods().into_iter().find(|pod| pod.name == name).unwrap()
    }

    /// Creates or changes a Secret.
    pub(super) fn secret(&mut self, namespace: &str, name: &str, data: &[(&str, &str)]) {
        let data: BTreeMap<String, Vec<u8>> =
            data.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect();
        let secret = crate::operator::objects::secret(namespace, name, &data);
        let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
        self.server.put(&path, serde_json::to_value(secret).unwrap());
    }

    /// One turn of `agents` that goes well.
    pub(super) async fn turn(&self) {
        self.controller.reconcile("agents", std::time::SystemTime::now()).await.unwrap();
    }

    pub(super) fn report(&self) -> Arc<report::NamespaceReport> {
        self.controller.reports.all()["agents"].clone()
    }

    /// The data of the ConfigMap of `agents`.
    pub(super) fn published(&self) -> Value {
        self.server.object(POLICY).unwrap()["data"].clone()
    }

    /// A condition of a policy's status in the API server: its status, reason and message.
    pub(super) fn condition(&self, path: &str, type_: &str) -> (String, String, String) {
        let object = self.server.object(path).unwrap();
        let conditions = object["status"]["conditions"].as_array().unwrap().clone();
        let one = conditions.into_iter().find(|one| one["type"] == type_).unwrap();
        let text = |field: &str| one[field].as_str().unwrap().to_owned();
        (text("status"), text("reason"), text("message"))
    }
}

pub(super) const POLICY: &str = "/api/v1/namespaces/agents/configmaps/postern-policy";
pub(super) const CA: &str = "/api/v1/namespaces/agents/secrets/postern-ca";
pub(super) const CREDENTIALS: &str = "/api/v1/namespaces/agents/secrets/postern-credentials";

/// Where a policy of `agents` is.
pub(super) fn place(name: &str) -> String {
    format!("/apis/postern.dev/v1alpha1/namespaces/agents/egresspolicies/{name}")
}

fn path(object: &DynamicObject) -> String {
    let name = object.metadata.name.clone().unwrap();
    match object.metadata.namespace {
        Some(_) => place(&name),
        None => format!("/apis/postern.dev/v1alpha1/clusteregresspolicies/{name}"),
    }
}

/// The API server: objects by their paths, and what was asked.
#[derive(Debug, Clone, Default)]
pub(super) struct FakeApiServer(Arc<Mutex<FakeState>>);

#[derive(Debug, Default)]
struct FakeState {
    objects: BTreeMap<String, Value>,
    version: u64,
    asked: Vec<String>,
    refused: Vec<(String, u16)>,
    /// What somebody else writes just before something is asked: the line, the path, the object.
    meanwhile: Vec<(String, String, Value)>,
}

impl FakeApiServer {
    pub(super) fn object(&self, path: &str) -> Option<Value> {
        self.lock().objects.get(path).cloned()
    }

    pub(super) fn put(&self, path: &str, object: Value) {
        self.lock().put(path, object);
    }

    pub(super) fn remove(&self, path: &str) {
        self.lock().objects.remove(path);
    }

    /// Refuses what begins so (`PATCH /api/…`) with this status.
    pub(super) fn refuse(&self, begins: &str, status: u16) {
        self.lock().refused.push((begins.to_owned(), status));
    }

    /// Somebody else creates the object just before this (`POST /api/…`) is asked.
    pub(super) fn before(&self, line: &str, path: &str, object: Value) {
        self.lock().meanwhile.push((line.to_owned(), path.to_owned(), object));
    }

    /// What was asked since it was forgotten, as `GET /path`.
    pub(super) fn asked(&self) -> Vec<String> {
        self.lock().asked.clone()
    }

    /// What was written, as `PATCH /path`; Events are left out.
    pub(super) fn writes(&self) -> Vec<String> {
        let asked = self.asked().into_iter();
        asked.filter(|it| !it.starts_with("GET ") && !it.contains("/events")).collect()
    }

    /// The notes of the Events.
    pub(super) fn events(&self) -> Vec<String> {
        let state = self.lock();
        let events = state.objects.iter().filter(|(path, _)| path.contains("/events/"));
        events.map(|(_, event)| event["note"].as_str().unwrap().to_owned()).collect()
    }

    pub(super) fn forget(&self) {
        self.lock().asked.clear();
    }

    fn lock(&self) -> MutexGuard<'_, FakeState> {
        self.0.lock().unwrap()
    }
}

impl FakeState {
    fn put(&mut self, path: &str, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(path.to_owned(), object);
    }

    fn answer(&mut self, method: &Method, path: &str, apply: bool, body: &Value) -> (u16, Value) {
        let line = format!("{method} {path}");
        self.asked.push(line.clone());
        let (now, later) =
            std::mem::take(&mut self.meanwhile).into_iter().partition(|(at, _, _)| *at == line);
        self.meanwhile = later;
        let now: Vec<(String, String, Value)> = now;
        now.into_iter().for_each(|(_, path, object)| self.put(&path, object));
        if let Some((_, status)) = self.refused.iter().find(|(begins, _)| line.starts_with(begins)) {
            return (*status, failure(*status, "refused by the test"));
        }
        let whole = path.strip_suffix("/status").unwrap_or(path);
        let known = self.objects.get(whole).cloned();
        match method.as_str() {
            "GET" if known.is_none() && self.is_collection(path) => (200, self.list(path)),
            "GET" => known.map_or_else(|| (404, failure(404, "not found")), |object| (200, object)),
            "POST" => {
                let name = body["metadata"]["name"].as_str().unwrap();
                let path = format!("{path}/{name}");
                if self.objects.contains_key(&path) {
                    return (409, failure(409, "already exists"));
                }
                self.put(&path, body.clone());
                (201, self.objects[&path].clone())
            }
            "PUT" | "PATCH" => {
                let mut object = match known {
                    Some(object) => object,
                    None if apply && whole == path => json!({}),
                    None => return (404, failure(404, "not found")),
                };
                if apply {
                    replace(&mut object, body);
                } else {
                    json_patch::merge(&mut object, body);
                }
                self.put(whole, object);
                (200, self.objects[whole].clone())
            }
            _ => {
                self.objects.remove(path);
                (200, json!({ "kind": "Status", "apiVersion": "v1", "status": "Success" }))
            }
        }
    }

    fn is_collection(&self, path: &str) -> bool {
        ["egresspolicies", "clusteregresspolicies"].iter().any(|plural| path.ends_with(plural))
    }

    fn list(&self, path: &str) -> Value {
        let plural = path.rsplit('/').next().unwrap();
        let within = |it: &&String| it.split('/').any(|part| part == plural);
        let paths: Vec<&String> = self.objects.keys().filter(within).collect();
        let items: Vec<&Value> = paths.into_iter().map(|path| &self.objects[path]).collect();
        json!({ "kind": "List", "apiVersion": "v1", "metadata": {}, "items": items })
    }
}

/// What server-side apply does where one applies everything: fields that are left out are gone.
fn replace(object: &mut Value, applied: &Value) {
    let uid = object["metadata"]["uid"].clone();
    for (field, value) in applied.as_object().unwrap() {
        if field == "metadata" {
            json_patch::merge(&mut object["metadata"], value);
        } else {
            object[field] = value.clone();
        }
    }
    if !uid.is_null() {
        object["metadata"]["uid"] = uid;
    }
}

fn failure(status: u16, message: &str) -> Value {
    let reason = match status {
        403 => "Forbidden",
        404 => "NotFound",
        409 => "AlreadyExists",
        _ => "InternalError",
    };
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason, "code": status })
}

impl Service<Request<Body>> for FakeApiServer {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let apply = head
                .headers
                .get("content-type")
                .is_some_and(|it| it.as_bytes().starts_with(b"application/apply"));
            let (status, answer) = server.lock().answer(&head.method, head.uri.path(), apply, &body);
            let answer = Body::from(serde_json::to_vec(&answer).unwrap());
            Ok(Response::builder().status(status).body(answer).unwrap())
        })
    }
}
