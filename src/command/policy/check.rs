//! `postern policy check`: everything that is wrong with policies, before they bite.

use std::process::ExitCode;

use super::read;
use crate::cli::{Output, PolicyCheckArgs};
use crate::command::output;
use crate::policy::Policy;
use crate::policy::compile::Labels;
use crate::policy::document::Document;

/// Checks all paths as one policy; exit status 1 where anything is wrong.
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
    if !problems.is_empty() || output != Output::Text {
        output::print_problems(output, &problems)?;
        return Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    output::print(output, &summary(&documents, &revision), &())?;
    Ok(ExitCode::SUCCESS)
}

fn summary(documents: &[Document], revision: &str) -> String {
    let rules: usize = documents
        .iter()
        .map(|document| {
            let spec = &document.spec;
            spec.destinations.len() + spec.tools.len() + spec.credentials.len()
        })
        .sum();
    let policies = counted(documents.len(), "policy", "policies");
    format!("{policies}, {}, revision {revision}\n", counted(rules, "rule", "rules"))
}

fn counted(number: usize, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}
