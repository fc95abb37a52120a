//! Answers those who run Postern: health and metrics on a TCP address, a gateway's whole status on a Unix socket.

mod answer;
mod serve;
mod socket;
pub mod status;

use std::sync::Arc;

use http::StatusCode;
use tokio::net::TcpListener;

use crate::drain::Drain;
use answer::{AdminAnswer, text, typed};
use serve::{AdminServer, BOUNDS};

pub(crate) use socket::{BoundSocket, OWNER_ALONE};
pub use socket::{SocketError, serve_socket};
pub use status::GatewayStatus;

/// Describes a running gateway as it is now.
pub trait Inspect: Send + Sync {
    /// The whole status, with nothing secret in it.
    fn status(&self) -> GatewayStatus;

    /// All metrics in Prometheus' text format.
    fn metrics(&self) -> String;
}

/// Describes the health of any process of Postern's as it is now, for probes and scrapes.
pub trait Health: Send + Sync {
    /// Returns why the process is not ready, each reason in one sentence. Whoever reaches the port reads them.
    fn unready(&self) -> Vec<String>;

    /// All metrics in Prometheus' text format.
    fn metrics(&self) -> String;
}

/// A gateway as probes see it.
struct GatewayProbes {
    inspect: Arc<dyn Inspect>,
    drain: Drain,
}

impl Health for GatewayProbes {
    fn unready(&self) -> Vec<String> {
        // The reasons in full hold names, paths and what policies say: they are for the Unix socket.
        let words = status_now(&*self.inspect, &self.drain).unready;
        words.into_iter().map(str::to_owned).collect()
    }

    fn metrics(&self) -> String {
        self.inspect.metrics()
    }
}

/// Serves a gateway's `/healthz`, `/readyz` and `/metrics`; see [`serve_health`].
pub fn serve(listener: TcpListener, inspect: Arc<dyn Inspect>, drain: &Drain) {
    serve_health(listener, Arc::new(GatewayProbes { inspect, drain: drain.clone() }), drain);
}

/// Serves `/healthz`, `/readyz` and `/metrics`, and nothing else, until the drain begins.
///
/// `/healthz` is 200 as long as the process turns; `/readyz` is 200 or 503 with one reason a line.
pub fn serve_health(listener: TcpListener, health: Arc<dyn Health>, drain: &Drain) {
    let answer = move |path: &str| match path {
        "/healthz" => Some(text(StatusCode::OK, "ok\n")),
        "/readyz" => Some(readiness(&health.unready())),
        "/metrics" => Some(typed("text/plain; version=0.0.4; charset=utf-8", health.metrics())),
        _ => None,
    };
    let server = Arc::new(AdminServer::new(answer, BOUNDS, drain.clone()));
    drain.spawn(async move { server.run(&listener).await });
}

/// Returns the status; a gateway that stops is not ready.
fn status_now(inspect: &dyn Inspect, drain: &Drain) -> GatewayStatus {
    let mut status = inspect.status();
    if drain.is_stopping() {
        status.not_ready("the gateway is stopping", None);
    }
    status
}

fn readiness(reasons: &[String]) -> AdminAnswer {
    if reasons.is_empty() {
        return text(StatusCode::OK, "ready\n");
    }
    let lines: String = reasons.iter().map(|reason| one_line(reason)).collect();
    text(StatusCode::SERVICE_UNAVAILABLE, lines)
}

fn one_line(reason: &str) -> String {
    reason.split(['\r', '\n']).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ") + "\n"
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    #[derive(Default)]
    struct Running {
        sick: AtomicBool,
    }

    impl Inspect for Running {
        fn status(&self) -> GatewayStatus {
            let mut status = status::tests::healthy();
            if self.sick.load(Ordering::Relaxed) {
                status.not_ready("the policy is wrong", Some("p.yaml: secret.example\nis no host"));
                status.not_ready("the CA is missing", None);
            }
            status
        }

        fn metrics(&self) -> String {
            "postern_build_info{version=\"0\"} 1\n".to_owned()
        }
    }

    async fn started() -> (SocketAddr, Arc<Running>, Drain) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (gateway, drain) = (Arc::new(Running::default()), Drain::default());
        serve(listener, Arc::clone(&gateway) as Arc<dyn Inspect>, &drain);
        (address, gateway, drain)
    }

    /// The status line and the body of the answer to one request.
    async fn ask(address: SocketAddr, request: &str) -> (String, String) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("{request} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    }

    #[tokio::test]
    async fn health_readiness_and_metrics_are_served() {
        let (address, _, _) = started().await;
        assert_eq!(ask(address, "GET /healthz").await, ("HTTP/1.1 200 OK".into(), "ok\n".into()));
        assert_eq!(ask(address, "GET /readyz").await, ("HTTP/1.1 200 OK".into(), "ready\n".into()));
        assert!(ask(address, "GET /metrics").await.1.starts_with("postern_build_info"));
        assert_eq!(ask(address, "HEAD /metrics").await, ("HTTP/1.1 200 OK".into(), String::new()));
    }

    #[tokio::test]
    async fn a_gateway_that_is_not_ready_says_why_one_reason_a_line() {
        let (address, gateway, _) = started().await;
        gateway.sick.store(true, Ordering::Relaxed);
        let (head, body) = ask(address, "GET /readyz").await;
        assert_eq!(head, "HTTP/1.1 503 Service Unavailable");
        assert_eq!(body, "the policy is wrong\nthe CA is missing\n");
        assert_eq!(ask(address, "GET /healthz").await.0, "HTTP/1.1 200 OK");
    }

    #[tokio::test]
    async fn nothing_else_is_served() {
        let (address, _, _) = started().await;
        for path in ["/", "/status", "/metrics/", "/healthz/x", "//healthz", "/debug/pprof"] {
            let (head, body) = ask(address, &format!("GET {path}")).await;
            assert_eq!(head, "HTTP/1.1 404 Not Found", "{path}");
            assert_eq!(body, "not found\n");
        }
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "PURGE"] {
            let (head, _) = ask(address, &format!("{method} /metrics")).await;
            assert_eq!(head, "HTTP/1.1 405 Method Not Allowed", "{method}");
        }
    }

    #[tokio::test]
    async fn it_ends_when_the_drain_begins() {
        let (address, _, drain) = started().await;
        let idle = TcpStream::connect(address).await.unwrap();
        assert!(
            drain.shut_down(Duration::from_secs(4)).await,
            "an idle client does not hold the shutdown up"
        );
        drop(idle);
        assert!(TcpStream::connect(address).await.is_err());
    }
}
