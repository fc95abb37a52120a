//! Keys: the agent's own, ours sent astray, ours coming back, and those that could be made with ours.

use std::os::unix::process::ExitStatusExt;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};

use crate::gateway::{Inspected, inspected_with};
use crate::support::upstream::{RawUpstream, Reply, Step};
use crate::support::{Answer, Gateway, Pki, Setup, Upstream};

/// A key with every character that one encoding or another writes differently.
pub(super) const CANARY: &str = "sk-canary/+=&\"7f3a9c";
pub(super) const PLACEHOLDER: &str = "sk-placeholder-api";
const HOST: &str = "Host: api.example.com\r\n";

/// G1: where a policy requires its placeholder, no key of the agent's own leaves, whatever carries it.
/// G14: cookies, subprotocols, query parameters and presigned URLs are carriers too.
#[test]
fn no_key_of_the_agents_own_leaves_where_ours_is_required() {
    let test = with_credential(", require: true");
    let basic = format!("Basic {}", BASE64_STANDARD.encode("user:ghp_attackers"));
    for (name, value) in [
        ("Authorization", "Bearer sk-attackers"),
        ("Authorization", basic.as_str()),
        ("Authorization", "AWS4-HMAC-SHA256 Credential=AKIAATTACKER/20260101/us-east-1/s3/aws4_request"),
        ("X-Api-Key", "sk-attackers"),
        ("Api-Key", "sk-attackers"),
        ("X-Goog-Api-Key", "sk-attackers"),
        ("Cookie", "session=attackers"),
        ("Proxy-Authorization", "Bearer sk-attackers"),
        ("X-Amz-Security-Token", "attackers"),
        ("Private-Token", "attackers"),
        ("Sec-WebSocket-Protocol", "realtime, openai-insecure-api-key.sk-attackers"),
        ("X-Functions-Key", "attackers"),
        ("X-Figma-Token", "attackers"),
        ("Circle-Token", "attackers"),
        ("X-Consul-Token", "attackers"),
        ("DD-Application-Key", "attackers"),
        ("DD-API-Key", "attackers"),
        ("X-Vendor-Of-Tomorrow-Token", "attackers"),
    ] {
        let answer = send(&test, "/echo", &[(name, value)]);
        assert_eq!(answer.status, 403, "{name}: {value}: {answer:?}");
        answer.assert_refused(403, "postern/builtin/credential");
        assert!(!answer.text().contains("attackers"), "{}", answer.text());
    }
    for query in [
        "key=sk-attackers",
        "access_token=a",
        "api%5fkey=a",
        "X-Amz-Signature=a&X-Amz-Credential=b",
        "a=1;token=b",
        "code=a",
        "hapikey=a",
        "hapi%6bey=a",
        "Subscription-Key=a",
        "apiKey=a",
    ] {
        send(&test, &format!("/echo?{query}"), &[]).assert_refused(403, "postern/builtin/credential");
    }
    assert!(test.upstream.requests().is_empty());

    assert_eq!(send(&test, "/echo?q=ordinary", &[]).status, 200, "without a key it passes");
    assert_eq!(send(&test, "/echo", &[("X-Api-Key", PLACEHOLDER)]).status, 200);
    assert_eq!(test.upstream.requests()[1].header("x-api-key"), Some(CANARY));
}

/// G1: a value in the shape of a known key is the agent's own, under whatever name it travels.
/// G14: in any header, the path or the query, percent-encoded or inside Basic; what only looks random is recorded.
#[test]
fn a_value_in_the_shape_of_a_known_key_leaves_under_no_name() {
    let test = with_credential(", require: true");
    let github = "ghp_0123456789abcdefghijATTACKERS0123456";
    let basic = format!("Basic {}", BASE64_STANDARD.encode(format!("user:{github}")));
    for (path, name, value) in [
        ("/echo", "X-Request-Id", github),
        ("/echo", "User-Agent", "agent (sk-ant-ATTACKERS-own-key)"),
        ("/echo", "X-Note", "sk%2Dant%2DATTACKERS%2Down%2Dkey"),
        ("/echo", "X-Note", basic.as_str()),
        ("/echo", "Cookie", "__cf_bm=glpat-0123456789ATTACKERS0"),
        ("/echo?cursor=AKIAATTACKERS2345672", "X-A", "b"),
        ("/echo?q=%2567hp_0123456789abcdefghijATTACKERS0123456", "X-A", "b"),
        ("/echo/sk-ant-ATTACKERS-own-key", "X-A", "b"),
    ] {
        let answer = send(&test, path, &[(name, value)]);
        assert_eq!(answer.status, 403, "{path} {name}: {answer:?}");
        answer.assert_refused(403, "postern/builtin/credential");
        assert!(!answer.text().contains("ATTACKERS"), "{}", answer.text());
    }
    assert!(test.upstream.requests().is_empty());

    let random = "d41d8cd98f00b204e9800998ecf8427e";
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for (path, name, value) in [
        ("/echo", "Idempotency-Key", random),
        ("/echo", "Traceparent", trace),
        ("/echo?after=d41d8cd98f00b204e9800998ecf8427e&pageToken=eyJsYXN0IjoxMjM0NX0", "X-A", "b"),
    ] {
        assert_eq!(send(&test, path, &[(name, value), ("X-Api-Key", PLACEHOLDER)]).status, 200, "{name}");
    }
    let remarked = test.gateway.wait_for_event("a value that looks random", |event| {
        let reason = event["decision"]["reason"].as_str().unwrap_or_default();
        event["kind"] == "Request" && reason.contains("the header idempotency-key")
    });
    assert_eq!(remarked["decision"]["verdict"], "Allow");
    assert!(test.gateway.events().iter().all(|event| !event.to_string().contains(random)));
}

/// G3: a placeholder towards a host that is not its own, allowed or not, is denied and goes nowhere.
/// G14: in whichever place it stands, and however it is written.
#[test]
fn a_placeholder_towards_another_host_is_denied() {
    let upstreams = Pki::new("Upstream Test CA");
    let (api, other) =
        (Upstream::tls(&upstreams, &["api.example.com"]), Upstream::tls(&upstreams, &["other.example.com"]));
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", api.address())
        .host("other.example.com", other.address())
        .policy(&policy(""))
        .credential("api", CANARY)
        .start();
    let to_other = |path: &str, name: &str, value: &str| {
        let url = format!("https://other.example.com{path}");
        gateway.agent().request("GET", &url, &[(name, value)], b"")
    };
    let basic = format!("Basic {}", BASE64_STANDARD.encode(format!("x:{PLACEHOLDER}")));

    for (path, name, value) in [
        ("/echo", "X-Api-Key", PLACEHOLDER),
        ("/echo", "Authorization", &format!("Bearer {PLACEHOLDER}")),
        ("/echo", "Authorization", basic.as_str()),
        ("/echo", "X-Note", &format!("look: {PLACEHOLDER}!")),
        ("/echo", "Cookie", &format!("k={PLACEHOLDER}")),
        (&format!("/echo/{PLACEHOLDER}"), "X-A", "b"),
        (&format!("/echo?key={PLACEHOLDER}"), "X-A", "b"),
        ("/echo?q=sk%2Dplaceholder%2dapi", "X-A", "b"),
    ] {
        to_other(path, name, value).assert_refused(403, "postern/builtin/placeholder");
    }
    assert!(other.requests().is_empty());
    let event = gateway.wait_for("Request", "Deny");
    assert_eq!(event["decision"]["rule"], "postern/builtin/placeholder");

    assert_eq!(to_other("/echo", "X-A", "b").status, 200);
    let headers = [("X-Api-Key", PLACEHOLDER)];
    assert_eq!(gateway.agent().request("GET", "https://api.example.com/echo", &headers, b"").status, 200);
    assert_eq!(api.requests()[0].header("x-api-key"), Some(CANARY));
}

/// G4: a key that comes back is masked: in a body, an error, a header, a redirect, a trailer, an answer to HEAD.
#[test]
fn a_key_that_comes_back_is_masked_wherever_it_stands() {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = Upstream::build()
        .identity(upstreams.leaf(&["api.example.com"]))
        .script(|seen| {
            let key = seen.header("x-api-key").unwrap_or_default().to_owned();
            let trailers = vec![("x-checksum", key.clone())];
            Some(match seen.path() {
                "/error" => Reply::of(401, format!("invalid key: {key} is wrong")),
                "/redirect" => {
                    Reply::of(302, "").header("location", format!("https://other.example.com/?k={key}"))
                }
                "/trailers" => Reply::streaming(vec![Step::Data("body".into()), Step::Trailers(trailers)])
                    .header("trailer", "x-checksum"),
                _ => Reply::of(200, format!("you said {key}, I think")).header("x-reflected", key),
            })
        })
        .start();
    let gateway = gateway_for(&upstreams, upstream.address(), "");
    let agent = gateway.agent();
    let ask = |method: &str, path: &str| {
        let mut connection = agent.tls("api.example.com");
        connection.send(format!("{method} {path} HTTP/1.1\r\n{HOST}TE: trailers\r\nX-Api-Key: {PLACEHOLDER}\r\nConnection: close\r\n\r\n"));
        if method == "HEAD" { connection.read_head() } else { connection.read_answer() }
    };

    let h2 = agent.h2("api.example.com");
    let over_h2 = |path: &str| {
        let url = format!("https://api.example.com{path}");
        h2.request("GET", &url, &[("x-api-key", PLACEHOLDER), ("te", "trailers")], b"").unwrap()
    };
    for path in ["/", "/error", "/redirect", "/trailers"] {
        for answer in [ask("GET", path), ask("HEAD", path), over_h2(path)] {
            assert!(!shown(&answer).contains("canary"), "{path}: {answer:?}");
        }
    }
    let body = ask("GET", "/").text();
    assert!(body.starts_with("you said ") && body.ends_with(", I think"), "the rest is untouched: {body}");
    assert!(upstream.requests().iter().all(|seen| seen.header("x-api-key") == Some(CANARY)));
}

/// G4: an upgrade that is declined with the key in its answer, or granted with it in its head, is masked too.
#[test]
fn a_key_in_the_answer_to_an_upgrade_is_masked() {
    let reflecting = |head: &'static str| {
        let upstreams = Pki::new("Upstream Test CA");
        let upstream =
            RawUpstream::start(Some(&upstreams.leaf(&["api.example.com"])), move |connection, heard| {
                heard.push(connection.read_until(b"\r\n\r\n"));
                let accept = crate::support::upstream::accept_key("dGhlIHNhbXBsZSBub25jZQ==");
                connection.send(head.replace("KEY", CANARY).replace("ACCEPT", &accept));
                let _ = connection.ending();
            });
        let gateway = gateway_for(&upstreams, upstream.address(), ", upgrade: Allow");
        let mut connection = gateway.agent().tls("api.example.com");
        connection.send(format!(
            "GET /ws HTTP/1.1\r\n{HOST}Connection: Upgrade\r\nUpgrade: websocket\r\nX-Api-Key: {PLACEHOLDER}\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        ));
        let answer = connection.read_answer();
        let heard = String::from_utf8(upstream.heard().entries().concat()).unwrap();
        assert!(heard.contains(CANARY), "the key was attached: {heard}");
        answer
    };

    let declined =
        reflecting("HTTP/1.1 403 Forbidden\r\nX-Key: KEY\r\nContent-Length: 31\r\n\r\nwrong key: KEY");
    assert_eq!(declined.status, 403);
    assert!(!shown(&declined).contains("canary"), "{declined:?}");
    let granted = reflecting(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Key: KEY\r\n\
         Sec-WebSocket-Accept: ACCEPT\r\n\r\n",
    );
    assert_eq!(granted.status, 101);
    assert!(!shown(&granted).contains("canary"), "{granted:?}");
}

/// G5: redirects are the agent's to follow; nothing goes to their target by itself, and no key with the agent.
#[test]
fn a_redirect_carries_no_key_elsewhere() {
    let upstreams = Pki::new("Upstream Test CA");
    let (api, other) =
        (Upstream::tls(&upstreams, &["api.example.com"]), Upstream::tls(&upstreams, &["other.example.com"]));
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", api.address())
        .host("other.example.com", other.address())
        .policy(&policy(""))
        .credential("api", CANARY)
        .start();
    let get = |url: &str| gateway.agent().request("GET", url, &[("X-Api-Key", PLACEHOLDER)], b"");

    let answer = get("https://api.example.com/redirect?to=https://other.example.com/echo");
    assert_eq!((answer.status, answer.header("location")), (302, Some("https://other.example.com/echo")));
    get("https://other.example.com/echo").assert_refused(403, "postern/builtin/placeholder");
    assert!(other.links().is_empty() || other.requests().is_empty());

    let answer = get("https://api.example.com/redirect?to=/echo");
    assert_eq!((answer.status, answer.header("location")), (302, Some("/echo")));
    assert_eq!(get("https://api.example.com/echo").status, 200);
    assert_eq!(api.requests().last().unwrap().header("x-api-key"), Some(CANARY));
}

/// G6: one request, one credential: a second placeholder, or a key beside the placeholder, is denied.
#[test]
fn a_request_carries_one_credential() {
    let second = "---\napiVersion: postern.dev/v1alpha1\nkind: ClusterEgressPolicy\nmetadata: {name: base}\nspec:\n\
                  \x20 credentials:\n    - {name: base, hosts: [api.example.com], secretKeyRef: {name: keys, key: base}, \
                  placeholder: sk-placeholder-base}\n";
    let test = inspected_with(|setup| {
        setup
            .policy(&format!("{}{second}", policy("")))
            .credential("api", CANARY)
            .credential("base", "sk-canary-base")
    });
    let bearer = format!("Bearer {PLACEHOLDER}");

    for headers in [
        [("X-Api-Key", PLACEHOLDER), ("Authorization", "Bearer sk-placeholder-base")],
        [("X-Api-Key", PLACEHOLDER), ("Authorization", "Bearer sk-attackers")],
        [("Authorization", bearer.as_str()), ("X-Goog-Api-Key", "attackers")],
    ] {
        send(&test, "/echo", &headers).assert_refused(403, "postern/builtin/credential");
    }
    let query = send(&test, "/echo?key=attackers", &[("X-Api-Key", PLACEHOLDER)]);
    query.assert_refused(403, "postern/builtin/credential");
    assert!(test.upstream.requests().is_empty());

    let twice = [("X-Api-Key", PLACEHOLDER), ("Authorization", bearer.as_str())];
    assert_eq!(send(&test, "/echo", &twice).status, 200, "the same one in two places is one");
    let seen = &test.upstream.requests()[0];
    assert_eq!(seen.header("x-api-key"), Some(CANARY));
    assert_eq!(seen.header("authorization"), Some(format!("Bearer {CANARY}").as_str()));
}

/// G9: no key, password or private key stands in anything that the process writes, whatever went wrong.
#[test]
fn no_secret_stands_in_any_output() {
    let proxy = RawUpstream::start(None, |connection, heard| {
        heard.push(connection.read_until(b"\r\n\r\n"));
        connection.send("HTTP/1.1 502 Bad Gateway\r\n\r\n");
    });
    let proxy_address = proxy.address();
    let mut test = inspected_with(|setup| {
        for name in ["listener-password", "proxy-credentials"] {
            std::fs::write(setup.path().join(name), "user:canary-password\n").unwrap();
        }
        setup
            .policy(&policy(", require: true"))
            .credential("api", CANARY)
            .set("/listeners/explicit/passwordFile", "listener-password")
            .set(
                "/upstream/proxy",
                serde_json::json!({
                    "url": format!("http://{proxy_address}"),
                    "credentialsFile": "proxy-credentials",
                }),
            )
    });
    let agent = test.gateway.agent().password("user:canary-password");
    let key = [("X-Api-Key", PLACEHOLDER)];
    assert_eq!(agent.request("GET", "https://api.example.com/echo", &key, b"").status, 200);
    let refused = [("X-Api-Key", CANARY)];
    assert_eq!(agent.request("GET", "https://api.example.com/echo", &refused, b"").status, 403);
    assert_eq!(agent.request("GET", "https://api.example.com/status/500", &key, b"").status, 500);
    assert_eq!(agent.get("https://beyond.example.com/").status, 502);
    assert_eq!(
        test.gateway.agent().password("canary-wrong").connect("api.example.com:443").err().unwrap().status,
        407
    );
    let asked = String::from_utf8(proxy.heard().entries().concat()).unwrap();
    assert!(asked.contains(&BASE64_STANDARD.encode("user:canary-password")), "{asked}");
    test.gateway.write("policy.yaml", "no: policy");
    test.gateway.signal("HUP");
    test.gateway.wait_for_metric("postern_policy_reloads_total", &[("result", "failure")], 1.0);

    let mut said = vec![test.gateway.status().to_string()];
    said.extend(["/metrics", "/healthz", "/readyz"].map(|path| test.gateway.admin(path).text()));
    test.gateway.permit_core_files();
    test.gateway.signal("ABRT");
    let status = test.gateway.wait_for_exit();
    assert!(!status.core_dumped(), "a core file would hold every key: {status}");
    said.push(test.gateway.log());
    said.extend(test.gateway.events().iter().map(ToString::to_string));
    let private = std::fs::read_to_string(test.gateway.authority().key_path()).unwrap();
    let private = private.lines().nth(1).unwrap();
    let secrets =
        ["canary", private, &BASE64_STANDARD.encode("user:canary-password"), &BASE64_STANDARD.encode(CANARY)];
    for text in &said {
        assert!(secrets.iter().all(|secret| !text.contains(secret)), "{text}");
    }
    let told = said.iter().any(|text| text.contains("postern/builtin/credential"));
    assert!(told, "the twin: what happened is told");
}

/// G12: a placeholder on the way to plain HTTP, or to another port of the right host, is denied: the key stays here.
#[test]
fn a_key_travels_only_inside_verified_tls_on_its_own_ports() {
    let upstreams = Pki::new("Upstream Test CA");
    let (tls, plain) = (Upstream::tls(&upstreams, &["api.example.com"]), Upstream::plain());
    let stranger = Upstream::tls(&Pki::new("Somebody Else's CA"), &["api.example.com"]);
    let rules = "    - {name: more, hosts: [api.example.com], ports: [8443], action: Inspect}\n";
    let to = |upstream: &Upstream| {
        let policy = policy("").replace("  credentials:", &format!("{rules}  credentials:"));
        let setup = Setup::new(&upstreams).host("api.example.com", upstream.address());
        setup.policy(&policy).credential("api", CANARY).start()
    };
    let get = |gateway: &Gateway, url: &str, headers: &[(&str, &str)]| {
        gateway.agent().request("GET", url, headers, b"")
    };
    let key = [("X-Api-Key", PLACEHOLDER)];

    let (over_plain, over_tls) = (to(&plain), to(&tls));
    get(&over_plain, "http://api.example.com/echo", &key).assert_refused(403, "postern/builtin/placeholder");
    get(&over_tls, "https://api.example.com:8443/echo", &key)
        .assert_refused(403, "postern/builtin/placeholder");
    assert_eq!(get(&to(&stranger), "https://api.example.com/echo", &key).status, 502);
    assert!(plain.requests().is_empty() && tls.requests().is_empty() && stranger.requests().is_empty());

    assert_eq!(get(&over_plain, "http://api.example.com/echo", &[]).status, 200);
    assert_eq!(get(&over_tls, "https://api.example.com:8443/echo", &[]).status, 200);
    assert_eq!(get(&over_tls, "https://api.example.com/echo", &key).status, 200);
    assert_eq!(tls.requests()[1].header("x-api-key"), Some(CANARY));
}

/// G13: with our key attached no further key is made, at any provider, in any spelling; nor is ours sent back by TRACE.
#[test]
fn no_further_key_is_made_with_ours() {
    let hosts = [
        "api.openai.com",
        "api.anthropic.com",
        "generativelanguage.googleapis.com",
        "sts.amazonaws.com",
        "api.github.com",
        "gitlab.example.com",
        "registry.npmjs.org",
    ];
    let upstreams = Pki::new("Upstream Test CA");
    let upstream =
        Upstream::build().identity(upstreams.leaf(&hosts)).script(|_| Some(Reply::of(200, "done"))).start();
    let list = hosts.join(", ");
    let opened = format!("{list}], endpoints: [{{path: /**}}");
    let policy =
        policy("").replace("'*.example.com'", &opened).replace("[api.example.com]", &format!("[{list}]"));
    let setup = Setup::new(&upstreams).policy(&policy).credential("api", CANARY);
    let gateway = hosts.iter().fold(setup, |setup, host| setup.host(host, upstream.address())).start();
    let call = |method: &str, url: &str| {
        gateway.agent().request(
            method,
            &format!("https://{url}"),
            &[("Authorization", &format!("Bearer {PLACEHOLDER}"))],
            if method == "POST" { b"{}" } else { b"" },
        )
    };

    for url in [
        "api.openai.com/v1/realtime/client_secrets",
        "api.openai.com/v1/realtime/sessions",
        "api.openai.com/v1/organization/admin_api_keys",
        "api.openai.com/v1//realtime/%63lient_secrets/",
        "api.anthropic.com/v1/organizations/api_keys",
        "api.anthropic.com/api/oauth/claude_cli/create_api_key",
        "generativelanguage.googleapis.com/v1alpha/auth_tokens",
        "generativelanguage.googleapis.com/v1/projects/-/serviceAccounts/a@b:generateAccessToken",
        "sts.amazonaws.com/",
        "api.github.com/app/installations/1/access_tokens",
        "api.github.com/repos/acme/app/keys",
        "gitlab.example.com/api/v4/projects/1/access_tokens",
        "registry.npmjs.org/-/npm/v1/tokens",
    ] {
        let answer = call("POST", url);
        assert_eq!(answer.header("x-postern-rule"), Some("postern/builtin/minting"), "{url}: {answer:?}");
    }
    call("TRACE", "api.openai.com/v1/models").assert_refused_by_provider("postern/builtin/credential");
    assert!(upstream.requests().is_empty());

    for url in [
        "api.openai.com/v1/responses",
        "api.anthropic.com/v1/messages",
        "generativelanguage.googleapis.com/v1beta/models/gemini:generateContent",
        "api.github.com/repos/acme/app/issues",
        "gitlab.example.com/api/v4/projects/1/issues",
    ] {
        assert_eq!(call("POST", url).status, 200, "{url}");
    }
    assert!(
        upstream
            .requests()
            .iter()
            .all(|seen| seen.header("authorization") == Some(&format!("Bearer {CANARY}")))
    );
}

/// G14: a key that comes back in another encoding, and in pieces, is masked; what is around it is not.
#[test]
fn a_key_that_comes_back_encoded_and_in_pieces_is_masked() {
    let forms: Vec<String> = (0..3)
        .map(|lead| format!("{}{CANARY}", "x".repeat(lead)))
        .flat_map(|text| [BASE64_STANDARD.encode(&text), BASE64_URL_SAFE_NO_PAD.encode(&text)])
        .chain([
            CANARY.to_owned(),
            percent(CANARY),
            percent(CANARY).to_ascii_lowercase(),
            CANARY.replace('/', "\\/").replace('"', "\\\""),
            CANARY.chars().map(|one| format!("\\u{:04x}", u32::from(one))).collect(),
            CANARY.bytes().map(|byte| format!("{byte:02x}")).collect(),
        ])
        .collect();
    let upstreams = Pki::new("Upstream Test CA");
    let (identity, told) = (upstreams.leaf(&["api.example.com"]), forms.clone());
    let upstream = Upstream::build()
        .identity(identity)
        .script(move |seen| {
            let form = &told[seen.path().trim_start_matches('/').parse::<usize>().unwrap()];
            let text = format!("<before>{form}<after>");
            let pieces = text.into_bytes().chunks(3).map(|piece| Step::Data(piece.to_vec().into())).collect();
            Some(Reply::streaming(pieces))
        })
        .start();
    let gateway = gateway_for(&upstreams, upstream.address(), "");
    let h2 = gateway.agent().h2("api.example.com");

    for (number, form) in forms.iter().enumerate() {
        let url = format!("https://api.example.com/{number}");
        let whole = gateway.agent().get(&url);
        let over_h2 = h2.get(&url);
        // Of base64 the outer characters are shared with what stands around the key.
        let inner = &form[4..form.len() - 4];
        for answer in [whole, over_h2] {
            let text = answer.text();
            assert!(answer.complete && !text.contains(inner), "{form}: {text}");
            assert!(text.starts_with("<before>") && text.ends_with("<after>"), "{form}: {text}");
            assert_eq!(text.len(), "<before><after>".len() + form.len(), "{form}: {text}");
        }
    }
}

/// G14: an answer in a content coding is undone before it is looked at; one that nobody can undo does not pass.
#[test]
fn a_key_inside_a_content_coding_does_not_pass() {
    let test = with_credential("");
    let plain = send(&test, "/gzip", &[("X-Api-Key", PLACEHOLDER)]);
    assert_eq!((plain.text().as_str(), plain.header("content-encoding")), ("{\"packed\":true}", None));

    for coding in ["gzip, gzip", "compress", "x-made-up"] {
        let upstreams = Pki::new("Upstream Test CA");
        let upstream = Upstream::build()
            .identity(upstreams.leaf(&["api.example.com"]))
            .script(move |seen| {
                let key = seen.header("x-api-key").unwrap_or_default().to_owned();
                Some(Reply::of(200, key).header("content-encoding", coding))
            })
            .start();
        let gateway = gateway_for(&upstreams, upstream.address(), "");
        let headers = [("X-Api-Key", PLACEHOLDER)];
        let answer = gateway.agent().request("GET", "https://api.example.com/", &headers, b"");
        assert_eq!(answer.status, 502, "{coding}: {answer:?}");
        assert!(!shown(&answer).contains("canary"), "{coding}: {answer:?}");
    }
}

fn with_credential(more: &str) -> Inspected {
    inspected_with(|setup| setup.policy(&policy(more)).credential("api", CANARY))
}

pub(super) fn gateway_for(upstreams: &Pki, address: std::net::SocketAddr, rule: &str) -> Gateway {
    let policy = policy("").replace("action: Inspect", &format!("action: Inspect{rule}"));
    Setup::new(upstreams).host("api.example.com", address).policy(&policy).credential("api", CANARY).start()
}

/// Every host of `example.com` inspected, and a credential for one of them.
pub(super) fn policy(more: &str) -> String {
    format!(
        "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: test, namespace: agents}}\nspec:\n\
         \x20 podSelector: {{}}\n  destinations:\n    - {{name: all, hosts: ['*.example.com'], action: Inspect}}\n\
         \x20 credentials:\n    - {{name: api, hosts: [api.example.com], secretKeyRef: {{name: keys, key: api}}, \
         placeholder: {PLACEHOLDER}{more}}}\n"
    )
}

fn send(test: &Inspected, path: &str, headers: &[(&str, &str)]) -> Answer {
    test.gateway.agent().request("GET", &format!("https://api.example.com{path}"), headers, b"")
}

/// All that an agent sees of an answer.
fn shown(answer: &Answer) -> String {
    format!("{:?} {:?} {}", answer.headers, answer.trailers, answer.text())
}

/// Percent-encoding of all but letters, digits and `-`.
fn percent(text: &str) -> String {
    let keeps = |one: char| one.is_ascii_alphanumeric() || one == '-';
    text.chars()
        .map(|one| if keeps(one) { one.to_string() } else { format!("%{:02X}", u32::from(one)) })
        .collect()
}
