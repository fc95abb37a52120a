//! Scripted requests over real TLS to a webhook in this process.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Request, Version};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::intake::{Intake, MAX_BYTES};
use super::serve::{AdmissionWebhook, ServerBounds, serve_within};
use super::testing::{api, review, settings};
use crate::capacity;
use crate::drain::Drain;
use crate::operator::controller::metrics::OperatorMetrics;
use crate::tls::serving::{Presented, Serving, issue};

const NAME: &str = "postern-webhook.postern-system.svc";
const PATIENCE: Duration = Duration::from_secs(20);
const PLACES: capacity::ConnectionBounds = capacity::ConnectionBounds { all: 8, of_a_peer: 8 };
const BOUNDS: ServerBounds = ServerBounds { connections: PLACES, handshake: PATIENCE, head: PATIENCE };

/// A webhook that serves on a port of its own.
struct Stage {
    address: SocketAddr,
    ca: CertificateDer<'static>,
    metrics: Arc<OperatorMetrics>,
    drain: Drain,
}

impl Stage {
    async fn new() -> Self {
        Self::with(Intake::new(), BOUNDS).await
    }

    async fn with(intake: Intake, bounds: ServerBounds) -> Self {
        let issued = issue(&[NAME.to_owned()], SystemTime::now(), Duration::from_secs(3_600)).unwrap();
        let presented = Arc::new(Presented::default());
        presented.present(Serving::read(issued.certificate.as_bytes(), issued.key.as_bytes()).unwrap());
        let (metrics, drain) = (Arc::new(OperatorMetrics::new().unwrap()), Drain::default());
        let mut webhook = AdmissionWebhook::new(api(), Arc::new(settings()), Arc::clone(&metrics));
        webhook.intake = intake;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        serve_within(listener, presented, webhook, bounds, &drain).unwrap();
        let ca = CertificateDer::from_pem_slice(issued.ca.as_bytes()).unwrap();
        Self { address, ca, metrics, drain }
    }

    /// What becomes of a new pod of a namespace: the answer's head, and its patch as text.
    async fn made(&self, namespace: &str) -> (String, String) {
        let mut made = review("Pod", "CREATE");
        made["request"]["namespace"] = namespace.into();
        made["request"]["object"]["spec"] = json!({"containers": [{"name": "agent", "image": "agent:test"}]});
        let body = made.to_string();
        let fields = format!("content-length: {}\r\n", body.len());
        let (head, said) = self.ask("POST /pods/mutate", &fields, body.as_bytes()).await;
        let answer: Value = serde_json::from_str(&said).unwrap_or_default();
        let patch: Vec<u8> = serde_json::from_value(answer["response"]["patch"].clone()).unwrap_or_default();
        (head, if patch.is_empty() { said } else { String::from_utf8(patch).unwrap() })
    }

    /// A connection that speaks this protocol, as an API server opens it.
    async fn connected(&self, protocol: &str) -> TlsStream<TcpStream> {
        self.connected_from(1, protocol).await
    }

    /// The same from the address 127.0.0.`last`.
    async fn connected_from(&self, last: u8, protocol: &str) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.ca.clone()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
        let stream = socket.connect(self.address).await.unwrap();
        let name = ServerName::try_from(NAME).unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    }

    /// The head and the body of the answer to one request, after which the connection ends.
    async fn ask(&self, line: &str, fields: &str, body: &[u8]) -> (String, String) {
        let mut stream = self.connected("http/1.1").await;
        let head = format!("{line} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{fields}\r\n");
        // Where the answer came before the end of the body, the rest may be refused.
        let _ = stream.write_all(head.as_bytes()).await;
        let _ = stream.write_all(body).await;
        read(&mut stream).await
    }

    async fn post(&self, path: &str, body: &[u8]) -> (String, String) {
        self.ask(&format!("POST {path}"), &format!("content-length: {}\r\n", body.len()), body).await
    }
}

async fn read(stream: &mut TlsStream<TcpStream>) -> (String, String) {
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("an end in time");
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    (head.to_owned(), body.to_owned())
}

fn asked() -> Vec<u8> {
    review("Pod", "DELETE").to_string().into_bytes()
}

/// What is left of an answer that is an admitting review.
fn admitted(body: &[u8]) {
    let answer: Value = serde_json::from_slice(body).unwrap();
    assert_eq!(
        (&answer["apiVersion"], &answer["kind"]),
        (&"admission.k8s.io/v1".into(), &"AdmissionReview".into())
    );
    assert_eq!(answer["response"]["uid"], review("Pod", "DELETE")["request"]["uid"]);
    assert_eq!(answer["response"]["allowed"], true);
}

#[tokio::test]
async fn a_review_is_answered_over_http_1() {
    let stage = Stage::new().await;
    let (head, body) = stage.post("/pods/mutate", &asked()).await;
    assert!(head.starts_with("HTTP/1.1 200 OK") && head.contains("content-type: application/json"), "{head}");
    admitted(body.as_bytes());
    let told = stage.metrics.encode();
    let line = r#"postern_operator_webhook_requests_total{path="/pods/mutate",verdict="allowed"} 1"#;
    assert!(told.contains(line), "{told}");
}

#[tokio::test]
async fn reviews_are_answered_over_one_connection_of_http_2() {
    let stage = Stage::new().await;
    let stream = stage.connected("h2").await;
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    stage.drain.detach(async move { drop(connection.await) });
    for path in ["/pods/mutate", "/pods/validate", "/pods/users", "/policies/validate"] {
        let request = Request::post(format!("https://{NAME}{path}?timeout=10s"))
            .version(Version::HTTP_2)
            .body(Full::new(Bytes::from(asked())))
            .unwrap();
        let answer = sender.send_request(request).await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        admitted(&answer.into_body().collect().await.unwrap().to_bytes());
    }
}

#[tokio::test]
async fn a_refusal_is_a_review_that_names_postern() {
    let stage = Stage::new().await;
    let mut made = review("Pod", "CREATE");
    made["request"]["object"] = Value::Null;
    let (head, body) = stage.post("/pods/validate", made.to_string().as_bytes()).await;
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["response"]["allowed"], false);
    assert_eq!(answer["response"]["status"]["code"], 422);
    assert!(answer["response"]["status"]["message"].as_str().unwrap().contains("Postern"), "{body}");
}

#[tokio::test]
async fn what_is_no_review_is_refused_in_words() {
    let stage = Stage::new().await;
    for body in [b"".as_slice(), b"{", b"\xff", b"{\"kind\": \"Pod\"}", b"[]", b"null"] {
        let (head, said) = stage.post("/pods/validate", body).await;
        assert!(head.starts_with("HTTP/1.1 400 Bad Request"), "{head}");
        assert!(said.starts_with("Postern: ") && said.contains("AdmissionReview"), "{said}");
    }
    let told = stage.metrics.encode();
    assert!(told.contains(r#"{path="/pods/validate",verdict="failed"} 6"#), "{told}");
}

#[tokio::test]
async fn other_paths_and_methods_are_refused() {
    let stage = Stage::new().await;
    for path in ["/", "/pods", "/pods/mutate/", "/metrics"] {
        assert!(stage.post(path, &asked()).await.0.starts_with("HTTP/1.1 404 "), "{path}");
    }
    for method in ["GET", "PUT", "DELETE", "PATCH"] {
        let (head, _) = stage.ask(&format!("{method} /pods/mutate"), "content-length: 0\r\n", b"").await;
        assert!(head.starts_with("HTTP/1.1 405 ") && head.contains("allow: POST"), "{method}: {head}");
    }
}

#[tokio::test]
async fn a_body_over_the_bound_is_refused_whether_announced_or_not() {
    let stage = Stage::new().await;
    let announced = format!("content-length: {}\r\n", MAX_BYTES + 1);
    let (head, said) = stage.ask("POST /pods/mutate", &announced, b"").await;
    assert!(head.starts_with("HTTP/1.1 413 ") && said.contains("at most 8388608 bytes"), "{head} {said}");

    let mut stream = stage.connected("http/1.1").await;
    let head = "POST /pods/mutate HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
    let (mut reading, mut writing) = tokio::io::split(stream);
    let write = async {
        for _ in 0..9 {
            if writing.write_all(chunk.as_bytes()).await.is_err() {
                return;
            }
        }
        let _ = writing.flush().await;
    };
    let mut first = [0; 12];
    let (_, read) = tokio::join!(write, tokio::time::timeout(PATIENCE, reading.read_exact(&mut first)));
    read.expect("an answer in time").unwrap();
    assert_eq!(&first, b"HTTP/1.1 413");
}

#[tokio::test]
async fn a_body_that_does_not_come_or_for_which_there_is_no_room_is_refused() {
    let slow = Stage::with(Intake::of(1 << 20, Duration::from_millis(50)), BOUNDS).await;
    let (head, _) = slow.ask("POST /pods/mutate", "content-length: 9\r\n", b"{").await;
    assert!(head.starts_with("HTTP/1.1 408 "), "{head}");

    let full = Stage::with(Intake::of(10, PATIENCE), BOUNDS).await;
    let (head, said) = full.post("/pods/mutate", &asked()).await;
    assert!(head.starts_with("HTTP/1.1 503 ") && said.contains("ask again"), "{head} {said}");
    assert!(full.post("/pods/mutate", b"{}").await.0.starts_with("HTTP/1.1 400 "), "the room comes back");
}

#[tokio::test]
async fn who_says_nothing_is_closed() {
    let bounds = ServerBounds { handshake: Duration::from_millis(50), ..BOUNDS };
    let stage = Stage::with(Intake::new(), bounds).await;
    let mut silent = TcpStream::connect(stage.address).await.unwrap();
    let mut said = Vec::new();
    let ended = tokio::time::timeout(PATIENCE, silent.read_to_end(&mut said)).await;
    assert_eq!(ended.expect("an end in time").unwrap_or_default(), 0);

    let bounds = ServerBounds { head: Duration::from_millis(50), ..BOUNDS };
    let stage = Stage::with(Intake::new(), bounds).await;
    let mut half = stage.connected("http/1.1").await;
    half.write_all(b"POST /pods/mu").await.unwrap();
    assert!(!read(&mut half).await.0.contains("200"));
}

/// Begins a question and resolves once it is under way: the server asks for its body.
async fn begin(stream: &mut TlsStream<TcpStream>) {
    let length = asked().len();
    let fields = format!("host: a\r\nexpect: 100-continue\r\ncontent-length: {length}");
    stream.write_all(format!("POST /pods/mutate HTTP/1.1\r\n{fields}\r\n\r\n").as_bytes()).await.unwrap();
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).await.unwrap();
    assert!(interim.starts_with(b"HTTP/1.1 100 Continue"));
}

/// Sends the body, and reads the answer.
async fn end(stream: &mut TlsStream<TcpStream>) {
    stream.write_all(&asked()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    let (_, length) = head.split_once("content-length: ").unwrap();
    let mut body = vec![0; length.lines().next().unwrap().parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    admitted(&body);
}

fn closed(stage: &Stage) -> bool {
    stage.metrics.encode().contains("postern_operator_webhook_connections_closed_total 1")
}

#[tokio::test]
async fn a_peer_that_holds_many_connections_keeps_nobody_out_and_closes_nobody_else_s() {
    let bounds = capacity::ConnectionBounds { all: 4, of_a_peer: 2 };
    let stage = Stage::with(Intake::new(), ServerBounds { connections: bounds, ..BOUNDS }).await;
    let mut api_server = stage.connected_from(2, "http/1.1").await;
    let mut held = Vec::new();
    for _ in 0..10 {
        held.push(stage.connected_from(3, "h2").await);
    }
    begin(&mut api_server).await;
    end(&mut api_server).await;
    let mut another = stage.connected_from(4, "http/1.1").await;
    begin(&mut another).await;
    end(&mut another).await;
    assert_eq!(read(&mut held[0]).await.1, "", "its own ones are closed");
}

#[tokio::test]
async fn where_all_places_are_taken_who_never_asked_makes_room() {
    let bounds = capacity::ConnectionBounds { all: 2, of_a_peer: 2 };
    let stage = Stage::with(Intake::new(), ServerBounds { connections: bounds, ..BOUNDS }).await;
    let mut served = stage.connected_from(2, "http/1.1").await;
    begin(&mut served).await;
    end(&mut served).await;
    let mut idle = stage.connected_from(3, "h2").await;
    let mut newcomer = stage.connected_from(4, "http/1.1").await;
    begin(&mut newcomer).await;
    end(&mut newcomer).await;
    assert!(!read(&mut idle).await.0.contains("HTTP/1.1"), "it is closed");
    assert!(closed(&stage));
    begin(&mut served).await;
    end(&mut served).await;
}

#[tokio::test]
async fn a_question_under_way_is_answered_though_its_connection_asked_before_all_others() {
    let bounds = capacity::ConnectionBounds { all: 2, of_a_peer: 2 };
    let stage = Stage::with(Intake::new(), ServerBounds { connections: bounds, ..BOUNDS }).await;
    let mut asking = stage.connected_from(2, "http/1.1").await;
    begin(&mut asking).await;
    for last in 3..9 {
        let mut newcomer = stage.connected_from(last, "http/1.1").await;
        begin(&mut newcomer).await;
        end(&mut newcomer).await;
    }
    end(&mut asking).await;
}

#[tokio::test]
async fn a_shutdown_answers_what_is_under_way_and_ends_what_is_idle() {
    let stage = Stage::new().await;
    let idle = stage.connected("http/1.1").await;
    let mut asking = stage.connected("http/1.1").await;
    begin(&mut asking).await;
    let finishing = async {
        stage.drain.stopping().await;
        asking.write_all(&asked()).await.unwrap();
        read(&mut asking).await
    };
    let (in_time, (head, body)) = tokio::join!(stage.drain.shut_down(PATIENCE), finishing);
    assert!(in_time, "an idle connection does not hold it up");
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    admitted(body.as_bytes());
    assert!(TcpStream::connect(stage.address).await.is_err());
    drop(idle);
}

#[tokio::test]
async fn a_new_pod_has_what_its_namespace_chose_and_is_not_made_where_that_is_not_known() {
    let stage = Stage::new().await;
    let (head, patch) = stage.made("agents").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(patch.contains("postern.dev/log-level") && patch.contains("debug"), "{patch}");
    let (head, patch) = stage.made("elsewhere").await;
    assert!(head.starts_with("HTTP/1.1 200") && !patch.contains("log-level"), "{head} {patch}");
    let (head, said) = stage.made("unreadable").await;
    assert!(head.starts_with("HTTP/1.1 500"), "{head}");
    assert!(said.contains("the annotations of namespace unreadable cannot be read"), "{said}");
    let (head, _) = stage.made("../secrets").await;
    assert!(head.starts_with("HTTP/1.1 200"), "what is no name is not asked for: {head}");
}

#[tokio::test]
async fn questions_that_wait_for_the_api_server_keep_no_turn_from_others() {
    let stage = Stage::new().await;
    let slow = async {
        let asked = || stage.made("slow");
        tokio::join!(asked(), asked(), asked(), asked());
    };
    let others = async {
        // Of a turn that is taken, all of these would wait.
        for _ in 0..6 {
            let (head, body) = stage.post("/pods/mutate", &asked()).await;
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
            admitted(body.as_bytes());
        }
    };
    tokio::select! {
        biased;
        () = slow => panic!("the others waited for those that wait"),
        () = others => {}
    }
}
