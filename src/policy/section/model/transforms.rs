//! Lists of transforms, judged.

use super::super::Problems;
use super::super::lowering::each;
use crate::policy::routing::{TRANSFORMS, is_schema};
use crate::yaml::field;

/// Reads a list; none inside where none is written, none at all where it has a mistake. `is_chat` says whether the provider
/// speaks OpenAIChat, none where that is not known.
pub(in crate::policy::section) fn lower(
    path: &str,
    written: Option<&[String]>,
    is_chat: Option<bool>,
    problems: &mut Problems,
) -> Option<Option<Vec<&'static str>>> {
    let Some(written) = written else { return Some(None) };
    let list = field::key(path, "transforms");
    if is_chat == Some(false) {
        problems.add(list, "belongs to providers of the dialect OpenAIChat: to others requests go unchanged");
        return None;
    }
    let names = each(&list, written, problems, |name| {
        let known = TRANSFORMS.into_iter().find(|known| *known == name);
        known.ok_or_else(|| format!("is no transform; there are {}", TRANSFORMS.join(", ")))
    })?;
    let mut chosen: Vec<&'static str> = Vec::with_capacity(names.len());
    for (number, name) in names.into_iter().enumerate() {
        let at = || field::item(&list, number);
        if chosen.contains(&name) {
            problems.add(at(), format!("`{name}` stands in the list already"));
            return None;
        }
        if let Some(other) = chosen.iter().find(|other| is_schema(name) && is_schema(other)) {
            problems
                .add(at(), format!("`{other}` stands in the list already: a list has one `schema:` at most"));
            return None;
        }
        chosen.push(name);
    }
    Some(Some(chosen))
}
