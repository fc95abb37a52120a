//! `Exists`: the parameter is there.

use super::{Compared, Found, Operator, Reading};

#[derive(Debug)]
pub(super) struct Presence;

impl Operator for Presence {
    /// That something is missing is known for certain, so this operator alone holds in no other way in Allow rules.
    fn compare(&self, found: &Found<'_>, _: Reading) -> Compared {
        Compared::Is(!matches!(found, Found::Missing))
    }

    fn joins(&self) -> bool {
        false
    }
}
