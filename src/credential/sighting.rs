//! Where placeholders stand in a request's head: in the places where one is replaced, and astray.

use std::sync::Arc;

use base64::Engine;
use http::request::Parts;
use http::{HeaderName, HeaderValue, header};
use memchr::memmem;

use super::authorization::Authorization;
use super::carrier::{KEY_HEADERS, Parameter, in_words};
use super::percent;
use super::placement::is_exactly;
use crate::policy::credential::Credential;

/// The placeholders of a request, with the place of each in words.
#[derive(Default)]
pub(super) struct Sightings<'a> {
    /// In a place where a placeholder is replaced. Credentials that share a placeholder are seen as the first.
    pub(super) placed: Vec<(&'a Arc<Credential>, String)>,
    /// The first that stands anywhere else.
    pub(super) stray: Option<(&'a Arc<Credential>, String)>,
}

impl Sightings<'_> {
    /// Whether the placeholder stands in a place where it is replaced.
    pub(super) fn places(&self, placeholder: &str) -> bool {
        self.placed.iter().any(|(credential, _)| credential.placeholder == placeholder)
    }
}

/// Looks at every value of every header, the path, the query and the authority of a request.
pub(super) fn look<'a>(parts: &Parts, all: &'a [Arc<Credential>]) -> Sightings<'a> {
    let mut look = Look { all, seen: Sightings::default() };
    for (name, value) in &parts.headers {
        look.header(name, value);
    }
    look.anywhere(parts.uri.path().as_bytes(), || "the path".to_owned());
    if let Some(authority) = parts.uri.authority() {
        look.anywhere(authority.as_str().as_bytes(), || "the authority of the URL".to_owned());
    }
    for pair in parts.uri.query().unwrap_or_default().split('&') {
        let parameter = Parameter::read(pair);
        if !look.place("?key=", |placeholder| parameter.holds(placeholder)) {
            look.anywhere(pair.as_bytes(), || "the query".to_owned());
        }
    }
    look.seen
}

struct Look<'a> {
    all: &'a [Arc<Credential>],
    seen: Sightings<'a>,
}

impl Look<'_> {
    fn header(&mut self, name: &HeaderName, value: &HeaderValue) {
        let bytes = value.as_bytes();
        let is_placed = if name == header::AUTHORIZATION {
            self.authorization(&Authorization::read(bytes))
        } else if KEY_HEADERS.iter().any(|known| name == known) {
            self.place(&in_words(name), |placeholder| is_exactly(value, placeholder))
        } else {
            self.inside_basic(name, bytes);
            false
        };
        if !is_placed {
            self.anywhere(bytes, || in_words(name));
            self.anywhere(name.as_str().as_bytes(), || "the name of a header".to_owned());
        }
    }

    fn authorization(&mut self, found: &Authorization<'_>) -> bool {
        let is_placed = self.place("the header authorization", |placeholder| found.holds(placeholder));
        let inside = || "the header authorization, inside Basic".to_owned();
        if is_placed {
            // Beside the one that is replaced, another may stand in the other half.
            for credential in self.all {
                self.anywhere(found.beside(&credential.placeholder).unwrap_or_default(), inside);
            }
        } else if let Authorization::Basic(pair) = found {
            self.anywhere(pair, inside);
        }
        is_placed
    }

    /// Notes the placeholders for which `holds`; says whether there is one.
    fn place(&mut self, place: &str, holds: impl Fn(&str) -> bool) -> bool {
        let found =
            self.all.iter().filter(|credential| is_usable(credential) && holds(&credential.placeholder));
        let before = self.seen.placed.len();
        self.seen.placed.extend(found.map(|credential| (credential, place.to_owned())));
        self.seen.placed.len() > before
    }

    /// Basic in another header, `proxy-authorization` above all.
    fn inside_basic(&mut self, name: &HeaderName, value: &[u8]) {
        let is_basic = value.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"basic "));
        if is_basic && let Ok(pair) = base64::prelude::BASE64_STANDARD.decode(value[6..].trim_ascii()) {
            self.anywhere(&pair, || format!("the header {name}, inside Basic"));
        }
    }

    /// Notes a placeholder that stands somewhere in a text, as it is or percent-encoded.
    fn anywhere(&mut self, text: &[u8], place: impl Fn() -> String) {
        if self.seen.stray.is_some() {
            return;
        }
        let decoded = percent::decode(text);
        let holds = |credential: &&Arc<Credential>| {
            let placeholder = credential.placeholder.as_bytes();
            is_usable(credential)
                && (memmem::find(text, placeholder).is_some()
                    || memmem::find(&decoded, placeholder).is_some())
        };
        // The longest, where one placeholder begins another's.
        let found = self.all.iter().filter(holds).max_by_key(|credential| credential.placeholder.len());
        self.seen.stray = found.map(|credential| (credential, place()));
    }
}

fn is_usable(credential: &Credential) -> bool {
    !credential.placeholder.is_empty()
}
