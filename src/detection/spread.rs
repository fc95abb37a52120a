//! Remembers small values of requests to hosts that are no model's, so that a secret is found that is divided over several
//! requests.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::name::host::Host;

/// How many hosts are remembered, and how many values of each.
const MOST_HOSTS: usize = 256;
const MOST_VALUES: usize = 64;
/// How long a value is remembered.
const LASTS: Duration = Duration::from_secs(5 * 60);
/// How long a part of a divided secret is: what is shorter is in too many requests, what is longer is found by itself.
const SHORTEST: usize = 3;
const LONGEST: usize = 256;
/// How much is joined at most, in bytes: no rigid secret is longer than half of it.
const MOST_BYTES: usize = 1 << 10;

/// The small values of the last requests to each host.
#[derive(Debug, Default)]
pub struct SpreadValues {
    hosts: Mutex<HashMap<Host, Values>>,
    places: RandomState,
}

#[derive(Debug)]
struct Values {
    newest: Instant,
    kept: VecDeque<Value>,
}

/// A value of a request.
#[derive(Debug)]
struct Value {
    at: Instant,
    /// A hash of where it stood, which may be long.
    place: u64,
    bytes: Vec<u8>,
}

/// Values that stood in the same place of several requests, one after the other, and where the last one begins.
pub(super) struct Joined {
    pub(super) bytes: Vec<u8>,
    pub(super) last: usize,
}

impl SpreadValues {
    /// Remembers a value of a request. Returns it behind those that stood in the same place before; none where there is
    /// nothing to search.
    pub(super) fn add(&self, host: &Host, place: &str, value: &[u8], now: Instant) -> Option<Joined> {
        if !(SHORTEST..=LONGEST).contains(&value.len()) || !value.iter().all(|byte| is_of_token(*byte)) {
            return None;
        }
        let place = self.places.hash_one(place);
        let is_new = |at: Instant| now.saturating_duration_since(at) < LASTS;
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if !hosts.contains_key(host) {
            hosts.retain(|_, values| is_new(values.newest));
        }
        if hosts.len() >= MOST_HOSTS && !hosts.contains_key(host) {
            let oldest = hosts.iter().min_by_key(|(_, values)| values.newest).map(|(host, _)| host.clone());
            oldest.and_then(|host| hosts.remove(&host));
        }
        let values =
            hosts.entry(host.clone()).or_insert_with(|| Values { newest: now, kept: VecDeque::new() });
        values.newest = now;
        values.kept.retain(|kept| is_new(kept.at));
        let same = values.kept.iter().filter(|kept| kept.place == place);
        // Most requests say the same there each time, and a part of a secret comes once.
        if same.clone().any(|kept| kept.bytes == value) {
            return None;
        }
        let mut before: Vec<u8> = same.flat_map(|kept| kept.bytes.iter().copied()).collect();
        let excess = (before.len() + value.len()).saturating_sub(MOST_BYTES);
        before.drain(..excess.min(before.len()));
        while values.kept.len() >= MOST_VALUES {
            values.kept.pop_front();
        }
        values.kept.push_back(Value { at: now, place, bytes: value.to_vec() });
        let last = before.len();
        (last > 0).then(|| Joined { bytes: [&before, value].concat(), last })
    }

    /// Forgets the values of a host: what they held was told.
    pub(super) fn forget(&self, host: &Host) {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).remove(host);
    }
}

fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-+/=.~".contains(&byte)
}

/// The small values of a body with the place of each: members of JSON by their keys, fields of a form by their names, else all
/// of it.
pub(super) fn of_body(body: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut values = Vec::new();
    if let Ok(json) = serde_json::from_slice(body) {
        gather("", &json, &mut values);
        return values;
    }
    let text = String::from_utf8_lossy(body);
    for (number, field) in text.trim().split('&').enumerate() {
        let (name, value) = field.split_once('=').unwrap_or(("", field));
        let place = if name.is_empty() { number.to_string() } else { name.to_owned() };
        values.push((format!("body/{place}"), value.as_bytes().to_vec()));
    }
    values
}

fn gather(key: &str, json: &serde_json::Value, values: &mut Vec<(String, Vec<u8>)>) {
    match json {
        serde_json::Value::String(text) => values.push((format!("body/{key}"), text.as_bytes().to_vec())),
        serde_json::Value::Array(items) => items.iter().for_each(|item| gather(key, item, values)),
        serde_json::Value::Object(members) => {
            members.iter().for_each(|(key, member)| gather(key, member, values));
        }
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> Host {
        Host::parse(name).unwrap()
    }

    #[test]
    fn values_of_one_place_are_joined_in_their_order() {
        let (spread, now) = (SpreadValues::default(), Instant::now());
        let add = |place: &str, value: &str, seconds| {
            let at = now + Duration::from_secs(seconds);
            let joined = spread.add(&host("a.example"), place, value.as_bytes(), at)?;
            Some((String::from_utf8(joined.bytes).unwrap(), joined.last))
        };
        assert_eq!(add("query/q", "one", 0), None);
        assert_eq!(add("query/r", "other", 1), None);
        assert_eq!(add("query/q", "two", 2), Some(("onetwo".to_owned(), 3)));
        assert_eq!(add("query/q", "a sentence", 3), None);
        assert_eq!(add("query/q", "two", 4), None, "it was there before");
        assert_eq!(add("query/q", "three", 301), Some(("twothree".to_owned(), 3)));
        assert!(spread.add(&host("b.example"), "query/q", b"four", now).is_none());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (spread, now) = (SpreadValues::default(), Instant::now());
        for number in 0..1_000 {
            let name = host(&format!("h{number}.example"));
            spread.add(&name, "path", &[b'a'; 256], now + Duration::from_millis(number));
            let value = format!("{number:0>256}");
            let joined = spread.add(&host("h999.example"), "path", value.as_bytes(), now);
            assert!(joined.is_none_or(|joined| joined.bytes.len() <= MOST_BYTES));
        }
        let hosts = spread.hosts.lock().unwrap();
        assert!(hosts.len() <= MOST_HOSTS && hosts.values().all(|values| values.kept.len() <= MOST_VALUES));
    }

    #[test]
    fn hosts_that_nobody_asks_any_more_are_forgotten() {
        let (spread, now) = (SpreadValues::default(), Instant::now());
        for number in 0..100 {
            spread.add(&host(&format!("h{number}.example")), "path", b"value", now);
        }
        spread.add(&host("last.example"), "path", b"value", now + LASTS);
        assert_eq!(spread.hosts.lock().unwrap().len(), 1);
    }

    #[test]
    fn the_values_of_a_body_stand_at_their_names() {
        let of = |body: &str| -> Vec<(String, String)> {
            let values = of_body(body.as_bytes()).into_iter();
            values.map(|(place, value)| (place, String::from_utf8(value).unwrap())).collect()
        };
        let row = |place: &str, value: &str| (place.to_owned(), value.to_owned());
        assert_eq!(of(r#"{"a":{"b":"x"},"c":["y",1]}"#), [row("body/b", "x"), row("body/c", "y")]);
        assert_eq!(of("a=x&b=y"), [row("body/a", "x"), row("body/b", "y")]);
        assert_eq!(of("ghp_abc\n"), [row("body/0", "ghp_abc")]);
    }
}
