//! Policies with routes, as tests write them.

use crate::policy::Policy;
use crate::policy::compile::Labels;
use crate::policy::document::{Document, parse};

/// Two providers, one of each kind, and a model of each.
pub(in crate::policy) const MODELS: &str = "  \
  modelProviders:
    - {name: vllm, endpoint: 'https://vllm.models.svc.cluster.local:8443/v1', dialect: OpenAIChat}
    - {name: mantle, endpoint: 'https://mantle.example/v1', dialect: Anthropic}
    - {name: responses, endpoint: 'https://responses.example/v1', dialect: OpenAIResponses}
  models:
    - {name: coder, provider: vllm, model: qwen3-coder}
    - {name: chat, provider: vllm}
    - {name: opus, provider: mantle, model: claude-opus-4-1}
    - {name: codex, provider: responses, model: gpt-5}
";

/// An EgressPolicy `agents/NAME`.
pub(in crate::policy) fn namespaced(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: {name}, namespace: agents}}\nspec:\n{spec}"
    )
}

/// A ClusterEgressPolicy `-/NAME`.
pub(in crate::policy) fn cluster(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: postern.dev/v1alpha1\nkind: ClusterEgressPolicy\nmetadata: {{name: {name}}}\nspec:\n{spec}"
    )
}

/// The same policy, which only records.
pub(in crate::policy) fn audit(policy: &str) -> String {
    policy.replace("spec:\n", "spec:\n  enforcement: Audit\n")
}

/// A list of routes, a line each.
pub(in crate::policy) fn routes(routes: &[&str]) -> String {
    format!("  routes:\n{}", routes.iter().map(|route| format!("    - {{{route}}}\n")).collect::<String>())
}

pub(in crate::policy) fn documents(policies: &[String]) -> Vec<Document> {
    parse("p.yaml", &policies.join("---\n")).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

/// The policy of a pod without labels.
pub(in crate::policy) fn policy(policies: &[String]) -> Policy {
    Policy::compile(&documents(policies), &Labels::new()).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

/// The problems of a file, as `policy check` prints them.
pub(in crate::policy) fn problems(policies: &[String]) -> Vec<String> {
    let compiled =
        parse("p.yaml", &policies.join("---\n")).and_then(|all| Policy::compile(&all, &Labels::new()));
    compiled.err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

/// Asserts that each spec has one problem, which begins so behind its place: where the text `at` stands.
pub(in crate::policy) fn assert_problems(cases: &[(&str, &str, &str)]) {
    let mut wrong = Vec::new();
    for (spec, at, expected) in cases {
        let text = namespaced("p", spec);
        let found = problems(std::slice::from_ref(&text));
        let (number, line) = text.lines().enumerate().find(|(_, line)| line.contains(at)).unwrap();
        let column = line[..line.find(at).unwrap()].chars().count() + 1;
        let place = format!("p.yaml:{}:{column}: {expected}", number + 1);
        if found.len() != 1 || !found[0].starts_with(&place) {
            wrong.push(format!("{line}\nexpected {place}\nfound {found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
