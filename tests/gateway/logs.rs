//! Events as log records, as a collector gets them and decodes them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsPartialSuccess, ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use prost::Message;
use serde_json::Value;

use super::{Inspected, grpc_collector, inspected_with};
use crate::support::upstream::{Gate, Reply, Seen, Step};
use crate::support::{Pki, Setup, Upstream};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";
const EXPORTED: &str = "postern_log_records_exported_total";
const FAILED: [(&str, &str); 1] = [("result", "failure")];

/// A gateway that opens one path, and exports its events to this endpoint.
fn exporting(endpoint: &str, change: impl FnOnce(Setup) -> Setup) -> Inspected {
    inspected_with(|setup| {
        let rule = "{name: api, hosts: [api.example.com], action: Inspect, endpoints: [{path: /status/*}]}";
        change(setup.destinations(&[rule]).variable("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", endpoint))
    })
}

/// Takes whatever comes.
fn collector() -> Upstream {
    Upstream::build().script(|_| Some(Reply::of(200, ""))).start()
}

fn endpoint(collector: &Upstream) -> String {
    format!("http://{}/v1/logs", collector.address())
}

fn ask(test: &Inspected, path: &str) -> u16 {
    let parent = format!("00-{TRACE}-{SPAN}-01");
    let url = format!("https://api.example.com{path}");
    test.gateway.agent().request("GET", &url, &[("traceparent", &parent)], b"").status
}

/// The message of a request over HTTP, or behind the prefix of gRPC.
fn decoded(message: &[u8]) -> ExportLogsServiceRequest {
    ExportLogsServiceRequest::decode(message).unwrap()
}

fn records(export: &ExportLogsServiceRequest) -> Vec<&LogRecord> {
    let scopes = export.resource_logs.iter().flat_map(|resource| &resource.scope_logs);
    scopes.flat_map(|scope| &scope.log_records).collect()
}

fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Any::StringValue(text)) => text.clone(),
        Some(Any::IntValue(number)) => number.to_string(),
        other => panic!("{other:?}"),
    }
}

fn attributes(pairs: &[KeyValue]) -> BTreeMap<&str, String> {
    pairs.iter().map(|pair| (pair.key.as_str(), text(pair.value.as_ref()))).collect()
}

fn octets(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn an_event_is_a_log_record_whose_body_is_its_line() {
    let collector = collector();
    let mut test = exporting(&endpoint(&collector), |setup| setup);
    assert_eq!(ask(&test, "/closed?key=canary"), 403);
    let denied = test.gateway.wait_for("Request", "Deny");
    assert!(test.gateway.terminate().success());

    let exports: Vec<Seen> = collector.requests();
    assert!(exports.iter().all(|seen| (seen.method.as_str(), seen.path()) == ("POST", "/v1/logs")));
    assert_eq!(exports[0].header("content-type"), Some("application/x-protobuf"));
    let exports: Vec<_> = exports.iter().map(|seen| decoded(&seen.body)).collect();
    let resource = attributes(&exports[0].resource_logs[0].resource.as_ref().unwrap().attributes);
    assert_eq!(resource["service.name"], "postern");

    let records: Vec<&LogRecord> = exports.iter().flat_map(records).collect();
    let bodies: Vec<Value> =
        records.iter().map(|record| serde_json::from_str(&text(record.body.as_ref())).unwrap()).collect();
    assert_eq!(bodies, test.gateway.events(), "each event once, in the order of standard output");

    let id = denied["id"].as_str().unwrap();
    let record = records.iter().find(|record| text(record.body.as_ref()).contains(id)).unwrap();
    assert_eq!((record.event_name.as_str(), record.severity_text.as_str()), ("postern.request", "WARN"));
    assert_eq!((record.trace_id.clone(), record.span_id.clone()), (octets(TRACE), octets(SPAN)));
    let attributes = attributes(&record.attributes);
    for (name, value) in [
        ("postern.event.id", id),
        ("postern.kind", "Request"),
        ("postern.verdict", "Deny"),
        ("postern.rule", "postern/builtin/endpoint"),
        ("postern.count", "1"),
        ("http.request.method", "GET"),
        ("url.path", "/closed"),
        ("http.response.status_code", "403"),
        ("server.address", "api.example.com"),
        ("server.port", "443"),
        ("postern.exchange.id", denied["exchange"].as_str().unwrap()),
    ] {
        assert_eq!(attributes.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(!format!("{exports:?}").contains("canary"), "no query");
}

#[test]
fn grpc_is_spoken_where_the_variables_say_so() {
    let upstreams = Pki::new("Collector CA");
    let collector = grpc_collector(&upstreams);
    let mut test = exporting(&format!("https://localhost:{}", collector.address().port()), |setup| {
        setup
            .variable("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "grpc")
            .variable("OTEL_EXPORTER_OTLP_CERTIFICATE", upstreams.certificate_path().to_str().unwrap())
            .variable("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=agents")
    });
    assert_eq!(ask(&test, "/status/200"), 200);
    assert!(test.gateway.terminate().success());

    let exports = collector.requests();
    for export in &exports {
        assert_eq!(export.path(), "/opentelemetry.proto.collector.logs.v1.LogsService/Export");
        assert_eq!(export.header("content-type"), Some("application/grpc"));
        assert_eq!(export.header("x-tenant"), Some("agents"));
        let length = u32::from_be_bytes(export.body[1..5].try_into().unwrap()) as usize;
        assert_eq!((export.body[0], length), (0, export.body.len() - 5));
    }
    let exports: Vec<_> = exports.iter().map(|export| decoded(&export.body[5..])).collect();
    assert_eq!(
        exports.iter().map(|export| records(export).len()).sum::<usize>(),
        test.gateway.events().len()
    );
}

#[test]
fn a_batch_is_sent_a_second_after_its_first_event() {
    let collector = collector();
    let test = exporting(&endpoint(&collector), |setup| setup);
    assert_eq!(ask(&test, "/status/204"), 204);
    let holds = |seen: &Seen| seen.complete && format!("{:?}", decoded(&seen.body)).contains("/status/204");
    collector.wait_for_request("an export while the gateway runs", holds);
    test.gateway.wait_for_metric(EXPORTED, &[("result", "success")], 1.0);
}

#[test]
fn the_endpoint_of_all_signals_alone_exports_no_logs() {
    let collector = collector();
    let mut test = inspected_with(|setup| {
        setup.variable("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://{}", collector.address()))
    });
    assert_eq!(ask(&test, "/status/200"), 200);
    assert!(test.gateway.terminate().success());
    let paths: Vec<String> = collector.requests().iter().map(|seen| seen.path().to_owned()).collect();
    assert!(!paths.is_empty() && paths.iter().all(|path| path == "/v1/traces"), "{paths:?}");
}

#[test]
fn a_collector_that_refuses_is_counted_and_costs_no_traffic() {
    for status in [400, 503] {
        let collector = Upstream::build().script(move |_| Some(Reply::of(status, "no"))).start();
        let mut test = exporting(&endpoint(&collector), |setup| setup);
        assert_eq!(ask(&test, "/status/200"), 200);
        test.gateway.wait_for_metric(EXPORTED, &FAILED, 1.0);
        assert_eq!(ask(&test, "/status/204"), 204);
        assert_eq!(test.gateway.metric(EXPORTED, &[("result", "success")]), 0.0);
        assert!(test.gateway.log().contains("events are not exported as logs"), "{}", test.gateway.log());
        assert!(test.gateway.terminate().success());
    }
}

#[test]
fn records_that_a_collector_rejects_of_a_batch_are_counted() {
    let partial = ExportLogsPartialSuccess { rejected_log_records: 1, error_message: "too old".to_owned() };
    let answer = ExportLogsServiceResponse { partial_success: Some(partial) }.encode_to_vec();
    let collector = Upstream::build().script(move |_| Some(Reply::of(200, answer.clone()))).start();
    let test = exporting(&endpoint(&collector), |setup| setup);
    assert_eq!(ask(&test, "/status/200"), 200);
    test.gateway.wait_for_metric(EXPORTED, &FAILED, 1.0);
    test.gateway.wait_for_metric(EXPORTED, &[("result", "success")], 1.0);
}

/// J7: a sink that fails stops traffic or costs counted events, as the settings say.
#[test]
fn a_collector_that_is_away_is_counted_and_costs_no_traffic() {
    let mut test = exporting("http://127.0.0.1:1/v1/logs", |setup| setup);
    assert_eq!(ask(&test, "/status/200"), 200);
    test.gateway.wait_for_metric(EXPORTED, &FAILED, 1.0);
    assert_eq!(ask(&test, "/status/204"), 204);
    assert!(test.gateway.terminate().success());
}

/// J7: a sink that fails stops traffic or costs counted events, as the settings say.
#[test]
fn a_collector_that_never_answers_is_counted_and_costs_no_traffic() {
    let gate = Gate::new();
    let waiting = gate.clone();
    let script = move |_: &Seen| Some(Reply::streaming(vec![Step::Wait(waiting.clone())]));
    let collector = Upstream::build().script(script).start();
    let mut test =
        exporting(&endpoint(&collector), |setup| setup.variable("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "200"));
    assert_eq!(ask(&test, "/status/200"), 200);
    test.gateway.wait_for_metric(EXPORTED, &FAILED, 1.0);
    assert_eq!(ask(&test, "/status/204"), 204);
    assert!(test.gateway.terminate().success());
    gate.open();
}

#[test]
fn a_collector_that_comes_back_gets_what_happens_from_then_on() {
    let sound = Arc::new(AtomicBool::new(false));
    let is_sound = Arc::clone(&sound);
    let script = move |_: &Seen| Some(Reply::of(if is_sound.load(SeqCst) { 200 } else { 400 }, ""));
    let collector = Upstream::build().script(script).start();
    let test = exporting(&endpoint(&collector), |setup| setup);
    assert_eq!(ask(&test, "/status/200"), 200);
    test.gateway.wait_for_metric(EXPORTED, &FAILED, 1.0);
    sound.store(true, SeqCst);
    // The first of them may still be within the pause.
    crate::support::journal::poll("events are exported again", || {
        ask(&test, "/status/204");
        (test.gateway.metric(EXPORTED, &[("result", "success")]) > 0.0).then_some(())
    });
    assert!(test.gateway.log().contains("events are exported as logs again"));
}
