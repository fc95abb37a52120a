//! Says which commit and features the executables are built from, for `--version`.
//!
//! The commit is that of `POSTERN_COMMIT`, else that of the Git repository around this file. Without optimisation Git is
//! not asked: a development build would be compiled anew with every commit, and says what it is.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable that names the commit where there is no repository: in a container, in an archive of the sources.
const COMMIT: &str = "POSTERN_COMMIT";

/// How much of a commit is shown.
const DIGITS: usize = 12;

/// What is compiled.
const SOURCES: [&str; 4] = ["src", "build.rs", "Cargo.toml", "Cargo.lock"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={COMMIT}");
    let commit = match text_of(COMMIT).as_deref().and_then(shown) {
        Some(commit) => format!("commit {commit}"),
        // The profiles `release` and `bench`, and what inherits from them.
        None if text_of("PROFILE").as_deref() == Some("release") => {
            of_repository().map_or_else(|| "commit unknown".to_owned(), |commit| format!("commit {commit}"))
        }
        None => "development build".to_owned(),
    };
    let features = if env::var_os("CARGO_FEATURE_OPERATOR").is_some() { "operator" } else { "none" };
    println!("cargo:rustc-env=POSTERN_BUILD={commit}, features: {features}");
}

fn text_of(variable: &str) -> Option<String> {
    env::var_os(variable)?.into_string().ok()
}

/// The first digits of a commit, where it is one.
fn shown(commit: &str) -> Option<&str> {
    let is_commit = commit.len() >= DIGITS && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    commit.get(..DIGITS).filter(|_| is_commit)
}

/// The commit of the repository that this package is the root of, and whether the sources differ from it. Looks again
/// when either changes.
fn of_repository() -> Option<String> {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    let root = PathBuf::from(git(&package, &["rev-parse", "--show-toplevel"])?);
    // Inside of somebody else's repository, its commit says nothing of these sources.
    if root.canonicalize().ok()? != package.canonicalize().ok()? {
        return None;
    }
    let head = git(&package, &["rev-parse", "HEAD"])?;
    for name in ["HEAD", "logs/HEAD"] {
        let file = package.join(git(&package, &["rev-parse", "--git-path", name])?);
        // Cargo would run this each time for a file that is missing.
        if file.exists() {
            println!("cargo:rerun-if-changed={}", file.display());
        }
    }
    SOURCES.iter().for_each(|source| println!("cargo:rerun-if-changed={source}"));
    let mut status = vec!["--no-optional-locks", "status", "--porcelain", "--"];
    status.extend(SOURCES);
    let changed = git(&package, &status).is_none_or(|changed| !changed.is_empty());
    Some(format!("{}{}", shown(&head)?, if changed { ", modified" } else { "" }))
}

/// What Git prints; none where it is missing, or fails.
fn git(package: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(package).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
