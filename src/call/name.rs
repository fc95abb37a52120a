//! How models and agents spell the names of tools, and the one spelling in which rules that deny compare them.

use crate::call::Tool;
use crate::fold::fold;

/// What models write before a name and clients cut, folded.
const BEFORE: &[&str] = &[
    // The namespace in which OpenAI's models are shown functions. OpenClaw cuts it, with a dot or a slash
    // (pull request 39328 of openclaw/openclaw), and so do wrappers of several calls.
    "functions.",
    "functions/",
    "functions:",
    // The object of code mode (`tools.NAME(…)`), which models write in plain calls too; OpenClaw as above.
    "tools.",
    "tools/",
    "tools:",
    // Models that run locally (pull request 24411 of NousResearch/hermes-agent).
    "tool.",
    "tool/",
    "tool:",
    "google:",
    // The module in which Gemini's models are shown functions (issue 1989 of tya5/reyn).
    "default_api.",
    "default_api:",
    "default_api/",
    // The tools that gpt-oss was trained with; servers of models and agents know it.
    "repo_browser.",
    "repo_browser/",
    "repo_browser:",
];

/// What opens and closes the special tokens of models (`terminal<|channel|>commentary`, gpt-oss).
const TOKEN: (&str, &str) = ("<|", "|>");

/// A namespace that is none: OpenAI's models are shown every function without a namespace in it.
pub(crate) const NO_NAMESPACE: &str = "functions";

/// A tool's name, folded, without what models write around names: `functions.bash:0` is `bash`. Names are cut again
/// and again, but never to nothing.
pub(crate) fn cut(folded: &str) -> &str {
    let mut name = folded;
    loop {
        let shorter = cut_once(name).trim_matches(['.', ':', '/']);
        if shorter.is_empty() || shorter.len() == name.len() {
            return name;
        }
        name = shorter;
    }
}

fn cut_once(name: &str) -> &str {
    let (opens, closes) = TOKEN;
    if let Some((_, rest)) = name.strip_prefix(opens).and_then(|rest| rest.split_once(closes)) {
        return rest;
    }
    if let Some((before, _)) = name.split_once(opens).filter(|(before, _)| !before.is_empty()) {
        return before;
    }
    if let Some(rest) = BEFORE.iter().find_map(|before| name.strip_prefix(before)) {
        return rest;
    }
    // The number of a call, as in the ids of Kimi's calls (`functions.bash:0`).
    match name.rsplit_once(':') {
        Some((before, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => before,
        Some(_) | None => name,
    }
}

/// A folded text in which every sign that is no letter or digit is `_`, and several of them are one: clients write
/// other signs so where a provider does not take them, and join the names of servers and tools by `__`, `_`, `-` or
/// a dot.
pub(crate) fn plain(folded: &str) -> String {
    let mut plain = String::with_capacity(folded.len());
    for c in folded.chars() {
        match c {
            c if c.is_alphanumeric() => plain.push(c),
            _ if plain.ends_with('_') => {}
            _ => plain.push('_'),
        }
    }
    plain
}

/// What agents write before the name of an MCP server, in the spelling of [`plain`].
pub(crate) const MCP: &str = "mcp_";

/// The spellings of a name, in the form of [`plain`], in which rules that deny are looked for. `mcp__S__T`,
/// `mcp_S_T`, `S__T`, `S_T`, `S-T`, `S.T`, and `T` in the namespace `S` or `mcp__S` have one in common.
pub(crate) fn spellings(folded: &str, found: &mut Vec<String>) {
    let mut add = |name: &str| {
        let plain = plain(name);
        let plain = plain.trim_start_matches('_');
        for spelling in [Some(plain), plain.strip_prefix(MCP)].into_iter().flatten() {
            if !found.iter().any(|known| known == spelling) {
                found.push(spelling.to_owned());
            }
        }
    };
    add(folded);
    let cut = cut(folded);
    if cut.len() < folded.len() {
        add(cut);
    }
}

/// The names of a call: as they are compared exactly, folded, and in every spelling.
#[derive(Debug)]
pub(crate) struct Called {
    /// `name`, or `namespace.name`: a rule that allows a bare name is about no tool of a namespace.
    pub(crate) exact: String,
    /// The name, and `namespace.name`.
    pub(crate) folded: Vec<String>,
    pub(crate) spellings: Vec<String>,
}

impl Called {
    pub(crate) fn of(tool: &Tool<'_>) -> Self {
        let qualified = tool.namespace.map(|namespace| format!("{namespace}.{}", tool.name));
        let folded: Vec<String> =
            [Some(tool.name), qualified.as_deref()].into_iter().flatten().map(fold).collect();
        let mut all = Vec::with_capacity(folded.len() * 2);
        folded.iter().for_each(|name| spellings(name, &mut all));
        let exact = qualified.filter(|_| tool.namespace != Some(NO_NAMESPACE));
        Self { exact: exact.unwrap_or_else(|| tool.name.to_owned()), folded, spellings: all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> Vec<String> {
        let mut found = Vec::new();
        spellings(&fold(name), &mut found);
        found
    }

    #[test]
    fn what_models_write_around_a_name_is_cut() {
        for name in [
            "Bash",
            "functions.Bash",
            "functions.Bash:0",
            "tools/bash",
            "default_api:bash",
            "default_api.bash",
            "repo_browser.bash",
            "functions.tools.bash:1:2",
            "bash<|channel|>commentary",
            "<|constrain|>bash",
            "<|start|>functions.bash<|message|>",
            "tool:bash",
            "google:tool:bash",
        ] {
            assert_eq!(cut(&fold(name)), "bash", "{name}");
        }
        for name in
            ["functionshell", "toolsmith", "functions", "functions.", "<|x|>", "<|", ":0", "a:b", "mcp__x__y"]
        {
            assert_eq!(cut(name), name, "{name}");
        }
    }

    #[test]
    fn every_spelling_of_a_servers_tool_has_one_in_common() {
        for name in [
            "mcp__my-server__do.it",
            "mcp_my_server_do_it",
            "my-server__do.it",
            "my_server_do_it",
            "my-server-do-it",
            "my-server.do.it",
            "MCP__My_Server__Do_It",
            "functions.mcp__my-server__do.it:0",
        ] {
            assert!(of(name).contains(&"my_server_do_it".to_owned()), "{name}: {:?}", of(name));
        }
        assert_eq!(of("Bash"), ["bash"]);
        assert_eq!(of("删除"), ["删除"]);
    }

    #[test]
    fn a_name_in_a_namespace_is_allowed_by_both_alone() {
        let exact = |namespace| Called::of(&Tool { namespace, ..Tool::named("exec") }).exact;
        assert_eq!(exact(None), "exec");
        assert_eq!(exact(Some("functions")), "exec");
        assert_eq!(exact(Some("mcp__x")), "mcp__x.exec");
    }
}
