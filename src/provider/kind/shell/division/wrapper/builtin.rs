//! Commands of the shell that evaluate their operands, set variables or run texts.

use super::super::state::State;
use super::super::variable::has_code;
use super::super::{RedirectionKind, Word, WordForm};
use super::RawRedirection;

/// Those that are read for what they do.
pub(super) const NAMES: &[&str] = &[
    "cd",
    "chdir",
    "pushd",
    "popd",
    "source",
    ".",
    "alias",
    "trap",
    "hash",
    "enable",
    "exit",
    "let",
    "test",
    "[",
    "printf",
    "echo",
    "set",
    "read",
    "mapfile",
    "readarray",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "unset",
    "wait",
    "getopts",
    "jobs",
    "compgen",
    "complete",
    "history",
    "r",
];

/// Those of them that are read for what they change.
const CHANGING: &[&str] =
    &["cd", "chdir", "pushd", "popd", "source", ".", "alias", "trap", "hash", "enable", "exit"];

/// Whether a function of this name would hide a change.
pub(super) fn is_changing(name: &str) -> bool {
    CHANGING.contains(&name)
}

/// Notes what a command of the shell evaluates, sets and runs.
pub(super) fn evaluate(name: &str, words: &[Word], state: &mut State) {
    let operands = words.get(1..).unwrap_or_default();
    let has_letter = |letters| has_letter(operands, letters);
    match name {
        "let" => operands.iter().for_each(|word| {
            state.evaluate(&word.text);
            state.is_opaque |= is_quoted_code(word, &word.text);
        }),
        "test" | "[" => {
            valued(operands, &["-v", "-R"]).for_each(|word| place_in_array(word, &word.text, state))
        }
        "printf" => {
            valued(operands, &["-v"]).for_each(|word| named(word, state));
            operands.iter().filter(|word| word.text.starts_with("-v")).for_each(|word| named(word, state));
            let is_any = |word: &Word| {
                word.form == WordForm::Computed
                    && word.text.starts_with("-v")
                    && word.text.contains(['$', '`'])
            };
            state.is_opaque |=
                valued(operands, &["-v"]).any(is_named_elsewhere) || operands.iter().any(is_any);
        }
        "mapfile" | "readarray" | "read" => take_lines(name, operands, state),
        "unset" => operands.iter().for_each(|word| {
            place_in_array(word, &word.text, state);
            state.assign(&word.text, Some(""));
        }),
        "wait" => {
            operands.iter().for_each(|word| place_in_array(word, &word.text, state));
            valued(operands, &["-p"]).for_each(|word| named(word, state));
        }
        "getopts" => operands.iter().for_each(|word| named(word, state)),
        "declare" | "typeset" | "local" | "export" | "readonly" => declare(name, operands, state),
        "history" => state.is_opaque |= has_letter(&['s', 'p']),
        // `fc -s` of ksh and zsh.
        "r" => state.is_opaque = true,
        "jobs" => state.is_opaque |= has_letter(&['x']),
        "compgen" | "complete" => state.is_opaque |= has_letter(&['C', 'W', 'F']),
        _ => {}
    }
}

/// Whether an option among the operands has one of these letters.
fn has_letter(operands: &[Word], letters: &[char]) -> bool {
    operands.iter().any(|word| word.text.starts_with('-') && word.text.contains(letters))
}

/// `read` and `mapfile`, which set variables to what they read.
fn take_lines(name: &str, operands: &[Word], state: &mut State) {
    state.is_opaque |= name != "read" && has_letter(operands, &['C']);
    operands.iter().for_each(|word| named(word, state));
    state.evaluation.has_array |= name != "read" || has_letter(operands, &['a', 'A']);
    let behind = std::iter::once(None).chain(operands.iter().map(Some));
    let valued: &[char] = if name == "read" {
        &['d', 'i', 'n', 'N', 'p', 't', 'u']
    } else {
        &['d', 'n', 'O', 's', 'u', 'C', 'c']
    };
    let is_value = |before: Option<&Word>| before.is_some_and(|before| takes_value(before, valued));
    let names = operands.iter().zip(behind).filter(|(_, before)| !is_value(*before));
    state.is_opaque |= names.map(|(word, _)| word).any(is_named_elsewhere);
}

/// `declare` and its like, which set variables and what those are.
fn declare(name: &str, operands: &[Word], state: &mut State) {
    let refers = name != "export" && has_letter(operands, &['n']);
    let evaluates = refers || has_letter(operands, &['i', 'a', 'A']);
    state.evaluation.has_arithmetic |= evaluates;
    for word in operands {
        named(word, state);
        state.is_opaque |= is_named_elsewhere(word);
        state.evaluation.declares_text |= is_list_maybe(word);
        state.is_opaque |= evaluates && is_quoted_code(word, &word.text);
        // What is assigned to the name goes to the variable that it stands for.
        if let Some((_, other)) = word.text.split_once('=').filter(|_| refers) {
            state.assigns_search_path |= word.form == WordForm::Computed;
            state.assign(other, None);
        }
    }
}

/// The words behind these options.
fn valued<'w>(words: &'w [Word], options: &[&str]) -> impl Iterator<Item = &'w Word> {
    let pairs = words.iter().zip(words.iter().skip(1));
    pairs.filter(|(option, _)| options.contains(&option.text.as_str())).map(|(_, value)| value)
}

/// Takes the name of a variable, in which the place in an array is an expression.
fn named(word: &Word, state: &mut State) {
    let (name, value) = match word.text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word.text.as_str(), None),
    };
    place_in_array(word, name, state);
    // Where something is expanded in it, its quotes are still there.
    let name = name.replace(['"', '\'', '\\'], "");
    state.assigns_search_path |= word.form == WordForm::Computed && name.contains(['$', '`']);
    state.assign(name.trim_start_matches("-v"), value);
}

fn place_in_array(word: &Word, name: &str, state: &mut State) {
    let is_computed = word.form == WordForm::Computed && !word.text.contains('=');
    state.evaluation.has_arithmetic |= name.contains('[') || is_computed;
    state.is_opaque |= name.contains('[') && is_quoted_code(word, name);
}

/// Whether the name of the variable that a word assigns to is computed, so that it may be any.
pub(super) fn is_named_elsewhere(word: &Word) -> bool {
    let name = word.text.split_once('=').map_or(word.text.as_str(), |(name, _)| name);
    // The place in an array is not the name.
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    word.form == WordForm::Computed && !word.text.starts_with('-') && name.contains(['$', '`'])
}

/// Whether a word gives a variable a text that may be a list in parentheses.
fn is_list_maybe(word: &Word) -> bool {
    let value = word.text.split_once('=').map_or("", |(_, value)| value);
    let value = value.trim_start_matches(['"', '\'', '\\']);
    value.starts_with('(') || word.form == WordForm::Computed && value.starts_with(['$', '`'])
}

/// Whether the value of one of these options is the next word, and not the rest of this one.
fn takes_value(option: &Word, letters: &[char]) -> bool {
    let written = option.text.strip_prefix('-').filter(|_| option.form == WordForm::Literal);
    written.is_some_and(|written| written.find(letters).is_some_and(|at| at + 1 == written.len()))
}

/// Here-strings that a variable may get.
pub(in super::super) fn hide_texts(redirections: &[RawRedirection], state: &mut State) {
    let is_hidden = |redirection: &RawRedirection| match redirection {
        RawRedirection::To(to) | RawRedirection::Aside(to) => {
            to.kind == RedirectionKind::Text
                && to.target.form != WordForm::Computed
                && has_code(&to.target.text)
        }
        // The lines of here-documents are read behind the command.
        RawRedirection::Document(_) | RawRedirection::Copy => false,
    };
    state.evaluation.has_hidden_code |= redirections.iter().any(is_hidden);
}

/// Texts that a variable or an operand may get.
pub(super) fn hide(words: &[Word], state: &mut State) {
    // What is expanded in part was seen where it was read.
    let literal = words.iter().filter(|word| word.form != WordForm::Computed);
    literal.for_each(|word| state.hide_code(&word.text));
}

/// Whether this part of a word has commands that were quoted, and so not run where they stand.
fn is_quoted_code(word: &Word, part: &str) -> bool {
    if word.form != WordForm::Computed {
        return has_code(part);
    }
    part.contains(['\'', '\\']) && (part.contains('`') || part.contains('$') && part.contains('('))
}
