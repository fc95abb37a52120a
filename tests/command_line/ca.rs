//! `postern ca init` and `postern ca status`.

use std::os::unix::fs::PermissionsExt;

use super::Place;

#[test]
fn a_ca_is_made_once_and_found_again() {
    let place = Place::new();
    let made = place.run(&["ca", "init", "-o", "json"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let directory = place.path().join(".local/share/postern");
    assert_eq!(made.json()["directory"], directory.to_str().unwrap());
    let mode = |name: &str| directory.join(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("ca-cert.pem"), mode("ca-key.pem")), (0o644, 0o600));

    let status = place.run(&["ca", "status", "-o", "json"]);
    assert_eq!(status.code, Some(0), "{status:?}");
    assert_eq!(status.json()["authority"]["fingerprint"], made.json()["fingerprint"]);

    let again = place.run(&["ca", "init"]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(1), ""));
    assert!(again.stderr.contains("never overwritten"), "{again:?}");
}

#[test]
fn what_is_made_says_which_settings_use_it() {
    let place = Place::new();
    let made = place.run(&["ca", "init", "--directory", "ca"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let (_, settings) = made.stdout.split_once("interception:").unwrap();
    let certificate = place.path().canonicalize().unwrap().join("ca/ca-cert.pem");
    assert!(settings.contains(&format!("caCertificate: {}", certificate.display())), "{settings}");
}

#[test]
fn the_gate_is_open_only_where_the_environment_asks_for_interception() {
    let place = Place::new();
    place.run(&["ca", "init"]);
    let status = |environment: &[(&str, &str)]| {
        let said = place.run_with(&["ca", "status", "-o", "json"], environment);
        assert_eq!(said.code, Some(0), "{said:?}");
        said.json()["gate"]["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(status(&[]), "Refused");
    assert_eq!(status(&[("POSTERN_INTERCEPT", "0")]), "Refused");
    assert_eq!(status(&[("POSTERN_INTERCEPT", "1")]), "Intercepting");
}

#[test]
fn a_missing_or_broken_ca_exits_with_1_and_says_what_to_do() {
    let place = Place::new();
    let missing = place.run(&["ca", "status"]);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(missing.stdout.contains("`postern ca init` makes"), "{missing:?}");

    place.run(&["ca", "init", "--directory", "ca"]);
    place.write("ca/ca-cert.pem", "no certificate");
    let broken = place.run(&["ca", "status", "--directory", "ca"]);
    assert_eq!(broken.code, Some(1), "{broken:?}");
    assert!(broken.stdout.contains("\nproblem "), "{broken:?}");
}

#[test]
fn without_a_home_the_directory_must_be_given() {
    let place = Place::new();
    let said = place.run_with(&["ca", "status"], &[("HOME", "")]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("HOME"), "{said:?}");
}
