//! Fetches the values behind placeholders, keeps them fresh, and puts them where the agent's placeholder stands.

mod access_key;
mod authorization;
mod carrier;
mod carriers;
mod env;
mod fetch;
mod file;
pub mod minting;
mod named;
pub mod placement;
mod shape;
mod sighting;
pub mod sigv4;
mod unattachable;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use zeroize::Zeroizing;

pub use access_key::{AccessKey, NoAccessKey};

use crate::decision::RuleId;
use crate::dlp::{GATEWAY_CREDENTIAL, KnownValue, KnownValues};
use crate::policy::credential::{Credential, Source};
use crate::policy::data_loss::NamedValue;
use crate::problem::Problem;
use crate::secret::Secret;
use crate::secret::SecretMatcher;
use env::FromEnv;
use fetch::{Fetch, Nowhere, Unavailable};
use file::FromFile;
use named::{HeldNames, NamedValues};

/// Reads the gateway's environment.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The values of a policy's credentials, and those that must not leave. Reading one is a lookup in the current snapshot; no lock is taken.
pub struct Store {
    sources: Vec<SourcedCredential>,
    named: NamedValues,
    values: ArcSwap<Values>,
}

/// What a refresh found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// The credentials whose value is new.
    pub changed: Vec<RuleId>,
    /// Those whose source cannot be used now; none of the texts holds a value.
    pub problems: Vec<Problem>,
}

struct SourcedCredential {
    credential: Arc<Credential>,
    source: Box<dyn Fetch>,
}

#[derive(Default)]
struct Values {
    held: BTreeMap<RuleId, HeldValue>,
    named: HeldNames,
    needles: Arc<SecretMatcher>,
    known: Arc<KnownValues>,
    missing: Vec<Arc<NamedValue>>,
    problems: Vec<Problem>,
}

#[derive(Clone)]
struct HeldValue {
    present: CredentialValue,
    /// The value before: still scrubbed, since answers under way, and what a host stored, may hold it.
    previous: Option<CredentialValue>,
}

/// The value of a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CredentialValue {
    /// Replaces the placeholder.
    Key(Arc<Secret>),
    /// Signs requests.
    AccessKey(Arc<AccessKey>),
}

impl Store {
    /// Reads the value of every credential, and those that must not leave. `directory` is where mounted ones stand, one
    /// file per name. What cannot be read is told by [`Store::problems`].
    pub fn load(
        (credentials, named): (&[Arc<Credential>], &[Arc<NamedValue>]),
        directory: Option<&Path>,
        env: Environment<'_>,
    ) -> Self {
        let sources = credentials
            .iter()
            .map(|credential| SourcedCredential {
                credential: Arc::clone(credential),
                source: source(&credential.source, &credential.name, directory, env),
            })
            .collect();
        let named = NamedValues::of(named, directory, env);
        let store = Self { sources, named, values: ArcSwap::default() };
        store.refresh();
        store
    }

    /// Takes over from the store of the policy before: a credential with the same id and source that cannot be
    /// read now keeps its last good value, and values that were replaced stay scrubbed.
    #[must_use]
    pub fn after(self, earlier: &Self) -> Self {
        let before = earlier.values.load();
        let mut held = BTreeMap::new();
        for entry in &self.sources {
            let same = earlier.sources.iter().any(|other| {
                other.credential.id == entry.credential.id && other.source.place() == entry.source.place()
            });
            if let (true, Some(value)) = (same, before.held.get(&entry.credential.id)) {
                held.insert(entry.credential.id.clone(), value.clone());
            }
        }
        let needles = Arc::new(needles(&held));
        let named = before.named.clone();
        let known = Arc::new(self.known_values(&held, &named, before.known.generation + 1));
        self.values.store(Arc::new(Values { held, named, needles, known, ..Values::default() }));
        self.refresh();
        self
    }

    /// Reads the sources again and puts what changed into force; a value that cannot be read stays as it was.
    /// It reads files: call it once a second from where blocking is allowed.
    pub fn refresh(&self) -> Refreshed {
        let before = self.values.load_full();
        let mut held = BTreeMap::new();
        let mut refreshed = Refreshed::default();
        for entry in &self.sources {
            let id = &entry.credential.id;
            let last = before.held.get(id);
            match entry.read() {
                Ok(value) if last.is_some_and(|last| last.present == value) => {}
                Ok(value) => {
                    let previous = last.map(|last| last.present.clone());
                    held.insert(id.clone(), HeldValue { present: value, previous });
                    refreshed.changed.push(id.clone());
                    continue;
                }
                Err(error) => refreshed.problems.push(entry.problem(&error, last.is_some())),
            }
            held.extend(last.map(|last| (id.clone(), last.clone())));
        }
        let looked = self.named.look(&before.named);
        refreshed.problems.extend(looked.problems);
        let unchanged = refreshed.changed.is_empty();
        let needles = if unchanged { Arc::clone(&before.needles) } else { Arc::new(needles(&held)) };
        let known = if unchanged && !looked.changed {
            Arc::clone(&before.known)
        } else {
            Arc::new(self.known_values(&held, &looked.held, before.known.generation + 1))
        };
        let (named, missing, problems) = (looked.held, looked.missing, refreshed.problems.clone());
        self.values.store(Arc::new(Values { held, named, needles, known, missing, problems }));
        refreshed
    }

    /// The keys in force and the values that are named, to be searched for in what leaves.
    fn known_values(
        &self,
        held: &BTreeMap<RuleId, HeldValue>,
        named: &HeldNames,
        generation: u64,
    ) -> KnownValues {
        let keys = self.sources.iter().filter_map(|SourcedCredential { credential, .. }| {
            let values = held.get(&credential.id)?.all();
            Some(KnownValue {
                id: GATEWAY_CREDENTIAL.to_owned(),
                home: credential.hosts.iter().map(ToString::to_string).collect(),
                secrets: values.flat_map(CredentialValue::secrets).cloned().collect(),
            })
        });
        KnownValues::new(keys.chain(named.known()).collect(), generation)
    }

    /// The current value of a credential that is put into requests; `None` where there never was a good one.
    pub fn secret(&self, credential: &Credential) -> Option<Arc<Secret>> {
        match &self.values.load().held.get(&credential.id)?.present {
            CredentialValue::Key(key) => Some(Arc::clone(key)),
            CredentialValue::AccessKey(_) => None,
        }
    }

    /// The current value of a credential that requests are signed with; `None` where there never was a good one.
    pub fn access_key(&self, credential: &Credential) -> Option<Arc<AccessKey>> {
        match &self.values.load().held.get(&credential.id)?.present {
            CredentialValue::AccessKey(key) => Some(Arc::clone(key)),
            CredentialValue::Key(_) => None,
        }
    }

    /// Finds every value in force, and the one before it, in all encodings; answers are scrubbed with it. It is built
    /// when a value changes, and shared by all exchanges.
    pub fn needles(&self) -> Arc<SecretMatcher> {
        Arc::clone(&self.values.load().needles)
    }

    /// Finds in what leaves every value that must not (built when one changes), and one that is not known, so that nothing can
    /// be searched for it.
    pub fn known(&self) -> (Arc<KnownValues>, Option<Arc<NamedValue>>) {
        let values = self.values.load();
        (Arc::clone(&values.known), values.missing.first().cloned())
    }

    /// The problems of values without which a policy does not come into force: of variables and files that it names, which
    /// are there before it. Others may be mounted later.
    pub fn policy_problems(&self) -> Vec<Problem> {
        let values = self.values.load();
        let is_written = |value: &&Arc<NamedValue>| value.source != Source::Mounted;
        let missing = values.missing.iter().filter(is_written);
        missing
            .filter_map(|value| {
                let place = value.problem(String::new());
                values
                    .problems
                    .iter()
                    .find(|problem| (&problem.path, &problem.file) == (&place.path, &place.file))
            })
            .cloned()
            .collect()
    }

    /// What was wrong with sources at the last look, for readiness and the status.
    pub fn problems(&self) -> Vec<Problem> {
        self.values.load().problems.clone()
    }
}

impl SourcedCredential {
    fn read(&self) -> Result<CredentialValue, Unavailable> {
        let raw = self.source.fetch()?;
        let value = if self.credential.signing.is_some() {
            CredentialValue::AccessKey(Arc::new(AccessKey::parse(&raw)?))
        } else {
            CredentialValue::Key(Arc::new(Secret::parse(&raw)?))
        };
        if value.secrets().any(|secret| secret.expose() == self.credential.placeholder.as_bytes()) {
            return Err(Unavailable::Placeholder);
        }
        Ok(value)
    }

    fn problem(&self, error: &Unavailable, kept: bool) -> Problem {
        let effect =
            if kept { "the last good value stays" } else { "requests with its placeholder are refused" };
        let message = format!("the value: {} {error}; {effect}", self.source.place());
        Problem { unread: error.passing(), ..Problem::at(self.credential.id.as_str(), message) }
    }
}

impl HeldValue {
    fn all(&self) -> impl Iterator<Item = &CredentialValue> {
        [Some(&self.present), self.previous.as_ref()].into_iter().flatten()
    }
}

impl CredentialValue {
    /// The texts that an answer must not show.
    fn secrets(&self) -> impl Iterator<Item = &Arc<Secret>> {
        let (key, access_key) = match self {
            Self::Key(key) => (Some(key), None),
            Self::AccessKey(access_key) => (None, Some(access_key.secrets())),
        };
        key.into_iter().chain(access_key.into_iter().flatten())
    }
}

/// One line per source that users can write. `name` is that of a mounted file.
fn source(source: &Source, name: &str, directory: Option<&Path>, env: Environment<'_>) -> Box<dyn Fetch> {
    match (source, directory) {
        (Source::Mounted, Some(directory)) => Box::new(FromFile { path: directory.join(name) }),
        (Source::Mounted, None) => Box::new(Nowhere(name.to_owned())),
        (Source::File(path), _) => Box::new(FromFile { path: path.clone() }),
        (Source::Env(variable), _) => {
            Box::new(FromEnv { variable: variable.clone(), value: env(variable).map(Zeroizing::new) })
        }
    }
}

fn needles(held: &BTreeMap<RuleId, HeldValue>) -> SecretMatcher {
    let secrets: Vec<_> =
        held.values().flat_map(HeldValue::all).flat_map(CredentialValue::secrets).cloned().collect();
    SecretMatcher::new(&secrets)
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
