//! Here-documents: the lines behind a command that `<<` gives it.

use super::place::Place;
use super::reader::Reader;
use super::state::{RawRedirection, State, Step, Stop};
use super::word::{MarkKind, RawWord};
use super::{Word, WordForm};

/// A here-document whose text begins behind the next line break.
#[derive(Debug)]
pub(super) struct PendingDocument {
    number: usize,
    delimiter: String,
    /// `<<-`
    strips_tabs: bool,
    is_quoted: bool,
    /// Where the commands in it run.
    place: Place,
}

impl Reader<'_, '_> {
    /// What stands behind `<<` and `<<-`.
    pub(super) fn document(&mut self) -> Step<RawRedirection> {
        let strips_tabs = self.eat(b'-');
        self.skip_blanks();
        let word = self.word(false)?.ok_or(Stop)?;
        if word.marks.iter().any(|mark| mark.kind == MarkKind::Computed || mark.kind == MarkKind::Separator) {
            return Err(Stop);
        }
        self.state.count_word()?;
        let number = self.state.documents.len();
        self.state.documents.push(None);
        let is_quoted = word.quoted.is_some();
        let place = self.state.place.clone();
        self.pending.push(PendingDocument { number, delimiter: word.text, strips_tabs, is_quoted, place });
        Ok(RawRedirection::Document(number))
    }

    /// Reads the texts of here-documents, from behind the line break.
    pub(super) fn read_documents(&mut self) -> Step<()> {
        for document in std::mem::take(&mut self.pending) {
            let text = self.lines(&document);
            let place = std::mem::replace(&mut self.state.place, document.place);
            let word = if document.is_quoted { quoted(text) } else { expanded(text, self.state)? };
            self.state.place = place;
            self.state.run_document(document.number, &word)?;
            if let Some(place) = self.state.documents.get_mut(document.number) {
                *place = Some(word);
            }
        }
        Ok(())
    }

    /// The lines up to the one that ends a here-document, and over that.
    fn lines(&mut self, document: &PendingDocument) -> String {
        let mut text = String::new();
        // The last line goes on in the next.
        let mut continues = false;
        while !self.rest().is_empty() {
            let rest = self.rest();
            let line = rest.split_inclusive('\n').next().unwrap_or_default();
            self.at += line.len();
            let stripped = if document.strips_tabs { line.trim_start_matches('\t') } else { line };
            let bare = stripped.strip_suffix('\n').unwrap_or(stripped);
            if bare == document.delimiter {
                if !continues {
                    return text;
                }
                self.state.is_opaque = true;
            }
            let slashes = bare.bytes().rev().take_while(|byte| *byte == b'\\').count();
            continues = !document.is_quoted && slashes % 2 == 1;
            // A line that is the end only with the next one joined to it.
            let joined = bare.strip_suffix('\\').unwrap_or(bare);
            let begins_end = !joined.is_empty() && document.delimiter.starts_with(joined);
            self.state.is_opaque |= continues && begins_end;
            text.push_str(stripped);
        }
        // Without end.
        self.state.is_opaque = true;
        text
    }

    /// Goes on with the here-documents that were pending before a substitution.
    pub(super) fn resume_documents(&mut self, outer: Vec<PendingDocument>, start: usize) -> Step<()> {
        if !self.pending.is_empty() {
            return Err(Stop);
        }
        // Shells do not agree behind which line break they begin.
        if !outer.is_empty() && self.from(start).contains('\n') {
            self.state.is_opaque = true;
        }
        self.pending = outer;
        Ok(())
    }
}

fn quoted(text: String) -> Word {
    Word { text, form: WordForm::Literal }
}

/// The text of a here-document in which expansions are made.
fn expanded(text: String, state: &mut State) -> Step<Word> {
    if !text.contains(['\\', '$', '`']) {
        return Ok(quoted(text));
    }
    state.charge(text.len())?;
    let mut reader = Reader::new(&text, true, state);
    let mut word = RawWord::default();
    while let Some(byte) = reader.raw() {
        match byte {
            b'\\' => reader.escape_in_quotes(&mut word, b"\\$`")?,
            b'$' => reader.dollar(&mut word, true)?,
            b'`' => reader.backquotes(&mut word, true)?,
            _ => {
                let rest = reader.rest();
                let plain = rest.find(['\\', '$', '`']).unwrap_or(rest.len());
                word.text.push_str(rest.get(..plain).unwrap_or_default());
                reader.at += plain;
            }
        }
    }
    state.evaluation.has_hidden_code |= word.is_computed() && word.hides_code();
    let form = if word.marks.is_empty() { WordForm::Literal } else { WordForm::Computed };
    Ok(Word { text: word.text, form })
}
