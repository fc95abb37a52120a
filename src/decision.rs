//! A decision: the verdict, the rule behind it and the reason. Whatever is allowed or denied ends in this type. Pure.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::Text;

/// What was decided, by which rule and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub struct Decision {
    pub verdict: Verdict,
    /// `namespace/policy/rule`, a cluster policy's `-/policy/rule`, or `postern/builtin/rule`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "operator", schemars(with = "Option<String>"))]
    pub rule: Option<RuleId>,
    /// For people, and fit for the agent's eyes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'static, str>>,
    /// `Enforce` or `Audit`: what the rule's policy says.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known_enforcement")]
    #[cfg_attr(feature = "operator", schemars(with = "Option<String>"))]
    pub enforcement: Option<Enforcement>,
}

/// Reads the enforcement back; a word of a later version is none.
fn known_enforcement<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Enforcement>, D::Error> {
    let word = Option::<String>::deserialize(deserializer)?;
    Ok([Enforcement::Enforce, Enforcement::Audit]
        .into_iter()
        .find(|known| word.as_deref() == Some(known.as_str())))
}

impl Decision {
    /// A decision that no rule made.
    pub fn of(verdict: Verdict) -> Self {
        Self { verdict, rule: None, reason: None, enforcement: None }
    }

    /// A decision of this rule. An empty reason is none.
    pub fn by(rule: RuleId, verdict: Verdict, reason: impl Into<Cow<'static, str>>) -> Self {
        let reason = Some(reason.into()).filter(|reason| !reason.is_empty());
        Self { verdict, rule: Some(rule), reason, enforcement: Some(Enforcement::Enforce) }
    }

    /// A denial by a built-in rule, `postern/builtin/NAME`.
    pub fn builtin(name: &str, reason: impl Into<Cow<'static, str>>) -> Self {
        Self::by(RuleId::builtin(name), Verdict::Deny, reason)
    }

    /// The same decision of a policy with this enforcement.
    pub fn under(self, enforcement: Enforcement) -> Self {
        Self { enforcement: Some(enforcement), ..self }
    }

    /// The record of a denial that is not enforced: the request goes on.
    pub fn into_would_deny(self) -> Self {
        Self { verdict: Verdict::WouldDeny, ..self }.under(Enforcement::Audit)
    }

    /// Whether it stops the connection, request or call.
    pub fn denies(&self) -> bool {
        self.verdict == Verdict::Deny
    }

    /// Whether it would stop it, were the policy enforced.
    pub fn would_deny(&self) -> bool {
        self.verdict == Verdict::WouldDeny
    }

    /// The rule's id. A denial without a rule is the default's.
    pub fn rule_id(&self) -> &str {
        self.rule.as_ref().map_or("postern/builtin/default-deny", RuleId::as_str)
    }

    /// The reason; empty where none is given.
    pub fn why(&self) -> &str {
        self.reason.as_deref().unwrap_or_default()
    }
}

// Without a doc comment: the event schema would repeat it as a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Verdict {
    Allow,
    /// It was stopped.
    Deny,
    /// It went on, and a rule or a policy in Audit records it.
    Audit,
    /// It went on, and an enforced policy would have stopped it.
    WouldDeny,
    /// A verdict of a later version, read back from its events; nothing is decided so.
    #[serde(other)]
    #[cfg_attr(feature = "operator", schemars(skip))]
    Unknown,
}

impl Verdict {
    /// The word used in events and as a metric label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "Allow",
            Self::Deny => "Deny",
            Self::Audit => "Audit",
            Self::WouldDeny => "WouldDeny",
            Self::Unknown => "Unknown",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Enforcement {
    /// What no rule allows is denied.
    Enforce,
    /// Nothing is refused; events say what would have been.
    Audit,
}

impl Enforcement {
    /// That of a policy which is, or is not, in Audit.
    pub fn of(audit: bool) -> Self {
        if audit { Self::Audit } else { Self::Enforce }
    }

    /// The word in policies, events and listings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "Enforce",
            Self::Audit => "Audit",
        }
    }
}

/// A rule's stable id: `namespace/policy/rule`, `-/policy/rule` or `postern/builtin/NAME`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(Arc<str>);

impl RuleId {
    /// The id of a policy's rule.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id of a built-in rule, `postern/builtin/NAME`.
    pub fn builtin(name: &str) -> Self {
        Self(format!("postern/builtin/{name}").into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for RuleId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for RuleId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text(|text: &str| Ok(Self(text.into()))))
    }
}
