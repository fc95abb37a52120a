//! The CA, the gate before it, the roots, and what the environment says of proxies and roots.

use std::path::Path;
use std::time::SystemTime;

use super::Finding;
use crate::command::run::corporate::{self, ProxySearch};
use crate::command::run::variables::{ADDED_ROOTS, BUNDLES, MARK};
use crate::command::{check, directories, environment};
use crate::tls::gate::{GateState, Surroundings};
use crate::tls::init;
use crate::tls::roots::{BaseRoots, system_bundle};

/// Everything that a settings file asks for, read as the gateway would.
pub(super) fn of_settings(config: &Path, surroundings: Surroundings) -> Vec<Finding> {
    let (_, checked) = check::read(config, surroundings, SystemTime::now());
    match checked {
        Ok(checked) => {
            let evidence = &checked.gate.evidence;
            let interception = match (&evidence.state, &evidence.reason) {
                (GateState::Intercepting, _) => {
                    Finding::ok("interception", "TLS is ended where a rule says Inspect")
                }
                (_, reason) => Finding::not_enforced(
                    "interception",
                    format!("no TLS is ended: {}", reason.as_deref().unwrap_or("the settings say so")),
                )
                .remedy("write interception.mode: Required with a CA (`postern ca init` makes one)"),
            };
            let found = format!("{} is in order", config.display());
            vec![Finding::ok("settings", found), interception, roots(checked.upstream_tls.base())]
        }
        Err(problems) => problems
            .iter()
            .map(|problem| {
                Finding::broken("settings", problem.to_string())
                    .remedy("mend it: the gateway would not start")
            })
            .collect(),
    }
}

/// Checks what a run of this user would find.
pub(super) fn of_user(surroundings: Surroundings) -> Vec<Finding> {
    let base = system_bundle().map_or(BaseRoots::BuiltIn, |bundle| BaseRoots::System(bundle.to_owned()));
    vec![authority(), gate(surroundings), roots(&base)]
}

fn authority() -> Finding {
    let directory = match directories::data() {
        Ok(directory) => directory,
        Err(error) => return Finding::warn("CA", format!("{error:#}")).remedy("set HOME"),
    };
    if !directory.join(init::CERTIFICATE).exists() {
        return Finding::ok(
            "CA",
            format!("none in {} yet: the first `postern run` makes it", directory.display()),
        );
    }
    let status = init::status(&directory, SystemTime::now());
    if let Some(problem) = status.problems.first() {
        return Finding::warn("CA", problem).remedy("see `postern ca status`");
    }
    let until = status.authority.map(|authority| authority.not_after).unwrap_or_default();
    Finding::ok("CA", format!("{}, valid until {until}", status.certificate.display()))
}

fn gate(surroundings: Surroundings) -> Finding {
    if surroundings.intercept {
        return Finding::ok("gate", "POSTERN_INTERCEPT is 1: a gateway started here may end TLS");
    }
    Finding::ok(
        "gate",
        "POSTERN_INTERCEPT is not 1: `postern gateway` would refuse to end TLS; `postern run` opens the gate for itself",
    )
}

fn roots(base: &BaseRoots) -> Finding {
    match base {
        BaseRoots::System(bundle) => {
            Finding::ok("roots", format!("servers are verified by {}", bundle.display()))
        }
        BaseRoots::BuiltIn => {
            Finding::warn("roots", "no bundle of roots here: servers are verified by those built in")
                .remedy("install the package ca-certificates")
        }
    }
}

/// Checks the variables that `postern run` takes over or replaces.
pub(super) fn environment() -> Vec<Finding> {
    let variable = &environment::variable;
    let mut findings = Vec::new();
    if variable(MARK).is_some() {
        findings.push(Finding::ok("run", "this is inside a `postern run`"));
        return findings;
    }
    findings.push(match corporate::find(variable) {
        ProxySearch::Nothing => {
            Finding::ok("proxy", "the environment names none: the gateway dials servers itself")
        }
        ProxySearch::Usable(corporate) => Finding::ok(
            "proxy",
            format!("`postern run` goes through {}, as {} says", corporate.url, corporate.variable),
        ),
        ProxySearch::Unusable(why) => Finding::warn("proxy", format!("{why}: `postern run` does not use it"))
            .remedy("name an http:// proxy, or unset it"),
    });
    let set: Vec<_> =
        BUNDLES.iter().chain(ADDED_ROOTS).filter(|name| variable(name).is_some()).copied().collect();
    if !set.is_empty() {
        let found = format!("{}: `postern run` trusts these roots too", set.join(", "));
        findings.push(Finding::ok("own roots", found));
    }
    findings
}
