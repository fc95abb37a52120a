//! The ends of texts that follow each other, so that a secret that was divided between two is found.

use std::borrow::Cow;

/// How much of each text is joined, in bytes.
const END: usize = 256;
/// How much of a text as it is written has that much of it: an escape of six bytes may stand for one.
const WRITTEN: usize = 6 * END;
/// The longest escape; a text is not cut behind a backslash that may begin one.
const ESCAPE: usize = 6;

/// The ends of the texts before.
#[derive(Default)]
pub(super) struct Neighbours {
    /// Of the last value, whatever it is.
    value: TextEnd,
    /// Of the last text that somebody said, where that is another one: names stand between these.
    text: Option<TextEnd>,
}

/// The end of a text.
enum TextEnd {
    Read(Vec<u8>),
    /// As JSON writes it, which is read once somebody asks.
    Written(String),
}

impl Default for TextEnd {
    fn default() -> Self {
        Self::Read(Vec::new())
    }
}

impl TextEnd {
    fn read(&mut self) -> &[u8] {
        if let Self::Written(raw) = self {
            let text = unescaped(raw).map(end_of);
            *self = Self::Read(text.map(|text| text.as_bytes().to_vec()).unwrap_or_default());
        }
        match self {
            Self::Read(end) => end,
            Self::Written(_) => &[],
        }
    }
}

/// The ends of one text, in front of the first secret that was found in it and behind the last one: those are told by
/// themselves, and are no part of another.
pub(super) struct Ends<'t> {
    pub(super) begin: Cow<'t, str>,
    pub(super) end: Cow<'t, str>,
}

impl<'t> Ends<'t> {
    /// Of a text, without its escapes, in which secrets stand up to there and from there on.
    pub(super) fn of(text: &'t str, (first, last): (usize, usize)) -> Self {
        let begin = text.get(..text.floor_char_boundary(first.min(END))).unwrap_or_default();
        let from = text.ceil_char_boundary(last.max(text.len().saturating_sub(END)));
        Self { begin: begin.into(), end: text.get(from..).unwrap_or_default().into() }
    }

    /// Of a text as JSON writes it, which is not read whole; none where it has to be.
    pub(super) fn written(raw: &'t str) -> Option<Self> {
        if raw.len() <= WRITTEN {
            return None;
        }
        let (head, tail) =
            (raw.get(..cut(raw, WRITTEN - ESCAPE)?)?, raw.get(cut(raw, raw.len() - WRITTEN)?..)?);
        let (begin, end) = (unescaped(head)?, unescaped(tail)?);
        let (begin, end) = (begin_of(begin), end_of(end));
        Some(Self { begin, end })
    }
}

fn begin_of(text: Cow<'_, str>) -> Cow<'_, str> {
    let until = text.floor_char_boundary(END);
    match text {
        Cow::Borrowed(text) => text.get(..until).unwrap_or_default().into(),
        Cow::Owned(text) => text.get(..until).unwrap_or_default().to_owned().into(),
    }
}

fn end_of(text: Cow<'_, str>) -> Cow<'_, str> {
    let from = text.ceil_char_boundary(text.len().saturating_sub(END));
    match text {
        Cow::Borrowed(text) => text.get(from..).unwrap_or_default().into(),
        Cow::Owned(text) => text.get(from..).unwrap_or_default().to_owned().into(),
    }
}

/// A place from there on at which no escape is cut.
fn cut(raw: &str, from: usize) -> Option<usize> {
    let is_free = |at: &usize| {
        raw.is_char_boundary(*at)
            && raw
                .as_bytes()
                .get(at.saturating_sub(ESCAPE)..*at)
                .is_some_and(|before| !before.contains(&b'\\'))
    };
    (from..raw.len().min(from + ESCAPE * ESCAPE)).find(is_free)
}

fn unescaped(raw: &str) -> Option<Cow<'_, str>> {
    if !raw.contains('\\') {
        return Some(raw.into());
    }
    serde_json::from_str::<String>(&format!("\"{raw}\"")).ok().map(Cow::Owned)
}

impl Neighbours {
    /// The seams between the texts before and this one: what stands in front, and behind.
    pub(super) fn seams<'a>(
        &'a mut self,
        ends: &'a Ends<'_>,
        is_said: bool,
    ) -> impl Iterator<Item = [&'a [u8]; 2]> {
        let [value, text] = self.ends();
        let text = (is_said && text != value).then_some(text);
        let before = std::iter::once(value).chain(text);
        before
            .map(|before| [before, ends.begin.as_bytes()])
            .filter(|seam| seam.iter().all(|side| !side.is_empty()))
    }

    /// The ends of the last value, and of the last text that somebody said.
    pub(super) fn ends(&mut self) -> [&[u8]; 2] {
        let Self { value, text } = self;
        let value = value.read();
        [value, text.as_mut().map_or(value, TextEnd::read)]
    }

    /// Takes a text over as the one before.
    pub(super) fn add(&mut self, ends: &Ends<'_>, is_said: bool) {
        self.put(TextEnd::Read(ends.end.as_bytes().to_vec()), is_said);
    }

    /// The same of a text as JSON writes it, of which nobody may ask. `false`: it has to be read.
    pub(super) fn add_written(&mut self, raw: &str, is_said: bool) -> bool {
        let from = if raw.len() <= WRITTEN { Some(0) } else { cut(raw, raw.len() - WRITTEN) };
        let Some(end) = from.and_then(|from| raw.get(from..)) else { return false };
        self.put(TextEnd::Written(end.to_owned()), is_said);
        true
    }

    fn put(&mut self, end: TextEnd, is_said: bool) {
        let before = std::mem::replace(&mut self.value, end);
        self.text = if is_said { None } else { Some(self.text.take().unwrap_or(before)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_a_written_text_are_those_of_the_text() {
        for pattern in ["plain words ", r"a\nb\t", r#"\u00e4\\x\""#, "ä€\u{1f600} ", r"\ud83d\ude00 x"] {
            let raw = pattern.repeat(600);
            let text: String = serde_json::from_str(&format!("\"{raw}\"")).unwrap();
            let (written, whole) = (Ends::written(&raw), Ends::of(&text, (text.len(), 0)));
            let Some(written) = written else { continue };
            assert!(
                whole.begin.starts_with(&*written.begin) || written.begin.starts_with(&*whole.begin),
                "{pattern}"
            );
            assert!(whole.end.ends_with(&*written.end) || written.end.ends_with(&*whole.end), "{pattern}");
            assert!(written.begin.len() > END / 2 && written.end.len() > END / 2, "{pattern}");
        }
        assert!(Ends::written("short").is_none());
    }
}
