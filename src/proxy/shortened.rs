//! What the gateway remembers of results of tools that it shortened: the settings of conversations, what became of texts, the
//! calls of answers that providers keep, and which texts were told of.

use std::hash::Hash;
use std::sync::Arc;

use quick_cache::sync::Cache;

use crate::digest::SecretHash;
use crate::policy::Policy;
use crate::policy::tool_outputs::ToolOutputs;
use crate::tool_output::Shortened;
use crate::tool_output::chains::Chains;
use crate::tool_output::conversations::Conversations;
use crate::tool_output::known::KnownCuts;

/// How many texts are remembered that were told of.
const MOST_TOLD: usize = 65_536;

/// The memory of one gateway.
pub(crate) struct ShortenedTexts {
    pub(crate) conversations: Conversations<ToolOutputs>,
    pub(crate) cuts: KnownCuts,
    /// Answers from which a request may go on by their ids alone.
    pub(crate) chains: Chains,
    told: Cache<u128, ()>,
    hash: SecretHash,
}

impl ShortenedTexts {
    /// `first`: the settings with which the gateway starts.
    pub(crate) fn new(first: Option<Arc<ToolOutputs>>) -> Self {
        let (conversations, cuts) = (Conversations::new(first), KnownCuts::default());
        Self {
            conversations,
            cuts,
            chains: Chains::default(),
            told: Cache::new(MOST_TOLD),
            hash: SecretHash::default(),
        }
    }

    /// Whether any request is looked at. Where only Audit policies select the pod nothing is edited.
    pub(crate) fn is_asked(&self, policy: &Policy) -> bool {
        !self.conversations.is_idle(policy.tool_outputs()) && !policy.audit_only()
    }

    /// Whether a text, by itself or by its name, was not told of yet; from then on it was.
    pub(crate) fn is_new(&self, text: impl Hash + Copy, how: Shortened) -> bool {
        let key = self.hash.of((how, text));
        let is_new = self.told.get(&key).is_none();
        if is_new {
            self.told.insert(key, ());
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_told_of_once_for_each_that_became_of_it() {
        let texts = ShortenedTexts::new(None);
        assert!(texts.is_new("a", Shortened::Compressed));
        assert!(!texts.is_new("a", Shortened::Compressed));
        assert!(texts.is_new("a", Shortened::Left) && texts.is_new("b", Shortened::Compressed));
    }
}
