//! `postern policy check`: everything that is wrong with policies, and what is likely not meant, before they bite.

use std::process::ExitCode;

use super::read;
use crate::cli::{Output, PolicyCheckArgs};
use crate::command::output;
use crate::lint;
use crate::policy::Policy;
use crate::policy::compile::Labels;
use crate::policy::document::{Document, When, WrittenEdits};

/// Checks all paths as one policy; exit status 1 where anything is wrong, with `--strict` where anything is warned of.
pub(super) fn run(args: &PolicyCheckArgs, output: Output) -> anyhow::Result<ExitCode> {
    let (documents, mut problems) = read(&args.paths);
    // Compiled even where a file is broken: what is wrong with the others is said in the same run.
    let revision = match Policy::compile(&documents, &Labels::new()) {
        Ok(policy) => policy.revision().to_owned(),
        Err(found) => {
            problems.extend(found);
            String::new()
        }
    };
    // Where a file is broken, what it would say is missing in the others' eyes.
    let warnings = if problems.is_empty() { lint::warnings(&documents) } else { Vec::new() };
    let failed = !problems.is_empty() || (args.strict && !warnings.is_empty());
    if output == Output::Text && problems.is_empty() {
        output::print(output, &summary(&documents, &revision), &())?;
    }
    output::print_judgement(output, &problems, &warnings)?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn summary(documents: &[Document], revision: &str) -> String {
    let rules: usize = documents
        .iter()
        .map(|document| {
            let spec = &document.spec;
            spec.destinations.len() + spec.tools.len() + spec.credentials.len() + spec.routes.len()
        })
        .sum();
    let policies = counted(documents.len(), "policy", "policies");
    let notes: String =
        [relative_paths(documents), unjudged_edits(documents)].into_iter().flatten().collect();
    format!("{policies}, {}, revision {revision}\n{notes}", counted(rules, "rule", "rules"))
}

/// What rules with `Within` or `NotWithin` do not judge, where there are any and nothing says where such paths begin.
fn relative_paths(documents: &[Document]) -> Option<String> {
    let says =
        |document: &Document| document.spec.shell.as_ref().is_some_and(|shell| shell.directory.is_some());
    if documents.iter().any(says) {
        return None;
    }
    let rules: Vec<&str> = documents
        .iter()
        .flat_map(|document| &document.spec.tools)
        .filter(|rule| rule.when.as_ref().is_some_and(When::judges_paths))
        .map(|rule| rule.name.as_str())
        .collect();
    let first = rules.first()?;
    let others = if rules.len() > 1 { format!(" and {} more", rules.len() - 1) } else { String::new() };
    Some(format!(
        "note: {first}{others}: Within and NotWithin judge absolute paths; a relative one that does not climb, as in \
         Codex's patches, meets neither in Deny and Audit rules, and is within nothing in Allow rules\n"
    ))
}

/// Where edits are judged, of the first policy that denies some: a policy cannot know whether its gateways have a workspace.
fn unjudged_edits(documents: &[Document]) -> Option<String> {
    let mut denying = documents
        .iter()
        .filter(|document| document.spec.edits.as_ref().is_some_and(WrittenEdits::denies_some));
    let first = denying.next()?;
    Some(format!(
        "note: {}: spec.edits is judged by gateways that have a workspace alone (the setting `workspace`, the annotation \
         postern.dev/workspace, or `postern run --workspace`); the others deny no edit, and say so in their log\n",
        first.id()
    ))
}

fn counted(number: usize, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}
