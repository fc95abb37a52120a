//! What tokens cost, as a file of the user says: prices change, so that none is built in.

use serde::{Deserialize, Serialize};

use super::counts::Tokens;
use crate::event::pattern;

/// Prices of models. The first that matches counts.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a mapping: {currency, models: [{model, input, output, cacheRead, cacheWrite}]}")]
pub struct PriceList {
    /// Printed beside each sum.
    #[serde(default = "dollars")]
    currency: String,
    models: Vec<Price>,
}

/// What a million tokens cost.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Price {
    /// A model; `*` stands for any text.
    model: String,
    input: f64,
    output: f64,
    /// Of the input, read from a cache; without it as other input.
    cache_read: Option<f64>,
    /// Of the input, written to a cache; without it as other input.
    cache_write: Option<f64>,
}

/// What was spent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    pub amount: f64,
    pub currency: String,
}

fn dollars() -> String {
    "USD".to_owned()
}

impl PriceList {
    /// Checks that every price is one.
    ///
    /// # Errors
    /// A price is negative or no number.
    pub fn check(self) -> Result<Self, String> {
        let is_price = |price: f64| price.is_finite() && price >= 0.0;
        for (number, price) in self.models.iter().enumerate() {
            let prices = [Some(price.input), Some(price.output), price.cache_read, price.cache_write];
            if !prices.into_iter().flatten().all(is_price) {
                return Err(format!(
                    "models[{number}] ({}): a price is a number from 0, of a million tokens",
                    price.model
                ));
            }
        }
        Ok(self)
    }

    /// What these tokens of a model cost; none where the model has no price.
    pub(super) fn cost(&self, model: &str, tokens: &Tokens) -> Option<f64> {
        let price = self.models.iter().find(|price| pattern::matches(&price.model, model))?;
        let cached = tokens.cache_read.saturating_add(tokens.cache_write);
        let parts = [
            (tokens.input.saturating_sub(cached), price.input),
            (tokens.cache_read, price.cache_read.unwrap_or(price.input)),
            (tokens.cache_write, price.cache_write.unwrap_or(price.input)),
            (tokens.output, price.output),
        ];
        // Tokens are far fewer than the 2^53 up to which a float counts them.
        #[expect(clippy::cast_precision_loss, reason = "see above")]
        let cost = parts.into_iter().map(|(tokens, price)| tokens as f64 * price).sum::<f64>();
        Some(cost / 1e6)
    }

    /// A sum, to a millionth.
    pub(super) fn sum(&self, amount: f64) -> Cost {
        Cost { amount: (amount * 1e6).round() / 1e6, currency: self.currency.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices(text: &str) -> Result<PriceList, String> {
        serde_yaml::from_str::<PriceList>(text).map_err(|error| error.to_string())?.check()
    }

    #[test]
    fn the_first_model_that_matches_sets_the_price_and_caches_have_their_own() {
        let prices = prices(
            "models:\n- {model: 'claude-*', input: 3, output: 15, cacheRead: 0.3}\n- {model: '*', input: 1, output: 1}\n",
        )
        .unwrap();
        let tokens = Tokens {
            input: 3_000_000,
            output: 1_000_000,
            cache_read: 1_000_000,
            cache_write: 500_000,
            reasoning: 9,
        };
        assert_eq!(prices.cost("Claude-sonnet-5-5", &tokens), Some(3.0 * 1.5 + 0.3 + 3.0 * 0.5 + 15.0));
        assert_eq!(prices.cost("other", &tokens), Some(4.0));
        assert_eq!(prices.sum(1.234_567_89), Cost { amount: 1.234_568, currency: "USD".to_owned() });
    }

    #[test]
    fn a_file_with_a_mistake_is_refused() {
        for wrong in [
            "models: [{model: a, input: -1, output: 1}]",
            "models: [{model: a, input: .nan, output: 1}]",
            "models: [{model: a, input: 1}]",
            "models: [{model: a, input: 1, output: 1, cached: 1}]",
            "currency: EUR",
            "[]",
        ] {
            assert!(prices(wrong).is_err(), "{wrong}");
        }
        let none = prices("currency: EUR\nmodels: []").unwrap();
        assert_eq!(none.cost("a", &Tokens::default()), None);
    }
}
