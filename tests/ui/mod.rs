//! `postern ui`: what its server answers, to whom, and from which sources.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::journal::poll;

/// How long an answer may take; the page's server lets a question about new events wait for 20 s.
const PATIENCE: Duration = Duration::from_secs(60);

/// A page that is served, of a directory that goes with it.
pub(crate) struct Page {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    pub(crate) directory: TempDir,
}

/// An answer of the page's server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

pub(crate) fn id(number: u64) -> String {
    format!("01a2008d-747b-7101-8101-{number:012}")
}

/// A line of a tool call that was denied.
pub(crate) fn line(number: u64) -> String {
    let event = json!({
        "apiVersion": "postern.dev/event/v1", "id": id(number), "time": "2026-11-22T00:00:00.000Z",
        "sequence": number, "count": 1, "kind": "ToolCall", "direction": "Inbound", "session": "s-1",
        "destination": {"host": "api.anthropic.com", "port": 443, "action": "Inspect", "intercepted": true},
        "toolCall": {"name": "Bash", "inputBytes": 2},
        "decision": {"verdict": "Deny", "rule": "agents/coders/no-rm", "reason": "Not here"},
        "exchange": id(900),
    });
    format!("{event}\n")
}

impl Page {
    /// Serves a file of these lines.
    pub(crate) fn of(lines: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("events.jsonl"), lines).unwrap();
        Self::start(directory, "events.jsonl")
    }

    /// Serves what stands behind `--ledger`.
    pub(crate) fn start(directory: TempDir, ledger: &str) -> Self {
        Self::start_with(directory, &["--ledger", ledger])
    }

    /// Starts with these options, where programs of the directory are found first.
    fn start_with(directory: TempDir, options: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_postern"))
            .arg("ui")
            .args(options)
            .current_dir(directory.path())
            .env_clear()
            .env("HOME", directory.path())
            .env("PATH", format!("{}:/usr/bin:/bin", directory.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("http://"), "no address: {line:?}");
        Self::at(&line, child, directory)
    }

    /// The page that a process serves at an address.
    pub(crate) fn at(url: &str, child: Child, directory: TempDir) -> Self {
        let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let token = path.trim_end().strip_suffix('/').unwrap().to_owned();
        Self { child, address: address.parse().unwrap(), token, directory }
    }

    /// Sends a request as it stands.
    pub(crate) fn send(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    /// Asks for a path with these fields and no others.
    pub(crate) fn ask(&self, method: &str, path: &str, fields: &str) -> Answer {
        self.send(&format!("{method} {path} HTTP/1.1\r\n{fields}connection: close\r\n\r\n"))
    }

    /// Asks as the page itself does, below the token.
    pub(crate) fn get(&self, path: &str) -> Answer {
        let host = format!("host: {}\r\nsec-fetch-site: same-origin\r\n", self.address);
        self.ask("GET", &format!("/{}/{path}", self.token), &host)
    }

    /// The rows from a number on, as soon as there was another change.
    pub(crate) fn rows(&self, from: u64, change: u64) -> Value {
        let answer = self.get(&format!("events?from={from}&change={change}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        serde_json::from_str(&answer.body).unwrap()
    }

    /// The first answer with all rows that holds.
    pub(crate) fn until(&self, holds: impl Fn(&Value) -> bool) -> Value {
        let mut answer = self.rows(0, 0);
        while !holds(&answer) {
            answer = self.rows(0, answer["change"].as_u64().unwrap());
        }
        answer
    }

    /// The answer once the source is read to its end.
    /// All that it shows of its source.
    pub(crate) fn whole(&self) -> String {
        self.read().to_string()
    }

    fn read(&self) -> Value {
        self.until(|answer| answer["source"]["isCurrent"] == true)
    }

    fn input(&mut self) -> &mut impl Write {
        self.child.stdin.as_mut().unwrap()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_page_and_its_files_are_served_without_another_place() {
    let page = Page::of(&line(1));
    let document = page.get("");
    assert_eq!(document.status, 200, "{document:?}");
    for field in [
        "content-type: text/html; charset=utf-8",
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';",
        "require-trusted-types-for 'script'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cross-origin-resource-policy: same-origin",
        "cache-control: no-store",
    ] {
        assert!(document.head.contains(field), "{field}: {document:?}");
    }
    let places = document
        .body
        .split(&[' ', '>'][..])
        .filter_map(|part| part.strip_prefix("src=\"").or(part.strip_prefix("href=\""))?.strip_suffix('"'));
    let places: Vec<&str> = places.collect();
    assert!(places.len() > 4, "{places:?}");
    for place in places {
        assert_eq!(page.get(place).status, 200, "{place}");
    }
}

#[test]
fn every_module_that_a_script_imports_is_served() {
    let page = Page::of(&line(1));
    let mut waiting = vec!["app.js".to_owned()];
    let mut seen = Vec::new();
    while let Some(script) = waiting.pop() {
        let answer = page.get(&script);
        assert_eq!(answer.status, 200, "{script}");
        let imports = answer.body.lines().filter(|line| line.starts_with("import "));
        let names = imports.map(|line| line.split_once("\"./").unwrap().1.trim_end_matches("\";").to_owned());
        waiting.extend(names.filter(|name| !seen.contains(name)).collect::<Vec<_>>());
        seen.push(script);
    }
    assert!(seen.len() > 8, "{seen:?}");
}

#[test]
fn rows_come_at_once_and_new_ones_as_they_are_written() {
    let page = Page::of(&line(1));
    let answer = page.read();
    assert_eq!((&answer["next"], &answer["rows"]["count"]), (&json!(1), &json!([1])));
    let text = |name: &str| {
        let index = usize::try_from(answer["rows"][name][0].as_u64().unwrap()).unwrap();
        answer["rows"]["texts"][index].as_str().unwrap().to_owned()
    };
    assert_eq!(
        (text("tool"), text("verdict"), text("session")),
        ("Bash".into(), "Deny".into(), "s-1".into())
    );
    let path = page.directory.path().join("events.jsonl");
    std::thread::scope(|scope| {
        // Whether the question or the line comes first, the answer has the line.
        let asked = scope.spawn(|| page.rows(1, answer["change"].as_u64().unwrap()));
        let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(line(2).as_bytes()).unwrap();
        let answer = asked.join().unwrap();
        assert_eq!((&answer["first"], &answer["next"]), (&json!(1), &json!(2)));
    });
}

#[test]
fn an_event_is_given_whole_with_those_of_its_exchange() {
    let page = Page::of(&(line(1) + &line(2)));
    page.read();
    for key in ["number=1".to_owned(), format!("id={}", id(2))] {
        let answer = page.get(&format!("event?{key}"));
        let answer: Value = serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{answer:?}"));
        assert_eq!(answer["event"], serde_json::from_str::<Value>(&line(2)).unwrap());
        assert_eq!((&answer["related"][0]["event"]["id"], &answer["number"]), (&json!(id(1)), &json!(1)));
    }
    for (query, status) in [
        (format!("event?id={}", id(9)), 404),
        ("event?number=2".to_owned(), 404),
        ("event?id=x".to_owned(), 400),
        ("event?number=-1".to_owned(), 400),
        ("event".to_owned(), 400),
        ("events".to_owned(), 400),
        ("events?from=1".to_owned(), 400),
        ("events?from=x&change=0".to_owned(), 400),
    ] {
        assert_eq!(page.get(&query).status, status, "{query}");
    }
}

#[test]
fn standard_input_is_shown_until_it_ends_and_after() {
    let mut page = Page::start(tempfile::tempdir().unwrap(), "-");
    page.input().write_all(line(1).as_bytes()).unwrap();
    page.until(|answer| answer["next"] == 1);
    page.input().write_all((line(2) + "torn").as_bytes()).unwrap();
    drop(page.child.stdin.take());
    let answer = page.read();
    assert_eq!(answer["next"], 2);
    assert_eq!(
        (&answer["source"]["hasEnded"], &answer["source"]["name"]),
        (&json!(true), &json!("standard input"))
    );
    assert!(answer["source"]["notes"][0].as_str().unwrap().contains("torn (4 bytes)"), "{answer}");
}

#[test]
fn lines_that_are_no_events_are_counted_and_hold_nothing_up() {
    let long = format!("{}\n", "x".repeat(9 << 20));
    let page = Page::of(&format!("no event\n{}{{}}\n{long}\u{1}\n{}", line(1), line(2)));
    let answer = page.read();
    assert_eq!(answer["next"], 2);
    assert!(answer["source"]["notes"][0].as_str().unwrap().contains("4 lines are no events"), "{answer}");
}

#[test]
fn the_browser_is_given_an_address_that_works_once() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("events.jsonl", &line(1));
    write("xdg-open", "#!/bin/sh\nprintf %s \"$1\" > opened.new && mv opened.new opened\n");
    let opener = directory.path().join("xdg-open");
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let page = Page::start_with(directory, &["--ledger", "events.jsonl", "--open"]);
    let path = page.directory.path().join("opened");
    let opened = poll("the browser", || std::fs::read_to_string(&path).ok());
    assert!(!opened.contains(&page.token), "{opened}");
    let target = opened.strip_prefix(&format!("http://{}", page.address)).unwrap();
    let host = format!("host: {}\r\nsec-fetch-site: none\r\n", page.address);
    let answer = page.ask("GET", target, &host);
    assert_eq!(answer.status, 303, "{answer:?}");
    assert!(answer.head.contains(&format!("location: /{}/", page.token)), "{answer:?}");
    let again = page.ask("GET", target, &host);
    assert_eq!((again.status, again.head.contains("location")), (403, false), "{again:?}");
}

#[test]
fn nothing_but_the_page_is_there() {
    let page = Page::of(&line(1));
    for path in ["x", "../", "events/", "vendor/", "%2e%2e/", "index.html", "event/1"] {
        assert_eq!(page.get(path).status, 404, "{path}");
    }
    let head = page.ask("HEAD", &format!("/{}/", page.token), &format!("host: {}\r\n", page.address));
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}

#[test]
fn what_cannot_be_shown_is_said_at_once() {
    let directory = tempfile::tempdir().unwrap();
    for (arguments, why) in [
        (&["ui", "--ledger", "missing.jsonl"][..], "missing.jsonl cannot be opened"),
        (&["ui"], "no run has written events"),
    ] {
        let said = Command::new(env!("CARGO_BIN_EXE_postern"))
            .args(arguments)
            .current_dir(directory.path())
            .env_clear()
            .env("HOME", directory.path())
            .output()
            .unwrap();
        assert_eq!((said.status.code(), said.stdout.as_slice()), (Some(1), &b""[..]));
        assert!(String::from_utf8_lossy(&said.stderr).contains(why), "{said:?}");
    }
    let page = Page::of(&line(1));
    let taken = page.address.port().to_string();
    let said = Command::new(env!("CARGO_BIN_EXE_postern"))
        .args(["ui", "--ledger", "events.jsonl", "--port", &taken])
        .current_dir(page.directory.path())
        .output()
        .unwrap();
    assert_eq!(said.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&said.stderr).contains("cannot listen on port"), "{said:?}");
}
