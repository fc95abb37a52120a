//! Spans of exchanges, as a collector gets them.

use super::{Inspected, grpc_collector, inspected_with};
use crate::support::upstream::{Reply, Seen};
use crate::support::{Pki, Setup, Upstream};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

/// A gateway that exports to this endpoint at once.
fn exporting(endpoint: &str, change: impl FnOnce(Setup) -> Setup) -> Inspected {
    inspected_with(|setup| {
        change(
            setup.variable("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint).variable("OTEL_BSP_SCHEDULE_DELAY", "20"),
        )
    })
}

/// Takes whatever comes.
fn collector() -> Upstream {
    Upstream::build().script(|_| Some(Reply::of(200, ""))).start()
}

fn ask(test: &Inspected, path: &str, flags: &str) -> u16 {
    let parent = format!("00-{TRACE}-{SPAN}-{flags}");
    let url = format!("https://api.example.com{path}");
    test.gateway.agent().request("GET", &url, &[("traceparent", &parent)], b"").status
}

/// Whether an export has these bytes somewhere.
fn holds(export: &Seen, bytes: &[u8]) -> bool {
    export.body.windows(bytes.len()).any(|window| window == bytes)
}

fn octets(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn an_exchange_is_a_span_below_the_agents() {
    let collector = collector();
    let test = exporting(&format!("http://{}", collector.address()), |setup| setup);

    assert_eq!(ask(&test, "/status/200?key=canary", "01"), 200);

    let export = collector.wait_for_request("an export", |seen| seen.complete);
    assert_eq!((export.method.as_str(), export.path()), ("POST", "/v1/traces"));
    assert_eq!(export.header("content-type"), Some("application/x-protobuf"));
    for part in
        ["api.example.com", "/status/200", "http.request.method", "postern.exchange.id", "service.name"]
    {
        assert!(holds(&export, part.as_bytes()), "{part}");
    }
    assert!(holds(&export, &octets(TRACE)) && holds(&export, &octets(SPAN)), "the agent's trace and span");
    assert!(!holds(&export, b"canary"), "no query");
    test.gateway.wait_for_metric("postern_spans_exported_total", &[("result", "success")], 1.0);
}

#[test]
fn a_trace_that_the_agent_does_not_record_is_not_exported() {
    let collector = collector();
    let test = exporting(&format!("http://{}", collector.address()), |setup| setup);

    assert_eq!(ask(&test, "/status/200?first", "00"), 200);
    assert_eq!(ask(&test, "/status/204", "01"), 204);

    let export = collector.wait_for_request("an export", |seen| seen.complete);
    assert!(holds(&export, b"/status/204") && !holds(&export, b"/status/200"));
}

#[test]
fn grpc_is_spoken_where_the_variables_say_so() {
    let upstreams = Pki::new("Collector CA");
    let collector = grpc_collector(&upstreams);
    let test = exporting(&format!("https://localhost:{}", collector.address().port()), |setup| {
        setup
            .variable("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
            .variable("OTEL_EXPORTER_OTLP_CERTIFICATE", upstreams.certificate_path().to_str().unwrap())
            .variable("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=agents")
    });

    assert_eq!(ask(&test, "/status/200", "01"), 200);

    let export = collector.wait_for_request("an export", |seen| seen.complete);
    assert_eq!(export.path(), "/opentelemetry.proto.collector.trace.v1.TraceService/Export");
    assert_eq!(export.header("content-type"), Some("application/grpc"));
    assert_eq!(export.header("x-tenant"), Some("agents"));
    let length = u32::from_be_bytes(export.body[1..5].try_into().unwrap()) as usize;
    assert_eq!((export.body[0], length), (0, export.body.len() - 5));
    test.gateway.wait_for_metric("postern_spans_exported_total", &[("result", "success")], 1.0);
}

#[test]
fn a_refused_request_is_a_span_with_the_rule() {
    let collector = collector();
    let test = exporting(&format!("http://{}", collector.address()), |setup| {
        setup.destinations(&[
            "{name: api, hosts: [api.example.com], action: Inspect, endpoints: [{path: /open}]}",
        ])
    });

    assert_eq!(ask(&test, "/closed", "01"), 403);

    let export = collector.wait_for_request("an export", |seen| seen.complete);
    for part in ["postern/builtin/endpoint", "Deny", "postern.decision", "403"] {
        assert!(holds(&export, part.as_bytes()), "{part}");
    }
}

#[test]
fn a_collector_that_is_away_costs_no_traffic_and_is_counted() {
    let test = exporting("http://127.0.0.1:1", |setup| setup);

    assert_eq!(ask(&test, "/status/200", "01"), 200);

    test.gateway.wait_for_metric("postern_spans_exported_total", &[("result", "failure")], 1.0);
    assert_eq!(ask(&test, "/status/204", "01"), 204);
}

#[test]
fn the_last_spans_are_exported_before_the_gateway_ends() {
    let collector = collector();
    let mut test = inspected_with(|setup| {
        setup.variable("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://{}", collector.address()))
    });

    assert_eq!(ask(&test, "/status/200", "01"), 200);
    assert!(test.gateway.terminate().success());

    let exported = collector.requests();
    assert!(exported.iter().any(|seen| holds(seen, b"/status/200")), "{}", exported.len());
}

#[test]
fn variables_that_cannot_be_followed_are_said_and_traffic_goes_on() {
    let test =
        exporting("http://127.0.0.1:1", |setup| setup.variable("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"));

    assert_eq!(ask(&test, "/status/200", "01"), 200);

    assert!(test.gateway.log().contains("http/protobuf or grpc"));
}
