//! `Exists`: the parameter is there.

use super::{Compared, Comparing, Operator, ParamValue};

#[derive(Debug)]
pub(super) struct Presence;

impl Operator for Presence {
    /// That something is missing is known for certain, so this operator alone holds in no other way in Allow rules.
    fn compare(&self, element: &ParamValue<'_>, _: Comparing<'_>) -> Compared {
        Compared::Is(!matches!(element, ParamValue::Missing))
    }

    fn joins(&self) -> bool {
        false
    }
}
