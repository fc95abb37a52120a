//! Endpoints by method and path, with the tricks of threats C5.

use super::{decide, expect_requests, inspection, namespaced, policy};

#[test]
fn only_listed_methods_and_paths_pass() {
    let policy = policy(&[namespaced(
        "p",
        "- {name: a, hosts: [a.example], action: Inspect, endpoints: [
         {methods: [GET], path: /packages/**},
         {methods: [POST, PUT], path: /v1/*/upload},
         {path: /open},
         {methods: [DELETE]}]}",
    )]);
    expect_requests(
        inspection(&decide(&policy, "tls a.example:443")),
        "
        GET /packages/x/y.tgz = Allow agents/p/a
        HEAD /packages/x = Allow agents/p/a
        GET /packages = Allow agents/p/a
        POST /packages/x = Deny postern/builtin/endpoint
        POST /v1/a/upload = Allow agents/p/a
        PUT /v1/a/upload/ = Allow agents/p/a
        POST /v1/a/b/upload = Deny postern/builtin/endpoint
        GET /v1/a/upload = Deny postern/builtin/endpoint
        PATCH /open = Allow agents/p/a
        DELETE /anything = Allow agents/p/a
        DELETE //odd = Allow agents/p/a
        ",
    );
}

#[test]
fn a_trick_with_the_path_reaches_no_endpoint_but_everything() {
    let policy = policy(&[namespaced(
        "p",
        "- {name: a, hosts: [a.example], action: Inspect, endpoints: [{methods: [POST], path: /v1/**}, {methods: [GET], path: /**}]}",
    )]);
    let destination = decide(&policy, "tls a.example:443");
    let inspection = inspection(&destination);
    for path in [
        "//v1/x",
        "/v1/./x",
        "/v1/../x",
        "/v1/%2e%2e/x",
        "/v1%2Fx",
        "/v1/x;y",
        "/v1/%00",
        "/v1\\x",
        "/v1/%zz",
    ] {
        assert_eq!(
            super::request(inspection, &format!("POST {path}")),
            "Deny postern/builtin/endpoint",
            "{path}"
        );
        assert_eq!(super::request(inspection, &format!("GET {path}")), "Allow agents/p/a", "{path}");
    }
    expect_requests(inspection, "POST /v1/x = Allow agents/p/a");
}

#[test]
fn an_inspected_host_without_endpoints_is_open() {
    let policy = policy(&[namespaced("p", "- {name: a, hosts: [a.example], action: Inspect}")]);
    expect_requests(
        inspection(&decide(&policy, "tls a.example:443")),
        "
        GET / = Allow agents/p/a
        OPTIONS * = Allow agents/p/a
        POST //x/../y = Allow agents/p/a
        ",
    );
}
