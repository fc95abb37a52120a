//! What the command finds in its environment.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::{User, finish};

const BUNDLES: [&str; 9] = [
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "AWS_CA_BUNDLE",
    "CODEX_CA_CERTIFICATE",
    "CARGO_HTTP_CAINFO",
    "PIP_CERT",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
];

#[test]
fn the_command_has_the_limit_of_descriptors_that_the_user_has() {
    let user = User::new();
    let plain = user.command::<&str>(&[]);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -Sn 256 && exec \"$0\" run -- sh -c 'ulimit -Sn'"]).arg(plain.get_program());
    command.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(user.path("work")).stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());

    let said = finish(command.spawn().unwrap());

    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "256\n"), "{}", said.stderr);
}

#[test]
fn every_client_is_led_to_the_gateway_and_trusts_its_ca() {
    let user = User::new().variable("NO_PROXY", "*").variable("http_proxy", "http://other.example");
    let run = user.start(None);
    let of = |name: &str| run.variables.get(name).cloned().unwrap_or_default();
    for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        assert_eq!(of(name), of("HTTPS_PROXY"), "{name}");
    }
    assert!(of("HTTPS_PROXY").contains("@127.0.0.1:"), "{}", of("HTTPS_PROXY"));
    for name in ["NO_PROXY", "no_proxy"] {
        assert_eq!(of(name), "localhost,127.0.0.1,::1", "the user's exceptions are no way around");
    }
    assert_eq!(of("NODE_USE_ENV_PROXY"), "1");
    assert!(!run.variables.contains_key("POSTERN_INTERCEPT"), "the gate is the gateway's, not the command's");
    let authority = std::fs::read_to_string(user.path(".local/share/postern/ca-cert.pem")).unwrap();
    for name in BUNDLES.into_iter().chain(["NODE_EXTRA_CA_CERTS", "DENO_CERT"]) {
        let bundle = std::fs::read_to_string(of(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(bundle.ends_with(&authority), "{name}");
    }
    run.end();
}

#[test]
fn the_password_is_new_each_time_and_nobody_else_may_read_it() {
    let user = User::new();
    let run = user.start(None);
    let (password, _) = run.proxy();
    let bundle = run.variables["SSL_CERT_FILE"].clone();
    let directory = Path::new(&bundle).parent().unwrap().to_owned();
    assert_eq!(std::fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
    let said = run.end();
    assert!(password.len() >= 32 && !format!("{said:?}").contains(&password), "{said:?}");
    assert!(!directory.exists(), "nothing temporary is left");
    let again = user.start(None);
    assert_ne!(again.proxy().0, password);
    again.end();
}

#[test]
fn events_are_for_their_owner_alone() {
    let user = User::new();
    let said = user.start(None).end();
    let mode = std::fs::metadata(user.event_file()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    assert!(said.stderr.contains(&user.event_file().display().to_string()), "{said:?}");
    assert_eq!(user.events()[0]["kind"], "Lifecycle");
}

#[test]
fn a_run_inside_a_run_is_refused() {
    let said = User::new().variable("POSTERN_RUN", "1").run(&["run", "--", "true"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("already inside a `postern run`"), "{said:?}");
}
