//! The settings of a gateway: what is read, what is refused and in which words.

use std::net::IpAddr;

use super::*;
use crate::config::pod::PodMap;
use crate::name::host::Host;
use crate::tls::gate::{Mode, OnError};

const DIR: &str = "/etc/postern";

fn parse(text: &str) -> Result<Settings, Vec<Problem>> {
    Settings::parse(text, Path::new(DIR), "postern.yaml")
}

fn accepted(text: &str) -> Settings {
    parse(&format!("policy: {{path: policy.yaml}}\n{text}")).unwrap()
}

/// What is said about settings whose policy is in order.
fn refused(text: &str) -> Vec<String> {
    let problems = parse(&format!("{text}\npolicy: {{path: policy.yaml}}\n")).unwrap_err();
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn policy_alone_is_enough_and_the_rest_has_the_defaults_of_the_design() {
    let settings = accepted("");
    assert_eq!(settings.listeners.explicit.unwrap().address.to_string(), "127.0.0.1:15002");
    assert!(settings.listeners.reverse.is_empty());
    assert_eq!(settings.admin.address.to_string(), "0.0.0.0:15090");
    assert_eq!(settings.interception.mode, Mode::Required);
    assert_eq!(settings.interception.certificate.as_deref(), Some(Path::new("/etc/postern/ca-cert.pem")));
    assert_eq!(settings.interception.key.as_deref(), Some(Path::new("/etc/postern/ca-key.pem")));
    assert_eq!(settings.interception.on_error, OnError::FailClosed);
    assert_eq!(*settings.policy.path, *Path::new("/etc/postern/policy.yaml"));
    assert_eq!(settings.policy.labels.read().unwrap().len(), 0);
    assert_eq!(settings.shutdown.grace, Duration::from_secs(30));
    assert!(settings.events.stdout);
    assert_eq!(settings.log.format, log::Format::Text);
    assert_eq!(settings.limits, Limits::default());
    assert_eq!(settings.limits.request_body_bytes, 33_554_432);
    assert_eq!(settings.timeouts, Timeouts::default());
    assert_eq!(settings.timeouts.upstream_head, Duration::from_secs(900));
}

#[test]
fn every_key_of_the_design_is_read() {
    let approval = format!("sha256:{}", "Ab".repeat(32));
    let settings = parse(&format!(
        r#"
listeners:
  explicit: {{address: "127.0.0.1:0", passwordFile: proxy-password}}
  reverse:
    - {{address: "127.0.0.1:15003", upstream: "https://api.anthropic.com"}}
    - {{address: "[::1]:15004", upstream: "http://127.0.0.1:8080/"}}
  dns: {{port: 0, pool: 100.64.0.0/20}}
admin: {{address: "[::1]:15090", socket: status.sock}}
interception: {{mode: Off, caCertificate: c.pem, caKey: /k.pem, caApproval: "{approval}", onError: Passthrough}}
policy: {{path: /etc/postern/policy, labels: /etc/podinfo/labels, annotations: {{a/b: c}}, workload: {{namespace: agents, pod: p}}}}
upstream:
  roots: [corp-ca.pem]
  proxy: {{url: "http://proxy.corp.example:3128", credentialsFile: proxy.txt, except: ["**.corp.example", 10.0.0.0/8]}}
  hosts: {{API.anthropic.com: "127.0.0.1:8443", other.example: "::1"}}
  tls: {{llm.corp.example: {{roots: [x.pem], certificate: c.pem, key: k.pem}}}}
  denyAddresses: ["10.96.0.0/16", 192.0.2.1]
  allowAddresses: ["127.0.0.0/8"]
credentials: {{directory: credentials}}
events: {{stdout: false}}
log: {{format: Json}}
shutdown: {{grace: 5s}}
limits: {{requestBodyBytes: 1MiB, headerCount: 64, h2Streams: 5, celCost: 7}}
timeouts: {{sniff: 200ms, keepAlive: 1h30m}}
"#
    ))
    .unwrap();
    let explicit = settings.listeners.explicit.unwrap();
    assert_eq!(explicit.password_file.unwrap(), "/etc/postern/proxy-password".into());
    let upstreams: Vec<_> =
        settings.listeners.reverse.iter().map(|reverse| reverse.upstream.to_string()).collect();
    assert_eq!(upstreams, ["https://api.anthropic.com:443", "http://127.0.0.1:8080"]);
    let dns = settings.listeners.dns.unwrap();
    assert_eq!((dns.port, dns.pool.to_string().as_str()), (0, "100.64.0.0/20"));
    assert_eq!(settings.admin.socket.unwrap(), "/etc/postern/status.sock".into());
    assert_eq!(settings.interception.mode, Mode::Off);
    assert_eq!(settings.interception.key.as_deref(), Some(Path::new("/k.pem")));
    assert_eq!(settings.interception.approval.unwrap(), approval.to_lowercase());
    assert_eq!(settings.interception.on_error, OnError::Passthrough);
    assert_eq!(settings.policy.labels, PodMap::File("/etc/podinfo/labels".into()));
    assert_eq!(settings.policy.annotations.read().unwrap()["a/b"], "c");
    assert_eq!(settings.policy.workload.namespace, "agents");
    let upstream = settings.upstream;
    assert_eq!(upstream.roots, ["/etc/postern/corp-ca.pem".into()]);
    assert_eq!(upstream.tls["llm.corp.example"].key.as_deref(), Some(Path::new("/etc/postern/k.pem")));
    let fixed: Vec<_> = upstream.hosts.iter().map(|(name, at)| (name.as_str(), at.port)).collect();
    assert_eq!(fixed, [("api.anthropic.com", Some(8443)), ("other.example", None)]);
    assert_eq!(upstream.deny_addresses.len(), 2);
    assert_eq!(settings.credentials.directory.unwrap(), "/etc/postern/credentials".into());
    assert!(!settings.events.stdout);
    assert_eq!(settings.log.format, log::Format::Json);
    assert_eq!(settings.limits.request_body_bytes, 1 << 20);
    assert_eq!(settings.limits.cel_cost, 7);
    assert_eq!(settings.timeouts.keep_alive, Duration::from_secs(5_400));
}

#[test]
fn all_errors_come_at_once_each_with_its_place() {
    let problems = refused(
        "listeners: {explicit: {adress: x}}\n\
         limits:\n  headerCount: many\n  bufferedBytes: 0\n\
         timeouts: {sniff: 5}\n\
         interceptoin: {}\n\
         upstream: {denyAddresses: [10.0.0.1/8]}",
    );
    assert_eq!(problems.len(), 6, "{problems:#?}");
    let at = ["1:24: listeners.explicit.adress", "3:16: limits.headerCount", "4:18: limits.bufferedBytes"];
    let more = ["5:19: timeouts.sniff", "6:1: interceptoin", "7:28: upstream.denyAddresses[0]"];
    for (problem, place) in problems.iter().zip(at.into_iter().chain(more)) {
        assert!(problem.starts_with(&format!("postern.yaml:{place}: ")), "{problem} is not at {place}");
    }
}

#[test]
fn evidence_needs_a_directory_and_is_off_where_nothing_is_written() {
    assert!(accepted("").evidence.is_none());
    let evidence = accepted("evidence: {directory: e}").evidence.unwrap();
    assert_eq!(&*evidence.directory, Path::new("/etc/postern/e"));
    assert_eq!((evidence.max_age.as_secs(), evidence.max_bytes, evidence.mcp), (86_400, 256 << 20, false));
    let refused = refused("evidence:\n  agentPath: e\n  maxAge: 4m\n  maxBytes: 1KiB\n");
    let starts =
        ["2:3: evidence.directory: is", "2:14: evidence.agentPath: must", "3:11: evidence.maxAge: must"];
    for start in starts.into_iter().chain(["4:13: evidence.maxBytes: must"]) {
        assert!(refused.iter().any(|problem| problem.contains(start)), "{start}: {refused:#?}");
    }
    assert_eq!(refused.len(), 4);
}

#[test]
fn the_gateways_own_name_is_no_upstream() {
    let refused =
        refused("listeners: {reverse: [{address: '127.0.0.1:0', upstream: 'http://postern.internal'}]}");
    assert!(refused[0].contains("answers at postern.internal itself"), "{refused:#?}");
}

#[test]
fn a_ledger_needs_a_file_and_room() {
    let problems = refused("ledger: {maxBytes: 1MiB}");
    assert_eq!(problems.len(), 2, "{problems:#?}");
    assert!(problems.iter().any(|problem| problem.contains("ledger.path: is required")), "{problems:#?}");
    assert!(problems.iter().any(|problem| problem.contains("ledger.maxBytes: must be")), "{problems:#?}");
}

#[test]
fn a_missing_policy_is_said() {
    for text in ["", "admin: {}", "policy: {}"] {
        let problems = parse(text).unwrap_err();
        assert_eq!(problems.len(), 1);
        assert!(problems[0].to_string().contains("policy.path: is required"), "{}", problems[0]);
    }
}

#[test]
fn wrong_values_are_refused_in_words_that_help() {
    for (text, words) in [
        ("listeners: {}", "lists no listener"),
        ("listeners: {explicit: {address: \"localhost:1\"}}", "expected an IP address with a port"),
        (
            "listeners: {reverse: [{upstream: \"https://a.example\"}]}",
            "listeners.reverse[0].address: is required",
        ),
        (
            "listeners: {reverse: [{address: \"127.0.0.1:1\", upstream: \"https://a.example/v1\"}]}",
            "without a path",
        ),
        (
            "listeners: {reverse: [{address: \"127.0.0.1:1\", upstream: \"ftp://a.example\"}]}",
            "expected a URL",
        ),
        ("admin: {address: \"127.0.0.1:15002\"}", "share port 15002"),
        ("listeners: {dns: {}}", "lists no listener"),
        ("listeners: {explicit: {}, dns: {port: 70000}}", "70000 is no port"),
        ("listeners: {explicit: {}, dns: {port: \"53\"}}", "expected a port, found the text \"53\""),
        ("listeners: {explicit: {}, dns: {pool: \"fd00::/64\"}}", "is IPv6; write an IPv4 network"),
        ("listeners: {explicit: {}, dns: {pool: 198.18.0.0/30}}", "too small"),
        ("listeners: {explicit: {}, dns: {pool: 198.18.0.1/15}}", "did you mean 198.18.0.0/15?"),
        ("listeners: {explicit: {}, dns: {pool: 126.0.0.0/7}}", "overlaps 127.0.0.0/8"),
        ("listeners: {explicit: {}, dns: {port: 15002}}", "share port 15002"),
        (
            "listeners: {explicit: {}, dns: {address: \"127.0.0.1:53\"}}",
            "unknown key; expected one of: port, pool",
        ),
        ("interception: {mode: On}", "expected Required or Off"),
        ("interception: {caApproval: \"sha256:12\"}", "64 hex digits"),
        ("upstream: {proxy: \"https://proxy.example\"}", "not supported yet"),
        ("upstream: {proxy: {except: []}}", "upstream.proxy.url: is required"),
        ("upstream: {tls: {a.example: {key: k.pem}}}", "needs both"),
        ("upstream: {hosts: {a.example: b.example}}", "expected an IP address"),
        ("upstream: {hosts: {10.0.0.1: 10.0.0.2}}", "only names"),
        ("upstream: {hosts: {a.example: 192.0.2.1, A.example: 192.0.2.2}}", "names the same"),
        ("credentials: [x]", "expected a mapping, found a list"),
        ("events: {stdout: yes please}", "expected a boolean"),
        ("log: {format: json}", "log.format: unknown value \"json\"; expected Text or Json"),
        ("shutdown: {grace: 0s}", "more than zero"),
    ] {
        assert_refused_with(text, words);
    }
}

#[test]
fn wrong_types_and_texts_that_are_no_settings_are_refused_in_words_that_help() {
    for (text, words) in [
        ("limits: {h2Streams: 5000000000}", "too large"),
        ("limits: {headerBytes: -1}", "expected a size"),
        ("credentials: {directory: 5}", "put it in quotes"),
        ("limits: {headerCount: 1, headerCount: 2}", "limits.headerCount: the field is written twice"),
        ("upstream: {roots: [~]}", "upstream.roots[0]: expected a path, found nothing"),
        ("upstream: {hosts: {a.example: }}", "found nothing"),
        ("upstream: {proxy: {url: \"http://p.example\", except: [\"a.*\"]}}", "wildcard"),
        ("upstream: {allowAddresses: [127.0.0.1/8]}", "did you mean 127.0.0.0/8?"),
        ("admin: {}\n---\nadmin: {}", "a second document begins here"),
        ("admin: {address: [}", "not valid YAML"),
        ("trust: {directory: t}", "trust.roots: is required"),
        ("trust: {roots: r.pem}", "trust.directory: is required"),
        ("upstream: {denyAddresses: [{}]}", "denyAddresses[0].fromEnv: is required"),
        ("upstream: {denyAddresses: [{fromEnv: \"\"}]}", "denyAddresses[0].fromEnv: is empty"),
        ("upstream: \"http://user:secret@proxy.example\"", "upstream: expected a mapping, found text"),
        ("upstream: {denyAddresses: [{fromEnv: X, other: 1}]}", "unknown key; expected one of: fromEnv"),
    ] {
        assert_refused_with(text, words);
    }
}

fn assert_refused_with(text: &str, words: &str) {
    let problems = refused(text);
    assert_eq!(problems.len(), 1, "{text}: {problems:#?}");
    assert!(problems[0].contains(words), "{text}: {}", problems[0]);
}

#[test]
fn required_keys_are_told_together_and_a_wrong_one_is_not_told_as_missing() {
    for (text, paths) in [
        ("trust: {}", ["trust.directory", "trust.roots"].as_slice()),
        ("trust: {directory: 5, roots: r}", &["trust.directory"]),
        ("listeners: {reverse: [{}, {address: 5}]}", &["reverse[0].address", "reverse[1].address"]),
    ] {
        let problems = refused(text);
        assert_eq!(problems.len(), paths.len(), "{problems:#?}");
        assert!(problems.iter().zip(paths).all(|(problem, path)| problem.contains(path)), "{problems:#?}");
    }
}

#[test]
fn a_password_in_a_url_is_refused_and_not_repeated() {
    for text in [
        "upstream: {proxy: \"http://user:canary@proxy.example:3128\"}",
        "listeners: {reverse: [{address: \"127.0.0.1:1\", upstream: \"https://user:canary@a.example\"}]}",
    ] {
        assert!(!refused(text).concat().contains("canary"));
    }
}

#[test]
fn sections_that_hold_nothing_are_as_if_not_written() {
    let settings = accepted("limits:\nlisteners:\nupstream: {proxy: }\n");
    assert!(settings.listeners.explicit.is_some());
    assert_eq!(settings.limits, Limits::default());
    assert!(settings.upstream.proxy.is_none());
}

#[test]
fn a_proxy_excepts_what_it_names() {
    let settings = accepted(
        "upstream: {proxy: {url: \"http://p.example:1\", except: [a.example, \"**.b.example\", \"*.c.example\", 10.0.0.0/8, \"::1\"]}}",
    );
    let proxy = settings.upstream.proxy.unwrap();
    let excepts = |host: &str| proxy.excepts(&Host::parse(host).unwrap());
    assert!(
        ["a.example", "x.b.example", "y.x.b.example", "d.c.example", "10.1.2.3", "[::1]"]
            .into_iter()
            .all(excepts)
    );
    assert!(!["b.example", "x.a.example", "xb.example", "192.0.2.1", "c.example"].into_iter().any(excepts));
}

#[test]
fn what_is_shown_reads_back_as_the_same_settings() {
    let settings = accepted(
        "upstream: {proxy: \"http://p.example:1\", hosts: {a.example: \"[::1]:5\"}, roots: [r.pem]}\nshutdown: {grace: 90s}\n\
         log: {format: Json}\nlisteners: {explicit: {}, dns: {}}",
    );
    let shown = settings.redacted();
    let again = parse(&shown.to_string()).unwrap();
    assert_eq!(again.redacted(), shown);
    assert_eq!(again.upstream.hosts.values().next().unwrap().ip, "::1".parse::<IpAddr>().unwrap());
    assert_eq!((&shown["shutdown"]["grace"], &shown["log"]["format"]), (&"90s".into(), &"Json".into()));
    assert_eq!(shown["listeners"]["dns"], serde_json::json!({"port": 15_053, "pool": "198.18.0.0/15"}));
}

const VARIABLES: &str = "policy: {path: p, workload: {namespace: {fromEnv: NAMESPACE}, pod: {fromEnv: POD}}}\n\
    upstream: {denyAddresses: [10.96.0.0/16, {fromEnv: NODES}]}\n";

fn in_environment(variables: &[(&str, &str)]) -> Result<Settings, Vec<Problem>> {
    let look_up =
        |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    Settings::parse_in(&look_up, VARIABLES, Path::new(DIR), "postern.yaml")
}

#[test]
fn variables_stand_where_the_settings_take_them_from_the_environment() {
    let settings =
        in_environment(&[("NAMESPACE", "agents"), ("POD", "coder-0"), ("NODES", "10.0.0.4, fd00::4")])
            .unwrap();
    assert_eq!(settings.policy.workload.namespace, "agents");
    assert_eq!(settings.policy.workload.pod, "coder-0");
    let denied: Vec<_> = settings.upstream.deny_addresses.iter().map(ToString::to_string).collect();
    assert_eq!(denied, ["10.96.0.0/16", "10.0.0.4/32", "fd00::4/128"]);
    assert_eq!(settings.unset, []);
}

#[test]
fn variables_that_are_not_set_are_named_with_their_place() {
    let settings = in_environment(&[("POD", "coder-0"), ("NODES", "")]).unwrap();
    let unset: Vec<_> = settings.unset.iter().map(ToString::to_string).collect();
    assert_eq!(
        unset,
        [
            "postern.yaml:1:41: policy.workload.namespace: takes its value from the environment variable \
             NAMESPACE, which is not set",
            "postern.yaml:2:42: upstream.denyAddresses[1]: takes its value from the environment variable \
             NODES, which is not set",
        ]
    );
    assert_eq!(settings.upstream.deny_addresses.len(), 1);
}

#[test]
fn a_variable_that_holds_no_addresses_is_a_problem_with_its_place() {
    for value in ["10.0.0.4;10.0.0.5", "10.0.0.4,", "node-1", "10.0.0.1/8"] {
        let problems = in_environment(&[("NODES", value)]).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        let said = problems[0].to_string();
        assert!(said.contains("upstream.denyAddresses[1]: the variable's value is wrong: "), "{said}");
    }
}

#[test]
fn what_is_written_for_agents_is_named_by_three_paths() {
    let trust =
        accepted("trust: {directory: /run/postern-trust, roots: ca/roots.pem, ownRoots: own}").trust.unwrap();
    assert_eq!(trust.directory, "/run/postern-trust".into());
    assert_eq!(trust.roots, "/etc/postern/ca/roots.pem".into());
    assert_eq!(trust.own_roots.as_deref(), Some(Path::new("/etc/postern/own")));
    assert_eq!(accepted("").trust, None);
}

#[test]
fn a_file_that_is_missing_is_named() {
    let problems = Settings::read(Path::new("/nonexistent/postern.yaml"), &|_| None).unwrap_err();
    assert!(problems[0].to_string().starts_with("/nonexistent/postern.yaml: cannot be read: "));
}
