//! Brace lists `{a,b}` and `{1..3}`, and words that `$IFS` takes apart.

use super::state::{State, Step, Stop};
use super::word::{Mark, MarkKind, RawWord};
use super::{Word, WordForm};

/// The most members of a list.
const MOST_MEMBERS: usize = 1024;

/// The most signs and expansions of a word that has lists.
const MOST_MARKS: usize = 2 * MOST_MEMBERS;

/// A list in a word: from its `{` to its `}`, with the commas between.
struct BraceList {
    open: usize,
    commas: Vec<usize>,
    close: usize,
}

/// Adds the words that a word with brace lists or separators stands for.
pub(super) fn expand(raw: RawWord, state: &mut State, words: &mut Vec<Word>) -> Step<()> {
    bound(raw.marks.len(), MOST_MARKS, state)?;
    let is_quoted = raw.quoted.is_some();
    let mut waiting = vec![raw];
    while let Some(raw) = waiting.pop() {
        state.charge(raw.text.len() + raw.marks.len() + 1)?;
        let Some(list) = first_list(&raw) else {
            split(&raw, is_quoted, state, words)?;
            continue;
        };
        let members = members(&raw, &list, state)?;
        let suffix = part(&raw, list.close + 1, raw.text.len());
        for member in members.into_iter().rev() {
            let mut one = part(&raw, 0, list.open);
            append(&mut one, &member);
            append(&mut one, &suffix);
            state.charge(one.text.len() + one.marks.len() + 1)?;
            waiting.push(one);
        }
    }
    Ok(())
}

/// The list that begins first.
fn first_list(raw: &RawWord) -> Option<BraceList> {
    let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut first: Option<BraceList> = None;
    for mark in &raw.marks {
        match mark.kind {
            MarkKind::Open => open.push((mark.at, Vec::new())),
            MarkKind::Comma => {
                open.iter_mut().next_back().into_iter().for_each(|(_, commas)| commas.push(mark.at))
            }
            MarkKind::Close => {
                let Some((at, commas)) = open.pop() else { continue };
                let list = BraceList { open: at, commas, close: mark.at };
                let is_list = !list.commas.is_empty() || sequence(raw, &list).is_some();
                if is_list && first.as_ref().is_none_or(|first| first.open > at) {
                    first = Some(list);
                }
            }
            MarkKind::Computed | MarkKind::Glob | MarkKind::Separator => {}
        }
    }
    first
}

fn members(raw: &RawWord, list: &BraceList, state: &mut State) -> Step<Vec<RawWord>> {
    if let Some((first, last, step, width)) = sequence(raw, list) {
        let Bound::Number(first) = first else { return Ok(letters(first, last, step)) };
        let Bound::Number(last) = last else { return Err(Stop) };
        let step = step.unsigned_abs().max(1);
        let count = first.abs_diff(last) / step + 1;
        bound(usize::try_from(count).unwrap_or(usize::MAX), MOST_MEMBERS, state)?;
        let number = |turn: u64| {
            let distance = i64::try_from(turn * step).unwrap_or_default();
            let number = if last < first { first - distance } else { first + distance };
            RawWord { text: format!("{number:0width$}"), ..RawWord::default() }
        };
        return Ok((0..count).map(number).collect());
    }
    bound(list.commas.len() + 1, MOST_MEMBERS, state)?;
    let starts = std::iter::once(list.open).chain(list.commas.iter().copied());
    let ends = list.commas.iter().copied().chain([list.close]);
    Ok(starts.zip(ends).map(|(start, end)| part(raw, start + 1, end)).collect())
}

fn bound(count: usize, most: usize, state: &mut State) -> Step<()> {
    state.is_opaque |= count > most;
    if count > most { Err(Stop) } else { Ok(()) }
}

#[derive(Clone, Copy)]
enum Bound {
    Number(i64),
    Letter(u8),
}

/// `{first..last}`, `{first..last..step}` and the width of numbers with zeros in front.
fn sequence(raw: &RawWord, list: &BraceList) -> Option<(Bound, Bound, i64, usize)> {
    let is_plain = list.commas.is_empty() && marks(raw, list.open + 1, list.close).is_empty();
    let text = raw.text.get(list.open + 1..list.close).filter(|_| is_plain)?;
    let mut parts = text.split("..");
    let (first, last, step) = (parts.next()?, parts.next()?, parts.next());
    let step = step.map_or(Some(1), number)?;
    if parts.next().is_some() {
        return None;
    }
    let has_zeros =
        |text: &str| text.trim_start_matches('-').len() > 1 && text.trim_start_matches('-').starts_with('0');
    let width = if has_zeros(first) || has_zeros(last) { first.len().max(last.len()) } else { 0 };
    match (number(first), number(last), first.as_bytes(), last.as_bytes()) {
        (Some(first), Some(last), ..) => Some((Bound::Number(first), Bound::Number(last), step, width)),
        (None, None, [first], [last]) if first.is_ascii_alphabetic() && last.is_ascii_alphabetic() => {
            Some((Bound::Letter(*first), Bound::Letter(*last), step, 0))
        }
        _ => None,
    }
}

fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|_| text.len() < 16)
}

fn letters(first: Bound, last: Bound, step: i64) -> Vec<RawWord> {
    let (Bound::Letter(first), Bound::Letter(last)) = (first, last) else { return Vec::new() };
    let step = usize::try_from(step.unsigned_abs().clamp(1, 255)).unwrap_or(1);
    let mut all: Vec<u8> = (first.min(last)..=first.max(last)).collect();
    if last < first {
        all.reverse();
    }
    let word = |byte: u8| RawWord { text: char::from(byte).to_string(), ..RawWord::default() };
    all.into_iter().step_by(step).map(word).collect()
}

/// A part of a word, with its marks.
fn part(raw: &RawWord, start: usize, end: usize) -> RawWord {
    let moved = |mark: &Mark| Mark { at: mark.at - start, ..*mark };
    RawWord {
        text: raw.text.get(start..end).unwrap_or_default().to_owned(),
        marks: marks(raw, start, end).iter().map(moved).collect(),
        ..RawWord::default()
    }
}

/// The marks of a part, which are in order.
fn marks(raw: &RawWord, start: usize, end: usize) -> &[Mark] {
    let before = |at| raw.marks.partition_point(|mark| mark.at < at);
    raw.marks.get(before(start)..before(end)).unwrap_or_default()
}

fn append(raw: &mut RawWord, other: &RawWord) {
    let start = raw.text.len();
    raw.text.push_str(&other.text);
    raw.marks.extend(other.marks.iter().map(|mark| Mark { at: mark.at + start, ..*mark }));
}

/// Adds the words between separators, each of which is one byte of the text.
fn split(raw: &RawWord, is_quoted: bool, state: &mut State, words: &mut Vec<Word>) -> Step<()> {
    let separators = raw.marks.iter().filter(|mark| mark.kind == MarkKind::Separator).map(|mark| mark.at);
    let (mut start, mut marks) = (0, raw.marks.iter().peekable());
    for end in separators.chain([raw.text.len()]) {
        let (mut is_computed, mut is_pattern) = (false, false);
        while let Some(mark) = marks.next_if(|mark| mark.at <= end) {
            is_computed |= mark.kind == MarkKind::Computed;
            is_pattern |= mark.kind == MarkKind::Glob;
        }
        let text = raw.text.get(start..end).unwrap_or_default();
        // A home that stands in a list is found behind it.
        is_pattern |= text.starts_with('~');
        is_computed |= is_quoted && text.starts_with('~');
        if !text.is_empty() || (is_quoted && end - start == raw.text.len()) {
            state.count_word()?;
            words.push(Word { text: text.to_owned(), form: form(is_computed, is_pattern) });
        }
        start = end + 1;
    }
    Ok(())
}

fn form(is_computed: bool, is_pattern: bool) -> WordForm {
    match (is_computed, is_pattern) {
        (true, _) => WordForm::Computed,
        (false, true) => WordForm::Pattern,
        (false, false) => WordForm::Literal,
    }
}
