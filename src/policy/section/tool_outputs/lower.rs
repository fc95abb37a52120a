//! `toolOutputs`, judged and compiled.

use super::super::lowering::{Problems, each};
use super::super::text;
use super::super::tool::ToolName;
use super::written::{WrittenAmount, WrittenCompress, WrittenOutputsOf, WrittenToolOutputs};
use super::{OutputsOf, SECTION, ToolOutputs};
use crate::call::Kind;
use crate::tool_output::{Amount, Compress, Shortening, TOKEN};
use crate::yaml::field;

/// What holds where a field is absent: lines and tokens.
const ABOVE: (usize, usize) = (400, 6_000);
const HEAD: (usize, usize) = (60, 1_200);
const TAIL: (usize, usize) = (120, 2_400);
const DIAGNOSTICS: i64 = 40;

const MOST_LINES: i64 = 100_000;
const TOKENS: std::ops::RangeInclusive<i64> = 256..=1_000_000;
const MOST_DIAGNOSTICS: i64 = 200;

/// The most names of tools.
const MOST_TOOLS: usize = 256;

/// Compiles the section; none where it has a mistake.
pub(super) fn lower(written: &WrittenToolOutputs, problems: &mut Problems) -> Option<ToolOutputs> {
    let of = match &written.of {
        None => Some(vec![OutputsOf::Kind(Kind::Shell)]),
        Some(of) => tools(of, problems),
    };
    let repeats = written.repeats.unwrap_or_default();
    let compress = match &written.compress {
        None => Some(None),
        Some(compress) => self::compress(compress, problems).map(Some),
    };
    if written.compress.is_none() && written.repeats.is_none() {
        problems.add(SECTION, "asks for nothing; write `compress`, `repeats: Refer` or both");
        return None;
    }
    Some(ToolOutputs { of: of?, shortening: Shortening { compress: compress?, repeats } })
}

fn tools(written: &[WrittenOutputsOf], problems: &mut Problems) -> Option<Vec<OutputsOf>> {
    let list = field::key(SECTION, "of");
    if written.is_empty() {
        problems.add(list.as_str(), "name at least one kind or tool, or leave the field out");
        return None;
    }
    let mut all = Vec::with_capacity(written.len());
    for (number, one) in written.iter().enumerate() {
        all.push(of(&field::item(&list, number), one, problems));
    }
    all.into_iter().collect()
}

fn of(path: &str, written: &WrittenOutputsOf, problems: &mut Problems) -> Option<OutputsOf> {
    match (written.kind, &written.tools) {
        (Some(kind @ (Kind::Read | Kind::Write)), None) => {
            let why = "is never cut: an agent edits what it has read, and needs all of it";
            problems.add(field::key(path, "kind"), format!("{}: {why}", kind.as_str()));
            None
        }
        (Some(kind @ (Kind::Shell | Kind::Fetch)), None) => Some(OutputsOf::Kind(kind)),
        (None, Some(names)) => {
            let list = field::key(path, "tools");
            if names.is_empty() || names.len() > MOST_TOOLS {
                problems.add(list.as_str(), format!("name 1 to {MOST_TOOLS} tools"));
                return None;
            }
            let names = each(&list, names, problems, |name| {
                text::pattern(name)?;
                Ok(ToolName::spelled(name))
            });
            names.map(OutputsOf::Tools)
        }
        (Some(_), Some(_)) | (None, None) => {
            problems.add(path, "write either `kind` or `tools`");
            None
        }
    }
}

fn compress(written: &WrittenCompress, problems: &mut Problems) -> Option<Compress> {
    let path = field::key(SECTION, "compress");
    let mut read = |name: &str, written: Option<&WrittenAmount>, default| {
        amount(&field::key(&path, name), written, default, problems)
    };
    let above = read("above", written.above.as_ref(), ABOVE);
    let head = read("head", written.head.as_ref(), HEAD);
    let tail = read("tail", written.tail.as_ref(), TAIL);
    let diagnostics = written.diagnostics.unwrap_or(DIAGNOSTICS);
    let diagnostics = usize::try_from(diagnostics).ok().filter(|_| diagnostics <= MOST_DIAGNOSTICS);
    let diagnostics = diagnostics.ok_or_else(|| format!("expected 0 to {MOST_DIAGNOSTICS}"));
    let diagnostics = problems.keep(&field::key(&path, "diagnostics"), diagnostics);
    let compress = Compress { above: above?, head: head?, tail: tail?, diagnostics: diagnostics? };
    let mut fits = |name: &str, head: usize, tail: usize, above: usize| {
        let fits = 3 * (head + tail) <= 2 * above;
        if !fits {
            let left = format!("head and tail are {} {name} together", head + tail);
            let most = format!("at most two thirds of `above` ({above}) may be left");
            problems.add(path.as_str(), format!("{left}; {most}"));
        }
        fits
    };
    let Compress { above, head, tail, .. } = compress;
    let fit = [
        fits("lines", head.lines, tail.lines, above.lines),
        fits("tokens", head.bytes / TOKEN, tail.bytes / TOKEN, above.bytes / TOKEN),
    ];
    fit.iter().all(|fits| *fits).then_some(compress)
}

fn amount(
    path: &str,
    written: Option<&WrittenAmount>,
    (lines, tokens): (usize, usize),
    problems: &mut Problems,
) -> Option<Amount> {
    let within = |value: i64, range: std::ops::RangeInclusive<i64>| {
        let within = usize::try_from(value).ok().filter(|_| range.contains(&value));
        within.ok_or_else(|| format!("expected {} to {}", range.start(), range.end()))
    };
    let lines = match written.and_then(|written| written.lines) {
        None => Some(lines),
        Some(value) => problems.keep(&field::key(path, "lines"), within(value, 1..=MOST_LINES)),
    };
    let tokens = match written.and_then(|written| written.tokens) {
        None => Some(tokens),
        Some(value) => problems.keep(&field::key(path, "tokens"), within(value, TOKENS)),
    };
    Some(Amount { lines: lines?, bytes: tokens? * TOKEN })
}
