//! A model's call of a tool, and the question whether the agent may have it (plain data).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{EditCheck, ShellFacts, ShellTerms, SimpleCommand};
use crate::decision::{self, Decision};

/// What a tool does, whatever dialect and agent it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Kind {
    /// Runs a command.
    Shell,
    /// Reads files.
    Read,
    /// Changes files, or makes, moves and removes them.
    Write,
    /// Asks the network for something.
    Fetch,
}

impl Kind {
    /// The word in policies, events and rules.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shell => "Shell",
            Self::Read => "Read",
            Self::Write => "Write",
            Self::Fetch => "Fetch",
        }
    }
}

/// Some kinds, each once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kinds([bool; 4]);

impl Kinds {
    const ALL: [Kind; 4] = [Kind::Shell, Kind::Read, Kind::Write, Kind::Fetch];

    /// They, in one order.
    pub fn iter(self) -> impl Iterator<Item = Kind> {
        Self::ALL.into_iter().zip(self.0).filter_map(|(kind, has)| has.then_some(kind))
    }

    /// These, where there are any, else those.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        if self == Self::default() { others } else { self }
    }
}

impl FromIterator<Kind> for Kinds {
    fn from_iter<T: IntoIterator<Item = Kind>>(kinds: T) -> Self {
        let mut some = [false; 4];
        for kind in kinds {
            some[Self::ALL.iter().position(|known| *known == kind).unwrap_or_default()] = true;
        }
        Self(some)
    }
}

impl From<&[Kind]> for Kinds {
    fn from(kinds: &[Kind]) -> Self {
        kinds.iter().copied().collect()
    }
}

/// The tool that a call names: what is known when the call starts.
#[derive(Debug, Clone, Copy)]
pub struct Tool<'a> {
    pub name: &'a str,
    /// The namespace or toolset; the call is then also known as `namespace.name`.
    pub namespace: Option<&'a str>,
    /// The kinds that it has: none, one, or several. Of a tool that the catalogue knows, the input tells which of
    /// several it is (an editor that reads and writes).
    pub kinds: &'a [Kind],
    /// How they are known.
    pub by: KindsBy,
}

/// How the kinds of a tool are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KindsBy {
    /// The catalogue has the tool's whole name.
    Catalogue,
    /// The catalogue has what the name ends in (`mcp__SERVER__read_file`), or what is left of it without what models
    /// write around names: fit for rules that deny, not for rules that allow.
    Ending,
    /// The catalogue has nothing of it; the parameters of its definition, or of its input, say what it does. It is
    /// each of the kinds.
    Inferred,
    /// The same, where only the input will tell which of the kinds it is, or whether it is any.
    Possible,
}

impl KindsBy {
    /// The word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Catalogue | Self::Ending => "Catalogue",
            Self::Inferred | Self::Possible => "Inferred",
        }
    }
}

impl<'a> Tool<'a> {
    /// A tool of which only the name is known, and nothing is inferred.
    pub fn named(name: &'a str) -> Self {
        Self { name, namespace: None, kinds: &[], by: KindsBy::Catalogue }
    }

    /// Whether its kinds are inferred.
    pub fn is_inferred(&self) -> bool {
        matches!(self.by, KindsBy::Inferred | KindsBy::Possible)
    }

    /// Whether every call of it is of each of its kinds.
    pub fn is_certain(&self) -> bool {
        match self.by {
            KindsBy::Catalogue | KindsBy::Ending => self.kinds.len() == 1,
            KindsBy::Inferred => true,
            KindsBy::Possible => false,
        }
    }
}

/// A call whose input is complete.
#[derive(Debug, Clone, Copy)]
pub struct ToolCall<'a> {
    pub tool: Tool<'a>,
    pub input: Input<'a>,
    /// What the catalogue found in the input; none for a tool that it does not know, and where the input is not
    /// what such a tool takes. Every kind of the tool counts then, without any parameter.
    pub facts: Option<&'a Facts<'a>>,
    /// What the commands of a call of kind Shell do beside running: the files and URLs that they name.
    pub derived: &'a [Facts<'a>],
}

/// A tool's input.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    Json(&'a Value),
    /// That of a custom tool, which has no parameters.
    Text(&'a str),
}

/// What a call does, in the words that conditions have for it.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    pub kind: Kind,
    /// The commands that are run, each in one text: the arguments of one command are joined by spaces.
    pub commands: Vec<Cow<'a, str>>,
    /// The files that are read or written, every one of them, as the input names them.
    pub paths: Vec<Cow<'a, str>>,
    pub urls: Vec<Cow<'a, str>>,
    /// Whether one of the paths is moved or copied to another: a whole directory may come with it.
    pub moves: bool,
    pub spelling: Spelling,
    /// The simple commands of a call of kind Shell; none where no rule asks for them.
    pub shell: Option<ShellFacts>,
    /// The number of the simple command that does this, where the call is one of kind Shell: such facts serve rules that
    /// deny or record, and no rule that allows.
    pub derived_from: Option<usize>,
}

/// How an input spells the parameters that the catalogue reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    Exact,
    /// One of them stands in another case: a client that folds keys reads it, another one finds nothing.
    Respelled,
    /// Two keys fold to one of them, and clients differ in which one they read.
    Ambiguous,
}

impl Facts<'_> {
    /// A call of this kind, of which nothing else is known.
    pub fn new(kind: Kind) -> Self {
        let (commands, paths, urls) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            kind,
            commands,
            paths,
            urls,
            moves: false,
            spelling: Spelling::Exact,
            shell: None,
            derived_from: None,
        }
    }

    /// The same, without the input that it was read from.
    pub fn into_owned(self) -> Facts<'static> {
        let owned =
            |all: Vec<Cow<'_, str>>| all.into_iter().map(|one| Cow::Owned(one.into_owned())).collect();
        Facts {
            kind: self.kind,
            commands: owned(self.commands),
            paths: owned(self.paths),
            urls: owned(self.urls),
            moves: self.moves,
            spelling: self.spelling,
            shell: self.shell,
            derived_from: self.derived_from,
        }
    }
}

/// Through which a guard asks for verdicts; policy implements it.
pub trait Judge: Send + Sync {
    /// Whether any call could be denied at all. Where none could, a guard only observes, and bytes pass as received.
    /// `writes` says whether the request offers a tool that writes files, a shell too: one built-in rule is about those
    /// alone.
    fn denies(&self, writes: bool) -> bool;

    /// What is to be read of calls of kind Shell.
    fn shell(&self) -> ShellTerms;

    /// Phase one: by name and kind alone.
    fn start(&self, tool: &Tool<'_>) -> Start;

    /// Phase two: the call as a whole. It says the same as phase one where that decided.
    fn complete(&self, call: &ToolCall<'_>) -> CallVerdict;

    /// Whether rules over facts could deny calls.
    fn facts_deny(&self) -> FactsDeny {
        FactsDeny::Never
    }

    /// What rules over the facts of the exchange say of a call, beside what is said of its tool and its input.
    fn by_facts(&self, _call: &SeenCall<'_>) -> ByFacts {
        ByFacts::Silent
    }

    /// A call whose input nobody can know before it runs: it is denied where its input could make a difference.
    fn unknown(&self, tool: &Tool<'_>) -> CallVerdict {
        match self.start(tool) {
            Start::Allow(verdict) | Start::Deny(verdict) => verdict,
            Start::Observe => CallVerdict::allowed(),
            Start::NeedsInput => {
                CallVerdict::builtin("unparseable", "Only running the script would tell the input")
            }
        }
    }
}

/// Whether rules over facts could deny calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactsDeny {
    Never,
    /// All calls at one time or none: no such rule asks what is called.
    Alike,
    /// One call and not another.
    ByCall,
}

/// A call as rules over facts see it.
#[derive(Debug, Clone, Copy)]
pub struct SeenCall<'a> {
    pub name: &'a str,
    pub namespace: Option<&'a str>,
    pub kinds: Kinds,
    /// Whether the kinds are certain, or might be others once the input is known.
    pub has_all_kinds: bool,
    /// The bytes of the whole input; none before it is complete.
    pub input_bytes: Option<u64>,
}

impl<'a> SeenCall<'a> {
    /// A call of which only the start is known.
    pub fn start(tool: &Tool<'a>) -> Self {
        let is_kindless = tool.kinds.is_empty() && tool.by == KindsBy::Catalogue;
        // What a command reads, writes and fetches is for the input to tell.
        let has_all_kinds = (tool.is_certain() || is_kindless) && !tool.kinds.contains(&Kind::Shell);
        Self {
            name: tool.name,
            namespace: tool.namespace,
            kinds: tool.kinds.into(),
            has_all_kinds,
            input_bytes: None,
        }
    }
}

/// What rules over facts say of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ByFacts {
    /// No rule is asked about calls.
    Silent,
    /// It is for the whole call to tell; whether it may be denied then.
    NeedsInput {
        denies: bool,
    },
    Decided(Box<CallVerdict>),
}

/// What the start of a call decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// It passes, whatever its input is, and there is no more to ask.
    Allow(CallVerdict),
    /// It passes, whatever its input is; what is to be recorded of it depends on the input.
    Observe,
    /// It is denied, whatever its input is.
    Deny(CallVerdict),
    /// It is held until its input is complete.
    NeedsInput,
}

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallVerdict {
    /// `Deny` is the only verdict that stops a call. Without a rule: no rule names the tool, and the default allows it.
    pub decision: Decision,
    /// What the agent reads in the last line of a refusal.
    pub advice: Advice,
    /// What Audit rules and Audit policies have to say beside it.
    pub audited: Vec<Decision>,
    /// The simple command that is denied, of a Shell call in which that can be told.
    pub command: Option<Box<SimpleCommand>>,
    /// Whether a part of a Shell call cannot be told; none where no commands were read.
    pub opaque: Option<bool>,
    /// What the workspace said of the files that it edits; none where nobody asked.
    pub edit: Option<EditCheck>,
}

impl CallVerdict {
    /// A call of a tool that is not to be had, whatever its input.
    pub fn of_no_tool(decision: Decision) -> Self {
        Self { decision, advice: Advice::NotAvailable, ..Self::allowed() }
    }

    /// A call that nothing speaks against, and no rule for.
    pub fn allowed() -> Self {
        Self {
            decision: Decision::of(decision::Verdict::Allow),
            advice: Advice::NotThisUse,
            audited: Vec::new(),
            command: None,
            opaque: None,
            edit: None,
        }
    }

    /// A denial of one call by something built in, `postern/builtin/RULE`.
    pub fn builtin(rule: &str, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { decision: Decision::builtin(rule, reason), ..Self::allowed() }
    }
}

/// What an agent does best after a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// No use of the tool is allowed.
    NotAvailable,
    /// Another use of it may be.
    NotThisUse,
}

impl Advice {
    /// The sentence for the agent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotAvailable => "This tool is not available here.",
            Self::NotThisUse => {
                "The tool itself is allowed; this use of it is not. Do not retry it unchanged."
            }
        }
    }
}
