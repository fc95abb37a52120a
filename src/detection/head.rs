//! Searches the head of a request (its host, path, query and fields), and a body that is no conversation.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use http::request::Parts;

use super::clean::Way;
use super::{Inspection, Searched, Settled, Site};
use crate::call::Denial;
use crate::dlp::Sight;
use crate::policy::data_loss::FindingPlace;
use crate::provider::request::is_plain;

/// The longest part of a head that is remembered, in bytes.
const MOST_REMEMBERED: usize = 1 << 10;
/// Words in the names of fields in which requests authenticate.
const CARRIERS: [&str; 6] = ["auth", "key", "token", "secret", "cookie", "credential"];
static CARRIER_SEARCH: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(CARRIERS).ok());

impl Inspection {
    /// Searches a head.
    ///
    /// # Errors
    /// It must not go on.
    pub fn head(&mut self, parts: &Parts) -> Result<(), Denial> {
        self.target(parts).and_then(|()| self.fields(parts)).and_then(|()| self.denied())
    }

    /// Searches the body of a request to no model, whole and as it is.
    ///
    /// # Errors
    /// It must not go on.
    pub fn body(&mut self, body: &[u8]) -> Result<(), Denial> {
        self.part(body, FindingPlace::Rest, &|| "body".to_owned(), "the body")?;
        self.denied()
    }

    fn target(&mut self, parts: &Parts) -> Result<(), Denial> {
        let (host, path) = (self.host.to_string(), parts.uri.path());
        // A webhook's URL is a secret as a whole.
        let url = [host.as_str(), path].concat();
        let place = FindingPlace::Carrier;
        self.part(url.as_bytes(), place, &|| "path".to_owned(), "the path of the URL")?;
        for parameter in parts.uri.query().unwrap_or_default().split('&') {
            let name = parameter.split('=').next().unwrap_or_default();
            let shown = if is_plain(name) { name } else { "#" };
            let location = || format!("query/{shown}");
            self.part(parameter.as_bytes(), place_of(name), &location, "the query of the URL")?;
            let value = parameter.split_once('=').map_or(parameter, |(_, value)| value);
            self.spread(&format!("query/{name}"), value.as_bytes())?;
        }
        let last = path.rsplit('/').next().unwrap_or_default();
        self.spread("path", last.as_bytes())?;
        Ok(())
    }

    fn fields(&mut self, parts: &Parts) -> Result<(), Denial> {
        for (number, (name, value)) in parts.headers.iter().enumerate() {
            let by_number = || format!("header/#{number}");
            let text = name.as_str().as_bytes();
            let in_name = "the name of a field of the request's head";
            let found = self.part(text, FindingPlace::Rest, &by_number, in_name)?;
            let is_shown = is_plain(name.as_str()) && found.is_empty();
            let location = || if is_shown { format!("header/{name}") } else { by_number() };
            let in_value = "a field of the request's head";
            self.part(value.as_bytes(), place_of(name.as_str()), &location, in_value)?;
        }
        Ok(())
    }

    /// Searches a part of the head.
    fn part(
        &mut self,
        text: &[u8],
        place: FindingPlace,
        location: &dyn Fn() -> String,
        described: &str,
    ) -> Result<Vec<Settled>, Denial> {
        if text.len() < self.terms.shortest() {
            return Ok(Vec::new());
        }
        // Most of a head stood in the one before.
        let clean = self.clean.as_ref().filter(|_| text.len() <= MOST_REMEMBERED);
        let key = clean.map(|clean| clean.key(text, (self.terms.generation(), Way::Part)));
        if self.is_clean(key) {
            return Ok(Vec::new());
        }
        let described = || described.to_owned();
        let site = Site { place, role: None, tool: None, location, described: &described };
        let Searched { settled, is_clean } = self.search(text, Sight::Whole, &site)?;
        if is_clean {
            self.remember(key);
        }
        Ok(settled)
    }
}

/// Where a field or a parameter of this name is.
pub fn place_of(name: &str) -> FindingPlace {
    if carries(name) { FindingPlace::Carrier } else { FindingPlace::Rest }
}

/// Whether requests authenticate in a field or parameter of this name.
fn carries(name: &str) -> bool {
    // A test finds words that cannot be searched for.
    CARRIER_SEARCH.as_ref().is_none_or(|words| words.is_match(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_authenticate_in_fields_whose_names_have_a_word_for_it_in_any_case() {
        for name in ["authorization", "X-API-Key", "x-auth", "Cookie", "clientSecret", "ACCESS_TOKEN"] {
            assert_eq!(place_of(name), FindingPlace::Carrier, "{name}");
        }
        for name in ["", "accept", "x-app", "anthropic-version", "Host"] {
            assert_eq!(place_of(name), FindingPlace::Rest, "{name}");
        }
    }
}
