//! Tables of requests with what becomes of the keys in them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::Request;

use super::*;
use crate::decision::{RuleId, Verdict};
use crate::policy::credential::Source;

fn name(text: &str) -> DnsName {
    DnsName::parse(text).unwrap()
}

fn credential(label: &str, host: &str, require: bool) -> Arc<Credential> {
    Arc::new(Credential {
        id: RuleId::new(format!("agents/coding/credentials/{label}")),
        name: label.to_owned(),
        hosts: vec![name(host)],
        ports: None,
        placeholder: format!("postern:{label}"),
        require,
        source: Source::Mounted,
        signing: None,
    })
}

/// `llm` without and `strict` with `require`; `git`, and `gith`, whose placeholder `git`'s begins.
fn all() -> Vec<Arc<Credential>> {
    vec![
        credential("llm", "llm.example", false),
        credential("strict", "strict.example", true),
        credential("git", "git.example", false),
        credential("gith", "gith.example", false),
        credential("second", "llm.example", false),
    ]
}

fn parts(method: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn basic(pair: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}

/// What becomes of a GET: `pass`, `attach NAME`, or the built-in rule that denies it.
fn outcome(host: &str, uri: &str, headers: &[(&str, &str)]) -> String {
    let host = name(host);
    let target = Target { host: Some(&host), port: 443, secure: true };
    said(plan(&parts("GET", uri, headers), &all(), &target))
}

fn said(placement: Placement) -> String {
    match placement {
        Placement::Nothing => "pass".to_owned(),
        Placement::Attach(plan) => format!("attach {}", plan.credential().name),
        Placement::Deny(denial) => {
            assert_eq!(denial.decision.verdict, Verdict::Deny);
            assert_eq!(denial.floor, denial.decision.rule_id() == "postern/builtin/placeholder");
            assert!(
                !denial.decision.why().contains("postern:") && !denial.decision.why().contains("own-key")
            );
            denial.decision.rule_id().replace("postern/builtin/", "deny ")
        }
    }
}

/// The head after the real key `R3al/key+` was put in.
fn attached(uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut parts = parts("GET", uri, headers);
    let host = name("llm.example");
    let target = Target { host: Some(&host), port: 443, secure: true };
    let Placement::Attach(plan) = plan(&parts, &all(), &target) else { panic!("not attached") };
    plan.attach(&mut parts, &Secret::parse(b"R3al/key+").unwrap()).unwrap();
    parts
}

#[test]
fn a_placeholder_is_replaced_in_every_place_and_marked_sensitive() {
    let pair = basic("x-access-token:postern:llm");
    for (name, value, expected) in [
        ("authorization", "Bearer postern:llm", "Bearer R3al/key+".to_owned()),
        ("Authorization", "bearer postern:llm", "bearer R3al/key+".to_owned()),
        ("authorization", "postern:llm", "R3al/key+".to_owned()),
        ("authorization", "token postern:llm", "token R3al/key+".to_owned()),
        ("authorization", &pair, basic("x-access-token:R3al/key+")),
        ("x-api-key", "postern:llm", "R3al/key+".to_owned()),
        ("api-key", "postern:llm", "R3al/key+".to_owned()),
        ("x-goog-api-key", "postern:llm", "R3al/key+".to_owned()),
    ] {
        let parts = attached("/v1/messages?beta=true", &[(name, value), ("accept", "*/*")]);
        assert_eq!(parts.headers[name], expected.as_str(), "{name}");
        assert!(parts.headers[name].is_sensitive());
        assert_eq!(parts.uri, "/v1/messages?beta=true");
    }
}

#[test]
fn a_placeholder_in_the_query_is_replaced_percent_encoded() {
    let parts = attached("/v1/models?alt=sse&key=postern%3Allm&x=%2F", &[]);
    assert_eq!(parts.uri, "/v1/models?alt=sse&key=R3al%2Fkey%2B&x=%2F");
    let parts = attached("https://llm.example/v1/models?key=postern:llm", &[]);
    assert_eq!(parts.uri, "https://llm.example/v1/models?key=R3al%2Fkey%2B");
}

#[test]
fn the_same_placeholder_in_several_places_is_replaced_in_all() {
    let headers = [("x-api-key", "postern:llm"), ("api-key", "postern:llm"), ("api-key", "postern:llm")];
    let parts = attached("/?key=postern:llm&key=postern:llm", &headers);
    assert!(parts.headers.values().all(|value| value == "R3al/key+"));
    assert_eq!(parts.headers.len(), 3);
    assert_eq!(parts.uri, "/?key=R3al%2Fkey%2B&key=R3al%2Fkey%2B");
}

#[test]
fn a_placeholder_that_a_filter_took_away_is_not_attached() {
    let mut parts = parts("GET", "/", &[("x-api-key", "postern:llm")]);
    let plan = Plan { credential: credential("llm", "llm.example", false) };
    parts.headers.clear();
    assert_eq!(plan.attach(&mut parts, &Secret::parse(b"R3al/key+").unwrap()), Err(Unattachable::Gone));
}

#[test]
fn a_placeholder_sent_to_another_host_or_port_or_an_address_is_denied() {
    for headers in [[("x-api-key", "postern:llm")], [("authorization", "Bearer postern:llm")]] {
        assert_eq!(outcome("llm.example", "/", &headers), "attach llm");
        assert_eq!(outcome("git.example", "/", &headers), "deny placeholder");
        assert_eq!(outcome("sub.llm.example", "/", &headers), "deny placeholder");
        let (parts, host) = (parts("GET", "/", &headers), name("llm.example"));
        for target in [
            Target { host: Some(&host), port: 8443, secure: true },
            Target { host: None, port: 443, secure: true },
            Target { host: Some(&host), port: 443, secure: false },
        ] {
            assert_eq!(said(plan(&parts, &all(), &target)), "deny placeholder", "{target:?}");
        }
    }
    assert_eq!(outcome("git.example", "/?key=postern:llm", &[]), "deny placeholder");
}

#[test]
fn a_placeholder_in_any_other_place_is_denied() {
    let (half, proxy) = (basic("u:xpostern:llm"), basic("u:postern:llm"));
    for header in [
        ("cookie", "session=postern:llm"),
        ("x-custom", "postern:llm"),
        ("user-agent", "agent (postern:llm)"),
        ("referer", "https://x.example/?k=postern%3Allm"),
        ("proxy-authorization", proxy.as_str()),
        ("proxy-authorization", "Bearer postern:llm"),
        ("authorization", half.as_str()),
        ("authorization", "Bearer postern%3allm"),
        ("authorization", "Bearer postern:llm, Bearer x"),
        ("x-api-key", "postern:llm2"),
        ("sec-websocket-protocol", "openai-insecure-api-key.postern:llm"),
    ] {
        assert_eq!(outcome("llm.example", "/", &[header]), "deny placeholder", "{header:?}");
        assert_eq!(outcome("unrelated.example", "/", &[header]), "deny placeholder", "{header:?}");
    }
    for uri in [
        "/postern:llm",
        "/a/postern%3Allm",
        "/?access_token=postern:llm",
        "/?q=a+postern%3Allm+b",
        "/?a=1;key=postern:llm",
        "/?key=postern:llm2",
        "/?postern:llm",
        "https://postern:llm@llm.example/",
    ] {
        assert_eq!(outcome("llm.example", uri, &[]), "deny placeholder", "{uri}");
    }
    // In a good place as well does not help.
    assert_eq!(
        outcome("llm.example", "/?q=postern:llm", &[("x-api-key", "postern:llm")]),
        "deny placeholder"
    );
}

#[test]
fn a_placeholder_that_begins_another_is_told_from_it() {
    assert_eq!(outcome("gith.example", "/", &[("x-api-key", "postern:gith")]), "attach gith");
    assert_eq!(outcome("git.example", "/", &[("x-api-key", "postern:gith")]), "deny placeholder");
}

#[test]
fn two_different_credentials_on_one_request_are_denied() {
    let two = [("x-api-key", "postern:llm"), ("authorization", "Bearer postern:second")];
    assert_eq!(outcome("llm.example", "/", &two), "deny credential");
    let two = [("x-api-key", "postern:llm"), ("x-api-key", "postern:second")];
    assert_eq!(outcome("llm.example", "/", &two), "deny credential");
    let foreign = [("x-api-key", "postern:llm"), ("authorization", "Bearer postern:git")];
    assert_eq!(outcome("llm.example", "/", &foreign), "deny placeholder");
    let both = basic("postern:llm:postern:git");
    assert_eq!(outcome("llm.example", "/", &[("authorization", &both)]), "deny placeholder");
}

#[test]
fn an_own_key_beside_the_placeholder_is_denied_in_every_place() {
    let ours = ("x-api-key", "postern:llm");
    for own in [
        ("authorization", "Bearer own-key"),
        ("x-api-key", "own-key"),
        ("api-key", "own-key"),
        ("x-goog-api-key", "own-key"),
    ] {
        assert_eq!(outcome("llm.example", "/", &[ours, own]), "deny credential", "{own:?}");
        assert_eq!(outcome("llm.example", "/", &[own, ours]), "deny credential", "{own:?}");
    }
    assert_eq!(outcome("llm.example", "/?key=own-key", &[ours]), "deny credential");
    assert_eq!(outcome("llm.example", "/?page=2", &[ours, ("cookie", "a=b")]), "attach llm");
}

#[test]
fn an_own_key_alone_passes_where_the_placeholder_is_not_required() {
    for own in [("authorization", "Bearer own-key"), ("x-api-key", "own-key"), ("cookie", "session=own-key")]
    {
        assert_eq!(outcome("llm.example", "/", &[own]), "pass");
        assert_eq!(outcome("unrelated.example", "/", &[own]), "pass");
    }
}

#[test]
fn where_it_is_required_any_other_key_is_denied_whatever_carries_it() {
    let (own_basic, own_user) = (basic("own-key:x"), basic("own-key:postern:strict"));
    for own in [
        ("authorization", "Bearer own-key"),
        ("authorization", "own-key"),
        ("authorization", own_basic.as_str()),
        ("authorization", own_user.as_str()),
        ("authorization", "AWS4-HMAC-SHA256 Credential=AKIA/20261121/us-east-1/bedrock/aws4_request"),
        ("proxy-authorization", "Bearer own-key"),
        ("x-api-key", "own-key"),
        ("api-key", "own-key"),
        ("x-goog-api-key", "own-key"),
        ("xi-api-key", "own-key"),
        ("x-amz-security-token", "own-key"),
        ("x-goog-iam-authorization-token", "own-key"),
        ("ocp-apim-subscription-key", "own-key"),
        ("private-token", "own-key"),
        ("github-bearer", "own-key"),
        ("x-auth-token", "own-key"),
        ("cookie", "__cf_bm=1; sessionKey=own-key"),
        ("sec-websocket-protocol", "realtime, openai-insecure-api-key.own-key"),
        ("x-functions-key", "own-key"),
        ("x-figma-token", "own-key"),
        ("circle-token", "own-key"),
        ("x-consul-token", "own-key"),
        ("x-vault-token", "own-key"),
        ("x-subscription-token", "own-key"),
        ("x-shopify-access-token", "own-key"),
        ("dd-application-key", "own-key"),
        ("dd-api-key", "own-key"),
        ("cf-access-client-secret", "own-key"),
        ("x-sentry-auth", "own-key"),
        ("token-of-nobody", "glpat-0123456789abcdefghij"),
        ("user-agent", "agent (sk-ant-attackers-own)"),
        ("x-request-id", "sk%2Dant%2Dattackers%2Down"),
        ("x-note", basic("u:ghp_0123456789abcdefghijABCDEFGHIJ012345").as_str()),
        ("ghs_0123456789abcdefghijabcdefghij012345", "1"),
    ] {
        assert_eq!(outcome("strict.example", "/", &[own]), "deny credential", "{own:?}");
        let with_ours = [own, ("x-api-key", "postern:strict")];
        assert_eq!(outcome("strict.example", "/", &with_ours), "deny credential", "{own:?}");
    }
}

#[test]
fn where_it_is_required_any_other_key_in_the_url_is_denied() {
    for uri in [
        "/?key=own-key",
        "/?Key=own-key",
        "/?%6bey=own-key",
        "/?a=1;key=own-key",
        "/?access_token=own-key",
        "/?api-key=own-key",
        "/?token=own-key",
        "/?X-Amz-Signature=0a&X-Amz-Credential=AKIA",
        "/?x-goog-signature=0a",
        "/?sv=1&sig=own-key",
        "/?code=own-key",
        "/?hapikey=own-key",
        "/?hapi%6Bey=own-key",
        "/?Subscription-Key=own-key",
        "/?apiKey=own-key",
        "/?x.api.key=own-key",
        "/?circle-token=own-key",
        "/?client%5Fsecret=own-key",
        "/?token[]=own-key",
        "/?OSSAccessKeyId=own-key",
        "/?cursor=ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "/?q=a%252Cglpat-0123456789abcdefghij",
        "/a/sk-ant-attackers-own",
        "https://own-key@strict.example/",
    ] {
        assert_eq!(outcome("strict.example", uri, &[]), "deny credential", "{uri}");
    }
}

#[test]
fn where_it_is_required_the_placeholder_and_requests_without_a_key_pass() {
    let pair = basic("x-access-token:postern:strict");
    assert_eq!(outcome("strict.example", "/", &[("authorization", &pair)]), "attach strict");
    assert_eq!(outcome("strict.example", "/?key=postern%3Astrict", &[]), "attach strict");
    let headers = [
        ("authorization", "Bearer postern:strict"),
        ("cookie", "__cf_bm=a; _cfuvid=b"),
        ("sec-websocket-protocol", "realtime, openai-beta.realtime-v1"),
        ("x-csrf-token", "a"),
        ("idempotency-key", "d41d8cd98f00b204e9800998ecf8427e"),
        ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        ("x-atlassian-token", "no-check"),
        ("x-amz-continuation-token", "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM="),
        ("x-goog-api-client", "a"),
        ("x-api-key", ""),
    ];
    assert_eq!(outcome("strict.example", "/?alt=sse&pageToken=a&monkey=b", &headers), "attach strict");
    let cursors =
        "/v1/models?limit=1&after=d41d8cd98f00b204e9800998ecf8427e&page_token=eyJsYXN0IjoxMjM0NX0&sort_key=x";
    assert_eq!(outcome("strict.example", cursors, &headers[1..]), "pass");
    assert_eq!(outcome("strict.example", "/", &[("authorization", "Bearer ")]), "pass");
}

#[test]
fn what_only_looks_random_is_remarked_where_the_placeholder_is_required() {
    let said = |host: &str, uri: &str, headers: &[(&str, &str)]| {
        let host = name(host);
        let target = Target { host: Some(&host), port: 443, secure: true };
        remark(&parts("GET", uri, headers), &all(), &target)
    };
    let random = [("x-trace-id", "d41d8cd98f00b204e9800998ecf8427e")];
    let remark = said("strict.example", "/", &random).unwrap();
    assert!(remark.contains("the header x-trace-id") && !remark.contains("d41d8"), "{remark}");
    assert!(said("strict.example", "/?after=Zq9tYw1cKx8vB2nM4pL6rD0s", &[]).unwrap().contains("the query"));
    assert_eq!(said("llm.example", "/", &random), None);
    let ordinary = [("user-agent", "claude-cli/1.0.83 (external, cli)"), ("x-api-key", "postern:strict")];
    assert_eq!(said("strict.example", "/?limit=100", &ordinary), None);
}

#[test]
fn minting_endpoints_and_trace_are_denied_on_credentialed_hosts_alone() {
    let ask = |method: &str, host: &str, path: &str| {
        let host = name(host);
        let target = Target { host: Some(&host), port: 443, secure: true };
        let head = parts(method, path, &[("x-api-key", "own-key")]);
        said(plan(&head, &all(), &target))
    };
    assert_eq!(ask("POST", "llm.example", "/v1/realtime/client_secrets"), "deny minting");
    assert_eq!(ask("POST", "llm.example", "/v1/x/..%2Frealtime//client_secrets"), "deny minting");
    assert_eq!(ask("POST", "llm.example", "/v1/responses"), "pass");
    assert_eq!(ask("POST", "unrelated.example", "/v1/realtime/client_secrets"), "pass");
    assert_eq!(ask("TRACE", "llm.example", "/"), "deny credential");
    assert_eq!(ask("TRACE", "unrelated.example", "/"), "pass");
}

#[test]
fn a_denial_that_is_only_audited_still_knows_what_to_attach() {
    let host = name("llm.example");
    let target = Target { host: Some(&host), port: 443, secure: true };
    let head = parts("POST", "/v1/realtime/client_secrets", &[("x-api-key", "postern:llm")]);
    let Placement::Deny(denial) = plan(&head, &all(), &target) else { panic!("not denied") };
    assert_eq!(denial.plan.unwrap().credential().name, "llm");
    assert!(!denial.floor);
}

#[test]
fn two_tiers_that_share_a_placeholder_and_a_host_are_one_credential() {
    let (cluster, mut own) =
        (credential("llm", "llm.example", false), credential("llm", "llm.example", false));
    Arc::make_mut(&mut own).id = RuleId::new("-/fleet/credentials/llm");
    let host = name("llm.example");
    let target = Target { host: Some(&host), port: 443, secure: true };
    let head = parts("GET", "/", &[("x-api-key", "postern:llm")]);
    let Placement::Attach(plan) = plan(&head, &[Arc::clone(&cluster), own], &target) else {
        panic!("not attached")
    };
    assert_eq!(plan.credential().id, cluster.id);
}
