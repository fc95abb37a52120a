//! The settings in force, in the shape of the settings file, for people to look at.
//!
//! Nothing secret is in [`Settings`]: passwords and keys stand in files, and URLs with a password are refused.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::interception::{MODES, ON_ERROR};
use super::limits::{Limits, Timeouts};
use super::listeners::Listeners;
use super::pod::PodMap;
use super::quantity::written;
use super::settings::{LOG_FORMATS, Settings};
use super::trust::TrustSettings;
use super::upstream::{StaticAddress, Upstream, UpstreamProxy};
use crate::tls::roots::TlsSettings;

pub(super) fn settings(settings: &Settings) -> Value {
    let interception = &settings.interception;
    compact(json!({
        "listeners": listeners(&settings.listeners),
        "admin": compact(json!({"address": settings.admin.address, "socket": optional(settings.admin.socket.as_ref())})),
        "interception": compact(json!({
            "mode": word(&MODES, &interception.mode),
            "caCertificate": optional(interception.certificate.as_ref()),
            "caKey": optional(interception.key.as_ref()),
            "caApproval": interception.approval,
            "onError": word(&ON_ERROR, &interception.on_error),
        })),
        "policy": {
            "path": path(&settings.policy.path),
            "labels": pod(&settings.policy.labels),
            "annotations": pod(&settings.policy.annotations),
            "workload": settings.policy.workload,
        },
        "upstream": upstream(&settings.upstream),
        "credentials": compact(json!({"directory": optional(settings.credentials.as_ref())})),
        "trust": settings.trust.as_ref().map(trust),
        "events": {"stdout": settings.events_to_stdout},
        "log": {"format": word(&LOG_FORMATS, &settings.log_format)},
        "shutdown": {"grace": written(settings.grace)},
        "limits": limits(&settings.limits),
        "timeouts": timeouts(&settings.timeouts),
    }))
}

fn trust(trust: &TrustSettings) -> Value {
    let own_roots = optional(trust.own_roots.as_ref());
    compact(json!({"directory": path(&trust.directory), "roots": path(&trust.roots), "ownRoots": own_roots}))
}

fn listeners(listeners: &Listeners) -> Value {
    let explicit = listeners.explicit.as_ref().map(|explicit| {
        compact(
            json!({"address": explicit.address, "passwordFile": optional(explicit.password_file.as_ref())}),
        )
    });
    let reverse = listeners
        .reverse
        .iter()
        .map(|reverse| json!({"address": reverse.address, "upstream": reverse.upstream.to_string()}))
        .collect::<Vec<_>>();
    let transparent = listeners.transparent.as_ref().map(|transparent| json!({"port": transparent.port}));
    let dns = listeners.dns.as_ref().map(|dns| json!({"port": dns.port, "pool": dns.pool.to_string()}));
    compact(json!({"transparent": transparent, "explicit": explicit, "reverse": reverse, "dns": dns}))
}

fn pod(map: &PodMap) -> Value {
    match map {
        PodMap::File(file) => json!(path(file)),
        PodMap::Inline(map) => json!(map),
    }
}

fn upstream(upstream: &Upstream) -> Value {
    let TlsSettings { roots, of_environment, hosts } = &upstream.tls;
    let tls: Map<String, Value> = hosts
        .iter()
        .map(|(name, tls)| {
            let tls = json!({
                "roots": paths(&tls.roots),
                "certificate": optional(tls.certificate.as_ref()),
                "key": optional(tls.key.as_ref()),
            });
            (name.clone(), compact(tls))
        })
        .collect();
    let hosts: Map<String, Value> =
        upstream.hosts.iter().map(|(name, at)| (name.to_string(), json!(address(*at)))).collect();
    let networks = |list: &[ipnet::IpNet]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    compact(json!({
        "roots": paths(roots.iter().chain(of_environment)),
        "proxy": upstream.proxy.as_ref().map(proxy),
        "hosts": hosts,
        "tls": tls,
        "denyAddresses": networks(&upstream.deny_addresses),
        "allowAddresses": networks(&upstream.allow_addresses),
    }))
}

fn proxy(proxy: &UpstreamProxy) -> Value {
    let except = proxy.except.iter().map(ToString::to_string).collect::<Vec<_>>();
    let credentials = optional(proxy.credentials_file.as_ref());
    compact(json!({"url": proxy.url(), "credentialsFile": credentials, "except": except}))
}

fn address(at: StaticAddress) -> String {
    match (at.ip, at.port) {
        (ip, None) => ip.to_string(),
        (IpAddr::V4(ip), Some(port)) => format!("{ip}:{port}"),
        (IpAddr::V6(ip), Some(port)) => format!("[{ip}]:{port}"),
    }
}

fn limits(limits: &Limits) -> Value {
    json!({
        "requestBodyBytes": limits.request_body_bytes,
        "decodedBodyBytes": limits.decoded_body_bytes,
        "zstdWindowBytes": limits.zstd_window_bytes,
        "toolInputBytes": limits.tool_input_bytes,
        "sseEventBytes": limits.sse_event_bytes,
        "clientHelloBytes": limits.client_hello_bytes,
        "headerBytes": limits.header_bytes,
        "headerCount": limits.header_count,
        "bufferedBytes": limits.buffered_bytes,
        "jsonDepth": limits.json_depth,
        "leafCache": limits.leaf_cache,
        "connections": limits.connections,
        "h2Streams": limits.h2_streams,
        "regexBytes": limits.regex_bytes,
        "regexCompiledBytes": limits.regex_compiled_bytes,
        "celCost": limits.cel_cost,
    })
}

fn timeouts(timeouts: &Timeouts) -> Value {
    json!({
        "sniff": written(timeouts.sniff),
        "agentHead": written(timeouts.agent_head),
        "connect": written(timeouts.connect),
        "upstreamHead": written(timeouts.upstream_head),
        "streamIdle": written(timeouts.stream_idle),
        "keepAlive": written(timeouts.keep_alive),
    })
}

/// The word that users write for a choice.
fn word<T: PartialEq>(words: &[(&'static str, T)], chosen: &T) -> Option<&'static str> {
    words.iter().find(|(_, choice)| choice == chosen).map(|(word, _)| *word)
}

/// A path as text: one that is no UTF-8 shows replacement characters rather than failing.
fn path(path: &Path) -> String {
    path.display().to_string()
}

fn optional(file: Option<&PathBuf>) -> Option<String> {
    file.map(|file| path(file))
}

fn paths<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Vec<String> {
    files.into_iter().map(|file| path(file)).collect()
}

/// Leaves out what is not set.
fn compact(mut value: Value) -> Value {
    if let Value::Object(map) = &mut value {
        map.retain(|_, value| !value.is_null());
    }
    value
}
