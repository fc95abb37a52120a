//! Searches the head of a request: its host, path, query and fields.

use http::HeaderName;
use http::request::Parts;

use super::{Inspection, Site};
use crate::call::Denial;
use crate::dlp::Sight;
use crate::policy::data_loss::{FindingAction, FindingPlace};
use crate::provider::request::is_plain;

/// Words in the names of fields in which requests authenticate.
const CARRIERS: [&str; 6] = ["auth", "key", "token", "secret", "cookie", "credential"];

impl Inspection {
    /// Searches a head. Returns whether a secret stands in its path, which must not be recorded then, and the denial if it
    /// must not go on.
    pub fn head(&mut self, parts: &Parts) -> (bool, Result<(), Denial>) {
        let mut is_in_path = false;
        let searched = self.target(parts, &mut is_in_path).and_then(|()| self.fields(parts));
        (is_in_path, searched.and_then(|()| self.denied()))
    }

    fn target(&mut self, parts: &Parts, is_in_path: &mut bool) -> Result<(), Denial> {
        let (host, path) = (self.host.to_string(), parts.uri.path());
        // A webhook's URL is a secret as a whole.
        let url = format!("{host}{path}");
        let site = Site {
            place: FindingPlace::Carrier,
            role: None,
            tool: None,
            location: &|| "path".to_owned(),
            where_: &|| "the path of the URL".to_owned(),
        };
        if url.len() >= self.detectors.shortest() {
            let found = self.search(url.as_bytes(), Sight::Whole, &site)?;
            *is_in_path = found.iter().any(|found| found.range.end > host.len());
        }
        let shortest = self.detectors.shortest();
        for parameter in
            parts.uri.query().unwrap_or_default().split('&').filter(|text| text.len() >= shortest)
        {
            let name = parameter.split('=').next().unwrap_or_default();
            let shown = if is_plain(name) { name } else { "#" };
            let site = Site {
                place: if carries(name) { FindingPlace::Carrier } else { FindingPlace::Rest },
                role: None,
                tool: None,
                location: &|| format!("query/{shown}"),
                where_: &|| "the query of the URL".to_owned(),
            };
            self.search(parameter.as_bytes(), Sight::Whole, &site)?;
        }
        Ok(())
    }

    fn fields(&mut self, parts: &Parts) -> Result<(), Denial> {
        for (number, (name, value)) in parts.headers.iter().enumerate() {
            let shortest = self.detectors.shortest();
            let name_holds = name.as_str().len() >= shortest && self.name(name, number)?;
            if value.len() < shortest {
                continue;
            }
            let is_shown = is_plain(name.as_str()) && !name_holds;
            let shown = || if is_shown { name.to_string() } else { format!("#{number}") };
            let site = Site {
                place: if carries(name.as_str()) { FindingPlace::Carrier } else { FindingPlace::Rest },
                role: None,
                tool: None,
                location: &|| format!("header/{}", shown()),
                where_: &|| "a field of the request's head".to_owned(),
            };
            self.search(value.as_bytes(), Sight::Whole, &site)?;
        }
        Ok(())
    }

    /// Searches the name of a field. Whether something was found.
    fn name(&mut self, name: &HeaderName, number: usize) -> Result<bool, Denial> {
        let site = Site {
            place: FindingPlace::Rest,
            role: None,
            tool: None,
            location: &|| format!("header/#{number}"),
            where_: &|| "the name of a field of the request's head".to_owned(),
        };
        let found = self.search(name.as_str().as_bytes(), Sight::Whole, &site)?;
        Ok(found.iter().any(|found| found.action > FindingAction::Allow))
    }
}

/// Whether requests authenticate in a field or parameter of this name.
fn carries(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    CARRIERS.iter().any(|word| name.contains(word))
}
