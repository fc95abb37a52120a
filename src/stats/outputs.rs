//! Counts results of tools that were shortened: each text once, as the gateway told of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::event::{Event, Extent, Kind};

/// How the names of these changes begin.
const NAMED: &str = "tool-output-";

/// The most rows: reasons are words of the gateway, but a ledger of somebody else may have others.
const MOST: usize = 64;

/// What became of long results of tools, by action and, of those that were left, by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputRow {
    /// `compressed`, `repeated` or `left`.
    pub action: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Arc<str>>,
    pub texts: u64,
    pub bytes_before: u64,
    pub bytes_after: u64,
    /// About a quarter of the bytes. What is saved is saved on every turn that sends the text again; that is not counted.
    pub tokens_before: u64,
    pub tokens_after: u64,
}

#[derive(Debug, Default)]
pub(super) struct OutputCounts(BTreeMap<(Arc<str>, Option<Arc<str>>), OutputRow>);

impl OutputCounts {
    pub(super) fn take(&mut self, event: &Event) {
        if event.kind != Kind::Transform {
            return;
        }
        for transform in &event.transforms {
            let Some(action) = transform.name.strip_prefix(NAMED) else { continue };
            let is_left = transform.after.is_none();
            let reason = transform.detail.as_deref().filter(|_| is_left).map(Arc::from);
            let key = (Arc::from(action), reason);
            if self.0.len() >= MOST && !self.0.contains_key(&key) {
                continue;
            }
            let before = transform.before.clone().unwrap_or_default();
            let after = transform.after.clone().unwrap_or_else(|| before.clone());
            self.0.entry(key).or_default().add(&before, &after);
        }
    }

    /// The rows, in one order.
    pub(super) fn rows(self) -> Vec<OutputRow> {
        let rows = self.0.into_iter();
        rows.map(|((action, reason), row)| OutputRow { action, reason, ..row }).collect()
    }
}

impl OutputRow {
    fn add(&mut self, before: &Extent, after: &Extent) {
        let sum = |so_far: &mut u64, more: u64| *so_far = so_far.saturating_add(more);
        sum(&mut self.texts, 1);
        sum(&mut self.bytes_before, before.bytes);
        sum(&mut self.bytes_after, after.bytes);
        sum(&mut self.tokens_before, before.tokens.unwrap_or_default());
        sum(&mut self.tokens_after, after.tokens.unwrap_or_default());
    }
}
