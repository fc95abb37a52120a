//! `postern policy check`: everything that is wrong with policies, before they bite.

use std::process::ExitCode;

use super::read;
use crate::cli::{Output, PolicyCheckArgs};
use crate::command::output;
use crate::policy::Policy;
use crate::policy::compile::Labels;
use crate::policy::document::tool::When;
use crate::policy::document::{Action, Document};
use crate::policy::name::DnsName;
use crate::provider::surface::surface;

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
    let text = summary(&documents, &revision) + &warnings(&documents);
    output::print(output, &text, &())?;
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
    let notes = relative_paths(documents).unwrap_or_default();
    format!("{policies}, {}, revision {revision}\n{notes}", counted(rules, "rule", "rules"))
}

/// What rules with `Within` or `NotWithin` do not judge, where there are any.
fn relative_paths(documents: &[Document]) -> Option<String> {
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

/// Says where a rule inspects a host that looks like an LLM provider and that no table knows: what asks a model there is
/// denied until the rule says what speaks.
fn warnings(documents: &[Document]) -> String {
    let mut text = String::new();
    for document in documents {
        for (number, rule) in document.spec.destinations.iter().enumerate() {
            let is_silent = rule.provider.is_none() && rule.endpoints.is_none();
            let hosts = rule.hosts.iter().flatten().filter(|host| sounds_like_a_provider(host));
            for host in hosts.filter(|_| is_silent && rule.action == Some(Action::Inspect)) {
                text += &format!(
                    "warning: spec.destinations[{number}] ({}) inspects {host}, where nobody knows what speaks: requests \
                     to a model are denied there (postern/builtin/provider-unknown) until the rule says `provider: …`, \
                     or `provider: None`\n",
                    rule.name
                );
            }
        }
    }
    text
}

/// Words in names of hosts where models are served.
const WORDS: &[&str] = &[
    "ai",
    "anthropic",
    "azureml",
    "bedrock",
    "chat",
    "claude",
    "gemini",
    "genai",
    "gpt",
    "inference",
    "litellm",
    "llama",
    "llm",
    "llms",
    "model",
    "models",
    "ollama",
    "openai",
    "vllm",
];

fn sounds_like_a_provider(host: &str) -> bool {
    let Ok(name) = DnsName::parse(host) else { return false };
    if surface(&name).is_some() {
        return false;
    }
    // The last label is that of a registry: `.ai` says nothing.
    let labels = name.as_str().rsplit_once('.').map_or(name.as_str(), |(labels, _)| labels);
    labels.split(['.', '-']).any(|word| WORDS.contains(&word))
}

fn counted(number: usize, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}
