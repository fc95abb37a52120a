//! The catalogue of tools: which tool of which agent runs commands, reads, writes or fetches, and what its input says.
//!
//! Tools are known by their names, folded, or by the last part of a name `mcp__server__tool`. A tool that takes
//! something else than the catalogue says has its kinds all the same, so that a rule about a kind errs towards denial.

mod catalogue;
mod patch;
mod reading;
mod shell;
mod spelling;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::call::{Facts, Input, Kind, Spelling};
use crate::fold::fold;
use catalogue::{CATALOGUE, Entry, GENERIC};
use spelling::Spelled;

/// The longest name that is looked up, in bytes.
const MOST_NAME: usize = 256;

static BY_NAME: LazyLock<HashMap<&'static str, &'static Entry>> = LazyLock::new(|| {
    let named = |entry: &'static Entry| entry.names.iter().map(move |name| (*name, entry));
    CATALOGUE.iter().flat_map(named).collect()
});

/// The kinds of a tool: none, one, or several where the input tells which of them it is.
pub fn kinds(name: &str) -> &'static [Kind] {
    find(name).map_or(&[], |entry| entry.kinds)
}

/// What a call of a tool does, once for each kind that it is; none for a tool that is not known, and where the input
/// is not what such a tool takes.
pub fn read<'a>(name: &str, input: Input<'a>) -> Option<Vec<Facts<'a>>> {
    let entry = find(name)?;
    let Input::Json(json) = input else { return reading::read(entry.takes, entry.kinds, input) };
    match spelling::of(json, entry.takes) {
        Spelled::Exact => reading::read(entry.takes, entry.kinds, input),
        Spelled::Anew(json) => {
            let all = reading::read(entry.takes, entry.kinds, Input::Json(&json))?;
            let respelled = |facts: Facts<'_>| Facts { spelling: Spelling::Respelled, ..facts.into_owned() };
            Some(all.into_iter().map(respelled).collect())
        }
        Spelled::Ambiguous => {
            let unclear = |kind: &Kind| Facts { spelling: Spelling::Ambiguous, ..Facts::new(*kind) };
            Some(entry.kinds.iter().map(unclear).collect())
        }
    }
}

fn find(name: &str) -> Option<&'static Entry> {
    if name.len() > MOST_NAME {
        return None;
    }
    let name = fold(name);
    let last =
        || name.rsplit("__").next().filter(|last| !GENERIC.contains(last)).and_then(|last| BY_NAME.get(last));
    BY_NAME.get(name.as_str()).or_else(last).copied()
}
