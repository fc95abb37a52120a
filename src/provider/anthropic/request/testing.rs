//! What tests of requests share: terms of a policy in few words, and a body's way through the reader.

use http::HeaderMap;

use super::{MessagesVariant, messages_request};
use crate::call::{Change, Decision, Denial, HostedAction, HostedToolVerdict, Judgement, Terms};
use crate::decision::{RuleId, Verdict};
use crate::provider::request::{EditedRequest, RequestEditor};
use crate::wire::json::{Document, Limits};

/// Takes out every hosted tool that is not listed, keeps no state and fetches nothing; or refuses, or only observes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub allow: &'static [&'static str],
    pub action: HostedAction,
    pub state: Verdict,
    pub urls: Verdict,
    pub edits: bool,
}

pub(super) const STRICT: Rules =
    Rules { allow: &[], action: HostedAction::Strip, state: Verdict::Deny, urls: Verdict::Deny, edits: true };

/// Strict, but that conversations may be kept at the provider.
pub(super) const KEEPING: Rules = Rules { state: Verdict::Allow, ..STRICT };

/// Strict, but that the provider may fetch URLs.
pub(super) const FETCHING: Rules = Rules { urls: Verdict::Allow, ..STRICT };

/// As where only Audit policies select the pod.
pub(super) const AUDIT: Rules = Rules {
    action: HostedAction::Keep,
    state: Verdict::WouldDeny,
    urls: Verdict::WouldDeny,
    edits: false,
    ..STRICT
};

/// Strict, but for these types.
pub(super) fn allowing(allow: &'static [&'static str]) -> Rules {
    Rules { allow, ..STRICT }
}

fn decision(verdict: Verdict, rule: &str) -> Decision {
    Decision {
        rule: Some(RuleId::builtin(rule)),
        reason: Some("a test says so".into()),
        ..Decision::of(verdict)
    }
}

impl Terms for Rules {
    fn hosted_tool(&self, tool_type: &str) -> HostedToolVerdict {
        let is_allowed = self.allow.contains(&tool_type);
        let action = if is_allowed { HostedAction::Keep } else { self.action };
        let verdict = match action {
            HostedAction::Keep if is_allowed => Verdict::Allow,
            HostedAction::Keep => Verdict::WouldDeny,
            HostedAction::Strip | HostedAction::Refuse => Verdict::Deny,
        };
        HostedToolVerdict { action, decision: decision(verdict, "hosted-tools"), audited: None }
    }

    fn provider_state(&self) -> Judgement {
        Judgement { decision: decision(self.state, "provider-state"), audited: None }
    }

    fn url_sources(&self) -> Judgement {
        Judgement { decision: decision(self.urls, "url-sources"), audited: None }
    }

    fn may_edit(&self) -> bool {
        self.edits
    }
}

/// Reads a body as this variant of the API has it.
pub(super) fn drafted(
    body: &str,
    rules: Rules,
    variant: &MessagesVariant<'_>,
) -> Result<EditedRequest, Denial> {
    let document = Document::parse(body.as_bytes(), Limits::default()).unwrap();
    let mut editor = RequestEditor::new(&document, &rules);
    let root = editor.root();
    messages_request(&mut editor, root, variant)?;
    Ok(editor.finish())
}

/// The body that goes on, and what was changed in it.
pub(super) fn sent(body: &str, rules: Rules) -> (String, Vec<Change>) {
    let drafted = drafted(body, rules, &MessagesVariant::default())
        .unwrap_or_else(|denial| panic!("{body}: {denial:?}"));
    let sent = drafted.body.map_or_else(|| body.to_owned(), |edited| String::from_utf8(edited).unwrap());
    (sent, drafted.changes)
}

/// The body that goes on under the strict rules.
pub(super) fn strictly(body: &str) -> String {
    sent(body, STRICT).0
}

/// Why a body does not go on.
pub(super) fn refused(body: &str, rules: Rules) -> Denial {
    let drafted = drafted(body, rules, &MessagesVariant::default());
    drafted.map(|drafted| drafted.body).expect_err(body)
}

/// The rule and the reason of a denial.
pub(super) fn told(denial: &Denial) -> (String, String) {
    let decision = &denial.decision;
    (decision.rule.as_ref().unwrap().as_str().to_owned(), decision.reason.clone().unwrap().into_owned())
}

/// Headers as an agent sends them.
pub(super) fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}
