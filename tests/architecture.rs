//! Who may use whom, and how a file looks: the rules of ARCHITECTURE.md and CONTRIBUTING.md as data.
//!
//! The source is read as text. A rule names words that must not stand in a module's code; comments, strings
//! that only mention a word, and tests at the end of a file are left out.
#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]

#[path = "architecture/graph.rs"]
mod graph;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// What may not be named where.
struct Rule {
    /// Modules, as paths below `src/` without an extension; a directory stands for all of its files.
    modules: &'static [&'static str],
    /// Paths that no code there may name.
    forbidden: &'static [&'static str],
    /// Longer paths that it may name all the same.
    permitted: &'static [&'static str],
    reason: &'static str,
}

const PURE: &[&str] = &[
    "yaml",
    "pod",
    "clients",
    "fold",
    "name",
    "decision",
    "id",
    "digest",
    "canary",
    "terminal",
    "agent_api",
    "evidence/index",
    "evidence/refused",
    "call",
    "detection",
    "dlp",
    "lint",
    "page/access",
    "page/columns",
    "page/files",
    "page/row",
    "page/window",
    "policy",
    "provider",
    "trial",
    "wire",
    "filter",
    "event",
    "problem",
    "sarif",
    "stats",
    "tool_output",
    "secret",
    "dns/answer",
    "dns/places",
    "rate",
    "dns/table",
    "redirect/rule",
    "redirect/plan",
    "redirect/chains",
    "redirect/nft",
    "redirect/iptables",
    "redirect/saved",
    "redirect/owners",
    "redirect/netlink/attribute",
    "redirect/netlink/expression",
    "redirect/netlink/compile",
    "redirect/netlink/message",
    "redirect/netlink/ruleset",
    "redirect/netlink/comparison",
    "redirect/netlink/foreign",
    "api",
    "operator/injector",
    "operator/controller/candidate",
    "operator/controller/desired",
    "operator/controller/known_fields",
    "operator/controller/narrowed",
    "operator/controller/edit",
    "operator/controller/publish",
    "operator/controller/packing",
    "operator/controller/previous",
    "operator/controller/queue",
    "operator/controller/fair_queue",
    "operator/controller/fleet",
    "operator/controller/status",
    "operator/webhook/refusal",
    "operator/webhook/review",
    "operator/webhook/pods",
    "operator/webhook/policies",
    "operator/webhook/bundle",
    "operator/authority/collapse",
    "operator/authority/constraints",
    "workspace/outline",
    "workspace/occurrences",
    "workspace/page",
    "workspace/protocol",
];

/// What touches the world, but for what joins it.
const WORLD: &[&str] = &[
    "proxy",
    "dns",
    "bind",
    "capacity",
    "route",
    "tls",
    "config",
    "evidence",
    "ledger",
    "telemetry",
    "admin",
    "page",
    "credential",
    "drain",
    "redirect",
    "workspace",
];

/// The same without what moves bytes.
const BESIDE_PROXY: &[&str] = WORLD.split_at(1).1;

const RULES: &[Rule] = &[
    Rule {
        modules: PURE,
        forbidden: &["tokio", "tokio_util", "tokio_rustls", "hyper", "hyper_util", "rustls", "socket2"],
        permitted: &[],
        reason: "deciding is apart from doing: a pure module knows no runtime, connection or TLS",
    },
    Rule {
        modules: PURE,
        forbidden: &[
            "std::fs",
            "std::env",
            "std::process",
            "std::thread",
            "std::net::TcpStream",
            "std::net::TcpListener",
            "std::net::UdpSocket",
            "std::net::ToSocketAddrs",
            "std::os",
            "SystemTime::now",
            "Instant::now",
            "tracing",
            "prometheus",
        ],
        permitted: &[],
        reason: "a pure module knows no files, sockets, clocks or environment; they are given to it as values",
    },
    Rule {
        modules: PURE,
        forbidden: &[
            "crate::proxy",
            "crate::bind",
            "crate::capacity",
            "crate::route",
            "crate::tls",
            "crate::redirect::apply",
            "crate::redirect::netlink",
            "crate::redirect::restore",
            "crate::config",
            "crate::credential",
            "crate::evidence",
            "crate::ledger",
            "crate::telemetry",
            "crate::admin",
            "crate::drain",
            "crate::command",
            "crate::cli",
        ],
        permitted: &[],
        reason: "a pure module uses pure modules alone",
    },
    Rule {
        modules: &["credential/placement", "credential/minting", "credential/access_key", "credential/sigv4"],
        forbidden: &["tokio", "hyper", "rustls", "std::fs", "std::env", "SystemTime::now"],
        permitted: &[],
        reason: "where a credential goes is decided without touching the world",
    },
    Rule {
        modules: &["proxy/exchange/decide"],
        forbidden: &[
            "tokio",
            "hyper",
            "rustls",
            "std::fs",
            "SystemTime::now",
            "Instant::now",
            "tracing",
            "crate::ledger",
            "crate::telemetry",
            "Gateway",
            "Session",
            "Snapshot",
            "Record",
        ],
        permitted: &[],
        reason: "a request is decided by facts, and the exchange acts on the plan",
    },
    Rule {
        modules: &["proxy/exchange/enforce"],
        forbidden: &["crate::ledger", "crate::telemetry", "crate::event"],
        permitted: &[],
        reason: "what limits an agent does not hang on events",
    },
    Rule {
        modules: &["provider"],
        forbidden: &["crate::policy", "crate::event"],
        permitted: &[],
        reason: "what is known of an API is told as plain data (call); names and paths have one canonical form",
    },
    Rule {
        modules: &["policy"],
        forbidden: &["crate::provider"],
        permitted: &[],
        reason: "policy is told what a request is, and knows no API",
    },
    Rule {
        modules: &["wire"],
        forbidden: &["crate::policy"],
        permitted: &[],
        reason: "framing knows bytes, not rules",
    },
    Rule {
        modules: WORLD,
        forbidden: &["crate::command", "crate::cli", "kube", "k8s_openapi"],
        permitted: &[],
        reason: "parts are joined in command/, and no Kubernetes client is in the agent's pod",
    },
    Rule {
        modules: &["api", "operator"],
        forbidden: &["crate::proxy", "crate::dns", "crate::redirect", "crate::command", "anyhow"],
        permitted: &[],
        reason: "what operates gateways moves no bytes, and parts are joined in command/",
    },
    Rule {
        modules: BESIDE_PROXY,
        forbidden: &["crate::proxy"],
        permitted: &[],
        reason: "what moves bytes asks the others; they do not know it",
    },
    Rule {
        modules: &["dns"],
        forbidden: &["lookup_host", "ToSocketAddrs", "TcpStream::connect", "crate::config"],
        permitted: &[],
        reason: "nobody is asked for an answer to the agent",
    },
    Rule {
        modules: &["cli"],
        forbidden: &["crate::command", "crate::proxy", "crate::policy", "crate::tls", "tokio", "std::fs"],
        permitted: &[],
        reason: "cli holds clap types and the defaults that help shows, nothing else",
    },
    Rule {
        modules: WORLD,
        forbidden: &["anyhow", "std::process::exit"],
        permitted: &[],
        reason: "errors are typed outside command/, and main returns the exit code",
    },
];

const MOST_LINES: usize = 600;

#[test]
fn every_module_names_only_what_it_may() {
    let mut broken = String::new();
    for rule in RULES {
        let files = sources().into_iter().filter(|file| !is_test(file));
        for file in files.filter(|file| rule.modules.iter().any(|module| belongs(file, module))) {
            for (number, line) in code_lines(&fs::read_to_string(&file).unwrap()) {
                let line = rule.permitted.iter().fold(line.to_owned(), |line, path| line.replace(path, ""));
                for word in rule.forbidden.iter().filter(|word| names(&line, word)) {
                    let reason = rule.reason;
                    writeln!(broken, "{}:{number}: names {word}: {reason}", shown(&file)).unwrap();
                }
            }
        }
    }
    assert!(broken.is_empty(), "\n{broken}");
}

#[test]
fn every_rule_is_about_modules_that_exist() {
    let missing = RULES
        .iter()
        .flat_map(|rule| rule.modules)
        .filter(|module| !sources().iter().any(|file| belongs(file, module)));
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn every_file_opens_by_saying_what_it_is_for() {
    let mute: Vec<String> = sources()
        .iter()
        .chain(&tests())
        .filter(|file| !fs::read_to_string(file).unwrap().starts_with("//! "))
        .map(|file| format!("{}:1: the first line is no `//!` sentence", shown(file)))
        .collect();
    assert!(mute.is_empty(), "\n{}", mute.join("\n"));
}

#[test]
fn no_file_is_longer_than_the_cap() {
    let long: Vec<String> = sources()
        .iter()
        .chain(&tests())
        .map(|file| (file, fs::read_to_string(file).unwrap().lines().count()))
        .filter(|(_, lines)| *lines > MOST_LINES)
        .map(|(file, lines)| format!("{}:{lines}: more than {MOST_LINES} lines", shown(file)))
        .collect();
    assert!(long.is_empty(), "\n{}", long.join("\n"));
}

#[test]
fn no_module_is_named_for_what_it_happens_to_hold() {
    let vague = ["utils", "util", "common", "helpers", "manager", "types", "misc"];
    let named = |file: &Path| vague.contains(&file.file_stem().unwrap().to_str().unwrap());
    let found: Vec<String> = sources().iter().filter(|file| named(file)).map(|file| shown(file)).collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn directories_are_modules_by_their_mod_file() {
    let beside = |file: &PathBuf| file.with_extension("").is_dir();
    let found: Vec<String> = sources().iter().filter(|file| beside(file)).map(|file| shown(file)).collect();
    assert_eq!(found, Vec::<String>::new(), "a directory's module is its mod.rs");
}

#[test]
fn the_rules_see_code_and_not_what_is_said_about_it() {
    let text = "//! tokio\nuse tokio::net; // hyper\nlet s = \"std::fs\";\n#[cfg(test)]\nmod tests {\n  use std::fs;\n}\n";
    let seen: Vec<usize> = code_lines(text).map(|(number, _)| number).collect();
    assert_eq!(seen, [2, 3], "comments and tests are left out");
    assert!(names("use tokio::net;", "tokio"));
    assert!(!names("use tokio_util::sync;", "tokio"), "a longer word is another word");
    assert!(!names("let mytokio = 1;", "tokio"));
    assert!(!names("let s = \"std::fs\";", "std::fs"), "a string names nothing");
    assert!(names("crate::command::run()", "crate::command"), "a path's beginning is enough");
}

/// Lines of code with their numbers, up to the tests at the end of the file.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .zip(1..)
        .take_while(|(line, _)| line.trim() != "#[cfg(test)]")
        .map(|(line, number)| (number, line.split("//").next().unwrap_or_default()))
        .filter(|(_, line)| !line.trim().is_empty())
}

/// Whether code names this path, as a whole word and outside of a string.
fn names(line: &str, word: &str) -> bool {
    let part_of_word = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(part_of_word);
        let after = line[at + word.len()..].chars().next().is_some_and(part_of_word);
        let quoted = line[..at].matches('"').count() % 2 == 1;
        !before && !after && !quoted
    })
}

/// Whether a file is this module or lies in it.
fn belongs(file: &Path, module: &str) -> bool {
    let below = file.strip_prefix(root().join("src")).unwrap();
    below.with_extension("") == Path::new(module) || below.starts_with(module)
}

/// Whether a source file holds tests alone: `tests.rs`, `x_tests.rs`, and what several tests share in `testing.rs`.
fn is_test(file: &Path) -> bool {
    let stem = file.file_stem().unwrap().to_str().unwrap();
    stem == "testing" || stem == "tests" || stem.ends_with("_tests")
}

fn sources() -> Vec<PathBuf> {
    rust_files(&root().join("src"))
}

fn tests() -> Vec<PathBuf> {
    ["tests", "benches"].iter().flat_map(|directory| rust_files(&root().join(directory))).collect()
}

/// The Rust files below a directory, sorted; none where there is no such directory.
fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    files.sort();
    files
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn shown(file: &Path) -> String {
    file.strip_prefix(root()).unwrap().display().to_string()
}
