//! Bytes that two parsers of HTTP could read differently, in either direction.

use crate::gateway::{INSPECT_API, Inspected, inspected, inspected_with};
use crate::support::frames::{Frames, GOAWAY, RST_STREAM, get};
use crate::support::upstream::{RawUpstream, accept_key};
use crate::support::{Answer, Connection, Ending, Gateway, Pki, Setup};

pub(super) const HOST: &str = "Host: api.example.com\r\n";
const ONLY_ECHO: &str = "{name: api, hosts: [api.example.com], action: Inspect, \
                         endpoints: [{methods: [GET, POST], path: /echo}]}";
pub(super) const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// C1: every way to frame a request that two parsers could read differently is refused, and the connection closed.
#[test]
fn a_request_with_two_readings_is_refused_and_ends_its_connection() {
    let test = inspected();
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
    for fields in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "Content-Length: 4\r\nContent-Length: 0\r\n",
        "Content-Length: 4, 4\r\n",
        "Content-Length: +4\r\n",
        "Content-Length: 0x4\r\n",
        "Content-Length: 4 \x0b\r\n",
        "Content-Length: 99999999999999999999999\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: identity, chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding:\x0bchunked\r\n",
        "Transfer-Encoding\r\n : chunked\r\n",
        "X-Folded: a\r\n Transfer-Encoding: chunked\r\n",
        "X-Bare: a\nTransfer-Encoding: chunked\r\n",
        "X-Bare: a\rTransfer-Encoding: chunked\r\n",
        "X-Nul: a\0b\r\n",
        ": nameless\r\n",
        " X-First: space\r\n",
    ] {
        let mut connection = test.gateway.agent().tls("api.example.com");
        connection.send(format!("POST /echo HTTP/1.1\r\n{HOST}{fields}\r\n0\r\n\r\n{smuggled}"));
        let answer = connection.read_answer();
        let said = (answer.status, answer.header("x-postern-rule"));
        assert_eq!(said, (400, Some("postern/builtin/framing")), "{fields:?}");
        let (Ending::Closed(rest) | Ending::Cut(rest)) = connection.ending();
        assert!(rest.is_empty(), "{fields:?}: {}", String::from_utf8_lossy(&rest));
    }
    assert!(test.upstream.requests().is_empty());
    let event = test.gateway.wait_for("Request", "Deny");
    assert_eq!(event["decision"]["rule"], "postern/builtin/framing");

    let mut connection = test.gateway.agent().tls("api.example.com");
    connection.send(format!("POST /echo HTTP/1.1\r\n{HOST}Content-Length: 4\r\n\r\nbody"));
    connection.send(format!(
        "POST /echo HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"
    ));
    assert_eq!(connection.read_answer().json()["body"], "body");
    assert_eq!(connection.read_answer().json()["body"], "body");
}

/// C1: the request line has one reading too, whichever way in it takes.
#[test]
fn a_request_line_with_two_readings_is_refused_on_every_way_in() {
    let test = inspected_with(|setup| setup.reverse("https://api.example.com"));
    for line in [
        "GET /echo HTTP/1.1\n",
        "GET /echo bar HTTP/1.1\r\n",
        "GET  /echo HTTP/1.1\r\n",
        "GET /echo\tHTTP/1.1\r\n",
        "GET /echo HTTP/1.2\r\n",
        "GET /echo HTTP/2.0\r\n",
        "GET /e\x7fcho HTTP/1.1\r\n",
        "GET /echo\r\n",
    ] {
        let absolute = line.replace("/e", "http://api.example.com/e");
        for (mut connection, line) in [
            (test.gateway.agent().tls("api.example.com"), line),
            (test.gateway.reverse(), line),
            (test.gateway.agent().open(), absolute.as_str()),
        ] {
            connection.send(format!("{line}{HOST}\r\n"));
            let (Ending::Closed(said) | Ending::Cut(said)) = connection.ending();
            let said = String::from_utf8_lossy(&said).into_owned();
            let refused = said.starts_with("HTTP/1.1 400 ") || said.starts_with("HTTP/1.1 505 ");
            assert!(refused && said.contains("\r\n\r\n[postern] "), "{line:?}: {said}");
        }
    }
    assert!(test.upstream.requests().is_empty());

    let mut reverse = test.gateway.reverse();
    reverse.send(format!("GET /echo HTTP/1.1\r\n{HOST}\r\n"));
    assert_eq!(reverse.read_answer().status, 200);
}

/// C2: chunk extensions go no further, nor does a trailer that speaks for the gateway or hides behind an underscore.
#[test]
fn chunk_extensions_and_odd_trailers_go_no_further() {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = RawUpstream::start(Some(&upstreams.leaf(&["api.example.com"])), |connection, heard| {
        heard.push(connection.read_until(b"\r\n0\r\n"));
        heard.push(connection.read_until(b"\r\n\r\n"));
        connection.send("HTTP/1.1 204 No Content\r\n\r\n");
        let _ = connection.ending();
    });
    let gateway = inspecting(&upstreams, &upstream);
    let mut connection = gateway.agent().tls("api.example.com");

    connection.send(format!("POST /echo HTTP/1.1\r\n{HOST}TE: trailers\r\nTrailer: grpc-status\r\n"));
    connection.send("Transfer-Encoding: chunked\r\n\r\n4;smuggle=\"GET /\"\r\nbody\r\n0;last\r\n");
    connection.send("X-Postern-Rule: forged\r\nX_Under: forged\r\nGrpc-Status: 0\r\n\r\n");

    assert_eq!(connection.read_answer().status, 204);
    let sent = String::from_utf8(upstream.heard().entries().concat()).unwrap().to_ascii_lowercase();
    for dropped in ["smuggle", ";last", "forged"] {
        assert!(!sent.contains(dropped), "{dropped} went on: {sent}");
    }
    assert!(sent.contains("\r\nbody\r\n"), "{sent}");
    assert!(sent.contains("grpc-status: 0\r\n"), "the twin: an ordinary trailer goes on: {sent}");
}

/// C2: a trailer that frames, routes or authenticates ends its request.
#[test]
fn a_trailer_that_frames_or_authenticates_ends_its_request() {
    let test = inspected();
    for trailer in [
        "Authorization: Bearer forged",
        "Host: evil.example.com",
        "Content-Length: 0",
        "Transfer-Encoding: chunked",
        "X-Api-Key: forged",
    ] {
        let mut connection = test.gateway.agent().tls("api.example.com");
        connection.send(format!(
            "POST /echo HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n"
        ));
        connection.send(format!("{trailer}\r\n\r\n"));
        assert_eq!(connection.read_answer().status, 400, "{trailer}");
    }
    assert!(!test.upstream.requests().iter().any(|seen| seen.complete), "{:?}", test.upstream.requests());

    let mut connection = test.gateway.agent().tls("api.example.com");
    connection.send(format!(
        "POST /echo HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 4\r\n\r\n"
    ));
    assert_eq!(connection.read_answer().json()["body"], "body");
}

/// C2: chunk sizes that parsers read differently end the request, and nothing behind them is read as another.
#[test]
fn a_chunk_with_two_readings_ends_the_request() {
    let test = inspected();
    for chunk in [
        "0x4\r\nbody\r\n",
        "+4\r\nbody\r\n",
        "4 \r\nbody\r\n",
        "4\nbody\r\n",
        "4\r\nbodyX\r\n",
        "10000000000000004\r\nbody\r\n",
        "\r\nbody\r\n",
        "-4\r\nbody\r\n",
    ] {
        let mut connection = test.gateway.agent().tls("api.example.com");
        connection.send(format!("POST /echo HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n"));
        // The first bytes alone may end it, before the last are sent.
        let _ = connection.try_send(format!("{chunk}0\r\n\r\nGET /smuggled HTTP/1.1\r\n{HOST}\r\n"));
        let (Ending::Closed(said) | Ending::Cut(said)) = connection.ending();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 400 "), "{chunk:?}: {said}");
        assert_eq!(said.matches("HTTP/1.1 ").count().max(1), 1, "{chunk:?}: {said}");
    }
    let whole = |seen: &crate::support::upstream::Seen| seen.complete || seen.target == "/smuggled";
    assert!(!test.upstream.requests().iter().any(whole));

    let mut connection = test.gateway.agent().tls("api.example.com");
    connection.send(format!(
        "POST /echo HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n0004;ok\r\nbody\r\n0\r\n\r\n"
    ));
    assert_eq!(connection.read_answer().json()["body"], "body");
}

/// C3: an h2 head that would be two heads over HTTP/1.1, or frames itself, is malformed; so are connection fields.
#[test]
fn an_h2_head_smuggles_nothing() {
    let test = inspected();
    let with = |name: &'static str, value: &'static str| {
        let mut fields = get("api.example.com", "/echo");
        fields.push((name, value));
        fields
    };
    let path = |path: &'static str| get("api.example.com", path);
    for fields in [
        with("x-split", "a\r\nhost: evil.example.com"),
        with("x-split", "a\nb"),
        with("x-nul", "a\0b"),
        with("x-name\r\nhost", "evil"),
        with("Upper-Case", "x"),
        with("transfer-encoding", "chunked"),
        with("connection", "keep-alive"),
        with("te", "gzip"),
        with(":authority", "evil.example.com"),
        with(":late", "pseudo"),
        with("content-length", "5"),
        path("/echo HTTP/1.1\r\nhost: evil"),
        path("/echo bar"),
        path(""),
        get("api.example.com\r\nx: y", "/echo"),
        vec![
            (":method", "GET / HTTP/1.1\r\n"),
            (":scheme", "https"),
            (":authority", "api.example.com"),
            (":path", "/echo"),
        ],
    ] {
        let mut frames = raw_h2(&test);
        frames.request(1, &fields);
        match frames.ending(1) {
            Ok(said) => assert!(said.starts_with("[postern] "), "{fields:?}: {said}"),
            Err(frame) => {
                assert!(frame.is_none_or(|frame| matches!(frame.kind, RST_STREAM | GOAWAY)), "{fields:?}")
            }
        }
    }
    assert!(test.upstream.requests().is_empty(), "{:?}", test.upstream.requests());

    let mut frames = raw_h2(&test);
    frames.request(1, &with("te", "trailers"));
    assert!(frames.ending(1).unwrap().contains("\"target\":\"/echo\""));
}

/// C4: every pipelined request is judged by itself, and nothing follows one whose framing was refused.
#[test]
fn a_pipelined_request_is_judged_by_itself() {
    let test = inspected_with(|setup| setup.destinations(&[ONLY_ECHO]));
    let mut connection = test.gateway.agent().tls("api.example.com");

    connection.send(format!(
        "GET /denied HTTP/1.1\r\n{HOST}\r\nGET /echo?1 HTTP/1.1\r\n{HOST}\r\nPOST /denied HTTP/1.1\r\n{HOST}Content-Length: 4\r\n\r\n\
         GET GET /echo?2 HTTP/1.1\r\n{HOST}\r\n"
    ));

    connection.read_answer().assert_refused(403, "postern/builtin/endpoint");
    assert_eq!(connection.read_answer().json()["target"], "/echo?1");
    connection.read_answer().assert_refused(403, "postern/builtin/endpoint");
    assert_eq!(connection.read_answer().json()["target"], "/echo?2", "a refused body is no request");
    connection
        .send(format!("GET /echo HTTP/1.1\r\n{HOST}Host: twice\r\n\r\nGET /echo?3 HTTP/1.1\r\n{HOST}\r\n"));
    let last = connection.read_answer();
    assert_eq!((last.status, last.header("x-postern-rule")), (400, Some("postern/builtin/framing")));
    assert!(matches!(connection.ending(), Ending::Closed(rest) | Ending::Cut(rest) if rest.is_empty()));
    let targets: Vec<String> = test.upstream.requests().into_iter().map(|seen| seen.target).collect();
    assert_eq!(targets, ["/echo?1", "/echo?2"]);
}

/// C5: a path with another reading matches no endpoint; what passes is forwarded as it was judged.
#[test]
fn a_path_with_another_reading_matches_no_endpoint() {
    let test = inspected_with(|setup| {
        setup.destinations(&["{name: api, hosts: [api.example.com], action: Inspect, endpoints: \
                              [{methods: [GET], path: '/echo/**'}, {methods: [GET], path: /v1/messages}]}"])
    });
    let mut connection = test.gateway.agent().tls("api.example.com");
    for path in [
        "/echo/../admin",
        "/echo/%2e%2e/admin",
        "/echo/..%2fadmin",
        "/echo/%2E./admin",
        "/echo//admin",
        "/echo/./admin",
        "/echo/a%2Fb",
        "/echo/a%5Cb",
        "/echo/a\\..\\admin",
        "/echo/;a=b/admin",
        "/echo/%00",
        "/echo/%zz",
        "//v1/messages",
        "/v1/./messages",
        "/v1/messages;admin",
        "/v1/messages%3fx",
        "/V1/messages",
        "/v1/Messages",
        "/v1%2Fmessages",
        "/v1/messages/admin",
    ] {
        connection.send(format!("GET {path} HTTP/1.1\r\n{HOST}\r\n"));
        let answer = connection.read_answer();
        assert_eq!(answer.header("x-postern-rule"), Some("postern/builtin/endpoint"), "{path}: {answer:?}");
    }
    assert!(test.upstream.requests().is_empty());

    for path in ["/echo/a%20b?x=/../y", "/v1/messages?beta=true", "/echo/caf%C3%A9"] {
        connection.send(format!("GET {path} HTTP/1.1\r\n{HOST}\r\n"));
        connection.read_answer();
        assert_eq!(test.upstream.requests().pop().unwrap().target, path);
    }
}

/// C6: a field that names another method than the request's own goes no further.
#[test]
fn a_method_override_goes_no_further() {
    let test = inspected_with(|setup| setup.destinations(&[ONLY_ECHO]));
    let overrides = [
        ("X-HTTP-Method-Override", "DELETE"),
        ("X-HTTP-Method", "DELETE"),
        ("X-Method-Override", "DELETE"),
        ("x_http_method_override", "DELETE"),
        ("X-Method", "DELETE"),
        ("X-Method-Of-Tomorrow", "DELETE"),
        ("X-HTTP-Method-Override-2", "DELETE"),
        ("X-Override-Method", "DELETE"),
        ("X-Forwarded-Method", "DELETE"),
        ("X-Request-Id", "kept"),
    ];

    let answer = test.gateway.agent().request("POST", "https://api.example.com/echo", &overrides, b"x");

    assert_eq!(answer.status, 200, "{answer:?}");
    let seen = &test.upstream.requests()[0];
    assert_eq!((seen.method.as_str(), seen.header("x-request-id")), ("POST", Some("kept")));
    assert!(!seen.headers.iter().any(|(_, value)| value == "DELETE"), "{:?}", seen.headers);
    let denied = test.gateway.agent().request("DELETE", "https://api.example.com/echo", &[], b"");
    denied.assert_refused(403, "postern/builtin/endpoint");
}

/// C5, C6: a field that names another path or host than the request's own goes no further.
#[test]
fn a_field_that_names_another_path_or_host_goes_no_further() {
    let test = inspected_with(|setup| setup.destinations(&[ONLY_ECHO]));
    let names = [
        "X-Original-URL",
        "X-Rewrite-URL",
        "X-Override-URL",
        "X-Original-URI",
        "X-Forwarded-Prefix",
        "X-Forwarded-Uri",
        "X-Forwarded-Path",
        "X-Envoy-Original-Path",
        "X-Replaced-Path",
        "X-Forwarded-Host",
        "X-Original-Host",
        "X-Host",
    ];
    let mut headers: Vec<(&str, &str)> = names.iter().map(|name| (*name, "/admin")).collect();
    headers.push(("X-Forwarded-For", "192.0.2.1"));

    let answer = test.gateway.agent().request("POST", "https://api.example.com/echo", &headers, b"x");

    assert_eq!(answer.status, 200, "{answer:?}");
    let seen = &test.upstream.requests()[0];
    assert!(!seen.headers.iter().any(|(_, value)| value == "/admin"), "{:?}", seen.headers);
    assert_eq!(seen.header("x-forwarded-for"), Some("192.0.2.1"), "the twin");
}

/// C6: a query parameter by which servers take another method or path is denied where endpoints are in force.
#[test]
fn a_query_that_names_another_method_is_denied_where_endpoints_are_in_force() {
    let narrow = inspected_with(|setup| setup.destinations(&[ONLY_ECHO]));
    let wide = inspected_with(|setup| {
        setup.destinations(&["{name: api, hosts: [api.example.com], action: Inspect}"])
    });
    let post = |test: &Inspected, query: &str| {
        let url = format!("https://api.example.com/echo?{query}");
        test.gateway.agent().request("POST", &url, &[], b"x")
    };
    for query in
        ["_method=DELETE", "a=1&%5Fmethod=DELETE", "X-HTTP-Method-Override=DELETE", "rest_route=/admin"]
    {
        post(&narrow, query).assert_refused(403, "postern/builtin/endpoint");
        assert_eq!(post(&wide, query).status, 200, "no endpoints, no denial: {query}");
    }
    assert!(narrow.upstream.requests().is_empty());
    assert_eq!(post(&narrow, "payment_method=card&method=x").status, 200, "the twin");
}

/// C7: of all that a connection could become only a WebSocket is to be had, by rule; h2's CONNECT is refused at once.
#[test]
fn a_connection_becomes_nothing_that_cannot_be_judged() {
    let test = inspected_with(|setup| {
        setup.destinations(&["{name: api, hosts: [api.example.com], action: Inspect, upgrade: Allow}"])
    });
    let mut extended = raw_h2(&test);
    let mut fields = get("api.example.com", "/ws");
    fields[0] = (":method", "CONNECT");
    fields.push((":protocol", "websocket"));
    extended.request(1, &fields);
    match extended.ending(1) {
        Ok(said) => assert!(said.starts_with("[postern] "), "{said}"),
        Err(frame) => assert!(frame.is_some_and(|frame| matches!(frame.kind, RST_STREAM | GOAWAY))),
    }
    for method in ["CONNECT api.example.com:443", "CONNECT evil.example.com:443"] {
        let mut connection = test.gateway.agent().tls("api.example.com");
        connection.send(format!("{method} HTTP/1.1\r\n{HOST}\r\n"));
        let answer = connection.read_answer();
        assert!((400..500).contains(&answer.status), "{answer:?}");
    }
    assert!(test.upstream.requests().is_empty());

    let mut connection = test.gateway.agent().tls("api.example.com");
    upgrade(&mut connection, "/ws");
    let answer = connection.read_head();
    assert_eq!((answer.status, answer.header("sec-websocket-accept")), (101, Some(accept_key(KEY).as_str())));
}

/// C8: a body is asked for only once its head was allowed, and is judged with it.
#[test]
fn no_body_is_asked_for_before_its_head_was_allowed() {
    let test = inspected_with(|setup| setup.destinations(&[ONLY_ECHO]));
    let ask = |path: &str| -> (Connection, Answer) {
        let mut connection = test.gateway.agent().tls("api.example.com");
        connection
            .send(format!("POST {path} HTTP/1.1\r\n{HOST}Content-Length: 4\r\nExpect: 100-continue\r\n\r\n"));
        let head = connection.read_head();
        (connection, head)
    };

    let (mut refused, head) = ask("/denied");
    assert_eq!((head.status, head.header("x-postern-rule")), (403, Some("postern/builtin/endpoint")));
    // What would have been the body is no request, wherever the connection goes from here.
    let _ = refused.try_send(format!("GET /echo HTTP/1.1\r\n{HOST}\r\n"));
    let (Ending::Closed(rest) | Ending::Cut(rest)) = refused.ending();
    assert_eq!(memchr::memmem::find(&rest, b"HTTP/1.1 200"), None, "{}", String::from_utf8_lossy(&rest));
    assert!(test.upstream.requests().is_empty());

    let (mut allowed, head) = ask("/echo");
    assert_eq!(head.status, 100);
    allowed.send("body");
    assert_eq!(allowed.read_answer().json()["body"], "body");
}

/// C9: a head or a body that dribbles, or is too large, ends within its bound, over both versions.
#[test]
fn a_head_that_dribbles_or_swells_is_cut() {
    let test = inspected_with(|setup| {
        setup
            .set("/timeouts/agentHead", "400ms")
            .set("/timeouts/streamIdle", "400ms")
            .set("/limits/headerBytes", 8192)
            .set("/limits/headerCount", 32)
    });
    let mut slow = test.gateway.agent().tls("api.example.com");
    slow.send("GET /echo HTTP/1.1\r\nHost: api.exa");
    assert!(matches!(slow.ending(), Ending::Closed(_) | Ending::Cut(_)));
    let mut body = test.gateway.agent().tls("api.example.com");
    body.send(format!("POST /echo HTTP/1.1\r\n{HOST}Content-Length: 10\r\n\r\nhalf"));
    let (Ending::Closed(said) | Ending::Cut(said)) = body.ending();
    assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 4"), "{}", String::from_utf8_lossy(&said));
    assert!(!test.upstream.requests().iter().any(|seen| seen.complete));

    for fields in [format!("X-Long: {}\r\n", "y".repeat(9000)), "X-Many: y\r\n".repeat(40)] {
        let mut connection = test.gateway.agent().tls("api.example.com");
        connection.send(format!("GET /echo HTTP/1.1\r\n{HOST}{fields}\r\n"));
        assert_eq!(connection.read_answer().status, 431);
    }
    let many: Vec<(String, String)> = (0..40).map(|n| (format!("x-{n}"), "y".to_owned())).collect();
    let mut fields = get("api.example.com", "/echo");
    fields.extend(many.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let mut frames = raw_h2(&test);
    frames.request(1, &fields);
    let said = frames.ending(1).unwrap();
    assert!(said.contains("Rule: postern/builtin/bound\n"), "{said}");
    assert!(!test.upstream.requests().iter().any(|seen| seen.complete));

    let fits = [("X-Long", "y".repeat(7000))];
    let headers: Vec<(&str, &str)> = fits.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let answer = test.gateway.agent().request("GET", "https://api.example.com/echo", &headers, b"");
    assert_eq!(answer.status, 200);
}

/// C12: `Connection` names nothing that was inspected, and a name with an underscore stands beside no other.
#[test]
fn what_was_inspected_is_not_taken_away_by_the_connection() {
    let test = inspected();
    let send = |fields: &str| {
        let mut connection = test.gateway.agent().tls("api.example.com");
        connection.send(format!("GET /echo HTTP/1.1\r\n{HOST}{fields}\r\n"));
        connection.read_answer()
    };
    for nominated in
        ["content-encoding", "authorization", "x-api-key", "host", "content-length", "close, cookie"]
    {
        let answer = send(&format!("Connection: {nominated}\r\n"));
        let said = (answer.status, answer.header("x-postern-rule"));
        assert_eq!(said, (400, Some("postern/builtin/framing")), "{nominated}");
    }
    assert!(test.upstream.requests().is_empty());

    let answer =
        send("Connection: keep-alive, te\r\nTE: trailers\r\nX_Api_Key: shadow\r\nX-Api-Key: mine\r\n");
    assert_eq!(answer.status, 200, "{answer:?}");
    let seen = &test.upstream.requests()[0];
    assert_eq!((seen.header("x-api-key"), seen.header("x_api_key")), (Some("mine"), None));
    assert_eq!(seen.header("connection"), None);
}

/// C12: without a 101 the connection is HTTP still: what follows a declined upgrade is judged.
#[test]
fn behind_a_declined_upgrade_requests_are_judged() {
    let test = inspected_with(|setup| {
        setup.destinations(&["{name: api, hosts: [api.example.com], action: Inspect, upgrade: Allow, \
                              endpoints: [{methods: [GET], path: '/status/*'}, {methods: [GET], path: /echo}]}"])
    });
    let mut connection = test.gateway.agent().tls("api.example.com");

    upgrade(&mut connection, "/status/426");
    assert_eq!(connection.read_answer().status, 426);
    connection.send(format!("GET /denied HTTP/1.1\r\n{HOST}\r\nGET /echo HTTP/1.1\r\n{HOST}\r\n"));

    connection.read_answer().assert_refused(403, "postern/builtin/endpoint");
    assert_eq!(connection.read_answer().json()["target"], "/echo");
}

/// An h2 connection to the inspected host, to be spoken by hand.
fn raw_h2(test: &Inspected) -> Frames {
    let dial = test.gateway.agent().dial("api.example.com").protocols(&["h2"]);
    Frames::open(dial.open().unwrap())
}

/// Asks for a WebSocket.
pub(super) fn upgrade(connection: &mut Connection, path: &str) {
    connection.send(format!(
        "GET {path} HTTP/1.1\r\n{HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ));
}

/// A gateway that inspects this upstream.
pub(super) fn inspecting(upstreams: &Pki, upstream: &RawUpstream) -> Gateway {
    Setup::new(upstreams).host("api.example.com", upstream.address()).destinations(&[INSPECT_API]).start()
}
