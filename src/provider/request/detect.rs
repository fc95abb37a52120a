//! Walks a request's document: every key and every string, with whose text it is and where it stands.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use super::marks::{CallNumber, Form, Mark, MarkedCall, Marks};
use super::{RequestEditor, named_files};
use crate::call::{Change, Denial, Role, ToolDefinition};
use crate::provider::kind::Offered;
use crate::wire::json::{Kind, Value};

/// Looks for what must not leave in the texts of a request.
pub trait Detection {
    /// Looks at a key or a string, and says what of it is to be replaced.
    ///
    /// # Errors
    /// If the request costs more than its bounds.
    fn look(&mut self, text: &RequestText<'_, '_>) -> Result<Looked, Denial>;

    /// Begins an item of an array of the request: a message, the definition of a tool. `true`: all of it was looked at before,
    /// behind the same texts, and nothing was in it; then none of it is looked at.
    fn enter(&mut self, item: &RequestItem<'_, '_>) -> bool;

    /// Ends an item that was looked at.
    fn leave(&mut self);

    /// Takes a string over that is not looked at, since the texts behind it are.
    fn pass(&mut self, text: &RequestText<'_, '_>);

    /// Decides once all of the document was looked at. `is_attested`: the provider takes the body as its client made it
    /// alone. Returns the detectors by which something was replaced.
    ///
    /// # Errors
    /// If the request must not go on.
    fn conclude(&mut self, is_attested: bool) -> Result<Vec<String>, Denial>;

    /// Whether something stands in the request that was replaced, now or before.
    fn holds_placeholders(&self) -> bool;
}

/// An item of an array of a request. It is hashed by all that looks at its texts depend on, but the calls that its results
/// answer: the place that they know is that within the item.
pub struct RequestItem<'w, 'd> {
    value: Value<'d>,
    around: Mark,
    /// Those in it, in the order of the document.
    inside: &'w [(usize, Mark)],
    marks: &'w Marks<'d>,
    offered: &'w LazyOffered<'w>,
    /// Where its document stands in the one around it.
    pub prefix: &'static str,
}

impl<'w, 'd> RequestItem<'w, 'd> {
    /// The calls that its results answer, one as often as it is answered. Those that stand in it are a part of its bytes.
    pub fn answered(&self) -> impl Iterator<Item = NamedCall<'w, 'd>> {
        let Self { marks, offered, .. } = *self;
        let inside = self.inside.iter().map(|(_, mark)| *mark).filter(|mark| mark.role != Role::ToolCall);
        inside.chain([self.around]).filter_map(move |mark| {
            let number = mark.call?;
            Some(NamedCall { number, call: marks.call_at(number)?, offered })
        })
    }
}

impl Hash for RequestItem<'_, '_> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let start = self.value.span().start;
        self.value.raw().hash(hasher);
        (self.around.role, self.around.form).hash(hasher);
        for (at, Mark { role, form, call }) in self.inside {
            (at.wrapping_sub(start), role, form, call.is_some()).hash(hasher);
        }
    }
}

/// What was found in a text.
#[derive(Debug, Default)]
pub struct Looked {
    pub has_finding: bool,
    pub redactions: Vec<Redaction>,
}

/// A part of a text that is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redaction {
    /// In the text, without quotes and escapes.
    pub range: Range<usize>,
    pub by: String,
}

/// A key or a string of a document.
pub struct RequestText<'w, 'd> {
    pub value: Value<'d>,
    pub is_key: bool,
    pub role: Role,
    pub form: Form,
    /// The call that it is a part of, or whose result it is a part of.
    pub call: Option<NamedCall<'w, 'd>>,
    pub place: TextPlace<'w, 'd>,
}

/// A call of a request, and the files that it names.
#[derive(Clone, Copy)]
pub struct NamedCall<'w, 'd> {
    /// Its place among the calls of its document.
    pub number: CallNumber,
    pub call: &'w MarkedCall<'d>,
    offered: &'w LazyOffered<'w>,
}

/// The tools that a request offers, read once a call asks.
struct LazyOffered<'w> {
    tools: &'w [ToolDefinition],
    offered: OnceCell<Offered>,
}

impl NamedCall<'_, '_> {
    /// The files that it reads or writes, as the catalogue of tools knows them.
    pub fn files(&self) -> Vec<String> {
        let LazyOffered { tools, offered } = self.offered;
        named_files::of(self.call, offered.get_or_init(|| Offered::new(tools)))
    }
}

/// Where a text stands, as a JSON pointer (RFC 6901) without its first slash. A key that is not short and plain, or in
/// which something was found, is told by its number in its object.
#[derive(Clone, Copy)]
pub struct TextPlace<'w, 'd> {
    /// Of the document in the one around it.
    prefix: &'static str,
    steps: &'w [Step<'d>],
}

/// A step from an array or object to a value in it.
enum Step<'d> {
    Item(usize),
    Member { key: Value<'d>, number: usize, is_masked: bool },
}

/// Members that name something, whatever they stand in: another text would name something else.
const NAMES: [&str; 14] = [
    "type",
    "role",
    "name",
    "status",
    "url",
    "uri",
    "file_uri",
    "fileUri",
    "server_name",
    "server_label",
    "namespace",
    "media_type",
    "mimeType",
    "format",
];

/// The longest key that is told.
const LONGEST_KEY: usize = 40;

impl RequestText<'_, '_> {
    /// The name of the tool whose call or result it stands in, where that is short and plain.
    pub fn tool(&self) -> Option<&str> {
        self.call.map(|call| &*call.call.name).filter(|name| is_plain(name))
    }
}

impl TextPlace<'_, '_> {
    /// Where its document stands in the one around it.
    pub fn prefix(&self) -> &'static str {
        self.prefix
    }

    /// Whether it stands in a member that names something: another text would name something else.
    pub fn is_name(&self) -> bool {
        match self.steps.last() {
            Some(Step::Member { key, .. }) => key.text().is_some_and(|key| NAMES.contains(&&*key)),
            Some(Step::Item(_)) | None => false,
        }
    }

    /// The number of the message that holds it, from 1; none where it stands in no message.
    pub fn message(&self) -> Option<usize> {
        let mut steps = self.steps.iter();
        steps.find(|step| match step {
            Step::Member { key, .. } => ["messages", "contents", "input"].iter().any(|name| key.says(name)),
            Step::Item(_) => false,
        })?;
        match steps.next() {
            Some(Step::Item(number)) => Some(number + 1),
            Some(Step::Member { .. }) | None => None,
        }
    }
}

impl fmt::Display for TextPlace<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("body")?;
        f.write_str(self.prefix)?;
        for step in self.steps {
            match step {
                Step::Item(number) => write!(f, "/{number}")?,
                Step::Member { key, number, is_masked } => match key.text() {
                    Some(key) if !is_masked && is_plain(&key) => write!(f, "/{key}")?,
                    Some(_) | None => write!(f, "/#{number}")?,
                },
            }
        }
        Ok(())
    }
}

/// Whether a name is told as it is.
pub fn is_plain(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=LONGEST_KEY).contains(&name.len()) && name.bytes().all(is_plain)
}

impl<'d> RequestEditor<'d> {
    /// Has every key and string of the document looked at that is sent on, and replaces what is to be replaced. `mark`
    /// says whose text they are; `prefix` is where the document stands in another. Returns the marks; none where nothing looks.
    ///
    /// # Errors
    /// If a bound is reached, or an edit cannot be made.
    pub(in crate::provider) fn detect(
        &mut self,
        prefix: &'static str,
        mark: impl FnOnce(&Self, &mut Marks<'d>),
    ) -> Result<Option<Marks<'d>>, Denial> {
        let Some(detection) = self.detection.take() else { return Ok(None) };
        let mut marks = Marks::default();
        mark(self, &mut marks);
        let (root, sorted) = (self.root(), marks.sorted());
        let tools = self.facts.tools.clone();
        let offered = LazyOffered { tools: &tools, offered: OnceCell::new() };
        let steps = Vec::new();
        let mut walk = TextWalk {
            editor: self,
            marks: &marks,
            offered: &offered,
            sorted,
            next: 0,
            prefix,
            steps,
            passed: Vec::new(),
            mode: Mode::Look,
            detection,
        };
        let walked = walk.value(root, Mark::ROOT).and_then(|()| walk.replay());
        let TextWalk { editor, detection, .. } = walk;
        editor.detection = Some(detection);
        walked.map(|()| Some(marks))
    }

    /// Decides once all was looked at.
    ///
    /// # Errors
    /// If the request must not go on.
    pub(super) fn conclude(&mut self) -> Result<(), Denial> {
        let Some(detection) = self.detection.take() else { return Ok(()) };
        let redacted = detection.conclude(self.facts.is_attested)?;
        self.facts.holds_placeholders = detection.holds_placeholders();
        if self.may_edit() {
            self.changes.extend(redacted.into_iter().map(Change::Redaction));
        }
        Ok(())
    }
}

struct TextWalk<'w, 'd> {
    editor: &'w mut RequestEditor<'d>,
    marks: &'w Marks<'d>,
    offered: &'w LazyOffered<'w>,
    /// In the order of the document.
    sorted: Vec<(usize, Mark)>,
    /// The first mark that was not passed.
    next: usize,
    prefix: &'static str,
    steps: Vec<Step<'d>>,
    /// The items that were passed over since the last look.
    passed: Vec<PassedItem<'d>>,
    mode: Mode,
    detection: &'d mut (dyn Detection + 'd),
}

/// An item that was passed over.
struct PassedItem<'d> {
    value: Value<'d>,
    around: Mark,
    /// The first mark that was not passed in front of it.
    next: usize,
}

/// What is done with each key and string.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Look,
    /// Strings are taken over, without a look.
    Pass,
    /// Only whether one of the strings was said by somebody is asked.
    Ask {
        is_said: bool,
    },
}

impl<'d> TextWalk<'_, 'd> {
    fn value(&mut self, value: Value<'d>, around: Mark) -> Result<(), Denial> {
        if self.editor.edits.drops(value) {
            return Ok(());
        }
        let mark = self.mark(value).unwrap_or(around);
        match value.kind() {
            Kind::String if mark.form == Form::Nested => Ok(()),
            Kind::String => self.look(value, false, self.settled(mark)).map(|_| ()),
            Kind::Array => {
                for (number, item) in value.items().into_iter().flatten().enumerate() {
                    self.steps.push(Step::Item(number));
                    match (self.mode, &*self.steps, item.kind()) {
                        (Mode::Look, [Step::Member { .. }, Step::Item(_)], Kind::Object) => {
                            self.item(item, mark)?
                        }
                        _ => self.value(item, mark)?,
                    }
                    self.steps.pop();
                }
                Ok(())
            }
            Kind::Object => {
                for (number, entry) in value.entries().into_iter().flatten().enumerate() {
                    if self.editor.edits.drops(entry.key) {
                        continue;
                    }
                    // A key is never told in its own place.
                    self.steps.push(Step::Member { key: entry.key, number, is_masked: true });
                    let is_masked = self.look(entry.key, true, mark)?;
                    self.steps.pop();
                    self.steps.push(Step::Member { key: entry.key, number, is_masked });
                    self.value(entry.value, mark)?;
                    self.steps.pop();
                }
                Ok(())
            }
            Kind::Null | Kind::Bool | Kind::Number => Ok(()),
        }
    }

    /// An item of an array of the request.
    fn item(&mut self, item: Value<'d>, around: Mark) -> Result<(), Denial> {
        if self.editor.edits.touches(item) {
            return self.value(item, around);
        }
        let (span, next) = (item.span(), self.next);
        let rest = self.sorted.get(next..).unwrap_or_default();
        let [first, behind] = [span.start, span.end].map(|end| rest.partition_point(|(at, _)| *at < end));
        let named = RequestItem {
            value: item,
            around,
            inside: rest.get(first..behind).unwrap_or_default(),
            marks: self.marks,
            offered: self.offered,
            prefix: self.prefix,
        };
        if self.detection.enter(&named) {
            self.passed.push(PassedItem { value: item, around, next });
            self.next = next + behind;
            return Ok(());
        }
        self.value(item, around)?;
        self.detection.leave();
        Ok(())
    }

    /// Takes over what stands at the end of the items that were passed over: as much of them as has a text that somebody
    /// said, in front of which nothing matters.
    fn replay(&mut self) -> Result<(), Denial> {
        let passed = std::mem::take(&mut self.passed);
        let (next, steps) = (self.next, std::mem::take(&mut self.steps));
        let mut from = passed.len();
        self.mode = Mode::Ask { is_said: false };
        for item in passed.iter().rev() {
            from -= 1;
            self.pass(item)?;
            if self.mode == (Mode::Ask { is_said: true }) {
                break;
            }
        }
        self.mode = Mode::Pass;
        for item in passed.iter().skip(from) {
            self.pass(item)?;
        }
        (self.mode, self.next, self.steps) = (Mode::Look, next, steps);
        Ok(())
    }

    /// Walks an item that was passed over.
    fn pass(&mut self, item: &PassedItem<'d>) -> Result<(), Denial> {
        self.next = item.next;
        self.value(item.value, item.around)
    }

    /// The latest mark of a value itself. Values are passed in the order of the document.
    fn mark(&mut self, value: Value<'d>) -> Option<Mark> {
        let start = value.span().start;
        let mut mark = None;
        while let Some((at, next)) = self.sorted.get(self.next).filter(|(at, _)| *at <= start) {
            mark = if *at == start { Some(*next) } else { mark };
            self.next += 1;
        }
        mark
    }

    /// What a string is by the name of its member. In the definition of a tool, what describes is text. In what somebody said,
    /// a member that nobody knows is text too: vendors add such fields, and a request that is refused for one is refused on
    /// each turn.
    fn settled(&self, mark: Mark) -> Mark {
        let is = |names: &[&str]| self.member_name().is_some_and(|name| names.contains(&&*name));
        let form = match mark.form {
            Form::Definition if is(&["description", "title"]) => Form::Text,
            Form::Definition => Form::Name,
            Form::Name if mark.role != Role::Metadata && !is(&NAMES) && !self.is_id() => Form::Text,
            form @ (Form::Text | Form::Name | Form::Sealed | Form::Data | Form::FileName | Form::Nested) => {
                form
            }
        };
        Mark { form, ..mark }
    }

    /// The name of the member that is looked at, or that the item is in.
    fn member_name(&self) -> Option<Cow<'d, str>> {
        self.steps
            .iter()
            .rev()
            .find_map(|step| match step {
                Step::Member { key, .. } => Some(*key),
                Step::Item(_) => None,
            })?
            .text()
    }

    fn is_id(&self) -> bool {
        self.member_name()
            .is_some_and(|name| name.ends_with("id") || name.ends_with("Id") || name.ends_with("ids"))
    }

    /// Looks at a key or a string. Whether something was found in it.
    fn look(&mut self, value: Value<'d>, is_key: bool, mark: Mark) -> Result<bool, Denial> {
        match self.mode {
            Mode::Look if !self.passed.is_empty() => self.replay()?,
            Mode::Ask { is_said } => {
                self.mode = Mode::Ask { is_said: is_said || !is_key && mark.form == Form::Text };
                return Ok(false);
            }
            Mode::Pass if is_key => return Ok(false),
            Mode::Look | Mode::Pass => {}
        }
        let text = RequestText {
            value,
            is_key,
            role: mark.role,
            form: mark.form,
            call: mark.call.and_then(|number| {
                Some(NamedCall { number, call: self.marks.call_at(number)?, offered: self.offered })
            }),
            place: TextPlace { prefix: self.prefix, steps: &self.steps },
        };
        if self.mode == Mode::Pass {
            self.detection.pass(&text);
            return Ok(false);
        }
        let looked = self.detection.look(&text)?;
        for Redaction { range, by } in looked.redactions {
            self.editor.edit(|edits| edits.replace_within(value, range, &by))?;
        }
        Ok(looked.has_finding)
    }
}
