//! Where a request may carry which placeholder, what else it may carry beside it, and the replacement.

use std::sync::Arc;

use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Uri, header};
use zeroize::Zeroizing;

use super::authorization::Authorization;
use super::carrier::{self, Breadth, KEY_HEADERS, Parameter, is_exactly};
use super::sighting::{self, Sightings};
use super::sigv4::{self, Subject};
pub use super::unattachable::Unattachable;
use super::{access_key::AccessKey, minting};
use crate::decision::Decision;
use crate::name::host::DnsName;
use crate::policy::credential::Credential;
use crate::secret::Secret;
use crate::wire::percent;

/// Where a request goes.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// `None` for an address, to which no credential goes.
    pub host: Option<&'a DnsName>,
    pub port: u16,
    /// Whether the way to the upstream is TLS whose certificate was verified.
    pub secure: bool,
}

/// What becomes of the keys of one request.
#[derive(Debug)]
pub enum Placement {
    /// It carries no placeholder, and nothing that is refused.
    Nothing,
    Attach(Plan),
    Deny(KeyDenial),
}

/// A request that is refused for a key it carries or asks for.
#[derive(Debug)]
pub struct KeyDenial {
    pub decision: Decision,
    /// Whether it holds where only Audit policies select the pod too: a placeholder where it does not belong.
    pub floor: bool,
    /// What is attached where the denial is only recorded (Audit).
    pub plan: Option<Plan>,
}

/// The placeholder of one credential, to be replaced wherever it stands.
#[derive(Debug, Clone)]
pub struct Plan {
    credential: Arc<Credential>,
}

/// Decides on the keys of a request whose body was not looked at. `all` are the policy's credentials, `parts`
/// the head as the agent sent it; nothing is changed.
pub fn plan(parts: &Parts, all: &[Arc<Credential>], target: &Target<'_>) -> Placement {
    if all.is_empty() {
        return Placement::Nothing;
    }
    let serving = serving(all, target);
    let seen = sighting::search_head(parts, all);
    if let Some(decision) = misplaced(&seen, &serving, target) {
        return Placement::Deny(KeyDenial { decision, floor: true, plan: None });
    }
    let placed: Vec<&Arc<Credential>> =
        serving.iter().copied().filter(|credential| seen.places(&credential.placeholder)).collect();
    let plan = match placed.as_slice() {
        [only] => Some(Plan { credential: Arc::clone(only) }),
        // Two tiers may hold one placeholder for one host; the first, the cluster's, is meant.
        [first, rest @ ..] if rest.iter().all(|other| other.placeholder == first.placeholder) => {
            Some(Plan { credential: Arc::clone(first) })
        }
        _ => None,
    };
    if let Some(decision) = forbidden_endpoint(parts, &serving, target) {
        return Placement::Deny(KeyDenial { decision, floor: false, plan });
    }
    if placed.len() > 1 && plan.is_none() {
        let reason = "the request carries the placeholders of two different credentials".to_owned();
        return Placement::Deny(KeyDenial {
            decision: Decision::builtin("credential", reason),
            floor: false,
            plan: None,
        });
    }
    if let Some(decision) = plan.as_ref().and_then(|plan| unsignable(parts, plan.credential())) {
        return Placement::Deny(KeyDenial { decision, floor: false, plan: None });
    }
    if let Some(decision) = foreign_key(parts, &serving, plan.is_some()) {
        return Placement::Deny(KeyDenial { decision, floor: false, plan: None });
    }
    plan.map_or(Placement::Nothing, Placement::Attach)
}

/// What to say of a request that [`plan`] let pass, for whoever reads its event: where, on a host that requires a
/// placeholder, a value stands that looks random. It is never denied.
pub fn remark(parts: &Parts, all: &[Arc<Credential>], target: &Target<'_>) -> Option<String> {
    let serving = serving(all, target);
    let id = &serving.iter().find(|credential| credential.require)?.id;
    let accepted: Vec<&str> = serving.iter().map(|credential| credential.placeholder.as_str()).collect();
    let place = carrier::random_looking(parts, &accepted)?;
    Some(format!(
        "{place} holds a value that looks random, beside the placeholder of {id}; it was not judged"
    ))
}

/// The credentials that may be used at the target, whatever the way there.
fn serving<'a>(all: &'a [Arc<Credential>], target: &Target<'_>) -> Vec<&'a Arc<Credential>> {
    let Some(host) = target.host else { return Vec::new() };
    all.iter().filter(|credential| credential.serves(host, target.port)).collect()
}

/// Denies a placeholder in a place where none is replaced, one that is sent to a host that is not its credential's,
/// and one that is sent without TLS.
fn misplaced(seen: &Sightings<'_>, serving: &[&Arc<Credential>], target: &Target<'_>) -> Option<Decision> {
    if let Some((credential, place)) = &seen.stray {
        let id = &credential.id;
        return Some(Decision::builtin("placeholder", format!("the placeholder of {id} stands in {place}")));
    }
    for (credential, place) in &seen.placed {
        let id = &credential.id;
        if !serving.iter().any(|other| other.placeholder == credential.placeholder) {
            let reason =
                format!("the placeholder of {id} ({place}) was sent to a host or port that is not its own");
            return Some(Decision::builtin("placeholder", reason));
        }
        if !target.secure {
            let reason = format!("the placeholder of {id} ({place}) was sent without verified TLS");
            return Some(Decision::builtin("placeholder", reason));
        }
    }
    None
}

/// Denies requests that would show the key (TRACE) or mint another one, on a host that gets a key.
fn forbidden_endpoint(parts: &Parts, serving: &[&Arc<Credential>], target: &Target<'_>) -> Option<Decision> {
    let (host, credential) = (target.host?, serving.first()?);
    if parts.method == Method::TRACE || parts.method.as_str().eq_ignore_ascii_case("track") {
        let reason = format!("{} would send the key of {} back", parts.method, credential.id);
        return Some(Decision::builtin("credential", reason));
    }
    let what = minting::mints(&parts.method, host, parts.uri.path())?;
    let reason =
        format!("this endpoint hands out further credentials ({what}) on a host of {}", credential.id);
    Some(Decision::builtin("minting", reason))
}

/// Denies a signature that cannot be replaced: another service or region, presigned, or signed in chunks.
fn unsignable(parts: &Parts, credential: &Credential) -> Option<Decision> {
    let scope_of_key = credential.signing.as_ref()?;
    let id = &credential.id;
    let refuse = |reason: String| Some(Decision::builtin("credential", reason));
    let mut values = parts.headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return refuse(format!("{id} signs requests, and this one has no signature, or several"));
    };
    let Authorization::Signed(scope) = Authorization::read(value.as_bytes()) else {
        return refuse(format!("{id} signs requests, and this one is authorized in another way"));
    };
    if scope.service != scope_of_key.service.as_bytes() || scope.region != scope_of_key.region.as_bytes() {
        let (service, region) = (&scope_of_key.service, &scope_of_key.region);
        return refuse(format!(
            "{id} signs for the service {service} in the region {region} alone, and the request is signed for another"
        ));
    }
    if sigv4::is_presigned(parts) {
        return refuse(format!("beside the signature that {id} replaces, there is another in the query"));
    }
    if sigv4::is_in_chunks(parts) {
        return refuse(format!(
            "the body is signed in chunks, which {id} cannot sign again; send it with one hash (x-amz-content-sha256)"
        ));
    }
    None
}

/// Denies a key of the agent's own where the policy requires the placeholder, or beside a placeholder.
fn foreign_key(parts: &Parts, serving: &[&Arc<Credential>], attaching: bool) -> Option<Decision> {
    let accepted: Vec<&str> = serving.iter().map(|credential| credential.placeholder.as_str()).collect();
    if let Some(credential) = serving.iter().find(|credential| credential.require) {
        let carried = carrier::foreign_key(parts, &accepted, Breadth::All)
            .map(|carrier| format!("another key stands in {carrier}"))
            .or_else(|| carrier::key_shaped(parts, &accepted))?;
        let id = &credential.id;
        let reason = format!("only the placeholder of {id} is accepted here, and {carried}");
        return Some(Decision::builtin("credential", reason));
    }
    if !attaching {
        return None;
    }
    let carrier = carrier::foreign_key(parts, &accepted, Breadth::Places)?;
    Some(Decision::builtin("credential", format!("beside the placeholder, another key stands in {carrier}")))
}

impl Plan {
    pub fn credential(&self) -> &Arc<Credential> {
        &self.credential
    }

    /// Whether the request is signed: its body must be known whole before it is sent, and [`Self::sign`] takes the
    /// place of [`Self::attach`].
    pub fn signs(&self) -> bool {
        self.credential.signing.is_some()
    }

    /// Replaces the signature that names the placeholder, after the last edit of head and body. Method, path, query,
    /// `content-type` and `x-amz-` headers must stay as they are from here on. On an error the request must not be
    /// sent.
    pub fn sign(
        &self,
        parts: &mut Parts,
        key: &AccessKey,
        subject: &Subject<'_>,
    ) -> Result<(), Unattachable> {
        let scope = self.credential.signing.as_ref().ok_or(Unattachable::DoesNotSign)?;
        let placeholder = self.credential.placeholder.as_str();
        let mut values = parts.headers.get_all(header::AUTHORIZATION).iter();
        if !values.any(|value| Authorization::read(value.as_bytes()).is_signed_by(placeholder)) {
            return Err(Unattachable::Gone);
        }
        sigv4::sign(parts, key, scope, subject)
    }

    /// Replaces the placeholder by the key wherever it stands, after the last filter; the header values are
    /// marked sensitive. On an error the request must not be sent.
    pub fn attach(&self, parts: &mut Parts, secret: &Secret) -> Result<(), Unattachable> {
        if self.signs() {
            return Err(Unattachable::Signs);
        }
        let placeholder = self.credential.placeholder.as_str();
        let uri = replaced_query(&parts.uri, placeholder, secret)?;
        let mut is_attached = uri.is_some();
        if let header::Entry::Occupied(mut values) = parts.headers.entry(header::AUTHORIZATION) {
            for value in values.iter_mut() {
                let new = Authorization::read(value.as_bytes()).replaced(placeholder, secret.expose())?;
                if let Some(new) = new {
                    *value = sensitive(&new)?;
                    is_attached = true;
                }
            }
        }
        for name in KEY_HEADERS {
            let header::Entry::Occupied(mut values) = parts.headers.entry(name) else { continue };
            for value in values.iter_mut().filter(|value| is_exactly(value, placeholder)) {
                *value = sensitive(secret.expose())?;
                is_attached = true;
            }
        }
        if let Some(uri) = uri {
            parts.uri = uri;
        }
        if is_attached { Ok(()) } else { Err(Unattachable::Gone) }
    }
}

fn sensitive(value: &[u8]) -> Result<HeaderValue, Unattachable> {
    let mut value = HeaderValue::from_bytes(value).map_err(|_| Unattachable::TooLong)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The URI with the key in its query; `None` where the placeholder does not stand there.
fn replaced_query(uri: &Uri, placeholder: &str, secret: &Secret) -> Result<Option<Uri>, Unattachable> {
    let Some(query) = uri.query() else { return Ok(None) };
    if !query.split('&').any(|pair| Parameter::read(pair).holds(placeholder)) {
        return Ok(None);
    }
    let key = Zeroizing::new(percent::encode(secret.expose(), percent::is_unreserved, percent::UPPER));
    let mut text = Zeroizing::new(Vec::with_capacity(uri.path().len() + query.len() + key.len() * 2));
    text.extend_from_slice(uri.path().as_bytes());
    for (i, pair) in query.split('&').enumerate() {
        text.push(if i == 0 { b'?' } else { b'&' });
        if Parameter::read(pair).holds(placeholder) {
            text.extend_from_slice(b"key=");
            text.extend_from_slice(&key);
        } else {
            text.extend_from_slice(pair.as_bytes());
        }
    }
    let mut uri = uri.clone().into_parts();
    uri.path_and_query = Some(PathAndQuery::try_from(text.as_slice()).map_err(|_| Unattachable::TooLong)?);
    Uri::from_parts(uri).map(Some).map_err(|_| Unattachable::TooLong)
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "signing_tests.rs"]
mod signing_tests;
