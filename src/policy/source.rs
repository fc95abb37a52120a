//! From a file's text to documents: every mistake with its file, line, column and field.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::problem::Problem;

use super::document::Document;
use super::{field, lower, read};
use crate::yaml::{self, Node, Position, Value};

/// Fields of the language that this version does not implement, under the mapping that holds them.
const NOT_YET: &[(&str, &[&str])] = &[("spec", &["rules", "dataLoss", "models", "routes", "toolOutputs"])];

const NOT_SUPPORTED: &str = "not supported yet by this version of Postern";

/// The longest path that is noted; no field of the language comes near it, a key of an annotation could.
const MAX_PATH: usize = 1024;

/// Reads the policy documents of one file, several of them with `---` between. Tells every mistake that can
/// be found in the file alone; a file without any document is one.
pub fn parse(file: &str, text: &str) -> Result<Vec<Document>, Vec<Problem>> {
    let nodes = yaml::documents(text).map_err(|problem| vec![problem.in_file(file)])?;
    if nodes.is_empty() {
        let message = "there is no policy document in it: a file with nothing in it allows and denies nothing, \
                       so it is taken for a mistake";
        return Err(vec![Problem::at("", message).in_file(file)]);
    }
    let mut documents = Vec::new();
    let mut problems = Vec::new();
    for node in nodes {
        match document(file, node) {
            Ok(document) => documents.push(document),
            Err(mistakes) => problems.extend(mistakes),
        }
    }
    if problems.is_empty() { Ok(documents) } else { Err(problems) }
}

/// Reads one document. What it says is judged too, as far as it could be read.
fn document(file: &str, mut root: Node) -> Result<Document, Vec<Problem>> {
    let (document, faults) = read::read::<Document>(&mut root);
    let mut problems: Vec<Problem> = faults.iter().map(|fault| say(file, fault)).collect();
    let Some(mut document) = document else { return Err(problems) };
    document.origin = Origin::of(file, &root);
    if let Err(mistakes) = lower::lower(&document) {
        // A mistake that follows from one already reported (a removed field is missing) is not reported.
        let follows = |path: &str| {
            problems
                .iter()
                .any(|noted| field::is_within(path, &noted.path) || field::is_within(&noted.path, path))
        };
        let placed = mistakes.into_iter().map(|problem| document.origin.locate(problem));
        let fresh: Vec<Problem> = placed.filter(|problem| !follows(&problem.path)).collect();
        problems.extend(fresh);
    }
    problems.sort_by_key(|problem| problem.position);
    if problems.is_empty() { Ok(document) } else { Err(problems) }
}

fn say(file: &str, fault: &read::Fault) -> Problem {
    let mut path = String::new();
    let mut shape = String::new();
    let mut holder = String::new();
    for step in &fault.steps {
        holder.clone_from(&shape);
        match step {
            read::PathStep::Key(name) => {
                path = field::key(&path, name);
                shape = field::key(&shape, name);
            }
            read::PathStep::Item(number) => {
                path = field::item(&path, *number);
                shape.push_str("[]");
            }
        }
    }
    let name = match fault.steps.last() {
        Some(read::PathStep::Key(name)) if fault.unknown => name.as_str(),
        Some(read::PathStep::Key(_) | read::PathStep::Item(_)) | None => "",
    };
    let later = NOT_YET.iter().any(|(above, names)| *above == holder && names.contains(&name));
    let message = if later { NOT_SUPPORTED } else { &fault.message };
    Problem { position: Some(fault.position), ..Problem::at(path, message).in_file(file) }
}

/// Where a document was read: its file, and the place of each of its fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    file: String,
    places: BTreeMap<String, FieldPlace>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldPlace {
    /// The field as its author counts: items that could not be read are counted too.
    path: String,
    position: Position,
}

impl Origin {
    /// Of what was never a file: problems have this name, and neither line nor column.
    pub fn named(name: impl Into<String>) -> Self {
        Self { file: name.into(), places: BTreeMap::new() }
    }

    fn of(file: &str, root: &Node) -> Self {
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

    /// `file:line` of a field, for a problem in another place that names the field.
    pub(super) fn place(&self, path: &str) -> String {
        let line = self.places.get(path).map(|place| place.position.0);
        line.map_or_else(|| self.file.clone(), |line| format!("{}:{line}", self.file))
    }

    /// A path that the document names, relative to the document's own file.
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        Path::new(&self.file).parent().unwrap_or(Path::new("")).join(path)
    }
}

/// Notes the place of a node and of all below it, under the path that the typed document has.
fn note(node: &Node, typed: String, written: String, places: &mut BTreeMap<String, FieldPlace>) {
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
    places.insert(typed, FieldPlace { path: written, position: node.position });
}
