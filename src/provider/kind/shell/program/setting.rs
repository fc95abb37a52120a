//! Settings that a command gives to git or ssh: whether they name a program, or another place than a URL says.

/// What a setting does beside setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingEffect {
    None,
    /// Another host or directory than the words say.
    Redirects,
    /// A program is run, now or later.
    Runs,
}

/// The ends of keys whose values are programs: git-config(1) of git 2.51, ssh_config(5) of openssh 10.
const PROGRAMS: &[&str] = &[
    "askpass",
    "clean",
    "cmd",
    "command",
    "difffilter",
    "driver",
    "editor",
    "external",
    "fsmonitor",
    "helper",
    "hookspath",
    "httpd",
    "pager",
    "process",
    "program",
    "hook",
    "provider",
    "receivepack",
    "smtpserver",
    "smudge",
    "templatedir",
    "textconv",
    "tunnel",
    "uploadpack",
    "vcs",
    "xauthlocation",
];

/// Programs that are where such a setting is anyway, and show or keep what they are given.
const USUAL: &[&str] = &[
    "",
    "cache",
    "cat",
    "code --wait",
    "delta",
    "emacs",
    "false",
    "less",
    "manager",
    "more",
    "nano",
    "nvim",
    "osxkeychain",
    "ssh",
    "store",
    "true",
    "vi",
    "vim",
];

/// Whether `key=value`, or `key value`, does more than set; `is_computed`: an expansion ends it.
pub(super) fn is_hidden(setting: &str, is_computed: bool) -> bool {
    match setting.split_once(['=', ' ']) {
        Some((key, "")) if is_computed => of(key, "$") != SettingEffect::None,
        Some((key, value)) => of(key, value) != SettingEffect::None,
        None => is_computed,
    }
}

/// What a setting does.
pub(super) fn of(key: &str, value: &str) -> SettingEffect {
    let key = key.to_ascii_lowercase();
    let last = key.rsplit('.').next().unwrap_or_default();
    let names_program = ["alias.", "pager.", "include"].iter().any(|start| key.starts_with(start))
        || PROGRAMS.iter().any(|end| last.ends_with(end))
        // Of a browser, a tool that merges, a file that is included.
        || matches!(last, "path" | "match")
        || (key.starts_with("protocol.") && last == "allow");
    if value.starts_with('!') || (names_program && !USUAL.contains(&value)) {
        SettingEffect::Runs
    } else if last.ends_with("proxy") || matches!(last, "insteadof" | "pushinsteadof" | "worktree") {
        SettingEffect::Redirects
    } else {
        SettingEffect::None
    }
}

/// Whether the first operand of `git config` says what to do, and is no name of a setting, which has a dot.
pub(super) fn is_verb(text: &str) -> bool {
    matches!(text, "list" | "get" | "set" | "unset" | "rename-section" | "remove-section" | "edit")
}

/// The key and the place of the value among the operands of `git config`; none where it sets nothing.
pub(super) fn written<'a>(
    operands: &[&'a str],
    options: &[impl AsRef<str>],
) -> Option<(&'a str, Option<&'a str>)> {
    const ASKING: &[&str] = &["get", "list", "edit", "unset", "remove-section"];
    let asks = |text: &str| ASKING.iter().any(|start| text.starts_with(start));
    if options.iter().any(|option| asks(option.as_ref()) || option.as_ref() == "l") {
        return None;
    }
    match operands {
        [verb, key, rest @ ..] if *verb == "set" => Some((*key, rest.first().copied())),
        [verb, ..] if asks(verb) && !verb.contains('.') => None,
        [key, value, ..] => Some((*key, Some(*value))),
        _ => None,
    }
}

/// The file that `git config` writes by its options.
pub(super) fn file(options: &[impl AsRef<str>]) -> Option<&'static str> {
    let has = |name: &str| options.iter().any(|option| option.as_ref() == name);
    match () {
        () if has("f") || has("file") => None,
        () if has("global") => Some("~/.gitconfig"),
        () if has("system") => Some("/etc/gitconfig"),
        () if has("worktree") => Some(".git/config.worktree"),
        () => Some(".git/config"),
    }
}
