//! The edits of a request that goes to another server in the agent's own dialect: every other byte stays.

use crate::call::turn::Notes;
use crate::call::turn::prompt::Unsayable;
use crate::wire::json::{Document, EditError, Edits, Kind, KnownParts, Limits, Value};

/// What policy says about the model that is asked instead.
#[derive(Debug, Clone, Copy, Default)]
pub struct MovedTerms<'a> {
    /// The model as its server calls it; none leaves it as asked.
    pub model: Option<&'a str>,
    /// The most tokens of an answer.
    pub max_tokens: Option<u64>,
    /// A JSON object whose members are put where the body has no such key; empty for none.
    pub params: &'a str,
}

/// A body as it is sent.
#[derive(Debug)]
pub struct MovedBody {
    /// None where nothing is edited: the agent's bytes are sent.
    pub body: Option<Vec<u8>>,
    /// What is known of the body that is sent.
    pub known: KnownParts,
    /// What was cut out or lowered, in stable words.
    pub notes: Notes,
}

/// Edits in progress.
pub(in crate::provider) struct Moving<'d> {
    pub edits: Edits<'d>,
    pub root: Value<'d>,
    pub notes: Notes,
    /// Whether the body names another model than the agent's.
    pub has_other_model: bool,
}

impl<'d> Moving<'d> {
    /// Makes the edits that every dialect has: the model and the parameters.
    pub(in crate::provider) fn new(
        document: &'d Document<'d>,
        terms: &MovedTerms<'_>,
    ) -> Result<Self, Unsayable> {
        let root = document.root();
        if root.kind() != Kind::Object || document.first_duplicate().is_some() {
            return Err(Unsayable::new("the body is no object, or has a key twice"));
        }
        let edits = Edits::new(document);
        let mut moving = Self { edits, root, notes: Notes::default(), has_other_model: false };
        if let Some(model) = terms.model {
            moving.rename(model)?;
        }
        moving.put(terms.params)?;
        Ok(moving)
    }

    fn rename(&mut self, model: &str) -> Result<(), Unsayable> {
        let json = serde_json::Value::from(model).to_string();
        match self.member("model") {
            Some(asked) if asked.says(model) => Ok(()),
            Some(asked) => {
                self.has_other_model = true;
                self.edits.replace(asked, json).map_err(unsayable)
            }
            None => {
                self.has_other_model = true;
                self.edits.insert(self.root, "model", &json).map_err(unsayable)
            }
        }
    }

    fn put(&mut self, params: &str) -> Result<(), Unsayable> {
        let Some(document) = read_params(params)? else { return Ok(()) };
        for entry in document.root().entries().into_iter().flatten() {
            let key = entry.key.text().unwrap_or_default();
            match self.edits.insert(self.root, &key, entry.value.raw()) {
                Ok(()) | Err(EditError::Exists) => {}
                Err(error) => return Err(unsayable(error)),
            }
        }
        Ok(())
    }

    /// Lowers a number of the body to what policy allows.
    pub(in crate::provider) fn cap(&mut self, key: &str, most: Option<u64>) -> Result<(), Unsayable> {
        let Some((value, most)) = self.member(key).zip(most) else { return Ok(()) };
        if value.number_text().is_some_and(|number| exceeds(number, most)) {
            self.notes.add("max_tokens");
            self.edits.replace(value, most.to_string()).map_err(unsayable)?;
        }
        Ok(())
    }

    /// A member of the body, `null` too.
    pub(in crate::provider) fn member(&self, key: &str) -> Option<Value<'d>> {
        self.root.get(key).ok().flatten()
    }

    pub(in crate::provider) fn finish(self) -> MovedBody {
        let body = (!self.edits.is_empty()).then(|| self.edits.apply());
        let known = body.as_ref().map(|body| self.edits.known(body)).unwrap_or_default();
        MovedBody { body, known, notes: self.notes }
    }
}

/// The parameters of a model, a JSON object; none of an empty text.
pub(in crate::provider) fn read_params(params: &str) -> Result<Option<Document<'_>>, Unsayable> {
    const WRONG: Unsayable = Unsayable::new("params is no JSON object");
    if params.is_empty() {
        return Ok(None);
    }
    let limits = Limits { depth: 32, nodes: 4096 };
    let document = Document::parse(params.as_bytes(), limits).map_err(|_| WRONG)?;
    let is_clear = document.root().kind() == Kind::Object && document.first_duplicate().is_none();
    if is_clear { Ok(Some(document)) } else { Err(WRONG) }
}

/// An edit that cannot be made. What was read has no key twice, so none is expected.
pub(in crate::provider) fn unsayable(_: EditError) -> Unsayable {
    Unsayable::new("the body cannot be edited")
}

/// Whether a JSON number is larger than this.
pub(in crate::provider) fn exceeds(number: &str, most: u64) -> bool {
    // A whole number may be too large for its type, and `1e9` is none; as a float both are near enough.
    number.parse::<u64>().map_or_else(
        |_| number.parse::<f64>().is_ok_and(|number| number > most as f64),
        |number| number > most,
    )
}
