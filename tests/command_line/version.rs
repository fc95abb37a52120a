//! `--version`, and what `build.rs` makes it say.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::Place;

const FEATURES: &str = if cfg!(feature = "operator") { "operator" } else { "none" };

#[test]
fn the_version_says_what_was_built_from_what() {
    let said = Place::new().run(&["--version"]);
    let line = said.stdout.trim_end();
    let (number, build) = line.strip_prefix("postern ").and_then(|line| line.split_once(" (")).unwrap();
    assert_eq!(number, env!("CARGO_PKG_VERSION"));
    let origin = build.strip_suffix(&format!(", features: {FEATURES})")).unwrap();
    assert!(origin == "development build" || origin.starts_with("commit "), "{said:?}");
    assert_eq!(
        Place::new().run(&["policy", "--version"]).stdout.split_once(' ').unwrap().1,
        &said.stdout[8..]
    );
}

#[cfg(feature = "operator")]
#[test]
fn the_operators_version_says_the_same() {
    let output = Command::new(env!("CARGO_BIN_EXE_postern-operator")).arg("--version").output().unwrap();
    let said = Place::new().run(&["--version"]);
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        said.stdout.replace("postern ", "postern-operator ")
    );
}

/// A repository with a package in it, and the build script as Cargo would run it.
struct Package {
    directory: TempDir,
    script: PathBuf,
}

impl Package {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs");
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
        rustc.args(["--edition", "2024", "-o"]).arg(&script).arg(source);
        assert!(rustc.status().unwrap().success());
        std::fs::create_dir_all(directory.path().join("package/src")).unwrap();
        Self { directory, script }
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("package")
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@example.com", "-C"]).arg(self.root());
        let output = git.args(arguments).env("HOME", self.directory.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// What is told of the build, and on what it hangs.
    fn build(&self, package: &Path, environment: &[(&str, &str)]) -> (String, Vec<String>) {
        let mut script = Command::new(&self.script);
        script.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        script.env("CARGO_MANIFEST_DIR", package).current_dir(package);
        let output = script.envs(environment.iter().copied()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let told = |key: &str| -> Vec<String> {
            text.lines().filter_map(|line| line.strip_prefix(key)).map(str::to_owned).collect()
        };
        let build = told("cargo:rustc-env=POSTERN_BUILD=").concat();
        (build, told("cargo:rerun-if-changed="))
    }
}

#[test]
fn a_release_names_its_commit_and_a_development_build_hangs_on_none() {
    const RELEASE: (&str, &str) = ("PROFILE", "release");
    let package = Package::new();
    let root = package.root();
    assert_eq!(package.build(&root, &[RELEASE]).0, "commit unknown, features: none", "without Git");

    std::fs::write(root.join("src/lib.rs"), "").unwrap();
    package.git(&["init", "--quiet"]);
    package.git(&["add", "."]);
    package.git(&["commit", "--quiet", "--message", "one"]);
    let commit = package.git(&["rev-parse", "HEAD"])[..12].to_owned();
    let (build, hangs) = package.build(&root, &[RELEASE, ("CARGO_FEATURE_OPERATOR", "1")]);
    assert_eq!(build, format!("commit {commit}, features: operator"));
    assert!(hangs.iter().any(|file| file.ends_with("logs/HEAD")), "{hangs:?}");

    let (build, hangs) = package.build(&root, &[("PROFILE", "debug")]);
    assert_eq!((build.as_str(), hangs), ("development build, features: none", vec!["build.rs".to_owned()]));

    std::fs::write(root.join("src/lib.rs"), "// changed").unwrap();
    assert_eq!(package.build(&root, &[RELEASE]).0, format!("commit {commit}, modified, features: none"));
    // Somebody else's repository says nothing of a package that lies in it.
    let inner = root.join("vendored");
    std::fs::create_dir(&inner).unwrap();
    assert_eq!(package.build(&inner, &[RELEASE]).0, "commit unknown, features: none");

    let named = "0123456789abcdef0123456789abcdef01234567";
    for profile in ["release", "debug"] {
        let environment = [("PROFILE", profile), ("POSTERN_COMMIT", named)];
        assert_eq!(package.build(&inner, &environment).0, "commit 0123456789ab, features: none");
    }
    let unsaid = [RELEASE, ("POSTERN_COMMIT", "unknown")];
    assert_eq!(package.build(&inner, &unsaid).0, "commit unknown, features: none");
}
