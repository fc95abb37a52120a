//! The explicit way in: CONNECT and the absolute form.

use crate::support::{Pki, Setup, Upstream};

#[test]
fn an_inspected_request_reaches_the_upstream_and_its_answer_comes_back() {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = Upstream::tls(&upstreams, &["api.example.com"]);
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", upstream.address())
        .destinations(&["{name: api, hosts: [api.example.com], action: Inspect}"])
        .start();

    let answer = gateway.agent().get("https://api.example.com/echo?a=b");

    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["target"], "/echo?a=b");
}
