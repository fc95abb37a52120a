//! The policies of `postern policy init`, and agents that need a word of warning.

use std::os::unix::fs::PermissionsExt;

use super::User;

const REAL_KEY: &str = "sk-canary-0123456789";

#[test]
fn under_each_ready_policy_the_agent_finds_the_placeholder_in_the_variable_that_it_reads() {
    for (agent, variable, placeholder) in [
        ("any", "ANTHROPIC_API_KEY", "sk-ant-postern-anthropic"),
        ("any", "OPENAI_API_KEY", "sk-postern-openai"),
        ("any", "GEMINI_API_KEY", "postern-placeholder-gemini"),
        ("claude", "ANTHROPIC_API_KEY", "sk-ant-postern-anthropic"),
        ("codex", "OPENAI_API_KEY", "sk-postern-openai"),
        ("gemini", "GEMINI_API_KEY", "postern-placeholder-gemini"),
        ("opencode", "ANTHROPIC_API_KEY", "sk-ant-postern-anthropic"),
        ("copilot", "COPILOT_GITHUB_TOKEN", "github_pat_postern_copilot"),
    ] {
        let user = User::new().variable(variable, REAL_KEY);
        let policy = user.run(&["policy", "init", "--agent", agent]);
        let file = user.write("policy.yaml", &policy.stdout);
        let run = user.start(Some(&file));
        assert_eq!(run.variables[variable], placeholder, "{agent}");
        assert!(!run.variables.values().any(|value| value.contains(REAL_KEY)), "{agent}");
        assert_eq!(run.end().code, Some(0), "{agent}");
    }
}

#[test]
fn codex_in_a_terminal_is_warned_about_since_its_server_in_the_background_is_not_held() {
    let user = User::new();
    let codex = user.write("work/codex", "#!/bin/sh\n");
    std::fs::set_permissions(&codex, std::fs::Permissions::from_mode(0o755)).unwrap();
    let warns = |arguments: &[&str]| {
        let said = user.run(&[&["run", "--", "./codex"], arguments].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        said.stderr.contains("start it as `codex --no-daemon`")
    };
    assert!(warns(&[]));
    assert!(!warns(&["--no-daemon"]) && !warns(&["exec", "hello"]));
}
