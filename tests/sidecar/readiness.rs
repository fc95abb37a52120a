//! When the agent beside the gateway may start, and what keeps the gateway itself from starting.

use serde_json::json;

use super::{Published, Volumes};
use crate::support::{Pki, Setup};

fn laid_out(volumes: Volumes) -> Setup {
    volumes.lay_out(Setup::new(&Pki::new("Upstream Test CA"))).0
}

#[test]
fn a_gateway_without_its_volumes_ends_and_says_which() {
    for (setting, path, word) in [
        ("/policy/path", "nowhere", "nowhere"),
        ("/policy/labels", "podinfo/nothing", "podinfo/nothing"),
        ("/interception/caKey", "ca/nothing", "ca/nothing"),
        ("/credentials/directory", "nowhere", "credentials.directory"),
    ] {
        let said = laid_out(Volumes::new()).set(setting, path).run(&["gateway", "--config", "settings.yaml"]);
        assert_eq!(said.status.code(), Some(1), "{said:?}");
        assert!(said.stderr.contains(word), "{word}: {}", said.stderr);
    }
}

#[test]
fn without_a_revision_an_empty_directory_is_a_mistake() {
    let setup = laid_out(Volumes::new()).set("/policy/path", "ca");
    let said = setup.run(&["gateway", "--config", "settings.yaml"]);
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    assert!(said.stderr.contains("holds no policy"), "{}", said.stderr);
}

#[test]
fn a_policy_directory_that_goes_away_leaves_the_last_good_one() {
    let pod = Volumes::new().start();
    let agent = pod.gateway.agent().trusting(pod.ca_roots());

    std::fs::remove_dir_all(pod.gateway.path().join("policy")).unwrap();

    pod.gateway.wait_for_metric("postern_policy_reloads_total", &[("result", "failure")], 1.0);
    assert_eq!(agent.get("https://api.example.com/echo").status, 200);
    let status = pod.gateway.status();
    assert!(status["reasons"].to_string().contains("the newest files cannot be read yet"), "{status}");
    assert_eq!(pod.gateway.admin("/readyz").status, 200, "it may come back: a minute is given to it");
    assert_eq!(pod.gateway.admin("/healthz").status, 200);
}

#[test]
fn it_is_not_ready_until_interception_is_proven() {
    let pod = Volumes::new().start_with(|setup| setup.set("/listeners/transparent", json!({"port": 0})));
    let ready = pod.gateway.admin("/readyz");
    assert_eq!(ready.status, 503);
    assert!(ready.text().contains("interception is not proven"), "{}", ready.text());
}

#[test]
fn the_admin_port_on_all_addresses_is_reached_over_both_families() {
    let pod =
        Volumes::publishing(Published::of("")).start_with(|setup| setup.set("/admin/address", "[::]:0"));
    let port = pod.gateway.address("admin").port();
    for address in [format!("127.0.0.1:{port}"), format!("[::1]:{port}")] {
        let mut connection = crate::support::Connection::open(address.parse().unwrap());
        connection.send("GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert_eq!(connection.read_answer().status, 200, "{address}");
    }
}
