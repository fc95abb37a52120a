//! Credential rules, judged and compiled.

use std::sync::Arc;

use crate::name::gateway;
use crate::name::host::{DnsName, Host};
use crate::policy::document::Kind;
use crate::policy::mistake::{self, Beside};
use crate::yaml::field;

use super::super::lowering::{RuleNames, ports};
use super::super::{Lowering, Problems, text};
use super::claims::CredentialClaims;
use super::{Credential, SigV4, Source, written as document};

/// Compiles the credentials of a policy, each with its field; those with mistakes are left out.
pub(super) fn lower<'a>(
    credentials: &'a [document::Credential],
    lowering: &mut Lowering<'a>,
) -> Vec<(String, Arc<Credential>)> {
    let mut names = RuleNames::default();
    let mut lowered = Vec::new();
    for (number, written) in credentials.iter().enumerate() {
        let problems = &mut lowering.problems;
        let path = field::item("spec.credentials", number);
        names.add(&path, &written.name, problems);
        let hosts = hosts(&path, &written.hosts, problems);
        let ports = ports(&path, written.ports.as_ref(), problems);
        let placeholder = written.placeholder.clone().unwrap_or_else(|| format!("postern:{}", written.name));
        if written.placeholder.is_some() {
            problems.keep(&field::key(&path, "placeholder"), text::placeholder(&placeholder));
        }
        let signing = signing(&path, written, &placeholder, problems);
        let written_source = WrittenSource {
            secret_key_ref: written.secret_key_ref.as_ref(),
            from_env: written.from_env.as_ref(),
            from_file: written.from_file.as_ref(),
        };
        let Some(source) = source(&path, &written_source, lowering) else {
            lowering.credentials.add(&written.name, None);
            continue;
        };
        let id = lowering.owner.rule(&format!("credentials/{}", written.name));
        let (name, require) = (written.name.clone(), written.require == Some(true));
        let credential =
            Arc::new(Credential { id, name, hosts, ports, placeholder, require, source, signing });
        lowering.credentials.add(&written.name, Some(&credential));
        lowered.push((path, credential));
    }
    let mut claims = CredentialClaims::default();
    for (path, credential) in &lowered {
        for message in claims.within_policy(credential) {
            lowering.problems.add(path.as_str(), message);
        }
    }
    lowered
}

/// Reads exact names: a key is never bound to a pattern, nor to an address.
fn hosts(path: &str, written: &[String], problems: &mut Problems) -> Vec<DnsName> {
    let list = field::key(path, "hosts");
    if written.is_empty() {
        problems.add(list.as_str(), "name at least one host");
    }
    let read = |text: &String| {
        if text.contains('*') && !text.contains("://") {
            return Err(format!(
                "{}: a credential belongs to exact names, never to a pattern",
                field::quoted(text)
            ));
        }
        if matches!(Host::parse(text), Ok(Host::Ip(_))) {
            return Err(format!(
                "{}: a credential belongs to names, never to an address",
                field::quoted(text)
            ));
        }
        DnsName::parse_written(text).and_then(gateway::refuse_own).map_err(|error| {
            format!("{}: {}", field::quoted(text), mistake::of_host(text, &error, Beside::Credential))
        })
    };
    let all = written.iter().enumerate();
    all.filter_map(|(number, text)| problems.keep(&field::item(&list, number), read(text))).collect()
}

/// Reads what is signed for. The placeholder then stands in the place of an access key id, between other words.
fn signing(
    path: &str,
    written: &document::Credential,
    placeholder: &str,
    problems: &mut Problems,
) -> Option<SigV4> {
    let scope = written.sig_v4.as_ref()?;
    let field = field::key(path, "sigV4");
    for (name, value) in [("service", &scope.service), ("region", &scope.region)] {
        problems.keep(&field::key(&field, name), text::aws_word(value));
    }
    if placeholder.contains(['/', ',', '=']) {
        let message = "with `sigV4` it stands for an access key id, which has no `/`, `,` and `=`";
        problems.add(field::key(path, "placeholder"), message);
    }
    Some(SigV4 { service: scope.service.clone(), region: scope.region.clone() })
}

/// Where a value comes from, as users write it.
pub(in crate::policy::section) struct WrittenSource<'a> {
    pub(in crate::policy::section) secret_key_ref: Option<&'a document::SecretKeyRef>,
    pub(in crate::policy::section) from_env: Option<&'a String>,
    pub(in crate::policy::section) from_file: Option<&'a String>,
}

/// Reads the one source of a value.
pub(in crate::policy::section) fn source(
    path: &str,
    written: &WrittenSource<'_>,
    lowering: &mut Lowering<'_>,
) -> Option<Source> {
    let problems = &mut lowering.problems;
    match (written.secret_key_ref, written.from_env, written.from_file) {
        (Some(reference), None, None) => {
            secret(&field::key(path, "secretKeyRef"), reference, lowering);
            Some(Source::Mounted)
        }
        (None, Some(variable), None) => {
            problems.keep(&field::key(path, "fromEnv"), text::variable(variable))?;
            Some(Source::Env(variable.clone()))
        }
        (None, None, Some(file)) => {
            if file.is_empty() || file.starts_with('~') || file.contains('\0') {
                problems
                    .add(field::key(path, "fromFile"), "expected a file; `~` and variables are not expanded");
                return None;
            }
            Some(Source::File(lowering.origin.resolve(file)))
        }
        (None, None, None) => {
            problems.add(path, "needs a source: `secretKeyRef`, `fromEnv` or `fromFile`");
            None
        }
        (_, _, _) => {
            problems
                .add(path, "has several sources; one of `secretKeyRef`, `fromEnv` and `fromFile` is enough");
            None
        }
    }
}

/// Judges a reference to a Secret. A namespace's policy names Secrets of its own namespace alone: with any other it would
/// be its author's way to keys that he may not read.
fn secret(path: &str, reference: &document::SecretKeyRef, lowering: &mut Lowering<'_>) {
    let problems = &mut lowering.problems;
    for (name, value) in [("name", &reference.name), ("key", &reference.key)] {
        if value.is_empty() {
            problems.add(field::key(path, name), "is required");
        }
    }
    let Some(namespace) = &reference.namespace else { return };
    let field = field::key(path, "namespace");
    if lowering.kind == Some(Kind::ClusterEgressPolicy) {
        problems.keep(&field, text::namespace(namespace));
    } else {
        let message = "belongs to a ClusterEgressPolicy: a namespace's policy names Secrets of its own namespace, so \
                       leave it out";
        problems.add(field, message);
    }
}
