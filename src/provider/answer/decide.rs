//! Decides about a call whose input is there: reads it, asks about each kind that it is, and about the calls in it.

use std::borrow::Cow;

use serde_json::Value;

use super::nested::{self, InnerCall, Nested};
use super::script::ScriptCall;
use super::{GuardSettings, InputForm};
use crate::call::{ByFacts, CallVerdict, FactsDeny, Input, Judge, Kinds, KindsBy, SeenCall, ToolCall};
use crate::provider::kind::{self, Offered};
use crate::wire::json::{Document, Limits};

/// The most calls inside a call.
const MOST_INNER: usize = 64;

/// How many calls may stand in one another.
const MOST_DEPTH: usize = 3;

/// The decision about a call, with the calls inside it.
pub(super) struct CallJudgement {
    pub(super) verdict: CallVerdict,
    /// The call inside it that is denied, where it is not the call itself.
    pub(super) blamed: Option<String>,
    /// The calls inside it.
    pub(super) inner: Vec<InnerCallVerdict>,
    /// Policy was not asked because the input cannot be read, or is too large.
    pub(super) unread: bool,
    /// How the call's kinds are known.
    pub(super) kinds_by: Option<KindsBy>,
    /// What it may do; none where nobody read it.
    pub(super) kinds: Kinds,
}

/// A call inside another, with its verdict.
pub(super) struct InnerCallVerdict {
    pub(super) name: String,
    /// None where only running the script would tell it.
    pub(super) input: Option<String>,
    pub(super) form: InputForm,
    pub(super) kinds_by: Option<KindsBy>,
    pub(super) kinds: Kinds,
    pub(super) verdict: CallVerdict,
}

impl CallJudgement {
    pub(super) fn of(verdict: CallVerdict) -> Self {
        Self {
            verdict,
            blamed: None,
            inner: Vec::new(),
            unread: false,
            kinds_by: None,
            kinds: Kinds::default(),
        }
    }

    /// A call that is denied by something built in.
    pub(super) fn builtin(rule: &str, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { unread: true, ..Self::of(CallVerdict::builtin(rule, reason)) }
    }
}

/// Decides about a call by its whole input.
pub(super) fn complete(
    settings: &GuardSettings,
    tool: (&str, Option<&str>),
    form: InputForm,
    input: &str,
) -> CallJudgement {
    match form {
        InputForm::Text => judge(settings, tool, (Input::Text(input), input.len()), 0),
        InputForm::Json => match parse(input, settings.limits.json) {
            Ok(json) => judge(settings, tool, (Input::Json(&json), input.len()), 0),
            Err(reason) => CallJudgement::builtin("unparseable", reason),
        },
    }
}

/// Returns the verdict on a call that went on although its input cannot be read: every kind of the tool counts.
pub(super) fn unread(
    settings: &GuardSettings,
    tool: (&str, Option<&str>),
    form: InputForm,
    input: &str,
) -> CallVerdict {
    let tool = kind::tool(tool.0, tool.1, form == InputForm::Text, &settings.offered);
    let call = ToolCall { tool, input: Input::Text(input), facts: None, derived: &[] };
    let seen =
        SeenCall { has_all_kinds: true, input_bytes: Some(input.len() as u64), ..SeenCall::start(&tool) };
    by_facts(&*settings.judge, settings.judge.complete(&call), &seen)
}

/// Adds what rules over facts say of a call, unless its tool or its input denies it.
pub(super) fn by_facts(judge: &dyn Judge, verdict: CallVerdict, call: &SeenCall<'_>) -> CallVerdict {
    if verdict.decision.denies() {
        return verdict;
    }
    match judge.by_facts(call) {
        ByFacts::Silent | ByFacts::NeedsInput { denies: false } => verdict,
        ByFacts::NeedsInput { denies: true } => {
            CallVerdict::builtin("unparseable", "Only running the script would tell the input")
        }
        ByFacts::Decided(decided) => together(verdict, *decided),
    }
}

fn judge(
    settings: &GuardSettings,
    tool: (&str, Option<&str>),
    (input, bytes): (Input<'_>, usize),
    depth: usize,
) -> CallJudgement {
    let before = settings.typed.before(&settings.conversation, tool, input);
    let AskedCall { verdict, kinds_by, kinds } =
        ask(&*settings.judge, &settings.offered, tool, input, &before);
    let input_bytes = Some(bytes as u64);
    let seen = SeenCall { name: tool.0, namespace: tool.1, kinds, has_all_kinds: true, input_bytes };
    let verdict = by_facts(&*settings.judge, verdict, &seen);
    if !verdict.decision.denies() {
        settings.typed.add(&settings.conversation, tool, input);
    }
    // An unread input changes nothing if the wrapper is denied anyway, or if no call inside it could be.
    let denies = |writes| !verdict.decision.denies() && denies_some(settings, writes);
    match nested::calls(tool.0, input) {
        // What is called may write.
        Nested::Unknown(reason) if denies(true) => CallJudgement::builtin("unparseable", reason),
        // Whatever it writes stands in it, and cannot be read.
        Nested::Unread(why) if denies(true) => {
            CallJudgement::builtin("unparseable", format!("The script cannot be read: {why}"))
        }
        Nested::None | Nested::Unknown(_) | Nested::Unread(_) => {
            CallJudgement { kinds_by, kinds, ..CallJudgement::of(verdict) }
        }
        Nested::Calls(calls) => {
            let calls = calls.into_iter().map(|InnerCall { name, input }| ScriptCall {
                name,
                input: Some(input),
                keys: None,
            });
            let outer = CallJudgement { kinds_by, kinds, ..CallJudgement::of(verdict) };
            inside(settings, outer, calls.collect(), depth)
        }
        Nested::Script(script) => {
            let outer = CallJudgement { kinds_by, kinds, ..CallJudgement::of(verdict) };
            let ruling = inside(settings, outer, script.calls, depth);
            match script.reaches {
                Some(why) if !ruling.verdict.decision.denies() && denies_some(settings, false) => {
                    CallJudgement::builtin("unparseable", format!("The script could call any tool: {why}"))
                }
                Some(_) | None => ruling,
            }
        }
    }
}

/// Whether a call could be denied for what it is. Rules that deny all calls alike have said so of the outer one.
fn denies_some(settings: &GuardSettings, writes: bool) -> bool {
    settings.judge.denies(writes) || settings.judge.facts_deny() == FactsDeny::ByCall
}

/// Decides about the calls inside a call; one denial is enough.
fn inside(
    settings: &GuardSettings,
    mut ruling: CallJudgement,
    calls: Vec<ScriptCall>,
    depth: usize,
) -> CallJudgement {
    if calls.len() > MOST_INNER || depth == MOST_DEPTH {
        return CallJudgement::builtin(
            "bound",
            format!(
                "A call has more than {MOST_INNER} calls in it, or more than {MOST_DEPTH} in one another"
            ),
        );
    }
    for ScriptCall { name, input, keys } in calls {
        let (form, text) = match &input {
            Some(Value::String(text)) => (InputForm::Text, Some(text.clone())),
            Some(json) => (InputForm::Json, Some(json.to_string())),
            None => (InputForm::Json, None),
        };
        let bytes = text.as_ref().map_or(0, String::len);
        let inner = match &input {
            Some(Value::String(text)) => {
                judge(settings, (&name, None), (Input::Text(text), bytes), depth + 1)
            }
            Some(json) => judge(settings, (&name, None), (Input::Json(json), bytes), depth + 1),
            None => {
                let tool = kind::outlined(&name, keys.as_ref(), &settings.offered);
                let kinds_by = Some(tool.by).filter(|_| !tool.kinds.is_empty());
                let seen = SeenCall::start(&tool);
                let verdict = by_facts(&*settings.judge, settings.judge.unknown(&tool), &seen);
                CallJudgement { kinds_by, kinds: tool.kinds.into(), ..CallJudgement::of(verdict) }
            }
        };
        // The first denial names the call in the refusal; the notes have every one.
        if inner.verdict.decision.denies() && !ruling.verdict.decision.denies() {
            ruling.verdict = inner.verdict.clone();
            ruling.blamed = inner.blamed.or_else(|| Some(name.clone()));
        }
        ruling.inner.push(InnerCallVerdict {
            name,
            input: text,
            form,
            kinds_by: inner.kinds_by,
            kinds: inner.kinds,
            verdict: inner.verdict,
        });
        ruling.inner.extend(inner.inner);
        if ruling.inner.len() > MOST_INNER {
            return CallJudgement::builtin("bound", format!("A call has more than {MOST_INNER} calls in it"));
        }
    }
    ruling
}

/// The verdict on a call by its tool and its input.
pub struct AskedCall {
    pub verdict: CallVerdict,
    /// How its kinds are known, where it has any.
    pub kinds_by: Option<KindsBy>,
    /// What it may do.
    pub kinds: Kinds,
}

/// Asks about every kind that a call is; one denial is enough. Calls inside it are others. `typed`: what may have been
/// typed before into the program that the call types into.
pub fn ask<'a>(
    judge: &dyn Judge,
    offered: &Offered,
    (name, namespace): (&'a str, Option<&'a str>),
    input: Input<'a>,
    typed: &[String],
) -> AskedCall {
    let read = kind::read_commands((name, namespace), input, offered, &judge.shell(), typed);
    let kinds_by = Some(read.tool.by).filter(|_| !read.tool.kinds.is_empty());
    let verdicts = read.asked(input).into_iter().map(|call| judge.complete(&call));
    let verdict = verdicts.reduce(together).unwrap_or_else(CallVerdict::allowed);
    AskedCall { verdict, kinds_by, kinds: read.kinds() }
}

/// Returns the stricter of two verdicts on one call, the first of equal ones, with the audits of both.
pub(super) fn together(one: CallVerdict, other: CallVerdict) -> CallVerdict {
    let rank = |verdict: &CallVerdict| (verdict.decision.denies(), verdict.decision.would_deny());
    let (mut stricter, weaker) = if rank(&other) > rank(&one) { (other, one) } else { (one, other) };
    stricter.opaque = stricter.opaque.or(weaker.opaque);
    stricter.edit = stricter.edit.max(weaker.edit);
    for audited in weaker.audited {
        if !stricter.audited.contains(&audited) {
            stricter.audited.push(audited);
        }
    }
    stricter
}

/// Parses the object that an input is; an empty input is an empty object.
fn parse(input: &str, limits: Limits) -> Result<Value, String> {
    let text = if input.trim().is_empty() { "{}" } else { input };
    let document = Document::parse(text.as_bytes(), limits)
        .map_err(|error| format!("The tool's input is not JSON that can be read: {error}"))?;
    if let Some(duplicate) = document.first_duplicate() {
        return Err(format!("The tool's input has two readings: {duplicate}"));
    }
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err("The tool's input is no JSON object".to_owned()),
        Err(_) => Err("The tool's input is not JSON that can be read".to_owned()),
    }
}
