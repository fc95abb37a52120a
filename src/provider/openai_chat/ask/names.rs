//! Gives tools names that Chat Completions takes, and remembers those of the agent.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use crate::call::turn::prompt::Unsayable;

/// The longest name: <https://platform.openai.com/docs/api-reference/chat/create>, `tools[].function.name`.
const LONGEST: usize = 64;

/// How many characters of a name are kept before `_` and the digits of its digest.
const KEPT: usize = 55;
const DIGITS: usize = 8;

/// The names that were changed: a name as it was sent, and the agent's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SentNames(BTreeMap<String, String>);

impl SentNames {
    /// The agent's name of a tool that the model calls.
    pub fn of_agent<'n>(&'n self, sent: &'n str) -> &'n str {
        self.0.get(sent).map_or(sent, String::as_str)
    }

    /// Names as they were sent, each with the agent's.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(sent, agent)| (sent.as_str(), agent.as_str()))
    }

    /// The same as a map from the name that was sent to the agent's.
    pub fn into_map(self) -> BTreeMap<String, String> {
        self.0
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Names the tools of one request.
#[derive(Default)]
pub(super) struct Namer<'d> {
    /// The agent's name for each name that is sent.
    agents: HashMap<Cow<'d, str>, &'d str>,
    has_conflict: bool,
}

impl<'d> Namer<'d> {
    /// The name under which the agent's tool is sent.
    pub(super) fn sent(&mut self, name: &'d str) -> Cow<'d, str> {
        let sent = if is_valid(name) { Cow::Borrowed(name) } else { Cow::Owned(shortened(name)) };
        let agents = self.agents.entry(sent.clone()).or_insert(name);
        self.has_conflict |= *agents != name;
        sent
    }

    /// The names that were changed.
    ///
    /// # Errors
    /// If two tools were given the same name.
    pub(super) fn finish(self) -> Result<SentNames, Unsayable> {
        if self.has_conflict {
            return Err(Unsayable::new("two tools would have one name"));
        }
        let changed = self.agents.into_iter().filter(|(sent, agent)| sent != agent);
        Ok(SentNames(changed.map(|(sent, agent)| (sent.into_owned(), agent.to_owned())).collect()))
    }
}

fn is_valid(name: &str) -> bool {
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(is_plain)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn shortened(name: &str) -> String {
    let is_plain = |character: char| u8::try_from(character).is_ok_and(is_plain);
    let mut short: String =
        name.chars().take(KEPT).map(|character| if is_plain(character) { character } else { '_' }).collect();
    short.push('_');
    short.extend(crate::digest::sha256_hex(name.as_bytes()).chars().take(DIGITS));
    short
}
