//! The built-in rule `agent-control-files`: files that agents, shells, editors and build tools run by themselves are
//! not written, but where a rule names them.

use std::sync::LazyLock;

use crate::call::{Kind, ToolCall};
use crate::policy::ruling::Ruling;

use super::names::Pattern;
use crate::fold::fold;

/// The files, wherever they stand; a `/` at the end means a directory and all below it.
const CONTROL_FILES: &[&str] = &[
    // Agents: settings, hooks, servers and plugins that they start.
    ".claude.json",
    ".claude/settings*.json",
    ".claude/hooks/",
    ".claude/agents/",
    ".claude/commands/",
    ".claude/plugins/",
    ".claude/skills/",
    ".claude-plugin/",
    ".mcp.json",
    ".codex/",
    ".agents/",
    ".gemini/",
    ".opencode/",
    ".config/opencode/",
    "opencode.json",
    "opencode.jsonc",
    ".cursor/",
    ".continue/",
    ".windsurf/",
    ".codeium/",
    ".qwen/",
    ".kiro/",
    ".amp/",
    ".roo/",
    ".goose/",
    ".config/goose/",
    ".aider.conf.yml",
    ".github/hooks/",
    // Git: hooks, and settings that name programs.
    ".git",
    ".git/config",
    ".git/config.worktree",
    ".git/hooks/",
    ".git/modules/",
    ".git/info/attributes",
    ".gitconfig",
    ".config/git/",
    "etc/gitconfig",
    ".githooks/",
    ".husky/",
    // Shells and sessions.
    ".profile",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    ".inputrc",
    ".envrc",
    ".config/fish/",
    ".config/nushell/",
    ".config/direnv/",
    ".config/environment.d/",
    ".config/autostart/",
    ".config/systemd/",
    ".pam_environment",
    ".xprofile",
    ".xinitrc",
    ".xsession",
    ".xsessionrc",
    "etc/profile",
    "etc/profile.d/",
    "etc/bash.bashrc",
    "etc/bashrc",
    "etc/zsh/",
    "etc/zshrc",
    "etc/zshenv",
    "etc/environment",
    "etc/ld.so.preload",
    "etc/crontab",
    "etc/cron.*/",
    "var/spool/cron/",
    "etc/systemd/",
    "etc/init.d/",
    "etc/rc.local",
    ".ssh/",
    // Editors and multiplexers.
    ".vscode/settings.json",
    ".vscode/tasks.json",
    ".vscode/launch.json",
    ".vscode/mcp.json",
    ".vimrc",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".config/nvim/",
    ".vim/",
    ".emacs",
    ".emacs.d/",
    ".dir-locals.el",
    ".tmux.conf",
    ".config/tmux/",
    ".screenrc",
    ".devcontainer/",
    ".devcontainer.json",
    // Build tools and interpreters: start-up files, and settings that name programs.
    ".cargo/config",
    ".cargo/config.toml",
    ".npmrc",
    ".pnpmfile.cjs",
    ".pnpmfile.mjs",
    ".yarnrc",
    ".yarnrc.yml",
    ".yarn/plugins/",
    ".yarn/releases/",
    ".mvn/",
    ".gradle/init.d/",
    ".gradle/init.gradle",
    ".gradle/init.gradle.kts",
    ".gradle/gradle.properties",
    ".bazelrc",
    ".gdbinit",
    ".lldbinit",
    ".pythonrc.py",
    ".pythonstartup",
    "sitecustomize.py",
    "usercustomize.py",
    "site-packages/*.pth",
    "dist-packages/*.pth",
    ".irbrc",
    ".pryrc",
    ".rprofile",
    ".mise.toml",
    ".config/mise/",
];

/// One entry of the list, compiled.
struct Entry {
    written: &'static str,
    components: Vec<Pattern>,
    directory: bool,
}

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let entry = |written: &'static str| Entry {
        written,
        components: written.trim_end_matches('/').split('/').map(|text| Pattern::read(text, fold)).collect(),
        directory: written.ends_with('/'),
    };
    CONTROL_FILES.iter().copied().map(entry).collect()
});

/// The entry of the list that a Write call is about; none where it writes nothing of the kind.
pub(super) fn written(call: &ToolCall<'_>) -> Option<&'static str> {
    let facts = call.facts.filter(|facts| facts.kind == Kind::Write)?;
    facts.paths.iter().find_map(|path| {
        let components = components(path);
        ENTRIES.iter().find(|entry| entry.covers(&components)).map(|entry| entry.written)
    })
}

/// The denial, which names the entry rather than what the model wrote.
pub(super) fn ruling(entry: &str) -> Ruling {
    let reason = format!(
        "{entry} is run by agents, shells or tools by themselves, and no rule that names it allows it"
    );
    Ruling::builtin("agent-control-files", reason)
}

impl Entry {
    fn covers(&self, path: &[String]) -> bool {
        let equal =
            |window: &[String]| self.components.iter().zip(window).all(|(own, other)| own.covers(other));
        let length = self.components.len();
        if self.directory {
            return path.windows(length).any(equal);
        }
        path.len().checked_sub(length).and_then(|start| path.get(start..)).is_some_and(equal)
    }
}

/// The components of a path in the form of the list: folded, since some file systems fold names, too; `.` and `..`
/// resolved as far as the text goes; either slash.
fn components(path: &str) -> Vec<String> {
    let mut components: Vec<String> = Vec::new();
    for component in path.split(['/', '\\']).map(fold) {
        match component.as_str() {
            "" | "." => {}
            ".." if components.last().is_some_and(|last| last != "..") => {
                components.pop();
            }
            _ => components.push(component),
        }
    }
    components
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(path: &str) -> Option<&'static str> {
        let components = components(path);
        ENTRIES.iter().find(|entry| entry.covers(&components)).map(|entry| entry.written)
    }

    #[test]
    fn what_runs_by_itself_is_on_the_list_wherever_it_stands() {
        for path in [
            "/workspace/.claude/settings.json",
            ".claude/settings.local.json",
            "/home/agent/.claude.json",
            "~/.bashrc",
            "/home/agent/.zshenv",
            "/workspace/.git/hooks/pre-commit",
            "sub/.git/config",
            "/workspace/.git",
            "/workspace/.mcp.json",
            "~/.codex/config.toml",
            ".gemini/settings.json",
            "/etc/profile.d/x.sh",
            "../../etc/cron.daily/x",
            "/workspace/.vscode/tasks.json",
            "/usr/lib/python3/site-packages/evil.pth",
        ] {
            assert!(covered(path).is_some(), "{path}");
        }
    }

    #[test]
    fn another_spelling_of_the_path_is_the_same_file() {
        for path in [
            "/workspace/.CLAUDE/Settings.json",
            "/workspace/.claude/x/../settings.json",
            "/workspace/./.claude//settings.json",
            "/workspace/.git/./hooks/pre-commit",
            "C:\\work\\.git\\hooks\\pre-commit",
            "/workspace/.gi\u{200c}t/hooks/pre-commit",
            "/workspace/.ｇit/hooks/pre-commit",
            "file:///home/agent/.bashrc",
        ] {
            assert!(covered(path).is_some(), "{path}");
        }
    }

    #[test]
    fn ordinary_files_are_not() {
        for path in [
            "/workspace/src/main.rs",
            "/workspace/.gitignore",
            "/workspace/.github/workflows/ci.yml",
            "/workspace/docs/.claude-notes.md",
            "/workspace/settings.json",
            "/home/agent/.claude/plans/plan.md",
            "/workspace/git/hooks/pre-commit",
            "/workspace/.git/hooks/../../src/lib.rs",
            "",
            "/",
        ] {
            assert_eq!(covered(path), None, "{path}");
        }
    }

    #[test]
    fn the_list_says_each_file_once() {
        let mut sorted: Vec<&str> = CONTROL_FILES.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), CONTROL_FILES.len());
    }
}
