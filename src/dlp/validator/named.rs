//! The name that a value is given to.

/// How much may stand between name and value: quotes, brackets, spaces, a sign of assignment.
const BETWEEN: usize = 24;
const LONGEST: usize = 64;

/// Returns the name of the value that begins there.
pub(super) fn name_of(text: &[u8], value: usize) -> Option<&[u8]> {
    let before = text.get(..value)?;
    let (mut between, mut is_assigned) = (0, false);
    for byte in before.iter().rev().take(BETWEEN) {
        match byte {
            b'=' | b':' => is_assigned = true,
            b'"' | b'\'' | b'`' | b'\\' | b'>' | b'\t' | b' ' | b']' | b')' => {}
            _ => break,
        }
        between += 1;
    }
    if !is_assigned {
        return None;
    }
    let name = before.get(..value - between)?;
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let length = name.iter().rev().take(LONGEST).take_while(is_name).count();
    name.get(name.len() - length..).filter(|found| !found.is_empty() && !is_placeholder(name))
}

/// Whether a text ends with what stands in the place of a secret, but for its last bracket: the detector's id names no value.
fn is_placeholder(text: &[u8]) -> bool {
    let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
    let length = text.iter().rev().take(LONGEST).take_while(is_word).count();
    let (before, told) = text.split_at(text.len() - length);
    before.ends_with(b"[") && told.starts_with(b"postern:")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Goes back twice, first over what stands between.
    fn name_of_slowly(text: &[u8], value: usize) -> Option<&[u8]> {
        let before = text.get(value.saturating_sub(BETWEEN)..value)?;
        let between = before.iter().rev().take_while(|byte| b"=:\"'`\\>\t ])".contains(byte)).count();
        let is_assigned = before.iter().rev().take(between).any(|byte| matches!(byte, b'=' | b':'));
        let end = value - between;
        let name = text.get(end.saturating_sub(LONGEST)..end)?;
        let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
        let length = name.iter().rev().take_while(is_name).count();
        name.get(name.len() - length..).filter(|name| is_assigned && !name.is_empty())
    }

    #[test]
    fn what_stands_in_the_place_of_a_secret_names_nothing() {
        let name = |text: &str| name_of(text.as_bytes(), text.len()).map(<[u8]>::to_vec);
        assert!(crate::call::withheld::PLACEHOLDER.ends_with("[postern:"));
        for detector in ["github-token", "pattern:token", "value:api.key"] {
            assert_eq!(name(&format!("[postern:{detector}]: ")), None, "{detector}");
        }
        for text in ["env[token] = ", "[postern: token] = ", "[a]postern:token = ", "['token']: "] {
            assert_eq!(name(text).as_deref(), Some(&b"token"[..]), "{text}");
        }
    }

    proptest! {
        #[test]
        fn names_are_those_of_a_slower_search(text in "[a_. ]{0,4}[a-z_]{0,70}[=: \"\\]]{0,26}", back in 0_usize..3) {
            let (text, value) = (text.as_bytes(), text.len().saturating_sub(back));
            prop_assert_eq!(name_of(text, value), name_of_slowly(text, value));
        }
    }
}
