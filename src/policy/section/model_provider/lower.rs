//! Providers of models, judged and compiled.

use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

use super::super::lowering::{RuleNames, at_most, each, net};
use super::super::model::{params, transforms};
use super::super::{Lowering, Problems};
use super::written::WrittenModelProvider;
use super::{Defaults, LoweredProvider, endpoint};
use crate::call::Dialect;
use crate::policy::address::never_lifted;
use crate::policy::credential::Credential;
use crate::policy::routing::{Endpoint, ModelProvider};
use crate::yaml::field;

/// The most providers of a policy (routing.md 12.11).
pub(super) const MOST_PROVIDERS: usize = 32;

/// The most ranges of a provider.
const MOST_RANGES: usize = 16;

/// The bounds of `firstEvent`.
const FIRST_EVENT: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(15 * 60)];

/// Compiles the providers of a policy; those with mistakes are left out.
pub(super) fn lower<'a>(
    written: &'a [WrittenModelProvider],
    lowering: &mut Lowering<'a>,
) -> Vec<Arc<LoweredProvider>> {
    let list = "spec.modelProviders";
    at_most(list, written.len(), MOST_PROVIDERS, "providers", &mut lowering.problems);
    let mut names = RuleNames::default();
    let mut lowered = Vec::with_capacity(written.len().min(MOST_PROVIDERS));
    for (number, written) in written.iter().enumerate().take(MOST_PROVIDERS) {
        let path = field::item(list, number);
        names.add(&path, &written.name, &mut lowering.problems);
        let one = provider(&path, written, lowering);
        lowering.model_providers.add(&written.name, one.as_ref());
        lowered.extend(one);
    }
    lowered
}

fn provider(
    path: &str,
    written: &WrittenModelProvider,
    lowering: &mut Lowering<'_>,
) -> Option<Arc<LoweredProvider>> {
    let problems = &mut lowering.problems;
    let endpoint = problems.keep(&field::key(path, "endpoint"), endpoint::read(&written.endpoint));
    if written.dialect.is_none() {
        let message = "is required: OpenAIChat, Anthropic or OpenAIResponses";
        problems.add(field::key(path, "dialect"), message);
    }
    let allow_addresses = ranges(path, written.allow_addresses.as_deref(), problems);
    let params = params::lower(path, written.params.as_ref(), problems);
    let first_event = first_event(path, written.first_event.as_deref(), problems);
    let is_chat = written.dialect.map(|dialect| dialect.dialect() == Dialect::OpenAIChat);
    let transforms = transforms::lower(path, written.transforms.as_deref(), is_chat, problems);
    if written.key_in.is_some() && written.credential.is_none() {
        problems.add(field::key(path, "keyIn"), "belongs to a provider with `credential`");
    }
    let credential = credential(path, written, endpoint.as_ref(), lowering);
    let (endpoint, dialect) = (endpoint?, written.dialect?);
    let provider = ModelProvider {
        id: lowering.owner.rule(&format!("modelProviders/{}", written.name)),
        name: written.name.clone(),
        endpoint,
        dialect: dialect.dialect(),
        credential: credential?,
        key_in: written.key_in.unwrap_or_else(|| dialect.key_in()),
        allow_addresses: allow_addresses?,
        first_event: first_event?,
    };
    let defaults = Defaults { params: params?, transforms: transforms? };
    Some(Arc::new(LoweredProvider { provider: Arc::new(provider), defaults }))
}

/// Finds the credential; none where it cannot be this provider's.
fn credential(
    path: &str,
    written: &WrittenModelProvider,
    endpoint: Option<&Endpoint>,
    lowering: &mut Lowering<'_>,
) -> Option<Option<Arc<Credential>>> {
    let Some(name) = &written.credential else { return Some(None) };
    let at = field::key(path, "credential");
    let Some(found) = lowering.credentials.find(name) else {
        let message = lowering.credentials.unknown(name, "credentials");
        lowering.problems.add(at, message);
        return None;
    };
    let credential = Arc::clone(found?);
    let endpoint = endpoint?;
    let message = if !endpoint.is_tls {
        "a key is sent by verified TLS alone: write https:// in `endpoint`, or leave the credential out"
            .to_owned()
    } else if credential.signing.is_some() {
        format!("`{name}` signs requests to AWS (`sigV4`), which no provider of models takes")
    } else if !endpoint.host.name().is_some_and(|host| credential.serves(host, endpoint.port)) {
        format!(
            "`{name}` is not for {} on port {}: its `hosts` and `ports` say where its key may go",
            match endpoint.host.name() {
                Some(host) => host.to_string(),
                None => "an address".to_owned(),
            },
            endpoint.port
        )
    } else {
        return Some(Some(credential));
    };
    lowering.problems.add(at, message);
    None
}

/// Reads the ranges that are dialled for this provider.
fn ranges(path: &str, written: Option<&[String]>, problems: &mut Problems) -> Option<Vec<IpNet>> {
    let list = field::key(path, "allowAddresses");
    let Some(written) = written else { return Some(Vec::new()) };
    if written.is_empty() {
        problems.add(list.as_str(), "name at least one range, or leave the field out");
    }
    if written.len() > MOST_RANGES {
        problems.add(list, format!("has {} ranges; a provider has at most {MOST_RANGES}", written.len()));
        return None;
    }
    each(&list, written, problems, |text| {
        let net = net(text)?;
        match never_lifted(&net) {
            None => Ok(net),
            Some(range) => Err(format!(
                "meets {range}, which is never dialled: it is link-local, metadata or no host's; name smaller ranges"
            )),
        }
    })
}

fn first_event(path: &str, written: Option<&str>, problems: &mut Problems) -> Option<Option<Duration>> {
    let Some(text) = written else { return Some(None) };
    let [least, most] = FIRST_EVENT;
    let read = duration(text).filter(|duration| (least..=most).contains(duration));
    let wrong =
        || format!("{}: expected a duration from 1s to 15m, like 30s, 2m or 1m30s", field::quoted(text));
    problems.keep(&field::key(path, "firstEvent"), read.ok_or_else(wrong)).map(Some)
}

/// Reads whole numbers, each with its unit: `s` or `m`.
fn duration(text: &str) -> Option<Duration> {
    let (mut rest, mut seconds) = (text, 0_u64);
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (factor, after) = match (after.strip_prefix('s'), after.strip_prefix('m')) {
            (Some(after), _) => (1, after),
            (None, after) => (60, after?),
        };
        seconds = seconds.checked_add(number.parse::<u64>().ok()?.checked_mul(factor)?)?;
        rest = after;
    }
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_whole_numbers_with_their_units() {
        for (text, seconds) in [("1s", 1), ("2m", 120), ("1m30s", 90), ("15m", 900), ("900s", 900)] {
            assert_eq!(duration(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        for text in
            ["1", "s", "2 m", "1.5m", "-1s", "1h", "1ms", "99999999999999999999s", "400000000000000000m"]
        {
            assert_eq!(duration(text), None, "{text}");
        }
    }
}
