//! From a file's text to documents: every mistake with its file, line, column and field.

use super::document::Document;
use super::lower;
use crate::problem::Problem;
use crate::yaml::origin::Origin;
use crate::yaml::read::{self, Context};
use crate::yaml::{self, Node};

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
        match document(file, text, node) {
            Ok(document) => documents.push(document),
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() { Ok(documents) } else { Err(problems) }
}

/// Reads one document. What it says is judged too, as far as it could be read.
fn document(file: &str, text: &str, mut root: Node) -> Result<Document, Vec<Problem>> {
    let (document, faults) = read::read::<Document>(&mut root, &Context::default());
    let mut problems: Vec<Problem> =
        faults.into_iter().map(|fault| Problem::from(fault).in_file(file)).collect();
    let Some(mut document) = document else { return Err(problems) };
    document.origin = Origin::of(file, &root);
    let found = lower::lower(&document).err().unwrap_or_default();
    document.origin.add(&mut problems, found);
    problems.iter_mut().for_each(|problem| yaml::part::locate(text, problem));
    if problems.is_empty() { Ok(document) } else { Err(problems) }
}
