//! Remembers what was decided of the head before on the same connection: agents send the same head with each request.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use http::request::Parts;
use http::{Version, header};

use super::decide::{HeadDecision, HeadFacts, RequestPlan};
use crate::proxy::snapshot::Snapshot;

/// The longest head that is remembered, in bytes.
const MOST: usize = 4 << 10;
/// How many digits the length of a body has that makes no difference between heads: no detector looks for so few.
const LENGTH_DIGITS: usize = 9;
/// Stands behind each part of a head, in none of them.
const END: u8 = b'\n';

/// The last head of a connection that was allowed and in which nothing was found, with its decision.
#[derive(Default)]
pub(crate) struct LastHead(Mutex<Option<Remembered>>);

struct Remembered {
    terms: Terms,
    /// Method, target and fields in their order, each with [`END`].
    head: Box<[u8]>,
    facts: HeadFacts,
    plan: RequestPlan,
}

/// What a decision about a head hangs on, beside the head and the connection.
#[derive(Clone)]
pub(super) struct Terms {
    snapshot: Weak<Snapshot>,
    /// Which values detection knows.
    known: Option<u64>,
    version: Version,
    has_body: bool,
}

impl Terms {
    /// None where a head is decided anew each time: the policy has expired, or a value to be searched for is missing.
    pub(super) fn of(snapshot: &Arc<Snapshot>, parts: &Parts, has_body: bool) -> Option<Self> {
        let known = match snapshot.search_lacking() {
            Some((_, Some(_))) => return None,
            Some((search, None)) => Some(search.generation()),
            None => None,
        };
        let terms = Self { snapshot: Arc::downgrade(snapshot), known, version: parts.version, has_body };
        snapshot.denies_everything().is_none().then_some(terms)
    }

    fn hold(&self, now: &Self) -> bool {
        self.snapshot.ptr_eq(&now.snapshot)
            && (self.known, self.version, self.has_body) == (now.known, now.version, now.has_body)
    }
}

impl LastHead {
    /// The decision, if the head is the one before and was decided under the same terms.
    pub(super) fn decision(&self, parts: &Parts, terms: &Terms) -> Option<HeadDecision> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = last.as_ref().filter(|last| last.terms.hold(terms) && is(&last.head, parts))?;
        Some(HeadDecision { facts: last.facts.clone(), outcome: Ok(last.plan.clone()) })
    }

    /// Remembers an allowed head in which nothing was found.
    pub(super) fn remember(&self, parts: &Parts, terms: Terms, facts: &HeadFacts, plan: &RequestPlan) {
        let length = pieces(parts).map(|piece| piece.len() + 1).sum::<usize>();
        let remembered = (length <= MOST).then(|| {
            let mut head = Vec::with_capacity(length);
            for piece in pieces(parts) {
                head.extend_from_slice(piece);
                head.push(END);
            }
            Remembered { terms, head: head.into(), facts: facts.clone(), plan: plan.clone() }
        });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = remembered;
    }
}

/// Whether this is the head that was written so.
fn is(mut written: &[u8], parts: &Parts) -> bool {
    for piece in pieces(parts) {
        let rest = written.strip_prefix(piece).and_then(|rest| rest.strip_prefix(&[END]));
        let Some(rest) = rest else { return false };
        written = rest;
    }
    written.is_empty()
}

/// All of a head that anything is decided by.
fn pieces(parts: &Parts) -> impl Iterator<Item = &[u8]> {
    let uri = &parts.uri;
    let target = [
        parts.method.as_str(),
        uri.scheme_str().unwrap_or_default(),
        uri.authority().map_or("", |authority| authority.as_str()),
        uri.path_and_query().map_or("", |target| target.as_str()),
    ];
    let fields = parts.headers.iter().flat_map(|(name, value)| {
        let is_length = name == header::CONTENT_LENGTH && value.len() <= LENGTH_DIGITS;
        [name.as_str().as_bytes(), if is_length { b"" } else { value.as_bytes() }]
    });
    target.map(str::as_bytes).into_iter().chain(fields)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn head(target: &str, fields: &[(&str, &str)]) -> Parts {
        let mut request = Request::post(target);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn written(parts: &Parts) -> Vec<u8> {
        pieces(parts).flat_map(|piece| [piece, &[END]].concat()).collect()
    }

    const FIELDS: [(&str, &str); 3] = [("host", "a.test"), ("content-length", "120"), ("x-app", "cli")];

    #[test]
    fn a_head_is_the_one_before_if_nothing_differs_but_the_length_of_the_body() {
        let before = written(&head("/v1/messages", &FIELDS));
        assert!(is(&before, &head("/v1/messages", &FIELDS)));
        let longer = [("host", "a.test"), ("content-length", "4000"), ("x-app", "cli")];
        assert!(is(&before, &head("/v1/messages", &longer)));
    }

    #[test]
    fn a_head_with_any_other_difference_is_decided_anew() {
        let before = written(&head("/v1/messages", &FIELDS));
        for (target, fields) in [
            ("/v1/messages?beta=true", FIELDS.to_vec()),
            ("/v1/message", FIELDS.to_vec()),
            ("/v1/messages", FIELDS[..2].to_vec()),
            ("/v1/messages", [&FIELDS[..], &[("x-more", "")]].concat()),
            ("/v1/messages", vec![FIELDS[0], FIELDS[1], ("x-app", "clj")]),
            ("/v1/messages", vec![FIELDS[0], FIELDS[1], ("x-apq", "cli")]),
            ("/v1/messages", vec![FIELDS[0], FIELDS[1], ("x-app", "")]),
            ("/v1/messages", vec![FIELDS[2], FIELDS[0], FIELDS[1]]),
            ("/v1/messages", vec![FIELDS[0], ("content-length", "4111111111111111"), FIELDS[2]]),
            ("https://a.test/v1/messages", FIELDS.to_vec()),
        ] {
            assert!(!is(&before, &head(target, &fields)), "{target} {fields:?}");
        }
        let mut get = head("/v1/messages", &FIELDS);
        get.method = http::Method::GET;
        assert!(!is(&before, &get));
    }
}
