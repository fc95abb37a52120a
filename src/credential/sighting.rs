//! Finds placeholders in a request's head: in the places where one is replaced, and in any other.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine;
use http::request::Parts;
use http::{HeaderName, HeaderValue, header};
use memchr::memmem;

use super::authorization::{Authorization, SECURITY_TOKEN};
use super::carrier::{KEY_HEADERS, Parameter, in_words, is_exactly};
use crate::policy::credential::Credential;
use crate::wire::percent;

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
pub(super) fn search_head<'a>(parts: &Parts, all: &'a [Arc<Credential>]) -> Sightings<'a> {
    let mut search = HeadSearch { all, seen: Sightings::default() };
    for (name, value) in &parts.headers {
        search.header(name, value);
    }
    search.anywhere(parts.uri.path().as_bytes(), || "the path".to_owned());
    if let Some(authority) = parts.uri.authority() {
        search.anywhere(authority.as_str().as_bytes(), || "the authority of the URL".to_owned());
    }
    for pair in parts.uri.query().unwrap_or_default().split('&') {
        let parameter = Parameter::read(pair);
        if !search.place(|| "?key=".to_owned(), false, |placeholder| parameter.holds(placeholder)) {
            search.anywhere(pair.as_bytes(), || "the query".to_owned());
        }
    }
    search.seen
}

struct HeadSearch<'a> {
    all: &'a [Arc<Credential>],
    seen: Sightings<'a>,
}

impl HeadSearch<'_> {
    fn header(&mut self, name: &HeaderName, value: &HeaderValue) {
        let bytes = value.as_bytes();
        let is_placed = if name == header::AUTHORIZATION {
            self.authorization(&Authorization::read(bytes))
        } else if name == SECURITY_TOKEN {
            self.place(|| in_words(name), true, |placeholder| is_exactly(value, placeholder))
        } else if KEY_HEADERS.iter().any(|known| name == known) {
            self.place(|| in_words(name), false, |placeholder| is_exactly(value, placeholder))
        } else {
            self.inside_basic(name, bytes);
            false
        };
        if !is_placed {
            self.anywhere(bytes, || in_words(name));
            self.anywhere(name.as_str().as_bytes(), || "the name of a header".to_owned());
        }
    }

    fn authorization(&mut self, value: &Authorization<'_>) -> bool {
        let place = || "the header authorization".to_owned();
        let is_placed = self.place(place, false, |placeholder| value.holds(placeholder))
            || self.place(place, true, |placeholder| value.is_signed_by(placeholder));
        let inside = || "the header authorization, inside Basic".to_owned();
        if is_placed {
            // Beside the one that is replaced, another may stand in the other half.
            for credential in self.all {
                self.anywhere(value.beside(&credential.placeholder).unwrap_or_default(), inside);
            }
        } else if let Authorization::Basic(pair) = value {
            self.anywhere(pair, inside);
        }
        is_placed
    }

    /// Notes the placeholders for which `holds`; says whether there is one. Each place is for keys that are put into
    /// it, or for access keys that sign.
    fn place(&mut self, place: impl Fn() -> String, signs: bool, holds: impl Fn(&str) -> bool) -> bool {
        let fits = |credential: &&Arc<Credential>| {
            credential.signing.is_some() == signs && is_usable(credential) && holds(&credential.placeholder)
        };
        let found = self.all.iter().filter(fits);
        let before = self.seen.placed.len();
        self.seen.placed.extend(found.map(|credential| (credential, place())));
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
        let is_here = |credential: &&Arc<Credential>| {
            let placeholder = credential.placeholder.as_bytes();
            is_usable(credential)
                && (holds(text, placeholder)
                    // Where nothing was encoded, both texts are one.
                    || (matches!(decoded, Cow::Owned(_)) && holds(&decoded, placeholder)))
        };
        // The longest, where one placeholder begins another's.
        let found = self.all.iter().filter(is_here).max_by_key(|credential| credential.placeholder.len());
        self.seen.stray = found.map(|credential| (credential, place()));
    }
}

/// Most texts of a head are shorter than a placeholder, and setting up a search costs more than that is worth.
fn holds(text: &[u8], placeholder: &[u8]) -> bool {
    text.len() >= placeholder.len() && memmem::find(text, placeholder).is_some()
}

fn is_usable(credential: &Credential) -> bool {
    !credential.placeholder.is_empty()
}
