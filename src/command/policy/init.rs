//! `postern policy init`: a policy to begin with.

use std::process::ExitCode;

use serde_json::Value;

use crate::cli::{Agent, Output, PolicyInitArgs};
use crate::command::output;

/// The key of a Secret under which `--kubernetes` looks for an API key.
const SECRET_KEY: &str = "api-key";

/// Prints the policy of an agent; as JSON and YAML without its comments.
pub(super) fn run(args: &PolicyInitArgs, output: Output) -> anyhow::Result<ExitCode> {
    let text = ready(args.agent);
    let text = if args.kubernetes { with_secrets(text) } else { text.to_owned() };
    let document: Value = serde_yaml::from_str(&text)?;
    output::print(output, &text, &document)?;
    Ok(ExitCode::SUCCESS)
}

fn ready(agent: Agent) -> &'static str {
    match agent {
        Agent::Any => include_str!("../../../examples/policies/agents.yaml"),
        Agent::Claude => include_str!("../../../examples/policies/claude.yaml"),
        Agent::Codex => include_str!("../../../examples/policies/codex.yaml"),
        Agent::Gemini => include_str!("../../../examples/policies/gemini.yaml"),
        Agent::Opencode => include_str!("../../../examples/policies/opencode.yaml"),
        Agent::Copilot => include_str!("../../../examples/policies/copilot.yaml"),
    }
}

/// The same policy where there is no environment to take keys from. The comments at its beginning are about a laptop, so
/// they are left out.
fn with_secrets(policy: &str) -> String {
    let (mut text, mut name) = (String::new(), "");
    for line in policy.lines().skip_while(|line| line.starts_with('#')) {
        name = line.trim_start().strip_prefix("- name: ").unwrap_or(name);
        let indent = line.len() - line.trim_start().len();
        if line.trim_start().starts_with("fromEnv: ") {
            text += &line[..indent];
            text += &format!("secretKeyRef: {{name: {name}, key: {SECRET_KEY}}}");
        } else {
            text += line;
        }
        text.push('\n');
    }
    text
}
