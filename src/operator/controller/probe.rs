//! Asks gateways at the admin port of their pods which revision they enforce.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::{Request, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::fleet::{Consequence, GatewayAnswer, PodSight, PodState};
use super::guarded::Guarded;
use super::{Controller, every};
use crate::operator::objects::{delete_pod, reason};

/// The port of the gateways' admin server.
const ADMIN_PORT: u16 = 15090;
/// How long an answer may take, connecting to it included.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest metrics text that is read.
const BYTES: usize = 1 << 20;
/// How many pods are asked at once, in one namespace and in all.
const OF_A_NAMESPACE: usize = 16;
const AT_ONCE: usize = 1024;
/// How often the pods that are due are determined.
const TICK: Duration = Duration::from_secs(1);

impl Controller {
    /// Asks pods, forever. Pods that do not answer hold up no others: rounds overlap, and each namespace has a limited
    /// number of places.
    pub(super) async fn watch_fleet(&self) {
        let mut tick = every(TICK);
        let (mut asking, mut places) = (FuturesUnordered::new(), ProbeSlots::default());
        loop {
            tokio::select! {
                _ = tick.tick() => {
                    for (pod, wanted, address) in self.due(Instant::now()) {
                        if places.take(&pod) {
                            asking.push(self.ask_one(pod, wanted, address));
                        }
                    }
                    self.count();
                }
                Some(pod) = asking.next(), if !asking.is_empty() => places.leave(&pod),
            }
        }
    }

    async fn ask_one(&self, pod: Arc<Guarded>, wanted: String, address: IpAddr) -> Arc<Guarded> {
        let answer = ask(SocketAddr::new(address, ADMIN_PORT), PATIENCE).await;
        self.learn(&pod, &wanted, answer, Instant::now()).await;
        pod
    }

    /// The pods to ask now, with the revision that each should enforce and its address. The pod that was asked longest
    /// ago comes first: places are few, and pods that do not answer hold them longest.
    fn due(&self, now: Instant) -> Vec<(Arc<Guarded>, String, IpAddr)> {
        let reports = self.reports.all();
        let pods = self.watched.pods();
        let mut fleet = self.fleet();
        let there: HashSet<&str> = pods.iter().map(|pod| pod.uid.as_str()).collect();
        fleet.retain(|uid, _| there.contains(uid.as_str()));
        let mut due = Vec::new();
        for pod in pods.iter().filter(|pod| pod.running && !pod.leaving) {
            let (Some(report), Some(address)) = (reports.get(&pod.namespace), pod.address) else { continue };
            let sight = fleet.entry(pod.uid.clone()).or_insert_with(PodSight::new);
            if sight.is_due(&report.revision, now) {
                due.push((sight.asked(), (Arc::clone(pod), report.revision.clone(), address)));
            }
        }
        due.sort_by_key(|(asked, _)| *asked);
        due.into_iter().map(|(_, pod)| pod).collect()
    }

    fn fleet(&self) -> MutexGuard<'_, HashMap<String, PodSight>> {
        self.fleet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the answer of a pod, and acts on it.
    pub(super) async fn learn(
        &self,
        pod: &Guarded,
        wanted: &str,
        answer: Option<GatewayAnswer>,
        now: Instant,
    ) {
        let report = self.reports.of(&pod.namespace);
        let older = report.as_ref().and_then(|report| report.older_revision.as_deref());
        let (consequence, reported) = {
            let mut fleet = self.fleet();
            let sight = fleet.entry(pod.uid.clone()).or_insert_with(PodSight::new);
            let before = sight.state(wanted, older);
            let consequence = sight.learn(wanted, answer, now);
            if sight.state(wanted, older) != before || consequence.is_some() {
                self.outdated();
            }
            (consequence, sight.revision().map(str::to_owned))
        };
        match consequence {
            None => {}
            Some(Consequence::Drift) => {
                let says = reported.map_or_else(
                    || format!("its gateway does not answer on port {ADMIN_PORT}"),
                    |revision| format!("its gateway says {revision}"),
                );
                let note =
                    format!("The pod does not enforce policy revision {wanted} after two minutes: {says}");
                tracing::warn!(namespace = pod.namespace, pod = pod.name, note, "drift");
                self.warn(&pod.reference(), "PolicyDrift", "Enforce", note).await;
            }
            Some(Consequence::Delete) => self.delete(pod).await,
        }
    }

    /// Deletes a pod whose agent may be talking past its gateway: making it unready would not stop the agent.
    async fn delete(&self, pod: &Guarded) {
        let (namespace, name) = (pod.namespace.as_str(), pod.name.as_str());
        let note = "The gateway cannot prove that the pod's traffic passes through it: the pod is deleted"
            .to_owned();
        tracing::error!(namespace, name, "a pod's interception stays unproven: deleting it");
        self.warn(&pod.reference(), "InterceptionUnproven", "Delete", note).await;
        match delete_pod(&self.client, namespace, name, &pod.uid).await {
            Ok(true) => self.metrics.deleted(),
            Ok(false) => {}
            Err(error) => {
                tracing::error!(namespace, name, error = reason(&error), "a pod could not be deleted")
            }
        }
    }

    /// All pods, and the state of each.
    pub(super) fn sights(&self) -> Vec<Sighted> {
        let reports = self.reports.all();
        let fleet = self.fleet();
        let pods = self.watched.pods().into_iter().map(|pod| {
            let sight = reports.get(&pod.namespace).zip(fleet.get(&pod.uid));
            let known = sight.map(|(report, sight)| {
                (sight.state(&report.revision, report.older_revision.as_deref()), sight.drifts())
            });
            (pod, known)
        });
        pods.collect()
    }

    /// Whether every pod that can be asked was asked.
    pub(super) fn is_fleet_asked(&self) -> bool {
        let fleet = self.fleet();
        let pods = self.watched.pods();
        let mut askable = pods.iter().filter(|pod| pod.running && !pod.leaving && pod.address.is_some());
        askable.all(|pod| fleet.get(&pod.uid).is_some_and(|sight| sight.asked().is_some()))
    }

    fn count(&self) {
        let sights = self.sights();
        for state in PodState::ALL {
            let pods = sights.iter().filter(|(_, known)| known.is_some_and(|(its, _)| its == state));
            self.metrics.pods(state.word(), pods.count());
        }
        self.metrics.namespaces(self.reports.all().len());
    }
}

/// A pod, its state, and whether it has been without the revision for too long; no state if it was never asked.
pub(super) type Sighted = (Arc<Guarded>, Option<(PodState, bool)>);

/// The pods that are being asked, by namespace.
#[derive(Debug, Default)]
struct ProbeSlots {
    taken: HashMap<String, HashSet<String>>,
    count: usize,
}

impl ProbeSlots {
    /// Takes a place for a pod; false if it already has one, or none is left.
    fn take(&mut self, pod: &Guarded) -> bool {
        if self.count >= AT_ONCE {
            return false;
        }
        let taken = self.taken.entry(pod.namespace.clone()).or_default();
        let took = taken.len() < OF_A_NAMESPACE && taken.insert(pod.uid.clone());
        self.count += usize::from(took);
        took
    }

    fn leave(&mut self, pod: &Guarded) {
        let Some(taken) = self.taken.get_mut(&pod.namespace) else { return };
        self.count -= usize::from(taken.remove(&pod.uid));
        if taken.is_empty() {
            self.taken.remove(&pod.namespace);
        }
    }
}

/// Reads a gateway's metrics; none if it does not answer in time and within bounds.
async fn ask(address: SocketAddr, patience: Duration) -> Option<GatewayAnswer> {
    timeout(patience, exposition(address)).await.ok().flatten().map(|text| read(&text))
}

async fn exposition(address: SocketAddr) -> Option<String> {
    let stream = TcpStream::connect(address).await.ok()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    let request = Request::get("/metrics")
        .header(header::HOST, address.to_string())
        .header(header::CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .ok()?;
    let answer = async {
        let response = sender.send_request(request).await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let body = Limited::new(response.into_body(), BYTES).collect().await.ok()?;
        String::from_utf8(body.to_bytes().to_vec()).ok()
    };
    // The connection may end before the answer is read: it must not end the select.
    let driven = async {
        let _ = connection.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        answer = answer => answer,
        () = driven => None,
    }
}

/// Finds the metrics of interest in a gateway's exposition.
fn read(text: &str) -> GatewayAnswer {
    let mut answer = GatewayAnswer::default();
    for line in text.lines() {
        if let Some(labels) = line.strip_prefix("postern_policy_info{") {
            let in_force = !labels.ends_with(" 0");
            let value = labels.split_once("revision=\"").and_then(|(_, rest)| rest.split_once('"'));
            if let Some((revision, _)) = value.filter(|_| in_force) {
                answer.revision = Some(revision.to_owned());
            }
        } else if let Some(value) = line.strip_prefix("postern_interception_proven ") {
            answer.proven = Some(value.trim() != "0");
        } else if let Some(value) = line.strip_prefix("postern_policy_unknown ") {
            answer.unknown = value.trim() != "0";
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::compile::Labels;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Asks a server that answers with these bytes.
    async fn asked(answer: Vec<u8>) -> Option<GatewayAnswer> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 1024]).await;
            // Who has heard enough hangs up.
            let _ = stream.write_all(&answer).await;
        };
        tokio::join!(ask(address, PATIENCE), serve).0
    }

    fn response(body: &str) -> Vec<u8> {
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    #[tokio::test]
    async fn a_gateway_says_what_it_enforces() {
        let text = "# HELP x\npostern_policy_info{revision=\"sha256:aa\"} 1\npostern_interception_proven 1\n";
        let answer = asked(response(text)).await;
        let revision = Some("sha256:aa".to_owned());
        assert_eq!(answer, Some(GatewayAnswer { revision, proven: Some(true), unknown: false }));
        let answer = asked(response("postern_interception_proven 0\npostern_policy_unknown 1\n")).await;
        assert_eq!(answer, Some(GatewayAnswer { revision: None, proven: Some(false), unknown: true }));
    }

    #[tokio::test]
    async fn an_answer_without_end_or_of_another_kind_is_no_answer() {
        assert_eq!(asked(response(&"x".repeat(BYTES + 1))).await, None);
        assert_eq!(asked(b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n".to_vec()).await, None);
        assert_eq!(asked(b"220 mail.example ESMTP\r\n".to_vec()).await, None);
    }

    #[tokio::test]
    async fn who_does_not_answer_is_not_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        assert_eq!(ask(listener.local_addr().unwrap(), Duration::from_millis(10)).await, None);
    }

    fn pod(namespace: &str, uid: usize) -> Guarded {
        Guarded {
            namespace: namespace.to_owned(),
            name: String::new(),
            uid: format!("{namespace}-{uid}"),
            labels: Labels::new(),
            policy_stamp: None,
            secrets_stamp: None,
            settings_stamp: None,
            gateway: None,
            address: None,
            running: true,
            ended: false,
            leaving: false,
        }
    }

    #[test]
    fn one_namespace_does_not_take_the_places_of_another() {
        let mut places = ProbeSlots::default();
        let took = (0..1_000).filter(|number| places.take(&pod("crowded", *number))).count();
        assert_eq!(took, OF_A_NAMESPACE);
        assert!(places.take(&pod("other", 0)));
        assert!(!places.take(&pod("other", 0)), "it is being asked");
        places.leave(&pod("crowded", 0));
        assert!(places.take(&pod("crowded", 999)));
    }
}
