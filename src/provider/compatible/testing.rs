//! What tests of requests share: a policy that says one thing of each kind, and a request read under it.

use crate::call::{Decision, Denial, HostedAction, HostedToolVerdict, Judgement, Terms};
use crate::decision::Verdict;
use crate::provider::request::{EditedRequest, RequestEditor};
use crate::wire::json::{Document, Limits};

/// What is done about hosted tools but for those that are allowed, about state and about URLs.
#[derive(Debug, Clone)]
pub(in crate::provider) struct Policy {
    pub(in crate::provider) action: HostedAction,
    pub(in crate::provider) allowed: &'static [&'static str],
    pub(in crate::provider) state: bool,
    pub(in crate::provider) urls: bool,
}

/// As where nobody writes anything.
pub(in crate::provider) const STRICT: Policy =
    Policy { action: HostedAction::Strip, allowed: &[], state: false, urls: false };

fn decision(verdict: Verdict, reason: &str) -> Decision {
    Decision { verdict, rule: None, reason: Some(reason.to_owned().into()), enforcement: None }
}

fn judgement(allowed: bool, reason: &str) -> Judgement {
    let verdict = if allowed { Verdict::Allow } else { Verdict::Deny };
    Judgement { decision: decision(verdict, reason), audited: None }
}

impl Terms for Policy {
    fn hosted_tool(&self, tool_type: &str) -> HostedToolVerdict {
        if self.allowed.contains(&tool_type) {
            let decision = decision(Verdict::Allow, tool_type);
            return HostedToolVerdict { action: HostedAction::Keep, decision, audited: None };
        }
        HostedToolVerdict { action: self.action, decision: decision(Verdict::Deny, tool_type), audited: None }
    }

    fn provider_state(&self) -> Judgement {
        judgement(self.state, "state")
    }

    fn url_sources(&self) -> Judgement {
        judgement(self.urls, "url")
    }

    fn may_edit(&self) -> bool {
        true
    }
}

/// Reads a request under a policy.
pub(in crate::provider) fn drafted(
    body: &str,
    policy: &Policy,
    read: impl FnOnce(&mut RequestEditor<'_>) -> Result<(), Denial>,
) -> Result<EditedRequest, Denial> {
    let document = Document::parse(body.as_bytes(), Limits::default()).unwrap();
    let mut editor = RequestEditor::new(&document, policy);
    read(&mut editor)?;
    Ok(editor.finish())
}

/// The body that goes on, or `!` and the reason why none does.
pub(in crate::provider) fn outcome(body: &str, drafted: Result<EditedRequest, Denial>) -> String {
    match drafted {
        Ok(drafted) => drafted.body.map_or_else(|| body.to_owned(), |body| String::from_utf8(body).unwrap()),
        Err(denial) => format!("!{}", denial.decision.reason.unwrap_or_default()),
    }
}
