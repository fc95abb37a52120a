//! Variables that a text sets or evaluates: which of them change what runs, and texts that arithmetic would run.

use super::state::State;
use super::word::RawWord;

/// Variables whose values shells and common programs run, or load as code.
const RUN: &[&str] = &[
    "BASH_ALIASES",
    "BASH_CMDS",
    "BASH_ENV",
    "BROWSER",
    "CVS_RSH",
    "DYLD_INSERT_LIBRARIES",
    "EDITOR",
    "ENV",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_INDEX_FILE",
    "GIT_PROXY_COMMAND",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_TEMPLATE_DIR",
    "GIT_WORK_TREE",
    "HISTCHARS",
    "LD_AUDIT",
    "LD_PRELOAD",
    "LESSCLOSE",
    "LESSOPEN",
    "MANPAGER",
    "PAGER",
    "PROMPT_COMMAND",
    "PS0",
    "PS4",
    "RIPGREP_CONFIG_PATH",
    "RSYNC_RSH",
    "SHELL",
    "SVN_SSH",
    "TAR_OPTIONS",
    "VISUAL",
    "histchars",
];

/// The names of more of them begin or end so: functions of bash, settings and logs of git, and what others call theirs.
const RUN_BEGINNINGS: &[&str] = &["BASH_FUNC_", "GIT_CONFIG", "GIT_TRACE"];
const RUN_ENDS: &[&str] = &["_ASKPASS", "_BROWSER", "_EDITOR", "_PAGER"];

/// Values of them that run nothing else.
const INERT: &[&str] = &["", ":", "cat", "true", "false", "less", "more", "vi", "vim", "nano", "echo"];

/// Values of `SHELL` that name a shell of the system.
const SHELLS: &[&str] = &[
    "",
    "sh",
    "bash",
    "zsh",
    "/bin/sh",
    "/bin/bash",
    "/bin/zsh",
    "/usr/bin/bash",
    "/usr/bin/zsh",
    "/bin/false",
    "/usr/sbin/nologin",
];

/// Whether the value of a variable of this name may run.
fn is_run(name: &str) -> bool {
    RUN.contains(&name)
        || RUN_BEGINNINGS.iter().any(|start| name.starts_with(start))
        || RUN_ENDS.iter().any(|end| name.ends_with(end))
}

/// What a text has that matters only together: texts that a variable may hold, and what evaluates variables.
#[derive(Debug, Default)]
pub(super) struct Evaluation {
    /// Something is evaluated as arithmetic.
    pub(super) has_arithmetic: bool,
    /// A value has commands in quotes, which arithmetic would run.
    pub(super) has_hidden_code: bool,
    /// A text that no command gives to a variable sets another one where it is evaluated as arithmetic.
    pub(super) has_hidden_assignment: bool,
    /// A text ends in a `$`, and another one begins with a `(`: joined they have code.
    pub(super) has_dollar_at_end: bool,
    pub(super) has_parenthesis_in_front: bool,
    /// A variable is an array.
    pub(super) has_array: bool,
    /// `declare` gives a variable a text that may be `(…)`, which is evaluated where the variable is an array.
    pub(super) declares_text: bool,
    /// `ENV` gets a value, which names a file that interactive shells run.
    pub(super) names_startup: bool,
    /// A shell is interactive.
    pub(super) is_interactive: bool,
}

impl Evaluation {
    /// Whether a text may run that stands in none of the commands.
    pub(super) fn may_run(&self) -> bool {
        let has_code = self.has_hidden_code || (self.has_dollar_at_end && self.has_parenthesis_in_front);
        let evaluates = self.has_arithmetic || (self.has_array && self.declares_text);
        (evaluates && has_code) || (self.names_startup && self.is_interactive)
    }

    /// Whether a variable may be set where no assignment stands.
    pub(super) fn may_set(&self) -> bool {
        self.has_arithmetic && self.has_hidden_assignment
    }
}

impl State {
    /// A variable gets this value; none where it is not told.
    pub(super) fn assign(&mut self, name: &str, value: Option<&str>) {
        // `name+=…`, `name[place]=…`
        let name = name.split_once('[').map_or(name, |(name, _)| name).trim_end_matches('+');
        self.assigns_separator |= name == "IFS";
        // `cd ~` follows the other one.
        self.assigns_search_path |= matches!(name, "CDPATH" | "HOME");
        self.evaluation.names_startup |= name == "ENV";
        let is_setting = name.starts_with("GIT_CONFIG") || name.starts_with("GIT_TRACE");
        let is_inert = |value: &str| match name {
            // A file, and otherwise what people call the stage that they build.
            "ENV" => !value.contains(['/', '$', '`']),
            "PS4" | "PS0" => !value.contains(['$', '`']),
            "SHELL" => SHELLS.contains(&value),
            // A number is a switch, a count or a descriptor.
            _ if is_setting => {
                matches!(value, "true" | "false" | "/dev/null")
                    || value.bytes().all(|byte| byte.is_ascii_digit())
            }
            _ => INERT.contains(&value),
        };
        self.is_opaque |= is_run(name) && !value.is_some_and(is_inert);
    }

    /// A variable gets a value where none is seen in front of a command.
    pub(super) fn assign_within(&mut self, name: &str) {
        self.assign(name, None);
        self.has_assignments |= !is_of_script(name);
    }

    /// An expression is evaluated, and the variables in it, of which one may hold a text that it runs.
    pub(super) fn evaluate(&mut self, expression: &str) {
        self.evaluation.has_arithmetic = true;
        self.has_assignments |= sets(expression);
        self.assigns_search_path |= expression.contains("CDPATH");
    }

    /// A text that a variable may get, as it is.
    pub(super) fn hide_code(&mut self, text: &str) {
        self.evaluation.has_hidden_code |= has_code(text);
        self.evaluation.has_dollar_at_end |= text.ends_with('$');
        self.evaluation.has_parenthesis_in_front |= text.starts_with('(');
    }

    /// A text that a variable gets where no command is seen that sets it, and that arithmetic may evaluate.
    pub(super) fn hide_expression(&mut self, text: &str) {
        self.evaluation.has_hidden_assignment |= sets(text);
    }

    /// An operand that is an expression where `[[` compares numbers, or the name of a variable.
    pub(super) fn evaluate_operand(&mut self, word: &RawWord) {
        if word.is_computed() {
            // What stands around a command that is read by itself.
            let (before, _) = word.text.split_once("$(").unwrap_or((&word.text, ""));
            let (_, behind) = word.text.rsplit_once(')').unwrap_or(("", ""));
            self.evaluate(before);
            self.evaluate(behind);
            self.is_opaque |= word.has_quoted_sign;
            return;
        }
        self.evaluate(&word.text);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b' ');
        self.is_opaque |= !word.text.bytes().all(is_plain);
    }
}

/// Whether a text has signs of commands in it, which run where it is evaluated once more.
pub(super) fn has_code(text: &str) -> bool {
    let begins_code = |behind: &str| behind.starts_with(['(', '`']) || is_brace_of_commands(behind);
    let mut rest = text;
    while let Some(at) = memchr::memchr3(b'$', b'`', b'\\', rest.as_bytes()) {
        let (sign, behind) = rest.get(at..).and_then(|rest| rest.split_at_checked(1)).unwrap_or_default();
        if sign == "`" || (sign == "$" && begins_code(behind)) || (sign == "\\" && is_escaped_sign(behind)) {
            return true;
        }
        rest = behind;
    }
    false
}

/// `${ commands; }` and `${| commands; }`, from the brace.
fn is_brace_of_commands(text: &str) -> bool {
    text.strip_prefix('{').is_some_and(|behind| behind.starts_with([' ', '\t', '\n', '|']))
}

/// Whether a backslash in front of this stands for a `$` or a backquote to a program that takes escapes: `\x24`, `\044`.
fn is_escaped_sign(behind: &str) -> bool {
    const LETTERS: &[char] = &['x', 'u', 'U', 'o', 'd'];
    const NUMBERS: &[&str] = &["24", "44", "36", "60", "140", "96"];
    let number = behind.strip_prefix(LETTERS).unwrap_or(behind).trim_start_matches('0');
    NUMBERS.iter().any(|sign| number.starts_with(sign))
}

/// Whether a variable is one that scripts have for themselves, as the `i` of a loop, and no program looks at.
fn is_of_script(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) && !name.ends_with("path")
}

/// Whether an expression sets a variable that programs may look at.
fn sets(expression: &str) -> bool {
    let bytes = expression.as_bytes();
    let at = |at: Option<usize>| at.and_then(|at| bytes.get(at)).copied();
    let is_sign = |(number, byte): (usize, &u8)| match byte {
        b'=' => {
            let (before, second) = (at(number.checked_sub(1)), at(number.checked_sub(2)));
            let is_compared = match before {
                Some(b'<' | b'>') => before != second,
                Some(b'=' | b'!') => true,
                Some(_) | None => false,
            };
            !is_compared && at(number.checked_add(1)) != Some(b'=')
        }
        b'+' | b'-' => at(number.checked_add(1)) == Some(*byte),
        _ => false,
    };
    let is_name = |word: &str| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_other = |word: &str| is_name(word) && !is_of_script(word);
    bytes.iter().enumerate().any(is_sign)
        && (expression.contains(['$', '`'])
            || expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(is_other))
}
