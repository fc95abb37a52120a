//! Copies of a call's input: a stream sends it in pieces, then whole, then with the item, then with the response.
//! Clients read different ones, so they must be the same. What came is kept as a digest alone.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{Context, SHA256, digest};

use super::called::CalledItem;
use crate::provider::answer::BrokenAnswer;
use crate::wire::json::{Kind, Value};

/// SHA-256.
type Digest = [u8; 32];

/// The most entries of an object, and commands of a call, that are compared.
const MOST: usize = 1024;

/// What the events of a call said before it was complete.
#[derive(Default)]
pub(super) struct Copies {
    text: CopiedText,
    commands: BTreeMap<u64, CopiedText>,
    /// Entries of the input with which the call began, where that is an object, and their digests.
    entries: Vec<(String, Digest)>,
}

/// A text that comes in pieces.
#[derive(Default)]
struct CopiedText {
    /// The digest of the text at the start.
    seed: Option<Digest>,
    /// The digest of the start and the pieces together.
    seeded: Option<Context>,
    pieces: Option<Context>,
    whole: Option<Digest>,
}

impl Copies {
    /// Remembers the input that the item had when it began.
    ///
    /// # Errors
    /// If it has more commands than are compared.
    pub(super) fn begun(called: &CalledItem<'_>) -> Result<Self, BrokenAnswer> {
        let mut copies = Self::default();
        let entries = called.entries()?.into_iter().filter(|(_, value)| !is_empty(*value));
        copies.entries = entries.map(|(key, value)| (key, sha256(value.raw()))).collect();
        if copies.entries.len() > MOST {
            return Err(BrokenAnswer::bound(format!("a tool call begins with more than {MOST} entries")));
        }
        if let Some(seed) = called.streamed()?.filter(|seed| !seed.is_empty()) {
            copies.text.seed = Some(sha256(&seed));
            copies.text.seeded = Some(of(&seed));
            // A patch is compared as the text that it is.
            copies.entries.retain(|(key, _)| key != ".diff");
        }
        Ok(copies)
    }

    /// Whether the call began with a part of its input.
    pub(super) fn is_seeded(&self) -> bool {
        self.text.seed.is_some()
    }

    /// The next piece of the input, or of the command of this index.
    ///
    /// # Errors
    /// If there are more commands than are compared.
    pub(super) fn piece(&mut self, command: Option<u64>, piece: &str) -> Result<(), BrokenAnswer> {
        let text = self.of(command)?;
        text.pieces.get_or_insert_with(|| Context::new(&SHA256)).update(piece.as_bytes());
        if let Some(seeded) = &mut text.seeded {
            seeded.update(piece.as_bytes());
        }
        Ok(())
    }

    /// All of it, as an event of its own says it at its end.
    ///
    /// # Errors
    /// If it was said already and otherwise, or there are more commands than are compared.
    pub(super) fn whole(&mut self, command: Option<u64>, whole: &str) -> Result<(), BrokenAnswer> {
        let digest = sha256(whole);
        match self.of(command)?.whole.replace(digest) {
            Some(before) if before != digest => Err(disagree()),
            _ => Ok(()),
        }
    }

    /// Compares all that came with the complete item.
    ///
    /// # Errors
    /// If they disagree.
    pub(super) fn check(&self, called: &CalledItem<'_>) -> Result<(), BrokenAnswer> {
        let now: BTreeMap<String, Digest> = match self.entries[..] {
            [] => BTreeMap::new(),
            [_, ..] => {
                let entries = called.entries()?.into_iter();
                entries.map(|(key, value)| (key, sha256(value.raw()))).collect()
            }
        };
        if self.entries.iter().any(|(key, before)| now.get(key) != Some(before)) {
            return Err(disagree());
        }
        for (index, command) in &self.commands {
            if !called.command(*index)?.is_some_and(|text| command.is(&text)) {
                return Err(disagree());
            }
        }
        let streamed = called.streamed()?;
        if !self.text.is(streamed.as_deref().unwrap_or_default()) {
            return Err(disagree());
        }
        Ok(())
    }

    fn of(&mut self, command: Option<u64>) -> Result<&mut CopiedText, BrokenAnswer> {
        let Some(index) = command else { return Ok(&mut self.text) };
        if self.commands.len() >= MOST && !self.commands.contains_key(&index) {
            return Err(BrokenAnswer::bound(format!("a tool call has more than {MOST} commands")));
        }
        Ok(self.commands.entry(index).or_default())
    }
}

impl CopiedText {
    /// Whether every copy that came is this.
    fn is(&self, text: &str) -> bool {
        let digest = sha256(text);
        let is_it = |context: &Option<Context>| context.clone().map(finished) == Some(digest);
        let pieces = match (self.seed, &self.pieces) {
            (None, None) => true,
            (None, Some(_)) => is_it(&self.pieces),
            (Some(seed), None) => seed == digest,
            // The pieces continue the start; some servers begin with the whole text and send it in pieces again.
            (Some(seed), Some(_)) => is_it(&self.seeded) || (seed == digest && is_it(&self.pieces)),
        };
        pieces && self.whole.is_none_or(|whole| whole == digest)
    }
}

/// Whether a value only keeps a place.
fn is_empty(value: Value<'_>) -> bool {
    match value.kind() {
        Kind::Null => true,
        Kind::String => value.says(""),
        Kind::Array => value.items().is_some_and(|mut items| items.next().is_none()),
        Kind::Object => value.entries().is_some_and(|mut entries| entries.next().is_none()),
        Kind::Bool | Kind::Number => false,
    }
}

fn disagree() -> BrokenAnswer {
    BrokenAnswer::ambiguous("copies of a tool call disagree")
}

fn of(text: &str) -> Context {
    let mut context = Context::new(&SHA256);
    context.update(text.as_bytes());
    context
}

fn finished(context: Context) -> Digest {
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

/// The digest of a text.
pub(super) fn sha256(text: &str) -> Digest {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    bytes
}
