//! Judges a call as the gateway does, with the calls inside of it, and explains each.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::call::{CallNote, CallVerdict, Input, Inputs, Judge, Start};
use crate::id::{Id, Timestamp};
use crate::policy::Policy;
use crate::policy::explain::{Explanation, ShownDecision};
use crate::provider::answer::{
    CallHead, FailurePolicy, Gate, GuardLimits, GuardSettings, InputForm, TypedLines,
};
use crate::provider::kind::{self, Offered};

/// What is known of a call.
pub(super) enum KnownInput<'a> {
    /// Its whole input.
    Whole(InputForm, Cow<'a, str>),
    /// Its start alone.
    Start(InputForm),
    /// The same, of an event that does not keep the input.
    Withheld(InputForm),
    /// The answer ended before the call did.
    Incomplete(InputForm),
    /// A script would compute the input.
    Computed,
}

/// A tool by its name and its namespace.
type Named<'a> = (&'a str, Option<&'a str>);

fn head<'a>((name, namespace): Named<'a>, form: InputForm) -> CallHead<'a> {
    CallHead { namespace, form, ..CallHead::new("", name) }
}

/// Explains a call by what the gateway would decide about it under these settings.
pub(super) fn explain(
    policy: &Policy,
    settings: GuardSettings,
    tool: Named<'_>,
    asking: &KnownInput<'_>,
) -> Explanation {
    let offered = &settings.offered.clone();
    let mut gate = Gate::new(settings);
    match asking {
        KnownInput::Whole(form, input) => {
            gate.whole(&head(tool, *form), input);
        }
        KnownInput::Incomplete(form) => {
            let call = gate.begin(&head(tool, *form));
            gate.abandon(call);
        }
        KnownInput::Start(form) => return start(policy, offered, tool, (*form, WITHOUT_INPUT)),
        KnownInput::Withheld(form) => return start(policy, offered, tool, (*form, WITHHELD)),
        KnownInput::Computed => {
            let tool = kind::tool(tool.0, tool.1, false, offered);
            return with_verdict(policy.explain_start(&tool), &policy.unknown(&tool));
        }
    }
    let mut explained = gate.take_notes().into_iter().map(|note| of_note(policy, offered, &note));
    let Some(outer) = explained.next() else {
        return start(policy, offered, tool, (InputForm::Json, WITHOUT_INPUT));
    };
    Explanation { inside: explained.collect(), ..outer }
}

const WITHOUT_INPUT: &str = "A condition needs the input, which is not known here";
const WITHHELD: &str = "The event does not have the input, which decides (audit.toolInputs: Full keeps it)";

/// The settings of the very gate that calls of answers go through.
pub(super) fn settings(policy: &Arc<Policy>, bounds: GuardLimits, offered: Offered) -> GuardSettings {
    let lower = policy.limits().tool_input_bytes.as_ref().and_then(|limit| usize::try_from(limit.most).ok());
    let most = bounds.tool_input_bytes;
    GuardSettings {
        judge: Arc::clone(policy) as Arc<dyn Judge>,
        failure: FailurePolicy::Closed,
        limits: GuardLimits { tool_input_bytes: lower.map_or(most, |lower| lower.min(most)), ..bounds },
        inputs: Inputs::Full,
        writes: true,
        offered,
        conversation: String::new(),
        typed: TypedLines::default(),
        // No event is made of what is only tried.
        event_id: || Id::new(Timestamp::from_unix_millis(0), [0; 10]),
        ask_at: None,
        reads_evidence: None,
    }
}

/// What the start of a call decides. Of a call with others inside it, that is no more than a denial.
fn start(
    policy: &Policy,
    offered: &Offered,
    tool: Named<'_>,
    (form, unknown): (InputForm, &str),
) -> Explanation {
    let known = kind::tool(tool.0, tool.1, form == InputForm::Text, offered);
    let explanation = policy.explain_start(&known);
    let is_open = match policy.start(&known) {
        Start::NeedsInput => true,
        Start::Allow(_) | Start::Observe => kind::wrapper(tool.0).is_some() && policy.denies(true),
        Start::Deny(_) => false,
    };
    if !is_open {
        return explanation;
    }
    let decision = ShownDecision { verdict: "NeedsInput", rule: None, reason: Some(unknown.to_owned()) };
    Explanation { decision, recorded: Vec::new(), ..explanation }
}

fn of_note(policy: &Policy, offered: &Offered, note: &CallNote) -> Explanation {
    let tool = (note.name.as_str(), note.namespace.as_deref());
    let explanation = match &note.input {
        Some(text) if note.custom => of_input(policy, offered, tool, (Input::Text(text), note)),
        Some(text) => {
            // What is no JSON is denied as that; its rules are shown for a call without parameters.
            let json = serde_json::from_str(text).unwrap_or_else(|_| Value::Object(Map::new()));
            of_input(policy, offered, tool, (Input::Json(&json), note))
        }
        None => policy.explain_start(&kind::tool(tool.0, tool.1, note.custom, offered)),
    };
    with_verdict(explanation, &note.verdict)
}

/// Explains a call as what it is taken for: of several kinds, that by which it is decided.
fn of_input<'a>(
    policy: &Policy,
    offered: &Offered,
    (name, namespace): Named<'a>,
    (input, note): (Input<'a>, &CallNote),
) -> Explanation {
    let decided = ShownDecision::from(&note.verdict.decision);
    let read = kind::read_commands((name, namespace), input, offered, &policy.shell(), &[]);
    let mut asked = read.asked(input);
    let decides =
        asked.iter().position(|call| ShownDecision::from(&policy.complete(call).decision) == decided);
    policy.explain_call(&asked.swap_remove(decides.unwrap_or(0)))
}

fn with_verdict(explanation: Explanation, verdict: &CallVerdict) -> Explanation {
    Explanation {
        decision: ShownDecision::from(&verdict.decision),
        recorded: verdict.audited.iter().map(ShownDecision::from).collect(),
        ..explanation
    }
}
