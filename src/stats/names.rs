//! Names that were met, each with a number; agents choose them, so their number is bounded.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

/// The most names that are told apart.
const MOST: usize = 10_000;

/// What the names beyond are counted under.
const OTHERS: &str = "(others)";

/// Numbers of names, in the order in which they were met.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: HashMap<Arc<str>, usize, RandomState>,
    names: Vec<Arc<str>>,
}

impl Names {
    /// The number of a name; beyond the bound one for all.
    pub(super) fn number(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let is_full = self.names.len() >= MOST;
        if is_full && name != OTHERS {
            return self.number(OTHERS);
        }
        let (number, name) = (self.names.len(), Arc::<str>::from(name));
        self.numbers.insert(Arc::clone(&name), number);
        self.names.push(name);
        number
    }

    pub(super) fn name(&self, number: usize) -> Arc<str> {
        self.names.get(number).map_or_else(|| OTHERS.into(), Arc::clone)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.numbers.contains_key(name)
    }
}

/// The entry of a table by number; the table grows.
pub(super) fn entry<T: Default>(table: &mut Vec<T>, number: usize) -> Option<&mut T> {
    if table.len() <= number {
        table.resize_with(number + 1, T::default);
    }
    table.get_mut(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_bound_are_one() {
        let mut names = Names::default();
        for number in 0..MOST {
            assert_eq!(names.number(&number.to_string()), number);
        }
        let others = names.number("x");
        assert_eq!((names.number("y"), &*names.name(others)), (others, OTHERS));
        assert_eq!(names.number("7"), 7);
        assert!(names.has("7") && !names.has("x"));
    }
}
