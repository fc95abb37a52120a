//! Values that a policy names and that must not leave: read from where credentials are, and kept as these are.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::Environment;
use super::fetch::{Fetch, Unavailable};
use crate::dlp::KnownValue;
use crate::policy::credential::Source;
use crate::policy::data_loss::NamedValue;
use crate::problem::Problem;
use crate::secret::Secret;

/// The values of a policy, and where each comes from.
#[derive(Default)]
pub(super) struct NamedValues(Vec<SourcedValue>);

struct SourcedValue {
    value: Arc<NamedValue>,
    source: Box<dyn Fetch>,
}

/// The values as they were read, by the name of each.
#[derive(Debug, Clone, Default)]
pub(super) struct HeldNames(BTreeMap<String, HeldName>);

#[derive(Debug, Clone)]
struct HeldName {
    present: Arc<Secret>,
    /// The value before: it may still be in use.
    previous: Option<Arc<Secret>>,
    place: String,
}

/// What a look at the sources found.
pub(super) struct Looked {
    pub(super) held: HeldNames,
    pub(super) changed: bool,
    pub(super) problems: Vec<Problem>,
    /// The values that are not known: nothing can be searched for them.
    pub(super) missing: Vec<Arc<NamedValue>>,
}

impl NamedValues {
    pub(super) fn of(values: &[Arc<NamedValue>], directory: Option<&Path>, env: Environment<'_>) -> Self {
        let sourced = values.iter().map(|value| SourcedValue {
            value: Arc::clone(value),
            source: super::source(&value.source, &NamedValue::file_name(&value.name), directory, env),
        });
        Self(sourced.collect())
    }

    /// Reads all again. A value that cannot be read stays as it was `before`.
    pub(super) fn look(&self, before: &HeldNames) -> Looked {
        let mut looked =
            Looked { held: HeldNames::default(), changed: false, problems: Vec::new(), missing: Vec::new() };
        for SourcedValue { value, source } in &self.0 {
            let place = source.place();
            let last = before.0.get(&value.name).filter(|last| last.place == place);
            let read = source.fetch().and_then(|raw| Secret::parse(&raw).map_err(Unavailable::Unfit));
            let held = match (read, last) {
                (Ok(read), Some(last)) if *last.present == read => Some(last.clone()),
                (Ok(read), last) => {
                    looked.changed = true;
                    let previous = last.map(|last| Arc::clone(&last.present));
                    Some(HeldName { present: Arc::new(read), previous, place })
                }
                (Err(error), last) => {
                    looked.problems.push(problem(value, &place, &error, last.is_some()));
                    last.cloned()
                }
            };
            match held {
                Some(held) => drop(looked.held.0.insert(value.name.clone(), held)),
                None => looked.missing.push(Arc::clone(value)),
            }
        }
        looked.changed |= looked.held.0.len() != before.0.len();
        looked
    }
}

impl HeldNames {
    /// What is searched for.
    pub(super) fn known(&self) -> impl Iterator<Item = KnownValue> + '_ {
        self.0.iter().map(|(name, held)| KnownValue {
            id: crate::dlp::value_detector(name),
            home: Vec::new(),
            secrets: [Some(&held.present), held.previous.as_ref()].into_iter().flatten().cloned().collect(),
        })
    }
}

fn problem(value: &NamedValue, place: &str, error: &Unavailable, is_kept: bool) -> Problem {
    let effect = match (is_kept, &value.source) {
        (true, _) => "the last good value stays",
        (false, Source::Mounted) => {
            "until it is there, every request that would be searched for it is denied"
        }
        (false, Source::Env(_) | Source::File(_)) => "give it one, or leave this entry out",
    };
    let why = if let Unavailable::Unfit(unfit) = error { unfit.of_value() } else { error.to_string() };
    Problem { unread: error.passing(), ..value.problem(format!("the value: {place} {why}; {effect}")) }
}
