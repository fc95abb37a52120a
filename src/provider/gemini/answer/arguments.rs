//! Arguments of a call that stream in pieces, each with the place at which it belongs (RFC 9535 paths), put together.
//!
//! Vertex AI sends them so where a request asks for `streamFunctionCallArguments`:
//! <https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling>

use serde_json::{Map, Value as Tree};

use super::chunk::{self, unclear};
use crate::provider::answer::BrokenAnswer;
use crate::provider::gemini::fields::MessageFields;
use crate::wire::json::Value;

/// How deep arguments may nest.
const DEPTH: usize = 64;

/// The arguments of one call, as far as they have come.
#[derive(Debug)]
pub(super) struct Arguments {
    tree: Tree,
    /// The path of the string that goes on.
    open: Option<String>,
    /// At least as many bytes as the tree has as JSON, or fewer.
    bytes: usize,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PathStep {
    Key(String),
    Index(usize),
}

impl Arguments {
    pub(super) fn new() -> Self {
        Self { tree: Tree::Object(Map::new()), open: None, bytes: 2 }
    }

    /// Takes the next pieces: a list of `PartialArg`.
    ///
    /// # Errors
    /// If a piece does not follow from those before it.
    pub(super) fn take(&mut self, pieces: Value<'_>) -> Result<(), BrokenAnswer> {
        let pieces = pieces.items().ok_or_else(|| unclear("partial arguments are no list"))?;
        pieces.into_iter().try_for_each(|piece| self.piece(&chunk::fields(piece)?))
    }

    /// A lower bound of the bytes that they have as JSON.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// The arguments as JSON.
    pub(super) fn json(&self) -> String {
        self.tree.to_string()
    }

    fn piece(&mut self, piece: &MessageFields<'_>) -> Result<(), BrokenAnswer> {
        let path = piece.text("jsonPath").ok_or_else(|| unclear("a partial argument has no path"))?;
        let continues = self.open.as_deref() == Some(&*path);
        let goes_on = piece.is_on("willContinue");
        let value = scalar(piece)?;
        let place = place(&mut self.tree, &steps(&path)?, &mut self.bytes)?;
        match (place, value) {
            (Tree::String(begun), Tree::String(more)) if continues => {
                self.bytes += more.len();
                begun.push_str(&more);
            }
            (empty @ Tree::Null, value) if !continues => {
                self.bytes += value.as_str().map_or(1, str::len);
                *empty = value;
            }
            _ => return Err(unclear("a partial argument comes again")),
        }
        self.open = goes_on.then(|| path.into_owned());
        Ok(())
    }
}

/// The value of a piece. `null` is told as a word.
fn scalar(piece: &MessageFields<'_>) -> Result<Tree, BrokenAnswer> {
    let names = ["stringValue", "numberValue", "boolValue", "nullValue"];
    let mut values = names.iter().filter_map(|name| Some((*name, piece.at(name)?)));
    let (Some((name, value)), None) = (values.next(), values.next()) else {
        return Err(unclear("a partial argument has not one value"));
    };
    let read = match name {
        "stringValue" => value.text().map(|text| Tree::String(text.into_owned())),
        "numberValue" => value.number_text().and_then(|number| serde_json::from_str(number).ok()),
        "boolValue" => value.as_bool().map(Tree::Bool),
        _ => Some(Tree::Null),
    };
    read.ok_or_else(|| unclear("a partial argument's value is of another type than it says"))
}

/// The place of a path in the tree, made where it is missing, by so many bytes. Lists grow by one item at a time.
fn place<'t>(
    tree: &'t mut Tree,
    steps: &[PathStep],
    bytes: &mut usize,
) -> Result<&'t mut Tree, BrokenAnswer> {
    steps.iter().try_fold(tree, |tree, step| {
        if tree.is_null() {
            *tree = match step {
                PathStep::Key(_) => Tree::Object(Map::new()),
                PathStep::Index(_) => Tree::Array(Vec::new()),
            };
        }
        match (tree, step) {
            (Tree::Object(entries), PathStep::Key(key)) => Ok(entries.entry(key).or_insert_with(|| {
                *bytes += key.len() + 3;
                Tree::Null
            })),
            (Tree::Array(items), PathStep::Index(index)) if *index <= items.len() => {
                if *index == items.len() {
                    *bytes += 1;
                    items.push(Tree::Null);
                }
                items.get_mut(*index).ok_or_else(|| unclear("a partial argument has no place"))
            }
            _ => Err(unclear("a partial argument has no place")),
        }
    })
}

/// The steps of a path: `$.name`, `['name']` and `[0]`.
fn steps(path: &str) -> Result<Vec<PathStep>, BrokenAnswer> {
    let bad = || unclear("a partial argument's path is not known to be one");
    let mut rest = path.strip_prefix('$').ok_or_else(bad)?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let (step, after) = step(rest).ok_or_else(bad)?;
        steps.push(step);
        rest = after;
    }
    if steps.is_empty() || steps.len() > DEPTH {
        return Err(bad());
    }
    Ok(steps)
}

fn step(rest: &str) -> Option<(PathStep, &str)> {
    if let Some(name) = rest.strip_prefix('.') {
        let end = name.find(['.', '[']).unwrap_or(name.len());
        let (name, after) = name.split_at(end);
        return (!name.is_empty()).then(|| (PathStep::Key(name.to_owned()), after));
    }
    let inner = rest.strip_prefix('[')?;
    for quote in ['\'', '"'] {
        if let Some(name) = inner.strip_prefix(quote) {
            let (name, after) = name.split_once(quote)?;
            let is_plain = !name.is_empty() && !name.contains('\\');
            return is_plain.then_some((PathStep::Key(name.to_owned()), after.strip_prefix(']')?));
        }
    }
    let (index, after) = inner.split_once(']')?;
    Some((PathStep::Index(index.parse().ok()?), after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::json::{Document, Limits};

    fn together(pieces: &str) -> Result<String, BrokenAnswer> {
        let document = Document::parse(pieces.as_bytes(), Limits::default()).unwrap();
        let mut arguments = Arguments::new();
        arguments.take(document.root())?;
        assert!(arguments.len() <= arguments.json().len());
        Ok(arguments.json())
    }

    #[test]
    fn pieces_are_put_together_by_their_paths() {
        let table = [
            ("[]", "{}"),
            (
                r#"[{"jsonPath":"$.a","stringValue":"x","willContinue":true},{"jsonPath":"$.a","stringValue":"y"}]"#,
                r#"{"a":"xy"}"#,
            ),
            (
                r#"[{"json_path":"$.l[0].n","numberValue":0.3},{"jsonPath":"$.l[0].b","bool_value":true},
                {"jsonPath":"$.l[1]['a.b']","nullValue":"NULL_VALUE"}]"#,
                r#"{"l":[{"n":0.3,"b":true},{"a.b":null}]}"#,
            ),
        ];
        for (pieces, whole) in table {
            assert_eq!(together(pieces).unwrap(), whole);
        }
    }

    #[test]
    fn a_piece_that_does_not_follow_is_refused() {
        let table = [
            "{}",
            r#"[{"stringValue":"x"}]"#,
            r#"[{"jsonPath":"$.a"}]"#,
            r#"[{"jsonPath":"$.a","stringValue":"x","numberValue":1}]"#,
            r#"[{"jsonPath":"$.a","stringValue":1}]"#,
            r#"[{"jsonPath":"$.a","stringValue":"x"},{"jsonPath":"$.a","stringValue":"y"}]"#,
            r#"[{"jsonPath":"$.a","stringValue":"x"},{"jsonPath":"$.a.b","stringValue":"y"}]"#,
            r#"[{"jsonPath":"$.a[1000000000]","stringValue":"x"}]"#,
            r#"[{"jsonPath":"$","stringValue":"x"}]"#,
            r#"[{"jsonPath":"$..a","stringValue":"x"}]"#,
            r#"[{"jsonPath":"$.a[*]","stringValue":"x"}]"#,
            r#"[{"jsonPath":"a","stringValue":"x"}]"#,
        ];
        for pieces in table {
            assert!(together(pieces).is_err_and(|broken| !broken.forgivable), "{pieces}");
        }
        let deep = format!(r#"[{{"jsonPath":"${}","numberValue":1}}]"#, ".a".repeat(DEPTH + 1));
        assert!(together(&deep).is_err());
    }
}
