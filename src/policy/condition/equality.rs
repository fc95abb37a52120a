//! `Equals` and `In`: compares by value.

use serde_json::{Number, Value};

use crate::policy::section::tool::written::Scalar;

use super::{Compared, Comparing, Operator, ParamValue, Reading, Wrong, read};

/// Any of these values.
#[derive(Debug)]
pub(super) struct Equality(Vec<Scalar>);

impl Equality {
    pub(super) fn new(values: &[Scalar]) -> Result<Self, Wrong> {
        read(values, |value| Ok(value.clone())).map(Self)
    }
}

impl Operator for Equality {
    /// Read loosely, a text and a number or boolean that are written alike are equal: many agents take the one for
    /// the other.
    fn compare(&self, element: &ParamValue<'_>, compared: Comparing<'_>) -> Compared {
        let Some(text) = element.text() else { return Compared::Missing };
        let same = |value: &Scalar| match (value, element) {
            (Scalar::Text(own), ParamValue::Text(_) | ParamValue::Json(Value::String(_))) => *own == text,
            (Scalar::Number(own), ParamValue::Json(Value::Number(number))) => equal(own, number),
            (Scalar::Bool(own), ParamValue::Json(Value::Bool(boolean))) => own == boolean,
            (Scalar::Text(_) | Scalar::Number(_) | Scalar::Bool(_), _) => false,
        };
        let alike = |value: &Scalar| compared.reading == Reading::Loose && value.text() == text;
        Compared::Is(self.0.iter().any(|value| same(value) || alike(value)))
    }
}

/// `5`, `5.0` and `5e0` are one number.
fn equal(one: &Number, other: &Number) -> bool {
    let whole = |number: &Number| number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => one == other,
        (None, _) | (_, None) => one.as_f64() == other.as_f64(),
    }
}
