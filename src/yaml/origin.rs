//! Where the fields of a document stand in its file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Node, Position, Value, field};
use crate::problem::Problem;

/// The longest path that is noted; no field of the language comes near it, a key of an annotation could.
const MAX_PATH: usize = 1024;

/// Where a document was read: its file, and the place of each of its fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    file: String,
    places: BTreeMap<String, Place>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    /// The field as its author counts: items that could not be read are counted too.
    path: String,
    position: Position,
}

impl Origin {
    /// Of what was never a file: problems have this name, and neither line nor column.
    pub fn named(name: impl Into<String>) -> Self {
        Self { file: name.into(), places: BTreeMap::new() }
    }

    pub(crate) fn of(file: &str, root: &Node) -> Self {
        let mut places = BTreeMap::new();
        note(root, String::new(), String::new(), &mut places);
        Self { file: file.to_owned(), places }
    }

    /// The problem with its file, line and column; the nearest field above where the field is not written.
    pub fn locate(&self, problem: Problem) -> Problem {
        let mut problem = problem.in_file(&self.file);
        let mut known = problem.path.as_str();
        loop {
            if let Some(place) = self.places.get(known) {
                let rest = problem.path.get(known.len()..).unwrap_or_default();
                problem.position = Some(place.position);
                problem.path = format!("{}{rest}", place.path);
                return problem;
            }
            if known.is_empty() {
                return problem;
            }
            known = field::parent(known);
        }
    }

    /// Adds to the problems told already those that a look at the whole document found, each with its place; not
    /// those that follow from a mistake told already, as when a field that was taken out is missing.
    pub(crate) fn add(&self, problems: &mut Vec<Problem>, found: Vec<Problem>) {
        let placed = found.into_iter().map(|problem| self.locate(problem));
        let follows = |path: &str| {
            let mut told = problems.iter().map(|problem| problem.path.as_str());
            told.any(|told| field::is_within(path, told) || field::is_within(told, path))
        };
        let fresh: Vec<Problem> = placed.filter(|problem| !follows(&problem.path)).collect();
        problems.extend(fresh);
        problems.sort_by_key(|problem| problem.position);
    }

    /// `file:line` of a field, for a problem elsewhere that speaks of it.
    pub(crate) fn place(&self, path: &str) -> String {
        let line = self.places.get(path).map(|place| place.position.0);
        line.map_or_else(|| self.file.clone(), |line| format!("{}:{line}", self.file))
    }

    /// A path that the document names, relative to the document's own file.
    pub(crate) fn resolve(&self, path: &str) -> PathBuf {
        Path::new(&self.file).parent().unwrap_or(Path::new("")).join(path)
    }
}

/// Notes the place of a node and of all below it, under the path that the typed document has.
fn note(node: &Node, typed: String, written: String, places: &mut BTreeMap<String, Place>) {
    if written.len() > MAX_PATH {
        return;
    }
    match &node.value {
        Value::Map(entries) => {
            for (key, value) in entries {
                note(value, field::key(&typed, &key.text), field::key(&written, &key.text), places);
            }
        }
        Value::List(items) => {
            let kept = items.iter().enumerate().filter_map(|(number, item)| Some((number, item.as_ref()?)));
            for (typed_number, (number, item)) in kept.enumerate() {
                note(item, field::item(&typed, typed_number), field::item(&written, number), places);
            }
        }
        Value::Null
        | Value::Bool(_)
        | Value::Unsigned(_)
        | Value::Signed(_)
        | Value::Float(_)
        | Value::Text(_) => {}
    }
    places.insert(typed, Place { path: written, position: node.position });
}
