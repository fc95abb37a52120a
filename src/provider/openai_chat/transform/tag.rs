//! Takes the reasoning between the first two tags out of a text that comes in pieces.

/// An opening and a closing tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::provider::openai_chat) struct Tag {
    pub(in crate::provider::openai_chat) open: &'static str,
    pub(in crate::provider::openai_chat) close: &'static str,
}

/// A part of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::provider::openai_chat) enum Part<'t> {
    Text(&'t str),
    Thinking(&'t str),
}

/// Reads one text. The first text between the tags is thinking; the white space behind the closing tag goes; without a
/// closing tag, all of the rest is thinking. What may be the beginning of a tag waits for the next piece.
#[derive(Debug)]
pub(in crate::provider::openai_chat) struct TagReader {
    tag: Tag,
    place: TagPlace,
    /// What waits: the beginning of a tag.
    waiting: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TagPlace {
    Before,
    Inside,
    /// Behind the closing tag, where white space goes.
    Behind,
    Done,
}

impl TagReader {
    pub(in crate::provider::openai_chat) fn new(tag: Tag) -> Self {
        Self { tag, place: TagPlace::Before, waiting: String::new() }
    }

    /// Whether the pair of tags was read: what follows is text as it is.
    pub(in crate::provider::openai_chat) fn is_done(&self) -> bool {
        self.place == TagPlace::Done
    }

    /// Whether a piece without a `<` is text as it is.
    pub(in crate::provider::openai_chat) fn is_outside(&self) -> bool {
        self.place == TagPlace::Before && self.waiting.is_empty()
    }

    /// Reads the next piece, and gives its parts in their order.
    pub(in crate::provider::openai_chat) fn read<E>(
        &mut self,
        piece: &str,
        give: &mut dyn FnMut(Part<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut text = std::mem::take(&mut self.waiting);
        text.push_str(piece);
        let mut rest = text.as_str();
        while !rest.is_empty() {
            rest = self.step(rest, give)?;
        }
        Ok(())
    }

    /// Reads up to the next tag, or to the end; returns what is left.
    fn step<'t, E>(
        &mut self,
        rest: &'t str,
        give: &mut dyn FnMut(Part<'_>) -> Result<(), E>,
    ) -> Result<&'t str, E> {
        let (tag, is_inside, next) = match self.place {
            TagPlace::Before => (self.tag.open, false, TagPlace::Inside),
            TagPlace::Inside => (self.tag.close, true, TagPlace::Behind),
            TagPlace::Behind => {
                let trimmed = rest.trim_start();
                if !trimmed.is_empty() {
                    self.place = TagPlace::Done;
                }
                return Ok(trimmed);
            }
            TagPlace::Done => {
                give(Part::Text(rest))?;
                return Ok("");
            }
        };
        let (part, left) = match rest.find(tag) {
            Some(at) => {
                self.place = next;
                (&rest[..at], &rest[at + tag.len()..])
            }
            None => {
                let kept = beginning_of(tag, rest);
                rest[rest.len() - kept..].clone_into(&mut self.waiting);
                (&rest[..rest.len() - kept], "")
            }
        };
        if !part.is_empty() {
            give(if is_inside { Part::Thinking(part) } else { Part::Text(part) })?;
        }
        Ok(left)
    }

    /// Gives what waits: no tag follows.
    pub(in crate::provider::openai_chat) fn flush<E>(
        &mut self,
        give: &mut dyn FnMut(Part<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let waiting = std::mem::take(&mut self.waiting);
        match self.place {
            _ if waiting.is_empty() => Ok(()),
            TagPlace::Inside => give(Part::Thinking(&waiting)),
            TagPlace::Before | TagPlace::Behind | TagPlace::Done => give(Part::Text(&waiting)),
        }
    }
}

/// How many bytes at the end of the text are the beginning of the tag, which is ASCII.
fn beginning_of(tag: &str, text: &str) -> usize {
    let most = text.len().min(tag.len() - 1);
    (1..=most).rev().find(|length| text.as_bytes().ends_with(&tag.as_bytes()[..*length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const THINK: Tag = Tag { open: "<think>", close: "</think>" };

    /// What is text and what is thinking of these pieces.
    fn read(pieces: &[&str]) -> (String, String) {
        let (mut text, mut thinking) = (String::new(), String::new());
        let mut reader = TagReader::new(THINK);
        let mut give = |part: Part<'_>| {
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Thinking(part) => thinking.push_str(part),
            }
            Ok::<(), ()>(())
        };
        for piece in pieces {
            reader.read(piece, &mut give).unwrap();
        }
        reader.flush(&mut give).unwrap();
        (text, thinking)
    }

    #[test]
    fn only_the_first_pair_of_tags_is_thinking() {
        let read = |text: &str| read(&[text]);
        assert_eq!(read("x<think>a</think> \n b<think>c</think>"), ("xb<think>c</think>".into(), "a".into()));
        assert_eq!(read("<think>a"), (String::new(), "a".into()));
        assert_eq!(read("<think></think>b"), ("b".into(), String::new()));
        assert_eq!(read("</think>b"), ("</think>b".into(), String::new()));
        assert_eq!(read("a <thin"), ("a <thin".into(), String::new()));
        assert_eq!(read("<think>a</thi"), (String::new(), "a</thi".into()));
        assert_eq!(read("<<think>a<</think>"), ("<".into(), "a<".into()));
    }

    #[test]
    fn pieces_do_not_matter() {
        let text = "é<th<think>aé</th</think> \n é</think> <think>";
        let whole = read(&[text]);
        for (at, _) in text.char_indices() {
            let (front, back) = text.split_at(at);
            assert_eq!(read(&[front, back]), whole);
        }
        let characters: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(read(&characters.iter().map(String::as_str).collect::<Vec<_>>()), whole);
    }
}
