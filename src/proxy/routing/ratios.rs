//! Remembers of each model how many bytes of a request one of its tokens has, as its answers tell.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::provider::translate::estimate::{Ratio, Size};

/// How many models are remembered. Policies name them.
const MOST: usize = 4_096;

/// The ratios of models, by the ids of their rules.
#[derive(Debug, Default)]
pub(crate) struct Ratios(Mutex<HashMap<String, Ratio>>);

impl Ratios {
    /// The ratio of a model.
    pub(crate) fn of(&self, model: &str) -> Ratio {
        let ratios = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ratios.get(model).copied().unwrap_or_default()
    }

    /// A model read a request of this size as so many tokens.
    pub(crate) fn learn(&self, model: &str, size: Size, tokens: u64) {
        let mut ratios = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ratios.len() >= MOST && !ratios.contains_key(model) {
            ratios.clear();
        }
        ratios.entry(model.to_owned()).or_default().learn(size, tokens);
    }
}
