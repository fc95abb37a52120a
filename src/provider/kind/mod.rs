//! The catalogue of tools: which tool of which agent runs commands, reads, writes or fetches, and what its input says.
//!
//! Tools are known by their names, folded; by the last part of a name `mcp__server__tool`, in whatever spelling; and
//! by what is left of a name without what models write around it. A tool that takes something else than the catalogue
//! says has its kinds all the same, so that a rule about a kind errs towards denial.

mod catalogue;
mod patch;
mod reading;
mod shell;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::call::name::{NO_NAMESPACE, cut, plain};
use crate::call::{Facts, Input, Kind, KindsBy, Tool};
use crate::fold::fold;
use catalogue::{CATALOGUE, Entry, GENERIC, SCRIPT};

/// The longest name that is looked up, in bytes.
const MOST_NAME: usize = 256;

static BY_NAME: LazyLock<HashMap<&'static str, &'static Entry>> = LazyLock::new(|| {
    let named = |entry: &'static Entry| entry.names.iter().map(move |name| (*name, entry));
    CATALOGUE.iter().flat_map(named).collect()
});

/// The names of several words in the spelling of [`plain`], by which the ending of a name is known.
static BY_ENDING: LazyLock<HashMap<String, &'static Entry>> = LazyLock::new(|| {
    let named = |entry: &'static Entry| entry.names.iter().map(move |name| (plain(name), entry));
    CATALOGUE.iter().flat_map(named).filter(|(name, _)| name.contains('_')).collect()
});

/// A tool as the catalogue has it. `is_text`: its input is a text, as that of a custom tool is.
pub fn tool<'a>(name: &'a str, namespace: Option<&'a str>, is_text: bool) -> Tool<'a> {
    let unknown = Tool { namespace, ..Tool::named(name) };
    match find(name, namespace, is_text) {
        Some((entry, by)) => Tool { kinds: entry.kinds, by, ..unknown },
        None => unknown,
    }
}

/// What a call of a tool does, once for each kind that it is; none for a tool that is not known, and where the input
/// is not what such a tool takes.
pub fn read<'a>(name: &str, namespace: Option<&str>, input: Input<'a>) -> Option<Vec<Facts<'a>>> {
    let (entry, _) = find(name, namespace, matches!(input, Input::Text(_)))?;
    reading::read(entry.takes, entry.kinds, input)
}

/// How many tools of a kind are known.
pub fn count(kind: Kind) -> usize {
    CATALOGUE.iter().filter(|entry| entry.kinds.contains(&kind)).map(|entry| entry.names.len()).sum()
}

fn find(name: &str, namespace: Option<&str>, is_text: bool) -> Option<(&'static Entry, KindsBy)> {
    if name.len() > MOST_NAME {
        return None;
    }
    let folded = fold(name);
    let own = namespace.is_none_or(|namespace| namespace == NO_NAMESPACE);
    // A script of code mode is the calls in it.
    if is_text && cut(&folded) == SCRIPT {
        return None;
    }
    if let Some(entry) = BY_NAME.get(folded.as_str()).filter(|_| own) {
        return Some((entry, KindsBy::Catalogue));
    }
    let bare = cut(&folded);
    let whole = BY_NAME.get(bare).filter(|_| own || !GENERIC.contains(&bare));
    let last =
        || bare.rsplit("__").next().filter(|last| !GENERIC.contains(last)).and_then(|last| BY_NAME.get(last));
    let entry = whole.or_else(last).copied().or_else(|| ending(&plain(bare)))?;
    Some((entry, KindsBy::Ending))
}

/// The entry of the longest ending that is a name of several words: agents spell `mcp__server__read_file` as
/// `server_read_file`, too.
fn ending(plain: &str) -> Option<&'static Entry> {
    let starts = std::iter::once(0).chain(plain.match_indices('_').map(|(at, _)| at + 1));
    starts.filter_map(|at| BY_ENDING.get(plain.get(at..)?)).next().copied()
}
