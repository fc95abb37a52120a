//! Every metric is documented, counts what it says, and is there from the start.

use std::collections::BTreeSet;

use super::*;
use crate::call::{Api, Usage, Vendor};
use crate::tool_output::Shortened;

/// The value of a sample, by its name with labels.
fn sample(metrics: &Metrics, series: &str) -> Option<f64> {
    let text = metrics.encode();
    let line = text.lines().find(|line| line.strip_prefix(series).is_some_and(|r| r.starts_with(' ')))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[test]
fn what_happens_is_counted_under_its_labels() {
    let metrics = Metrics::new().unwrap();
    metrics.connection(Mode::Explicit, Action::Inspect);
    metrics.request(None, Verdict::Deny);
    let service = Service { vendor: Vendor::VertexAi, api: Api::Messages, dialect: None };
    metrics.request(Some(service), Verdict::Allow);
    metrics.connection_closed(Closed::SniffTimeout);
    metrics.upstream_failed(UpstreamError::Tls);
    metrics.limit_reached(Limit::Connections);
    metrics.credential_attached("anthropic");
    for series in [
        r#"postern_connections_total{action="Inspect",mode="explicit"}"#,
        r#"postern_requests_total{api="none",provider="none",verdict="Deny"}"#,
        r#"postern_requests_total{api="messages",provider="gcp.vertex_ai",verdict="Allow"}"#,
        r#"postern_connections_closed_total{reason="sniff_timeout"}"#,
        r#"postern_upstream_errors_total{class="tls"}"#,
        r#"postern_limit_refusals_total{limit="connections"}"#,
        r#"postern_credentials_attached_total{credential="anthropic"}"#,
    ] {
        assert_eq!(sample(&metrics, series), Some(1.0), "{series}");
    }
    let untouched = r#"postern_connections_total{action="Deny",mode="transparent"}"#;
    assert_eq!(sample(&metrics, untouched), Some(0.0));
}

#[test]
fn a_connection_is_open_until_it_is_dropped() {
    let metrics = Metrics::new().unwrap();
    let open = metrics.connection_opened();
    assert_eq!(metrics.connections_open(), 1);
    drop(open);
    assert_eq!(metrics.connections_open(), 0);
}

#[test]
fn a_new_policy_takes_the_place_of_the_one_before() {
    let metrics = Metrics::new().unwrap();
    assert_eq!(sample(&metrics, "postern_policy_age_seconds"), None);
    metrics.policy_in_force("sha256:aa", SystemTime::UNIX_EPOCH);
    metrics.policy_in_force("sha256:bb", SystemTime::now() - Duration::from_secs(100));
    assert_eq!(sample(&metrics, r#"postern_policy_info{revision="sha256:aa"}"#), None);
    assert_eq!(sample(&metrics, r#"postern_policy_info{revision="sha256:bb"}"#), Some(1.0));
    let age = sample(&metrics, "postern_policy_age_seconds").unwrap();
    assert!((100.0..200.0).contains(&age), "{age}");
}

#[test]
fn an_exchange_without_an_upstream_leaves_no_upstream_time() {
    let metrics = Metrics::new().unwrap();
    metrics.exchange_ended(&Timings { total: Duration::from_micros(70), ..Timings::default() });
    assert_eq!(sample(&metrics, "postern_request_duration_seconds_count"), Some(1.0));
    assert_eq!(sample(&metrics, r#"postern_request_duration_seconds_bucket{le="0.00005"}"#), Some(0.0));
    assert_eq!(sample(&metrics, r#"postern_request_duration_seconds_bucket{le="0.0001"}"#), Some(1.0));
    assert_eq!(sample(&metrics, "postern_upstream_duration_seconds_count"), Some(0.0));
}

#[test]
fn the_leaf_counter_follows_the_caches_own_total() {
    let metrics = Metrics::new().unwrap();
    for total in [3, 3, 2, 5] {
        metrics.leaves_minted(total);
    }
    assert_eq!(sample(&metrics, "postern_leaf_certificates_minted_total"), Some(5.0));
}

#[test]
fn only_one_interception_mode_is_in_force() {
    let metrics = Metrics::new().unwrap();
    metrics.interception(Interception::Required);
    metrics.interception(Interception::Passthrough);
    assert_eq!(sample(&metrics, r#"postern_interception_info{mode="Required"}"#), Some(0.0));
    assert_eq!(sample(&metrics, r#"postern_interception_info{mode="Passthrough"}"#), Some(1.0));
}

#[test]
fn every_metric_is_documented_and_every_documented_metric_exists() {
    let metrics = Metrics::new().unwrap();
    metrics.policy_in_force("r", SystemTime::UNIX_EPOCH);
    metrics.interception(Interception::Off);
    metrics.interception_proven(true);
    metrics.sink_started("stdout");
    metrics.policy_programmed(Some(true));
    metrics.credential_attached("anthropic");
    metrics.denied(Denied::ToolCall, "agents/coders/no-web", Verdict::Deny);
    metrics.tool_call(Vendor::Anthropic, "Bash", Verdict::Deny);
    metrics.hosted_tool_stripped(Vendor::Anthropic, "web_search_20250305");
    metrics.dlp_finding("github-token", "Redact");
    metrics.tool_output(Shortened::Compressed, "", 4_000, 400);
    metrics.routing().routed("agents/coders/small", "coder", "Answered");
    metrics.routing().attempted("coder", "Answered");
    metrics.routing().passed_over("coder", true);
    metrics.routing().dropped("top_k", 1);
    metrics.tokens(Vendor::Anthropic, "claude", &Usage { input: Some(1), ..Usage::default() });
    let text = metrics.encode();
    let exposed: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let documented: BTreeSet<&str> = include_str!("../../docs/metrics.md")
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(['`', '{']).next())
        .collect();
    assert_eq!(exposed, documented);
}

#[test]
fn every_provider_and_api_is_documented() {
    let text = include_str!("../../docs/metrics.md").split_once("## Providers and APIs").unwrap().1;
    let line = |beginning: &str| text.lines().find(|line| line.starts_with(beginning)).unwrap();
    let words = |line: &str| line.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(
        words(line("`anthropic`")),
        Vendor::ALL.iter().map(|vendor| vendor.as_str()).collect::<Vec<_>>()
    );
    assert_eq!(words(line("`messages`")), Api::ALL.iter().map(|api| api.as_str()).collect::<Vec<_>>());
}

#[test]
fn every_reason_for_a_closed_connection_is_documented() {
    let documented: Vec<_> = include_str!("../../docs/metrics.md")
        .lines()
        .skip_while(|line| *line != "## Why connections ended")
        .filter_map(|line| line.strip_prefix("| ")?.split(' ').next())
        .skip(1)
        .collect();
    let reasons: Vec<_> = Closed::ALL.iter().map(|reason| reason.word()).collect();
    assert_eq!(documented, reasons);
}
