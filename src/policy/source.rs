//! From a file's text to documents: every mistake with its file, line, column and field.

use super::document::Document;
use super::lower;
use crate::problem::Problem;
use crate::yaml::origin::Origin;
use crate::yaml::{self, Node, field, read};

/// Fields of the language that this version does not implement, under the mapping that holds them.
const NOT_YET: &[(&str, &[&str])] = &[("spec", &["rules", "dataLoss", "models", "routes", "toolOutputs"])];

const NOT_SUPPORTED: &str = "not supported yet by this version of Postern";

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
            Err(found) => problems.extend(found),
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
    if let Err(found) = lower::lower(&document) {
        // What follows from a mistake already told (a field taken out is missing) says nothing new.
        let follows = |path: &str| {
            problems
                .iter()
                .any(|told| field::is_within(path, &told.path) || field::is_within(&told.path, path))
        };
        let placed = found.into_iter().map(|problem| document.origin.locate(problem));
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
            read::Step::Key(name) => {
                path = field::key(&path, name);
                shape = field::key(&shape, name);
            }
            read::Step::Item(number) => {
                path = field::item(&path, *number);
                shape.push_str("[]");
            }
        }
    }
    let name = match fault.steps.last() {
        Some(read::Step::Key(name)) if fault.unknown => name.as_str(),
        Some(read::Step::Key(_) | read::Step::Item(_)) | None => "",
    };
    let later = NOT_YET.iter().any(|(above, names)| *above == holder && names.contains(&name));
    let message = if later { NOT_SUPPORTED } else { &fault.message };
    Problem { position: Some(fault.position), ..Problem::at(path, message).in_file(file) }
}
