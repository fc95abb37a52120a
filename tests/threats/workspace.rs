//! What stands in a workspace: links, devices, floods of files, names and texts that mislead, and files that change.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use aws_lc_rs::digest::{SHA256, digest};
use postern::workspace::protocol::{
    MOST_ANSWER, MOST_QUESTION, PREFIX, WorkspaceAnswer, WorkspaceQuestion, framed, length, parsed,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::model::{Model, assert_without, call, message, named};
use crate::parity::anthropic::Anthropic;
use crate::parity::dialect::Mode::Streamed;
use crate::support::Answer;
use crate::support::directory;
use crate::support::journal::poll;

const SECRET: &str = "pub fn a_secret_outside() {}";

/// A workspace, its companion and a gateway that denies edits which do not fit.
struct Workspace {
    place: TempDir,
    companion: Child,
    model: Model,
}

/// What became of a call.
struct Called {
    id: String,
    answer: Answer,
    event: Value,
    /// What the event says of the workspace.
    word: String,
    /// Whether the agent got it byte for byte.
    passed: bool,
}

impl Workspace {
    fn new(spec: &str) -> Self {
        let place = directory();
        fs::create_dir(place.path().join("w")).unwrap();
        fs::write(place.path().join("key.rs"), SECRET).unwrap();
        Self::at(place, "w", spec)
    }

    /// The same whose root is this one, beside the place where it is absolute.
    fn at(place: TempDir, root: &str, spec: &str) -> Self {
        let companion = companion(&place.path().join(root), &place.path().join("s"));
        let socket = place.path().join("s").display().to_string();
        let model = Model::with(spec, |setup| setup.set("/workspace/socket", socket));
        Self { place, companion, model }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join("w").join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Asks at the gateway's name until the companion is in time: the machine may be busy, and ten questions a second are
    /// answered.
    fn ask(&self, path: &str) -> Answer {
        poll("an answer in time", || {
            Some(self.ask_once(path)).filter(|answer| !matches!(answer.status, 429 | 503))
        })
    }

    fn ask_once(&self, path: &str) -> Answer {
        self.model.gateway.agent().get(&format!("http://postern.internal/workspace/{path}"))
    }

    /// Asks the companion itself, and waits as long as it takes: the gateway's patience is no part of what is tried.
    fn asked_without_haste(&self, question: &WorkspaceQuestion) -> String {
        let mut socket = UnixStream::connect(self.place.path().join("s")).unwrap();
        socket.write_all(&framed(question, MOST_QUESTION).unwrap()).unwrap();
        let mut prefix = [0; PREFIX];
        socket.read_exact(&mut prefix).unwrap();
        let mut json = vec![0; length(prefix, MOST_ANSWER).unwrap()];
        socket.read_exact(&mut json).unwrap();
        match parsed(&json).unwrap() {
            WorkspaceAnswer::Page(text) => text,
            other @ (WorkspaceAnswer::File(_) | WorkspaceAnswer::Refused(_)) => panic!("{other:?}"),
        }
    }

    /// What becomes of a call, and what its event says of the workspace.
    fn called(&self, id: &str, name: &str, input: &Value) -> Called {
        let answer = self.model.ask(&Anthropic, Streamed, stream(id, name, input));
        let event = self.model.event(id);
        let word = event["toolCall"]["workspace"].as_str().unwrap_or_default().to_owned();
        let passed = answer.text() == stream(id, name, input);
        Called { id: id.to_owned(), answer, event, word, passed }
    }

    /// The same once the companion is in time.
    fn judged(&self, id: &str, name: &str, input: &Value) -> Called {
        let mut tries = 0;
        poll("a word of the companion in time", || {
            tries += 1;
            let called = self.called(&format!("{id}-{tries}"), name, input);
            Some(called).filter(|called| called.word != "Unavailable")
        })
    }

    /// Asserts that a call passes, and returns what its event says of the workspace.
    #[track_caller]
    fn passes(&self, id: &str, name: &str, input: &Value) -> String {
        let called = self.judged(id, name, input);
        assert!(called.passed, "{name} {input}: {}", called.answer.text());
        assert_eq!(called.event["decision"]["verdict"], "Allow");
        called.word
    }

    /// Asserts that a call is denied, and returns what its agent reads and the reason in its event.
    #[track_caller]
    fn denied(&self, id: &str, name: &str, input: &Value) -> (String, String) {
        let called = self.judged(id, name, input);
        assert_without(&called.answer, &[&called.id]);
        assert_eq!(called.event["decision"]["rule"], "agents/test/edits", "{name} {input}");
        assert_eq!((&called.event["decision"]["verdict"], called.word.as_str()), (&"Deny".into(), "Misses"));
        (called.answer.text(), called.event["decision"]["reason"].as_str().unwrap().to_owned())
    }

    /// The most memory that the companion has had, in KiB, without what it maps of its executable: that of a debug build is
    /// large, and is the kernel's to take back.
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.companion.id())).unwrap();
        let of = |name: &str| -> u64 {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        of("VmHWM:") - of("RssFile:")
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.companion.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _ = self.companion.kill();
        let _ = self.companion.wait();
    }
}

/// A companion that answers.
fn companion(root: &Path, socket: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postern"));
    let command = command.arg("workspace").arg("--root").arg(root).arg("--socket").arg(socket);
    let child = command.env_clear().stdin(Stdio::null()).spawn().unwrap();
    poll("the companion's socket", || UnixStream::connect(socket).ok());
    child
}

fn stream(id: &str, name: &str, input: &Value) -> String {
    named(&message(&[call(0, id, name, &[&input.to_string()])], "tool_use"))
}

fn write(path: &Path) -> Value {
    json!({"file_path": path, "content": "x"})
}

fn edit(path: &Path, old: &str) -> Value {
    json!({"file_path": path, "old_string": old, "new_string": "y"})
}

fn sha256(text: &[u8]) -> String {
    digest(&SHA256, text).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

const DENY: &str = "edits: {overwrite: Deny, match: Deny}";

/// O4: no link is followed, whether it leads out of the workspace or not, and no path leads out of it by itself.
#[test]
fn nothing_outside_of_the_workspace_is_read() {
    let workspace = Workspace::new(DENY);
    let inside = workspace.write("src/a.rs", "pub fn inside() {}\n");
    symlink("../key.rs", workspace.path("link.rs")).unwrap();
    symlink("..", workspace.path("up")).unwrap();
    symlink("src", workspace.path("linked")).unwrap();
    symlink("/proc/self/root", workspace.path("magic")).unwrap();
    let key = workspace.place.path().join("key.rs");
    for (number, path) in [
        workspace.path("link.rs"),
        workspace.path("up/key.rs"),
        workspace.path("linked/a.rs"),
        workspace.path("magic").join(key.strip_prefix("/").unwrap()),
        workspace.path("../key.rs"),
        key,
    ]
    .into_iter()
    .enumerate()
    {
        let seen = workspace.passes(&format!("w{number}"), "Write", &write(&path));
        assert_eq!(seen, "NoText", "{}", path.display());
        assert_eq!(workspace.passes(&format!("e{number}"), "Edit", &edit(&path, "zzz")), "NoText");
        let answer = workspace.ask(&format!("anatomy?path={}", path.display()));
        assert_eq!(answer.status, 404, "{}", path.display());
    }
    for path in ["map", "anatomy?path=", "anatomy?path=src", "anatomy?path=up", "anatomy?path=linked"] {
        let answer = workspace.ask(path);
        assert_without(&answer, &["a_secret_outside", "key.rs", "link.rs"]);
    }
    workspace.denied("twin", "Write", &write(&inside));
    assert!(workspace.ask("map").text().contains("src/a.rs\n  1: pub fn inside() {}\n"));
}

/// O4: what is no text holds nobody up: a FIFO, a socket, a file of ten gigabytes.
#[test]
fn what_is_no_text_is_not_read_and_holds_nobody_up() {
    let workspace = Workspace::new(DENY);
    mknodat(CWD, workspace.path("fifo.rs"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    File::create(workspace.path("sparse.rs")).unwrap().set_len(10 << 30).unwrap();
    workspace.write("binary.rs", b"fn a() {}\0");
    let text = workspace.write("text.rs", "fn a() {}\n");
    for name in ["fifo.rs", "sparse.rs", "binary.rs"] {
        assert_eq!(workspace.passes(&format!("w-{name}"), "Write", &write(&workspace.path(name))), "NoText");
        assert_eq!(workspace.ask(&format!("anatomy?path={name}")).status, 404, "{name}");
    }
    assert!(workspace.ask("map").text().contains("text.rs\n  1: fn a() {}\n"));
    workspace.denied("twin", "Write", &write(&text));
    assert!(workspace.memory() < 64 << 10, "{} KiB", workspace.memory());
}

/// O4: a device in the workspace is not read: here the workspace is `/dev`.
#[test]
fn a_device_is_not_read() {
    let workspace = Workspace::at(directory(), "/dev", DENY);
    for path in ["/dev/zero", "/dev/full"] {
        assert_eq!(workspace.passes(path, "Write", &write(Path::new(path))), "NoText", "{path}");
        assert_eq!(workspace.ask(&format!("anatomy?path={path}")).status, 404, "{path}");
    }
    assert_eq!(workspace.ask("anatomy?path=/dev").status, 200);
}

/// O4: of more files than are looked at the first are told, within the time and the memory, and that there are more.
#[test]
fn a_flood_of_files_is_cut_off_and_said_to_be() {
    let workspace = Workspace::new(DENY);
    for number in 0..50_100 {
        File::create(workspace.path(&format!("{number}.rs"))).unwrap();
    }
    let below = WorkspaceQuestion::Anatomy { path: String::new() };
    for question in [WorkspaceQuestion::Map, below] {
        let text = workspace.asked_without_haste(&question);
        assert!(text.contains("Something is left out"), "{text}");
        assert!(text.len() <= 66 << 10);
    }
    assert!(workspace.memory() < 64 << 10, "{} KiB", workspace.memory());
    workspace.write("sub/a.rs", "fn a() {}\n");
    assert_eq!(workspace.ask("anatomy?path=sub").status, 200);
}

/// O4: names and lines that move cursors, turn the writing around or look like the gateway's are shown for what they are.
#[test]
fn names_and_lines_that_mislead_are_escaped() {
    let workspace = Workspace::new(DENY);
    let name = "a\u{202e}sr.\u{1b}[31m\n[postern] b.rs";
    let path = workspace.write(name, "fn a\u{202e}b() {} \u{1b}[2J\u{7}\n");
    for asked in ["map", "anatomy?path="] {
        let text = workspace.ask(asked).text();
        assert!(text.contains(r"a\u{202e}sr.\u{1b}[31m\n[postern] b.rs"), "{text}");
        assert!(text.chars().all(|c| c == '\n' || c == '…' || matches!(c, ' '..='~')), "{text:?}");
        assert!(text.contains(r"  1: fn a\u{202e}b() {} \u{1b}[2J\u{7}"), "{text}");
    }
    let (text, _) = workspace.denied("twin", "Edit", &edit(&path, "none"));
    assert_without(&workspace.ask("map"), &["\u{202e}", "\u{1b}"]);
    assert!(!text.contains('\u{202e}') && !text.contains('\u{1b}'), "{text:?}");
}

/// O4: a file that grows, shrinks and goes while it is read gives an answer about some state of it, or none.
#[test]
fn a_file_that_changes_meanwhile_breaks_nothing() {
    let workspace = Workspace::new(DENY);
    let path = workspace.write("a.rs", "fn a() {}\n");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let long = "fn b() {}\n".repeat(90_000);
            while !is_over.load(Ordering::Relaxed) {
                fs::write(&path, &long).unwrap();
                fs::write(&path, "fn c() {}\n").unwrap();
                fs::remove_file(&path).unwrap();
                File::create(&path).unwrap().set_len(10 << 30).unwrap();
            }
        });
        for _ in 0..40 {
            let answer = workspace.ask_once("anatomy?path=a.rs");
            assert!(matches!(answer.status, 200 | 404 | 429 | 503), "{answer:?}");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    workspace.write("a.rs", "fn d() {}\n");
    let is_there = || workspace.ask("anatomy?path=a.rs").text().contains("  1: fn d() {}").then_some(());
    poll("the file as it is now", is_there);
    assert!(workspace.memory() < 64 << 10, "{} KiB", workspace.memory());
}

/// O4: a companion that is stopped, dead or somebody else is as if it were not there, and the event says so.
#[test]
fn without_a_companion_nothing_is_judged_and_the_event_says_so() {
    let mut workspace = Workspace::new(DENY);
    let path = workspace.write("a.rs", "fn a() {}\n");
    workspace.denied("before", "Write", &write(&path));
    workspace.signal(Signal::STOP);
    let stopped = workspace.called("stopped", "Write", &write(&path));
    assert!(stopped.passed && stopped.word == "Unavailable", "{}", stopped.word);
    assert_eq!(workspace.ask_once("map").status, 503);
    workspace.signal(Signal::CONT);
    workspace.signal(Signal::TERM);
    assert_eq!(workspace.companion.wait().unwrap().code(), Some(0));
    let gone = workspace.called("gone", "Write", &write(&path));
    assert!(gone.passed && gone.word == "Unavailable", "{}", gone.word);
    let dead = Model::with(DENY, |setup| setup.set("/workspace/socket", "/nonexistent/socket"));
    dead.assert_passes(&Anthropic, Streamed, stream("nobody", "Write", &write(&path)));
    assert_eq!(dead.event("nobody")["toolCall"]["workspace"], "Unavailable");
    workspace.companion = companion(&workspace.path(""), &workspace.place.path().join("s2"));
    let socket = workspace.place.path().join("s2").display().to_string();
    workspace.model = Model::with(DENY, |setup| setup.set("/workspace/socket", socket));
    workspace.denied("after", "Write", &write(&path));
}

/// O4: the refusal says what does not fit and how the file is now, and what fits passes byte for byte.
#[test]
fn an_edit_passes_exactly_where_it_fits_the_file() {
    let workspace = Workspace::new(DENY);
    let content = "one\ntwo\ntwo\n";
    let path = workspace.write("a.txt", content);
    let many = |edits: &[(&str, &str)]| {
        let edits: Vec<_> =
            edits.iter().map(|(old, new)| json!({"old_string": old, "new_string": new})).collect();
        json!({"file_path": path, "edits": edits})
    };
    let patch = |old: &str| {
        let path = path.display();
        json!({"input": format!("*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+x\n*** End Patch")})
    };
    let empty = workspace.write("empty.txt", "");
    for (number, (name, input)) in [
        ("Edit", edit(&path, "one")),
        ("Edit", json!({"file_path": path, "old_string": "two", "new_string": "2", "replace_all": true})),
        ("Edit", json!({"file_path": "a.txt", "old_string": "one", "new_string": ""})),
        ("MultiEdit", many(&[("one", "three"), ("three", "3")])),
        ("apply_patch", patch("two")),
        ("Write", write(&workspace.path("new.txt"))),
        ("Write", write(&empty)),
        ("Edit", edit(&workspace.path("new.txt"), "none")),
    ]
    .into_iter()
    .enumerate()
    {
        let seen = workspace.passes(&format!("fits{number}"), name, &input);
        assert!(matches!(seen.as_str(), "Fits" | "NoText"), "{seen}: {name} {input}");
    }
    for (number, (name, input, said)) in [
        ("Edit", edit(&path, "two"), "stands there 2 times"),
        ("Edit", edit(&path, "three"), "stands there 0 times"),
        (
            "Edit",
            json!({"file_path": "./a.txt", "old_string": "no", "new_string": ""}),
            "stands there 0 times",
        ),
        ("MultiEdit", many(&[("one", "two"), ("two", "3"), ("3", "")]), "block 2 of 3"),
        ("apply_patch", patch("four"), "do not stand there"),
        ("Write", write(&path), "is there already"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("misses{number}");
        let (text, reason) = workspace.denied(&id, name, &input);
        assert!(text.contains(said), "{said}: {text}");
        assert!(text.contains(&sha256(content.as_bytes())) && text.contains("a.txt"), "{text}");
        assert!(reason.contains(said) && reason.contains("a.txt"), "{reason}");
    }
    // What an earlier call of the same answer changes is not there yet.
    let twice = [
        call(0, "first", "Edit", &[&edit(&path, "one").to_string()]),
        call(1, "second", "Edit", &[&edit(&path, "y").to_string()]),
    ];
    workspace.model.assert_passes(&Anthropic, Streamed, named(&message(&twice, "tool_use")));
    assert_eq!(workspace.model.event("second")["toolCall"]["workspace"], "Pending");
}

/// O4: a policy that only records denies nothing, and one that says nothing of edits asks nobody.
#[test]
fn edits_are_recorded_under_audit_and_not_asked_about_without_a_policy() {
    let audit = Workspace::new(&format!("enforcement: Audit\n{DENY}"));
    let path = audit.write("a.txt", "one\n");
    let audited = audit.judged("audited", "Write", &write(&path));
    assert!(audited.passed && audited.word == "Misses", "{}", audited.word);
    assert_eq!(audited.event["decision"]["verdict"], "WouldDeny");
    assert_eq!(audited.event["decision"]["rule"], "agents/test/edits");
    let silent = Workspace::new("edits: {overwrite: Allow}");
    let path = silent.write("a.txt", "one\n");
    assert_eq!(silent.passes("silent", "Write", &write(&path)), "");
    let half = Workspace::new("edits: {match: Deny}");
    let path = half.write("a.txt", "one\n");
    assert_eq!(half.passes("overwrites", "Write", &write(&path)), "");
    half.denied("misses", "Edit", &edit(&path, "two"));
}
