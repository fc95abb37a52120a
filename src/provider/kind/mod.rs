//! The catalogue of tools: which tool of which agent runs commands, reads, writes or fetches, and what its input says.
//!
//! Tools are known by their names, folded; by the last part of a name `mcp__server__tool`, in whatever spelling; and
//! by what is left of a name without what models write around it. A tool that takes something else than the catalogue
//! says has its kinds all the same, so that a rule about a kind errs towards denial.
//!
//! What a tool does that is not known is inferred from its definition in the request, else from its input.

mod catalogue;
mod commands;
#[cfg(test)]
mod corpus_tests;
pub mod edit;
mod glob;
mod infer;
#[cfg(test)]
mod infer_tests;
mod offered;
mod patch;
mod reading;
mod schema;
pub mod shell;
mod spelling;
#[cfg(test)]
mod tests;
mod unified;
mod wrapper;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use crate::call::name::{NO_NAMESPACE, cut, plain};
use crate::call::{Facts, Input, Kind, Kinds, KindsBy, Shape, ShellTerms, Spelling, Tool, ToolCall};
use crate::fold::fold;
use crate::wire::json;
use catalogue::{CATALOGUE, CatalogueEntry, GENERIC, InputLayout, KINDLESS};
use commands::{CommandPlaces, CommandQuestion};
pub use offered::Offered;
use shell::CommandReading;
use spelling::SpelledInput;
pub use wrapper::{Calling, SOURCE, Wrapper, wrapper};

/// The longest name that is looked up, in bytes. Policy denies what is longer.
const MOST_NAME: usize = 1024;

static BY_NAME: LazyLock<HashMap<&'static str, &'static CatalogueEntry>> = LazyLock::new(|| {
    let named = |entry: &'static CatalogueEntry| entry.names.iter().map(move |name| (*name, entry));
    CATALOGUE.iter().flat_map(named).collect()
});

/// The names of several words in the spelling of [`plain`], by which the ending of a name is known.
static BY_ENDING: LazyLock<HashMap<String, &'static CatalogueEntry>> = LazyLock::new(|| {
    let named = |entry: &'static CatalogueEntry| entry.names.iter().map(move |name| (plain(name), entry));
    CATALOGUE
        .iter()
        .flat_map(named)
        .filter(|(name, _)| name.contains('_') && !GENERIC.contains(&name.as_str()))
        .collect()
});

/// A call, with what is known of it.
pub struct ReadCall<'a> {
    pub tool: Tool<'a>,
    /// What it does, once for each kind that it is; none where the input is not what the catalogue says such a tool takes,
    /// and where the tool has no kind.
    pub facts: Option<Vec<Facts<'a>>>,
    /// What its commands do beside running, where they are read.
    pub derived: Vec<Facts<'static>>,
}

impl<'a> ReadCall<'a> {
    fn new(
        tool: Tool<'a>,
        mut facts: Option<Vec<Facts<'a>>>,
        commands: impl FnOnce() -> Option<CommandReading>,
    ) -> Self {
        let mut running = facts.iter_mut().flatten().filter(|facts| facts.kind == Kind::Shell);
        let Some((shell, reading)) = running.next().and_then(|shell| Some((shell, commands()?))) else {
            return Self { tool, facts, derived: Vec::new() };
        };
        shell.shell = Some(reading.shell);
        let spelling = shell.spelling;
        let mut derived: Vec<_> =
            reading.derived.into_iter().map(|facts| Facts { spelling, ..facts }).collect();
        // The patch in a command is told by the call itself, unless the command runs elsewhere.
        let written = facts.iter().flatten().filter(|facts| facts.kind == Kind::Write);
        let told: BTreeSet<&str> = written.flat_map(|facts| &facts.paths).map(AsRef::as_ref).collect();
        if !told.is_empty() {
            derived.retain(|facts| {
                let is_told = || facts.paths.iter().all(|path| told.contains(path.as_ref()));
                facts.kind != Kind::Write || facts.moves || !is_told()
            });
        }
        Self { tool, facts, derived }
    }

    /// What the call may do: what its input says, else what its tool may do.
    pub fn kinds(&self) -> Kinds {
        let Some(facts) = &self.facts else { return self.tool.kinds.into() };
        facts.iter().chain(&self.derived).map(|facts| facts.kind).collect()
    }

    /// What is asked about the call: once for each kind that it is, else about the tool alone.
    pub fn asked<'b>(&'b self, input: Input<'b>) -> Vec<ToolCall<'b>>
    where
        'a: 'b,
    {
        let call = ToolCall { tool: self.tool, input, facts: None, derived: &[] };
        let about = |facts: &'b Facts<'b>| {
            let derived: &[Facts<'_>] = if facts.kind == Kind::Shell { &self.derived } else { &[] };
            ToolCall { facts: Some(facts), derived, ..call }
        };
        match self.facts.as_deref().unwrap_or_default() {
            [] => vec![call],
            all => all.iter().map(about).collect(),
        }
    }
}

/// A tool as it is known when a call of it starts. `is_text`: its input is a text, as that of a custom tool is.
pub fn tool<'a>(name: &'a str, namespace: Option<&'a str>, is_text: bool, offered: &Offered) -> Tool<'a> {
    let unknown = Tool { namespace, ..Tool::named(name) };
    let shape = match known(name, namespace, is_text, offered) {
        KnownTool::Is(entry, by) => return Tool { kinds: entry.kinds, by, ..unknown },
        KnownTool::Looks(shape) => shape,
        KnownTool::Nothing => return unknown,
    };
    let (kinds, certain) = infer::kinds(&shape);
    Tool { kinds, by: if certain { KindsBy::Inferred } else { KindsBy::Possible }, ..unknown }
}

/// A tool as it is known where a script calls it with an input that nobody knows. `keys` is the input with texts for its
/// values, where its keys are known.
pub fn outlined<'a>(name: &'a str, keys: Option<&Value>, offered: &Offered) -> Tool<'a> {
    let unsaid = || tool(name, None, false, offered);
    let shape = match known(name, None, false, offered) {
        KnownTool::Looks(shape) if shape.is_open => shape,
        KnownTool::Is(_, _) | KnownTool::Looks(_) | KnownTool::Nothing => return unsaid(),
    };
    let kinds = match keys {
        Some(keys) => infer::kinds(&infer::of_input(name, keys).or(&closed(shape))).0,
        None if KINDLESS.contains(&fold(name).as_str()) => &[],
        None => return unsaid(),
    };
    Tool { kinds, by: KindsBy::Possible, ..Tool::named(name) }
}

/// Reads what a call of a tool does, without what its commands do.
pub fn read<'a>(
    name: &'a str,
    namespace: Option<&'a str>,
    input: Input<'a>,
    offered: &Offered,
) -> ReadCall<'a> {
    read_with((name, namespace), input, offered, |_, _| None)
}

/// Reads what a call of a tool does, and what its commands do as far as policy asks for it. `typed` is what may have been
/// typed before into the program that the call types into.
pub fn read_commands<'a>(
    (name, namespace): (&'a str, Option<&'a str>),
    input: Input<'a>,
    offered: &Offered,
    terms: &ShellTerms,
    typed: &[String],
) -> ReadCall<'a> {
    let asked = CommandQuestion { name, terms, typed };
    let mut call = read_with((name, namespace), input, offered, |from, input| {
        terms.reads.then(|| commands::read(&asked, from, input))
    });
    if terms.prefers_file_tools {
        let facts = call.facts.iter_mut().flatten();
        let commands = facts.filter_map(|facts| facts.shell.as_mut()).flat_map(|shell| &mut shell.commands);
        for command in commands {
            command.file_tool = command.emulates.and_then(|kind| offered.file_tool(kind));
        }
    }
    call
}

/// Reads a call; `commands` reads what its commands do, where it runs any.
fn read_with<'a>(
    (name, namespace): (&'a str, Option<&'a str>),
    input: Input<'a>,
    offered: &Offered,
    commands: impl Fn(CommandPlaces<'_>, Input<'_>) -> Option<CommandReading>,
) -> ReadCall<'a> {
    let unknown = Tool { namespace, ..Tool::named(name) };
    match (known(name, namespace, matches!(input, Input::Text(_)), offered), input) {
        (KnownTool::Is(entry, by), _) => {
            let tool = Tool { kinds: entry.kinds, by, ..unknown };
            ReadCall::new(tool, read_known(entry, input), || {
                commands(CommandPlaces::Known(entry.takes), input)
            })
        }
        (KnownTool::Looks(shape), Input::Json(json)) => {
            let shape = match (shape.is_open, shape.open.is_empty()) {
                (true, _) => infer::of_input(name, json).or(&closed(shape)),
                (false, false) => infer::of_input_below(name, &shape.open, json).or(&shape),
                (false, true) => shape,
            };
            let facts = infer::read(&shape, json);
            let kinds = infer::kinds_of(&facts);
            let facts = Some(facts).filter(|facts| !facts.is_empty());
            let tool = Tool { kinds, by: KindsBy::Inferred, ..unknown };
            ReadCall::new(tool, facts, || commands(CommandPlaces::Inferred(&shape.commands), input))
        }
        (KnownTool::Looks(_) | KnownTool::Nothing, _) => ReadCall::new(unknown, None, || None),
    }
}

/// What a call of a tool does that the catalogue knows, however the input spells its parameters.
fn read_known<'a>(entry: &CatalogueEntry, input: Input<'a>) -> Option<Vec<Facts<'a>>> {
    let Input::Json(json) = input else { return reading::read(entry.takes, entry.kinds, input) };
    match spelling::of(json, entry.takes) {
        SpelledInput::Exact => reading::read(entry.takes, entry.kinds, input),
        SpelledInput::Anew(json) => {
            let all = reading::read(entry.takes, entry.kinds, Input::Json(&json))?;
            let respelled = |facts: Facts<'_>| Facts { spelling: Spelling::Respelled, ..facts.into_owned() };
            Some(all.into_iter().map(respelled).collect())
        }
        SpelledInput::Ambiguous => {
            let unclear = |kind: &Kind| Facts { spelling: Spelling::Ambiguous, ..Facts::new(*kind) };
            Some(entry.kinds.iter().map(unclear).collect())
        }
    }
}

/// What the definition of a tool says of its kinds; none for a tool that the catalogue knows by its whole name.
pub fn shape(name: &str, definition: json::Value<'_>) -> Option<Arc<Shape>> {
    match find(name, None) {
        Some((_, KindsBy::Catalogue)) => None,
        Some(_) | None => Some(Arc::new(infer::of_definition(name, definition))),
    }
}

/// How a tool is known.
enum KnownTool {
    Is(&'static CatalogueEntry, KindsBy),
    /// The catalogue does not have it.
    Looks(Shape),
    /// Its input is a text, which has no parameters.
    Nothing,
}

fn known(name: &str, namespace: Option<&str>, is_text: bool, offered: &Offered) -> KnownTool {
    let found = find(name, namespace);
    if let Some((entry, by)) = found
        && (by == KindsBy::Catalogue || !is_elsewhere(entry, name, namespace, offered))
    {
        return KnownTool::Is(entry, by);
    }
    // The calls inside a wrapper are judged by themselves.
    let wraps = matches!(wrapper(name), Some(Wrapper::List | Wrapper::One(_)));
    if is_text || wraps {
        return KnownTool::Nothing;
    }
    KnownTool::Looks(offered.find(name, namespace).map_or_else(Shape::open, Cow::into_owned))
}

/// Whether a tool that is known by the ending of its name works on no file of this machine, as its definition says: a
/// server's `create_file` may belong to a remote repository.
fn is_elsewhere(entry: &CatalogueEntry, name: &str, namespace: Option<&str>, offered: &Offered) -> bool {
    let of_files = entry.kinds.iter().all(|kind| matches!(kind, Kind::Read | Kind::Write));
    of_files && offered.find(name, namespace).is_some_and(|shape| !shape.is_open && !shape.names_files)
}

fn closed(shape: Shape) -> Shape {
    Shape { is_open: false, ..shape }
}

/// Whether the commands of a tool are ones that a shell of POSIX reads, as far as its name tells: not those of PowerShell,
/// and not what is typed into a program that runs.
pub fn is_shell(name: &str, namespace: Option<&str>) -> bool {
    let is_typed =
        find(name, namespace).is_some_and(|(entry, _)| matches!(entry.takes, InputLayout::CommandIfAny(_)));
    !is_typed && !fold(name).contains("powershell")
}

/// Tools that read files, but not as the text of one.
const NOT_OF_TEXT: &[&str] = &[
    "view_image",
    "read_media_file",
    "get_file_info",
    "notebookread",
    "read_notebook",
    "list_code_definition_names",
    "read_lints",
];

/// Whether a tool of the catalogue reads, or writes, the text of a file. Its name is fit to be told.
fn is_file_tool(name: &str, kind: Kind) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
    let is_fit = name.len() <= 128 && name.chars().all(is_plain);
    let Some((entry, _)) = find(name, None).filter(|_| is_fit) else { return false };
    let takes_files =
        matches!(entry.takes, InputLayout::Paths(_) | InputLayout::Patch(_) | InputLayout::Editor);
    let folded = fold(name);
    let is_of_text = !NOT_OF_TEXT.iter().any(|other| folded.ends_with(other));
    entry.kinds.contains(&kind) && !entry.kinds.contains(&Kind::Shell) && takes_files && is_of_text
}

/// The text that a call of a tool types into a program that runs; none of any other tool.
pub fn typed<'a>((name, namespace): (&str, Option<&str>), input: Input<'a>) -> Option<Cow<'a, str>> {
    commands::typed(find(name, namespace)?.0.takes, input)
}

/// Whether a known tool of a kind has its command, paths or URL in a parameter of this name.
pub fn is_parameter_of(kind: Kind, name: &str) -> bool {
    let of_kind = CATALOGUE.iter().filter(|entry| entry.kinds.contains(&kind));
    let mut keys = of_kind.flat_map(|entry| entry.takes.keys());
    keys.any(|key| key == name || key.strip_suffix(".*") == Some(name))
}

/// How many tools of a kind are known.
pub fn count(kind: Kind) -> usize {
    CATALOGUE.iter().filter(|entry| entry.kinds.contains(&kind)).map(|entry| entry.names.len()).sum()
}

fn find(name: &str, namespace: Option<&str>) -> Option<(&'static CatalogueEntry, KindsBy)> {
    if name.len() > MOST_NAME {
        return None;
    }
    let folded = fold(name);
    let is_own = namespace.is_none_or(|namespace| namespace == NO_NAMESPACE);
    if let Some(entry) = BY_NAME.get(folded.as_str()).filter(|_| is_own) {
        return Some((entry, KindsBy::Catalogue));
    }
    let bare = cut(&folded);
    let whole = BY_NAME.get(bare).filter(|_| is_own || !GENERIC.contains(&bare));
    let last =
        || bare.rsplit("__").next().filter(|last| !GENERIC.contains(last)).and_then(|last| BY_NAME.get(last));
    let entry = whole.or_else(last).copied().or_else(|| ending(&plain(bare)))?;
    Some((entry, KindsBy::Ending))
}

/// The entry of the longest ending that is a name of several words: agents spell `mcp__server__read_file` as
/// `server_read_file`, too.
fn ending(plain: &str) -> Option<&'static CatalogueEntry> {
    let starts = std::iter::once(0).chain(plain.match_indices('_').map(|(at, _)| at + 1));
    starts.filter_map(|at| BY_ENDING.get(plain.get(at..)?)).next().copied()
}
