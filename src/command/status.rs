//! `postern status`: asks the gateway that runs here what it is doing.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::Value;

use super::gateways::{self, FoundGateway, GatewayOrigin};
use crate::admin::GatewayStatus;
use crate::admin::status::ListenerStatus;
use crate::cli::Output;
use crate::command::output;
use crate::config::listeners::STATUS_SOCKET;
use crate::terminal;

/// How long the gateway may take for the whole exchange: another user's may send a byte now and then.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest answer that is read.
const ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// Prints the status of the gateway behind a socket; without one, of the gateway or run that answers on this machine, and
/// a list where several do. The exit status is 0 where all that is shown is ready, and 1 where it is not.
///
/// # Errors
/// No gateway runs there, or it answers something else than a status.
pub(crate) fn run(socket: Option<&Path>, output: Output) -> anyhow::Result<ExitCode> {
    let out = &mut io::stdout().lock();
    if let Some(socket) = socket {
        return show(socket, output, out);
    }
    match gateways::find().as_slice() {
        [] => Err(nobody(Path::new(STATUS_SOCKET))),
        [only] => show(&only.socket, output, out),
        several => list(several, output, out),
    }
}

fn show(socket: &Path, format: Output, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let (status, written) = ask(socket)?;
    out.write_all(output::render(format, &people(&status), &written)?.as_bytes())?;
    Ok(code(status.ready))
}

/// One of several gateways.
#[derive(Serialize)]
struct StatusRow<'a> {
    socket: &'a Path,
    #[serde(flatten)]
    origin: Option<&'a GatewayOrigin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Value>,
    /// Why there is no status.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

fn list(gateways: &[FoundGateway], format: Output, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let mut page = StatusPage(String::new());
    page.line("gateways", &format!("{} answer here; --socket shows one", gateways.len()));
    let (mut rows, mut ready) = (Vec::new(), true);
    for (gateway, asked) in gateways.iter().zip(ask_all(gateways)) {
        let FoundGateway { socket, origin, other_user } = gateway;
        ready &= asked.as_ref().is_ok_and(|(status, _)| status.ready);
        page.line("", &socket.display().to_string());
        page.line("", &format!("  {}", gateway.title()));
        let (status, error) = match asked {
            Ok((status, written)) => {
                page.line("", &format!("  {}", in_short(&status)));
                (Some(written), None)
            }
            Err(error) => {
                page.line("", &format!("  {error:#}"));
                (None, Some(format!("{error:#}")))
            }
        };
        rows.push(StatusRow { socket, origin: origin.as_ref(), user: *other_user, status, error });
    }
    out.write_all(output::render(format, &page.0, &rows)?.as_bytes())?;
    Ok(code(ready))
}

/// Asks all of them at once, so that one that does not answer delays no other.
fn ask_all(gateways: &[FoundGateway]) -> Vec<anyhow::Result<(GatewayStatus, Value)>> {
    std::thread::scope(|scope| {
        let asking: Vec<_> = gateways.iter().map(|gateway| scope.spawn(|| ask(&gateway.socket))).collect();
        let answered = asking.into_iter().map(std::thread::ScopedJoinHandle::join);
        answered.map(|asked| asked.unwrap_or_else(|_| bail!("it could not be asked"))).collect()
    })
}

fn in_short(status: &GatewayStatus) -> String {
    let (up, policy) = (duration(status.uptime_seconds), &status.policy.revision);
    let ready = if status.ready { "ready" } else { "not ready" };
    format!("{ready}, up {up}, policy {policy}, {} connections open", status.connections.open)
}

fn code(ready: bool) -> ExitCode {
    if ready { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The status of a gateway, and the same as it came, so that what a newer gateway adds is shown too.
fn ask(socket: &Path) -> anyhow::Result<(GatewayStatus, Value)> {
    let answer = fetch(socket, PATIENCE)?;
    let body =
        body(&answer).with_context(|| format!("what answers at {} is no gateway", socket.display()))?;
    let unread = "the gateway's status cannot be read";
    Ok((serde_json::from_slice(body).context(unread)?, serde_json::from_slice(body).context(unread)?))
}

/// Makes one exchange in HTTP/1.0, whose answer ends with the connection.
fn fetch(socket: &Path, patience: Duration) -> anyhow::Result<Vec<u8>> {
    let mut stream = gateways::connect(socket).map_err(|error| unreachable_gateway(socket, &error))?;
    exchange(&mut stream, Instant::now() + patience)
        .with_context(|| format!("the gateway at {} does not answer", socket.display()))
}

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("it takes more than {} seconds", PATIENCE.as_secs()))
}

fn exchange(stream: &mut UnixStream, deadline: Instant) -> io::Result<Vec<u8>> {
    let left = || match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(late()),
        left => Ok(Some(left)),
    };
    stream.set_write_timeout(left()?)?;
    stream.write_all(b"GET /status HTTP/1.0\r\n\r\n")?;
    let (mut answer, mut chunk) = (Vec::new(), [0; 16 << 10]);
    while answer.len() < ANSWER_BYTES {
        stream.set_read_timeout(left()?)?;
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => answer.extend_from_slice(chunk.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(late()),
            Err(error) => return Err(error),
        }
    }
    Ok(answer)
}

/// Nobody answers at the usual socket, nor at one of this user's.
fn nobody(usual: &Path) -> anyhow::Error {
    if let Err(error) = gateways::connect(usual)
        && error.kind() != io::ErrorKind::NotFound
    {
        return unreachable_gateway(usual, &error);
    }
    let places: Vec<_> = gateways::directories().iter().map(|place| place.display().to_string()).collect();
    anyhow::anyhow!(
        "no gateway runs here: none answers at {}, and no gateway or run of yours has a directory in {}; start one \
         with `postern run` or `postern gateway`, or name its socket with --socket",
        usual.display(),
        places.join(" or ")
    )
}

fn unreachable_gateway(socket: &Path, error: &io::Error) -> anyhow::Error {
    let remedy = if error.kind() == io::ErrorKind::PermissionDenied {
        "only the user that the gateway runs as may ask it"
    } else if error.kind() == io::ErrorKind::ConnectionRefused {
        let is_socket = fs::metadata(socket).is_ok_and(|metadata| metadata.file_type().is_socket());
        if is_socket { "it has ended and left its socket behind" } else { "that is no socket" }
    } else {
        "start one with `postern gateway`, or name its socket with --socket"
    };
    anyhow::anyhow!("no gateway runs at {} ({error}): {remedy}", socket.display())
}

/// The body of an answer with status 200.
fn body(answer: &[u8]) -> anyhow::Result<&[u8]> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(length) = head.parse(answer)? else {
        bail!("its answer ends in the middle");
    };
    match head.code {
        Some(200) => Ok(answer.get(length..).unwrap_or_default()),
        code => bail!("it answered {}", code.unwrap_or_default()),
    }
}

/// A few lines for people. The settings are left to `-o json` and `-o yaml`.
fn people(status: &GatewayStatus) -> String {
    let mut page = StatusPage(String::new());
    let up = duration(status.uptime_seconds);
    page.line("postern", &format!("{}, up {up}, since {}", status.version, status.started_at));
    page.line("ready", if status.ready { "yes" } else { "no" });
    status.reasons.iter().for_each(|reason| page.line("", reason));

    let interception = &status.interception;
    page.line("interception", &interception.mode);
    page.maybe("CA ", interception.fingerprint.as_deref());
    page.maybe("valid until ", interception.not_after.as_deref());
    page.maybe("", interception.reason.as_deref());
    page.maybe("redirect: ", interception.proof.as_deref());

    let policy = &status.policy;
    page.line("policy", &policy.revision);
    let age = policy.age_seconds.map_or(String::new(), |age| format!(", {} old", duration(age)));
    page.line("", &format!("{:?}{age}, policies that select this pod: {}", policy.state, policy.policies));
    page.maybe("the newest files are not in force: ", policy.last_error.as_deref());

    let connections = &status.connections;
    page.line("connections", &format!("{} open of {}", connections.open, connections.limit));
    if connections.configured > connections.limit {
        let configured = connections.configured;
        page.line("", &format!("limits.connections is {configured}: file descriptors allow no more"));
    }
    page.line("events", &format!("{} written, {} dropped", status.events.written, status.events.dropped));
    for (n, listener) in status.listeners.iter().enumerate() {
        page.line(if n == 0 { "listeners" } else { "" }, &way_in(listener));
    }
    page.0
}

fn way_in(listener: &ListenerStatus) -> String {
    match &listener.upstream {
        Some(upstream) => format!("{} {} for {upstream}", listener.mode, listener.address),
        None => format!("{} {}", listener.mode, listener.address),
    }
}

/// Lines of a word and its description.
struct StatusPage(String);

impl StatusPage {
    /// Texts may quote what a policy's author wrote, so controls do not reach the terminal.
    fn line(&mut self, word: &str, text: &str) {
        let text = terminal::plain(text);
        let _ = writeln!(self.0, "{word:<14}{text}");
    }

    fn maybe(&mut self, before: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.line("", &format!("{before}{text}"));
        }
    }
}

/// The two largest units: `45s`, `2m 3s`, `2h 3m`, `5d 1h`.
fn duration(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, _, _) => format!("{hours}h {}m", minutes % 60),
        _ => format!("{days}d {}h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::admin::status::tests::healthy;
    use crate::admin::{Inspect, serve_socket};
    use crate::drain::Drain;

    struct Fixed(GatewayStatus);

    impl Inspect for Fixed {
        fn status(&self) -> GatewayStatus {
            self.0.clone()
        }

        fn metrics(&self) -> String {
            String::new()
        }
    }

    async fn asked(status: GatewayStatus, output: Output) -> (ExitCode, String) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("postern.sock");
        serve_socket(&path, Arc::new(Fixed(status)), &Drain::default()).unwrap();
        let asking = move || {
            let mut printed = Vec::new();
            let code = show(&path, output, &mut printed).unwrap();
            (code, String::from_utf8(printed).unwrap())
        };
        tokio::task::spawn_blocking(asking).await.unwrap()
    }

    #[tokio::test]
    async fn a_ready_gateway_is_success_and_is_shown_in_every_form() {
        let (code, text) = asked(healthy(), Output::Text).await;
        assert_eq!((code, text), (ExitCode::SUCCESS, people(&healthy())));
        let (code, json) = asked(healthy(), Output::Json).await;
        assert_eq!(code, ExitCode::SUCCESS);
        assert_eq!(serde_json::from_str::<GatewayStatus>(&json).unwrap(), healthy());
        let (code, yaml) = asked(healthy(), Output::Yaml).await;
        assert_eq!(code, ExitCode::SUCCESS);
        assert_eq!(serde_yaml::from_str::<GatewayStatus>(&yaml).unwrap(), healthy());
    }

    #[tokio::test]
    async fn a_gateway_that_is_not_ready_is_failure() {
        let mut status = healthy();
        status.not_ready("the CA is missing", None);
        let (code, text) = asked(status, Output::Text).await;
        assert_eq!(code, ExitCode::FAILURE);
        assert!(text.contains("the CA is missing"), "{text}");
    }

    #[test]
    fn where_no_gateway_runs_the_error_says_what_to_do() {
        let error = run(Some(Path::new("/nowhere/postern.sock")), Output::Text).unwrap_err().to_string();
        assert!(error.starts_with("no gateway runs at /nowhere/postern.sock"), "{error}");
        assert!(error.contains("`postern gateway`"), "{error}");
    }

    #[test]
    fn a_gateway_that_sends_a_byte_now_and_then_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("slow.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let slow = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (_pace, waiting) = std::sync::mpsc::channel::<()>();
            // It ends by itself, so that whoever waits for it has an answer.
            (0..2_000).take_while(|_| stream.write_all(b"x").is_ok()).for_each(|_| {
                let _ = waiting.recv_timeout(Duration::from_millis(5));
            });
        });
        let error = fetch(&path, Duration::from_millis(100)).unwrap_err().to_string();
        assert!(error.ends_with("slow.sock does not answer"), "{error}");
        slow.join().unwrap();
    }

    #[test]
    fn what_is_no_socket_is_told_from_one_that_was_left_behind() {
        let directory = tempfile::tempdir().unwrap();
        let title = |name: &str| {
            let error = run(Some(&directory.path().join(name)), Output::Text).unwrap_err();
            error.to_string()
        };
        fs::write(directory.path().join("file"), "x").unwrap();
        drop(std::os::unix::net::UnixListener::bind(directory.path().join("left.sock")).unwrap());
        assert!(title("file").ends_with(": that is no socket"), "{}", title("file"));
        assert!(title("left.sock").ends_with("left its socket behind"), "{}", title("left.sock"));
    }

    #[test]
    fn something_else_behind_the_socket_is_said() {
        for answer in ["", "SSH-2.0-x\r\n", "HTTP/1.1 404 Not Found\r\n\r\n", "HTTP/1.1 200 OK\r\nx"] {
            assert!(body(answer.as_bytes()).is_err(), "{answer:?}");
        }
        assert_eq!(body(b"HTTP/1.0 200 OK\r\na: b\r\n\r\n{}").unwrap(), b"{}");
    }

    #[test]
    fn people_read_a_line_for_each_matter() {
        insta::assert_snapshot!(people(&healthy()), @"
        postern       0.1.0, up 2h 3m, since 2026-11-22T00:00:00.000Z
        ready         yes
        interception  Required
                      CA sha256:ab12
                      valid until 2027-11-22T00:00:00.000Z
        policy        sha256:0123456789abcdef
                      Fresh, 12s old, policies that select this pod: 2
        connections   3 open of 10000
        events        120 written, 0 dropped
        listeners     explicit 127.0.0.1:15002
        ");
    }

    #[test]
    fn people_read_what_is_wrong() {
        let mut status = healthy();
        status.not_ready("the CA is\u{1b}[31m missing", None);
        status.interception.reason = Some("ca-key.pem: no such file".to_owned());
        status.policy.last_error = Some("policy.yaml:3:1: expected a list".to_owned());
        status.listeners.push(ListenerStatus {
            mode: "reverse".to_owned(),
            address: "127.0.0.1:15003".to_owned(),
            upstream: Some("https://api.anthropic.com".to_owned()),
        });
        insta::assert_snapshot!(people(&status), @r"
        postern       0.1.0, up 2h 3m, since 2026-11-22T00:00:00.000Z
        ready         no
                      the CA is\u{1b}[31m missing
        interception  Required
                      CA sha256:ab12
                      valid until 2027-11-22T00:00:00.000Z
                      ca-key.pem: no such file
        policy        sha256:0123456789abcdef
                      Fresh, 12s old, policies that select this pod: 2
                      the newest files are not in force: policy.yaml:3:1: expected a list
        connections   3 open of 10000
        events        120 written, 0 dropped
        listeners     explicit 127.0.0.1:15002
                      reverse 127.0.0.1:15003 for https://api.anthropic.com
        ");
    }

    #[test]
    fn durations_have_two_units() {
        let durations: Vec<_> = [0, 59, 123, 7_384, 435_600].into_iter().map(duration).collect();
        assert_eq!(durations, ["0s", "59s", "2m 3s", "2h 3m", "5d 1h"]);
    }
}
