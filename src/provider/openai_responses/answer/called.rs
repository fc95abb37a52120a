//! Output items that are calls: who runs each, what it is judged by, and what later copies of it must agree with.

use std::borrow::Cow;

use crate::provider::answer::member::{get, present};
use crate::provider::answer::{BrokenAnswer, CallHead, InputForm};
use crate::wire::json::{Kind, Value};

/// An output item, as far as it is a call.
pub(super) struct CalledItem<'d> {
    /// The item's type.
    pub(super) kind: Cow<'d, str>,
    pub(super) id: Option<Cow<'d, str>>,
    /// By which its output is known.
    pub(super) call_id: Option<Cow<'d, str>>,
    pub(super) name: Cow<'d, str>,
    pub(super) namespace: Option<Cow<'d, str>>,
    pub(super) form: InputForm,
    /// None where the item has none, as one may that has just begun.
    pub(super) input: Option<Cow<'d, str>>,
    /// The object that is the input, where it is one and no text that holds one.
    pub(super) object: Option<Value<'d>>,
    /// The entries of the item that are the input together, where it is made of several.
    pub(super) parts: Vec<(&'static str, Value<'d>)>,
    /// Whether it has run at the provider.
    pub(super) is_hosted: bool,
}

/// The role of an output item.
pub(super) enum ItemRole<'d> {
    Call(CalledItem<'d>),
    /// The output of a call that ran at the provider, by the id of the call.
    Output(Option<Cow<'d, str>>),
    /// No call.
    Plain,
}

/// Where an item of this type has its name and its input, and who runs it.
struct CallShape {
    kind: &'static str,
    name: NameSource,
    namespace: &'static str,
    form: InputForm,
    input: InputSource,
    by: Runner,
}

enum NameSource {
    Key,
    Is(&'static str),
}

enum InputSource {
    Key(&'static str),
    /// An object of these entries, as far as the item has them.
    Of(&'static [&'static str]),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Runner {
    Client,
    Provider,
    /// The provider, where the item has this key with an object of another type than `local`.
    Environment,
    /// The provider, where it says so.
    Execution,
}

const fn client(kind: &'static str, name: NameSource, form: InputForm, input: InputSource) -> CallShape {
    CallShape { kind, name, namespace: "namespace", form, input, by: Runner::Client }
}

const fn hosted(kind: &'static str, name: &'static str, form: InputForm, input: InputSource) -> CallShape {
    CallShape { kind, name: NameSource::Is(name), namespace: "namespace", form, input, by: Runner::Provider }
}

/// Every type of call that is known.
const SHAPES: &[CallShape] = &[
    client("function_call", NameSource::Key, InputForm::Json, InputSource::Key("arguments")),
    client("custom_tool_call", NameSource::Key, InputForm::Text, InputSource::Key("input")),
    client("local_shell_call", NameSource::Is("local_shell"), InputForm::Json, InputSource::Key("action")),
    client("apply_patch_call", NameSource::Is("apply_patch"), InputForm::Json, InputSource::Key("operation")),
    client(
        "computer_call",
        NameSource::Is("computer"),
        InputForm::Json,
        InputSource::Of(&["action", "actions"]),
    ),
    CallShape {
        by: Runner::Environment,
        ..client("shell_call", NameSource::Is("shell"), InputForm::Json, InputSource::Key("action"))
    },
    CallShape {
        by: Runner::Execution,
        ..client(
            "tool_search_call",
            NameSource::Is("tool_search"),
            InputForm::Json,
            InputSource::Key("arguments"),
        )
    },
    CallShape {
        namespace: "server_label",
        ..client("mcp_approval_request", NameSource::Key, InputForm::Json, InputSource::Key("arguments"))
    },
    CallShape {
        namespace: "server_label",
        by: Runner::Provider,
        ..client("mcp_call", NameSource::Key, InputForm::Json, InputSource::Key("arguments"))
    },
    hosted("web_search_call", "web_search", InputForm::Json, InputSource::Of(&["action", "arguments"])),
    hosted("file_search_call", "file_search", InputForm::Json, InputSource::Of(&["queries"])),
    hosted("code_interpreter_call", "code_interpreter", InputForm::Text, InputSource::Key("code")),
    hosted(
        "image_generation_call",
        "image_generation",
        InputForm::Json,
        InputSource::Of(&["prompt", "revised_prompt"]),
    ),
    hosted("program", "programmatic_tool_calling", InputForm::Text, InputSource::Key("code")),
];

/// Reads an output item.
///
/// # Errors
/// If it is no item, or has more than one reading.
pub(super) fn read(item: Value<'_>) -> Result<ItemRole<'_>, BrokenAnswer> {
    if item.kind() != Kind::Object {
        return Err(BrokenAnswer::malformed("an output item is no object"));
    }
    if let Some(duplicate) = item.duplicate() {
        return Err(BrokenAnswer::ambiguous(format!("an output item: {duplicate}")));
    }
    let Some(kind) = text(item, "type")? else { return Ok(ItemRole::Plain) };
    if let Some(shape) = SHAPES.iter().find(|shape| shape.kind == kind) {
        return Ok(ItemRole::Call(shaped(item, kind, shape)?));
    }
    if kind.ends_with("_output") {
        return Ok(ItemRole::Output(text(item, "call_id")?));
    }
    if kind.ends_with("_call") || (get(item, "call_id")?.is_some() && get(item, "arguments")?.is_some()) {
        return Ok(ItemRole::Call(unknown(item, kind)?));
    }
    Ok(ItemRole::Plain)
}

fn shaped<'d>(
    item: Value<'d>,
    kind: Cow<'d, str>,
    shape: &CallShape,
) -> Result<CalledItem<'d>, BrokenAnswer> {
    let name = match shape.name {
        NameSource::Is(name) => Cow::Borrowed(name),
        NameSource::Key => {
            text(item, "name")?.ok_or_else(|| BrokenAnswer::ambiguous("a tool call has no name"))?
        }
    };
    let (input, object, parts) = match shape.input {
        InputSource::Key(key) => {
            let value = present(item, key)?;
            let input = value.map(|value| value.text().unwrap_or(Cow::Borrowed(value.raw())));
            (input, value.filter(|value| value.kind() == Kind::Object), Vec::new())
        }
        InputSource::Of(keys) => {
            let parts = parts(item, keys)?;
            (Some(Cow::Owned(gathered(&parts))), None, parts)
        }
    };
    let is_hosted = match shape.by {
        Runner::Client => false,
        Runner::Provider => true,
        Runner::Environment => {
            let environment = get(item, "environment")?.filter(|value| value.kind() == Kind::Object);
            let kind = environment.map(|environment| text(environment, "type")).transpose()?.flatten();
            kind.is_some_and(|kind| kind.starts_with("container"))
        }
        Runner::Execution => get(item, "execution")?.is_some_and(|by| by.says("server")),
    };
    let (id, call_id) = (text(item, "id")?, text(item, "call_id")?);
    let namespace = text(item, shape.namespace)?;
    let form = shape.form;
    Ok(CalledItem { kind, id, call_id, name, namespace, form, input, object, parts, is_hosted })
}

/// A type of call that nobody here knows: the client may. It is judged by what its type says, with all that it holds.
fn unknown<'d>(item: Value<'d>, kind: Cow<'d, str>) -> Result<CalledItem<'d>, BrokenAnswer> {
    let named = text(item, "name")?;
    let name = named.unwrap_or_else(|| kind.strip_suffix("_call").unwrap_or(&kind).to_owned().into());
    let (id, call_id, namespace) = (text(item, "id")?, text(item, "call_id")?, text(item, "namespace")?);
    let input = Some(Cow::Borrowed(item.raw()));
    let form = InputForm::Json;
    let (object, parts) = (None, Vec::new());
    Ok(CalledItem { kind, id, call_id, name, namespace, form, input, object, parts, is_hosted: false })
}

/// Those of several entries that an item has.
fn parts<'d>(
    item: Value<'d>,
    keys: &'static [&'static str],
) -> Result<Vec<(&'static str, Value<'d>)>, BrokenAnswer> {
    let mut entries = Vec::new();
    for key in keys {
        entries.extend(present(item, key)?.map(|value| (*key, value)));
    }
    Ok(entries)
}

/// One of several objects, whole; else an object of what there is.
fn gathered(parts: &[(&str, Value<'_>)]) -> String {
    if let [(_, value)] = parts
        && value.kind() == Kind::Object
    {
        return value.raw().to_owned();
    }
    let entries: Vec<String> =
        parts.iter().map(|(key, value)| format!("\"{key}\":{}", value.raw())).collect();
    format!("{{{}}}", entries.join(","))
}

impl<'d> CalledItem<'d> {
    /// The call under the id by which its output refers to it.
    pub(super) fn head(&self) -> CallHead<'_> {
        CallHead {
            id: self.call_id.as_deref().or(self.id.as_deref()).unwrap_or_default(),
            name: &self.name,
            namespace: self.namespace.as_deref(),
            form: self.form,
            is_hosted: self.is_hosted,
        }
    }

    /// The text that a stream sends in pieces, and how the item has it in the end: the arguments, or a patch.
    pub(super) fn streamed(&self) -> Result<Option<Cow<'d, str>>, BrokenAnswer> {
        match (self.kind.as_ref(), self.object) {
            ("apply_patch_call", Some(operation)) => text(operation, "diff"),
            (_, None) if !self.is_of_parts() => Ok(self.input.clone()),
            (_, _) => Ok(None),
        }
    }

    /// Whether the input is made of several entries of the item, whether it has them already or not.
    fn is_of_parts(&self) -> bool {
        SHAPES.iter().any(|shape| shape.kind == self.kind && matches!(shape.input, InputSource::Of(_)))
    }

    /// The entries of the input, as far as it is an object: what stands in several of the item is told by their keys.
    ///
    /// # Errors
    /// If a key stands twice.
    pub(super) fn entries(&self) -> Result<Vec<(String, Value<'d>)>, BrokenAnswer> {
        let mut values = Vec::new();
        let outer = self.object.map(|object| ("", object));
        for (outer, value) in outer.into_iter().chain(self.parts.iter().copied()) {
            if let Some(duplicate) = value.duplicate() {
                return Err(BrokenAnswer::ambiguous(format!("the input of a tool call: {duplicate}")));
            }
            match value.entries() {
                Some(entries) => {
                    values.extend(entries.map(|entry| {
                        (format!("{outer}.{}", entry.key.text().unwrap_or_default()), entry.value)
                    }))
                }
                None => values.push((outer.to_owned(), value)),
            }
        }
        Ok(values)
    }

    /// One of several commands of a shell call.
    pub(super) fn command(&self, index: u64) -> Result<Option<Cow<'d, str>>, BrokenAnswer> {
        let Some(action) = self.object else { return Ok(None) };
        let commands = get(action, "commands")?.and_then(Value::items);
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        Ok(commands.and_then(|mut commands| commands.nth(index)).and_then(Value::text))
    }
}

/// An entry's text; none where it is empty or something else.
pub(super) fn text<'d>(object: Value<'d>, key: &str) -> Result<Option<Cow<'d, str>>, BrokenAnswer> {
    Ok(get(object, key)?.and_then(Value::text).filter(|text| !text.is_empty()))
}

/// An entry's whole number.
pub(super) fn number(object: Value<'_>, key: &str) -> Result<Option<u64>, BrokenAnswer> {
    let Some(value) = present(object, key)? else { return Ok(None) };
    let number = value.number_text().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| BrokenAnswer::ambiguous(format!("{key} is no whole number")))
}
