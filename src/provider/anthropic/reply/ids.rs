//! Gives each call of an answer an id that Messages allows and that no other call of the answer has.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::digest::{hex, sha256_of};

/// The longest id that is kept.
const LONGEST: usize = 64;

/// How many hex digits an id of our own has.
const DIGITS: usize = 24;

/// The ids of one answer.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    given: BTreeSet<String>,
    calls: u64,
}

impl CallIds {
    /// The id of the next call. Characters that Messages does not allow become `_`; an id that is missing, all digits, too
    /// long or given already is replaced by one made of the answer's id and the call's number.
    pub(super) fn next(&mut self, answer: &str, id: Option<&str>) -> String {
        let number = self.calls;
        self.calls += 1;
        let cleaned = id.map(clean).filter(|id| is_fit(id) && !self.given.contains(&**id));
        let id = cleaned.map_or_else(|| own(answer, number), Cow::into_owned);
        self.given.insert(id.clone());
        id
    }
}

fn is_allowed(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '-'
}

fn clean(id: &str) -> Cow<'_, str> {
    if id.chars().all(is_allowed) {
        return Cow::Borrowed(id);
    }
    Cow::Owned(id.chars().map(|character| if is_allowed(character) { character } else { '_' }).collect())
}

fn is_fit(id: &str) -> bool {
    id.len() <= LONGEST && !id.bytes().all(|byte| byte.is_ascii_digit())
}

fn own(answer: &str, number: u64) -> String {
    let mut digits = hex(&sha256_of(&[answer.as_bytes(), number.to_string().as_bytes()]));
    digits.truncate(DIGITS);
    format!("toolu_{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_messages_allows_is_kept() {
        let mut ids = CallIds::default();
        assert_eq!(ids.next("msg", Some("call_a-1")), "call_a-1");
        assert_eq!(ids.next("msg", Some("functions.run:0")), "functions_run_0");
        assert_eq!(ids.next("msg", Some(&"a".repeat(64))), "a".repeat(64));
    }

    #[test]
    fn every_other_id_is_made_of_the_answer_and_the_number() {
        let mut ids = CallIds::default();
        assert_eq!(ids.next("msg", Some("a:b")), "a_b");
        let long = "a".repeat(65);
        for (number, id) in
            [None, Some(""), Some("12345"), Some(long.as_str()), Some("a.b")].into_iter().enumerate()
        {
            let expected = own("msg", number as u64 + 1);
            assert_eq!(ids.next("msg", id), expected);
            assert_eq!(expected.len(), "toolu_".len() + 24);
        }
        // printf 'msg0' | sha256sum
        assert_eq!(own("msg", 0), "toolu_42a98f3d3ee09518c8e23699");
    }
}
