//! `Contains` and `StartsWith`: a text in a text, byte for byte.

use crate::policy::section::tool::written::Scalar;

use super::{Compared, Comparing, Operator, ParamValue, Wrong, read};

/// Any of these texts, anywhere.
#[derive(Debug)]
pub(super) struct Contains(Vec<String>);

/// Any of these texts, at the beginning.
#[derive(Debug)]
pub(super) struct StartsWith(Vec<String>);

impl Contains {
    pub(super) fn new(values: &[Scalar]) -> Result<Self, Wrong> {
        texts(values).map(Self)
    }
}

impl StartsWith {
    pub(super) fn new(values: &[Scalar]) -> Result<Self, Wrong> {
        texts(values).map(Self)
    }
}

impl Operator for Contains {
    fn compare(&self, element: &ParamValue<'_>, _: Comparing<'_>) -> Compared {
        let Some(text) = element.text() else { return Compared::Missing };
        Compared::Is(self.0.iter().any(|own| text.contains(own)))
    }
}

impl Operator for StartsWith {
    fn compare(&self, element: &ParamValue<'_>, _: Comparing<'_>) -> Compared {
        let Some(text) = element.text() else { return Compared::Missing };
        Compared::Is(self.0.iter().any(|own| text.starts_with(own)))
    }
}

fn texts(values: &[Scalar]) -> Result<Vec<String>, Wrong> {
    read(values, |value| match value.text() {
        text if text.is_empty() => Err("is empty, and in every text".to_owned()),
        text => Ok(text.into_owned()),
    })
}
