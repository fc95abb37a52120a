//! The leaves that agents are shown, the verification behind them, and the gate of interception.

use serde_json::json;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::X509Certificate;

use super::{INSPECT_API, inspected, inspected_with};
use crate::support::setup::policy;
use crate::support::{Connection, Pki, Setup, Upstream};

fn presented(connection: &Connection, look: impl FnOnce(&X509Certificate<'_>)) {
    let leaf = connection.peer_certificates().remove(0);
    let (rest, certificate) = x509_parser::parse_x509_certificate(&leaf).unwrap();
    assert!(rest.is_empty());
    look(&certificate);
}

#[test]
fn a_leaf_is_short_lived_and_for_exactly_one_name() {
    let test = inspected_with(|setup| {
        setup.destinations(&["{name: all, hosts: ['*.example.com'], action: Inspect}"])
    });

    let connection = test.gateway.agent().tls("api.example.com");

    presented(&connection, |leaf| {
        let names = leaf.subject_alternative_name().unwrap().unwrap();
        assert_eq!(names.value.general_names, [GeneralName::DNSName("api.example.com")]);
        let validity = leaf.validity();
        let seconds = validity.not_after.timestamp() - validity.not_before.timestamp();
        assert!(seconds <= 24 * 3600 + 300, "{seconds}");
        let now = time::OffsetDateTime::now_utc().unix_timestamp();
        assert!(validity.not_before.timestamp() <= now - 240, "it is backdated for clocks that are behind");
        assert!(leaf.extended_key_usage().unwrap().unwrap().value.server_auth);
        assert!(leaf.key_usage().unwrap().unwrap().value.digital_signature());
        assert!(!leaf.is_ca());
    });
}

#[test]
fn every_connection_is_a_full_handshake() {
    let test = inspected();
    let agent = test.gateway.agent();
    let config = agent.dial("api.example.com").config();

    for _ in 0..2 {
        let tunnel = agent.connect("api.example.com:443").unwrap();
        let mut connection = tunnel.start_tls("api.example.com", config.clone()).unwrap();
        connection.send("GET /echo HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
        connection.read_answer();
        assert_eq!(connection.handshake(), Some(rustls::HandshakeKind::Full));
    }
}

#[test]
fn a_client_of_tls_1_2_is_served() {
    let test = inspected();
    let dial = test.gateway.agent().dial("api.example.com").versions(&[&rustls::version::TLS12]);

    let mut connection = dial.open().unwrap();
    connection.send("GET /echo HTTP/1.1\r\nHost: api.example.com\r\n\r\n");

    assert_eq!(connection.read_answer().status, 200);
}

#[test]
fn a_client_that_rejects_the_leaf_is_counted_and_never_tunnelled() {
    let test = inspected();
    let pinned = test.gateway.agent().trusting(test.upstreams.roots());

    for _ in 0..2 {
        assert!(pinned.dial("api.example.com").open().is_err());
    }

    test.gateway.wait_for_metric("postern_leaf_rejected_total", &[], 2.0);
    assert!(test.upstream.requests().is_empty());
    assert_eq!(test.gateway.metric("postern_connections_total", &[("action", "Tunnel")]), 0.0);
    let event = test.gateway.wait_for("Connection", "Deny");
    assert_eq!(event["destination"]["host"], "api.example.com");
    assert!(event["decision"]["reason"].as_str().unwrap().contains("certificate"), "{event}");
}

#[test]
fn an_upstream_that_cannot_be_verified_is_never_vouched_for() {
    let upstreams = Pki::new("Upstream Test CA");
    let stranger = Pki::new("Somebody Else's CA");
    let expired = upstreams.leaf_with(&["api.example.com"], |leaf| {
        leaf.not_before = time::OffsetDateTime::now_utc() - time::Duration::days(9);
        leaf.not_after = time::OffsetDateTime::now_utc() - time::Duration::days(1);
    });
    for identity in [stranger.leaf(&["api.example.com"]), upstreams.leaf(&["other.example.com"]), expired] {
        let upstream = Upstream::build().identity(identity).start();
        let gateway = Setup::new(&upstreams)
            .host("api.example.com", upstream.address())
            .destinations(&[INSPECT_API])
            .start();
        let answer = gateway.agent().get("https://api.example.com/echo");
        assert_eq!(answer.status, 502, "{answer:?}");
        assert!(answer.text().to_lowercase().contains("certificate"), "{}", answer.text());
        assert!(upstream.requests().is_empty());
    }
}

#[test]
fn what_a_private_ca_has_signed_is_refused_with_where_to_name_it() {
    let (upstreams, corporate) = (Pki::new("Upstream Test CA"), Pki::new("Corporate CA"));
    for (identity, is_unknown) in
        [(corporate.leaf(&["api.example.com"]), true), (upstreams.leaf(&["other.example.com"]), false)]
    {
        let upstream = Upstream::build().identity(identity).start();
        let gateway = Setup::new(&upstreams)
            .host("api.example.com", upstream.address())
            .destinations(&[INSPECT_API])
            .start();
        let text = gateway.agent().get("https://api.example.com/echo").text();
        for remedy in ["upstream.roots", "SSL_CERT_FILE"] {
            assert_eq!(text.contains(remedy), is_unknown, "{text}");
        }
    }
}

#[test]
fn a_certificate_of_a_ca_that_a_server_shows_as_its_own_is_refused_with_what_to_do() {
    let upstreams = Pki::new("Upstream Test CA");
    let authority = |leaf: &mut rcgen::CertificateParams| {
        leaf.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained)
    };
    let identity = upstreams.leaf_with(&["api.example.com"], authority);
    let upstream = Upstream::build().identity(identity).start();
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", upstream.address())
        .destinations(&[INSPECT_API])
        .start();
    let text = gateway.agent().get("https://api.example.com/echo").text();
    assert!(text.contains("give it one that this CA has issued"), "{text}");
}

#[test]
fn roots_of_the_environment_are_trusted_upstream_as_in_a_run_and_posterns_own_are_not() {
    let corporate = Pki::new("Corporate CA");
    let upstream = Upstream::build().identity(corporate.leaf(&["api.example.com"])).start();
    for variable in ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"] {
        let setup = Setup::new(&Pki::new("Upstream Test CA"))
            .host("api.example.com", upstream.address())
            .destinations(&[INSPECT_API]);
        // The bundle of a run holds Postern's own CA, too.
        let bundle = setup.path().join("bundle.pem");
        let read = |pki: &Pki| std::fs::read_to_string(pki.certificate_path()).unwrap();
        std::fs::write(&bundle, format!("{}{}", read(setup.authority()), read(&corporate))).unwrap();
        let gateway = setup.variable(variable, bundle.to_str().unwrap()).start();
        assert_eq!(gateway.agent().get("https://api.example.com/echo").status, 200, "{variable}");
        let roots = &gateway.status()["settings"]["upstream"]["roots"];
        assert!(roots.to_string().contains("bundle.pem"), "{roots}");

        let laundered = gateway.authority().leaf(&["api.example.com"]);
        let impostor = Upstream::build().identity(laundered).start();
        let settings = std::fs::read_to_string(gateway.path().join("settings.yaml")).unwrap();
        let anew = settings.replace(&upstream.address().to_string(), &impostor.address().to_string());
        assert_ne!(settings, anew);
        let before = gateway.metric("postern_policy_reloads_total", &[("result", "success")]);
        gateway.write("settings.yaml", &anew);
        gateway.wait_for_metric("postern_policy_reloads_total", &[("result", "success")], before + 1.0);
        assert_eq!(gateway.agent().get("https://api.example.com/echo").status, 502, "{variable}");
        assert!(impostor.requests().is_empty());
    }
}

#[test]
fn roots_of_the_environment_are_those_of_the_start_and_of_absolute_paths() {
    let corporate = Pki::new("Corporate CA");
    let upstream = Upstream::build().identity(corporate.leaf(&["api.example.com"])).start();
    for (is_there, is_relative, status) in [(true, false, 200), (false, false, 502), (true, true, 502)] {
        let setup = Setup::new(&Pki::new("Upstream Test CA"))
            .host("api.example.com", upstream.address())
            .destinations(&[INSPECT_API]);
        let bundle = setup.path().join("bundle.pem");
        let content = std::fs::read_to_string(corporate.certificate_path()).unwrap();
        if is_there {
            std::fs::write(&bundle, &content).unwrap();
        }
        let named = if is_relative { "bundle.pem" } else { bundle.to_str().unwrap() };
        let gateway = setup.variable("NODE_EXTRA_CA_CERTS", named).start();

        gateway.write("bundle.pem", &format!("# another\n{content}"));
        gateway.reload_policy(
            &policy(&[INSPECT_API, "{name: b, hosts: [b.example.com], action: Deny}"]),
            "success",
        );

        assert_eq!(
            gateway.agent().get("https://api.example.com/echo").status,
            status,
            "{is_there} {is_relative}"
        );
        let roots = gateway.status()["settings"]["upstream"]["roots"].to_string();
        assert_eq!(roots.contains("bundle.pem"), status == 200, "{roots}");
    }
}

#[test]
fn posterns_own_authority_is_never_trusted_upstream() {
    let test = inspected();
    let laundered = test.gateway.authority().leaf(&["api.example.com"]);
    let upstream = Upstream::build().identity(laundered).start();
    let gateway = Setup::new(&test.upstreams)
        .host("api.example.com", upstream.address())
        .set("/interception/caCertificate", json!(test.gateway.authority().certificate_path()))
        .set("/interception/caKey", json!(test.gateway.authority().key_path()))
        .destinations(&[INSPECT_API])
        .start();
    let agent = gateway.agent().trusting(test.gateway.authority().roots());

    assert_eq!(agent.get("https://api.example.com/echo").status, 502);
}

#[test]
fn one_upstream_may_have_roots_and_a_client_certificate_of_its_own() {
    let (upstreams, corporate) = (Pki::new("Upstream Test CA"), Pki::new("Corporate Test CA"));
    let upstream = Upstream::build()
        .identity(corporate.leaf(&["llm.corp.example"]))
        .client_certificates(&corporate)
        .start();
    let client = corporate.leaf(&["agent.corp.example"]);
    std::fs::write(corporate.directory().join("client.pem"), &client.certificate_pem).unwrap();
    std::fs::write(corporate.directory().join("client-key.pem"), client.key_pem()).unwrap();
    let gateway = Setup::new(&upstreams)
        .host("llm.corp.example", upstream.address())
        .set(
            "/upstream/tls",
            json!({"llm.corp.example": {
                "roots": [corporate.certificate_path()],
                "certificate": corporate.directory().join("client.pem"),
                "key": corporate.directory().join("client-key.pem"),
            }}),
        )
        .destinations(&["{name: llm, hosts: [llm.corp.example], action: Inspect}"])
        .start();

    let answer = gateway.agent().get("https://llm.corp.example/echo");

    assert_eq!(answer.status, 200, "{answer:?}");
    let link = &upstream.links()[0];
    assert_eq!(link.client_certificate.as_deref(), Some(client.certificate.as_ref()));
}

#[test]
fn a_client_certificate_of_the_agents_own_passes_a_tunnel_alone() {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = Upstream::build()
        .identity(upstreams.leaf(&["api.example.com"]))
        .client_certificates(&upstreams)
        .start();
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", upstream.address())
        .destinations(&["{name: api, hosts: [api.example.com], action: Tunnel}"])
        .start();
    let dial = gateway.agent().trusting(upstreams.roots()).dial("api.example.com");

    let mut connection = dial.identity(upstreams.leaf(&["agent"])).open().unwrap();
    connection.send("GET /echo HTTP/1.1\r\nHost: api.example.com\r\n\r\n");

    assert_eq!(connection.read_answer().status, 200);
}

#[test]
fn an_agent_without_alpn_gets_http_1_1() {
    let test = inspected();
    let mut connection = test.gateway.agent().dial("api.example.com").protocols(&[]).open().unwrap();

    connection.send("GET /echo HTTP/1.1\r\nHost: api.example.com\r\n\r\n");

    assert_eq!(connection.read_answer().version, "HTTP/1.1");
}

#[test]
fn without_interception_nothing_is_decrypted() {
    let test = inspected_with(|setup| {
        let setup = setup.set("/interception", json!({"mode": "Off"})).reverse("https://api.example.com");
        setup.variable("POSTERN_INTERCEPT", "")
    });
    let tunnel = test.gateway.agent().connect("api.example.com:443");
    let mut reverse = test.gateway.reverse();

    reverse.send("GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n");

    assert_eq!(reverse.read_answer().status, 200);
    match tunnel {
        Err(answer) => answer.assert_refused(403, "postern/builtin/interception-off"),
        Ok(tunnel) => {
            let config = test.gateway.agent().dial("api.example.com").config();
            assert!(tunnel.start_tls("api.example.com", config).is_err());
        }
    }
    let event = test.gateway.wait_for_event("the denial", |event| event["decision"]["verdict"] == "Deny");
    assert_eq!(event["decision"]["rule"], "postern/builtin/interception-off");
}

#[test]
fn interception_takes_more_than_a_settings_file() {
    let setup = Setup::new(&Pki::new("Upstream Test CA")).variable("POSTERN_INTERCEPT", "");

    let said = setup.run(&["gateway", "--config", "settings.yaml"]);

    assert_eq!(said.status.code(), Some(1), "{said:?}");
    assert!(said.stderr.contains("POSTERN_INTERCEPT"), "{}", said.stderr);
}

#[test]
fn an_authority_that_is_none_is_refused_by_what_is_wrong_with_it() {
    let (plain, other) = (Pki::new("Upstream Test CA"), Pki::new("Another CA"));
    let no_authority = Pki::with("No CA", |root| root.is_ca = rcgen::IsCa::NoCa);
    let expired = Pki::with("Expired CA", |root| {
        root.not_before = time::OffsetDateTime::now_utc() - time::Duration::days(20);
        root.not_after = time::OffsetDateTime::now_utc() - time::Duration::days(10);
    });
    for (certificate, key, complaint) in [
        (no_authority.certificate_path(), no_authority.key_path(), "CA"),
        (expired.certificate_path(), expired.key_path(), "expired"),
        (plain.certificate_path(), other.key_path(), "does not belong"),
        (plain.directory().join("absent.pem"), plain.key_path(), "absent.pem"),
    ] {
        let setup = Setup::new(&plain)
            .set("/interception/caCertificate", json!(certificate))
            .set("/interception/caKey", json!(key));
        let said = setup.run(&["gateway", "--config", "settings.yaml", "--check"]);
        assert_eq!(said.status.code(), Some(1), "{said:?}");
        assert!(said.stderr.contains(complaint), "{complaint}: {}", said.stderr);
    }
}

#[test]
fn an_approved_fingerprint_must_be_the_authoritys() {
    let setup = |approval: fn(&Setup) -> String| {
        let setup = Setup::new(&Pki::new("Upstream Test CA"));
        let approval = approval(&setup);
        setup.set("/interception/caApproval", approval)
    };
    let check = ["gateway", "--config", "settings.yaml", "--check"];

    let right = setup(|setup| setup.authority().fingerprint()).run(&check);
    let wrong = setup(|_| format!("sha256:{}", "0".repeat(64))).run(&check);

    assert_eq!(right.status.code(), Some(0), "{right:?}");
    assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
    assert!(wrong.stderr.contains("caApproval"), "{}", wrong.stderr);
}
