//! Reads the script that a command gives to a shell, and the patch that an agent takes out of a command.

use std::borrow::Cow;

use serde_json::Value;

use super::super::{patch, reading};
use crate::call::Facts;

/// Programs that run the text behind an option.
const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "ash", "ksh", "fish", "pwsh", "powershell"];

/// The script of `["bash", "-lc", "script"]`.
pub(in crate::provider::kind) fn script<'a>(arguments: &[&'a str]) -> Option<&'a str> {
    let (program, rest) = arguments.split_first()?;
    let program = program.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let is_shell = SHELLS.contains(&program.strip_suffix(".exe").unwrap_or(&program));
    let option = rest.iter().position(|argument| takes_script(argument)).filter(|_| is_shell)?;
    rest.get(option + 1).copied()
}

/// `-c`, `-lc`, `-Command`
fn takes_script(argument: &str) -> bool {
    let letters =
        argument.strip_prefix('-').filter(|letters| letters.bytes().all(|b| b.is_ascii_alphabetic()));
    letters.is_some_and(|letters| letters.ends_with('c') || letters.eq_ignore_ascii_case("command"))
}

/// The files that the patches in commands write; none where a patch names no file.
pub(in crate::provider::kind) fn patches(commands: &[Cow<'_, str>], json: &Value) -> Option<Facts<'static>> {
    let parameter = |key: &&str| json.get(key).and_then(Value::as_str);
    let directory = ["workdir", "cwd", "working_directory"].iter().find_map(parameter);
    let mut all: Option<Facts<'static>> = None;
    let patching: Vec<&str> =
        commands.iter().map(AsRef::as_ref).filter(|command| patch::is_in(command)).collect();
    for (number, command) in patching.iter().enumerate() {
        // The arguments in one line, behind the script that is the last of them.
        if number
            .checked_sub(1)
            .and_then(|before| patching.get(before))
            .is_some_and(|script| command.ends_with(script))
        {
            continue;
        }
        let entered = entered(command);
        let directory = match (directory, entered) {
            (Some(outer), Some(inner)) => Some(patch::below(Some(outer), inner.to_owned())),
            (outer, inner) => outer.or(inner).map(str::to_owned),
        };
        let found = reading::patched(command, directory.as_deref())?.pop()?;
        match &mut all {
            Some(all) => all.paths.extend(found.paths),
            None => all = Some(found),
        }
    }
    if let Some(all) = &mut all {
        all.paths.sort_unstable();
        all.paths.dedup();
    }
    all
}

/// The directory of a command that begins with `cd directory &&`.
fn entered(command: &str) -> Option<&str> {
    let (directory, _) = command.trim_start().strip_prefix("cd ")?.split_once("&&")?;
    Some(directory.trim().trim_matches(['"', '\''])).filter(|directory| !directory.contains('\n'))
}
