//! Fields that are put into bodies, judged and compiled.

use super::super::Problems;
use super::written::Params;
use crate::policy::routing::Param;
use crate::yaml::field;

/// The most bytes of all fields, as compact JSON.
const MOST_BYTES: usize = 4096;

/// What the gateway itself writes, or decides about (routing.md 12.1).
const FORBIDDEN: [&str; 10] = [
    "model",
    "messages",
    "input",
    "tools",
    "tool_choice",
    "stream",
    "stream_options",
    "n",
    "functions",
    "store",
];

/// Compiles the fields; none where one has a mistake.
pub(in crate::policy::section) fn lower(
    path: &str,
    written: Option<&Params>,
    problems: &mut Problems,
) -> Option<Vec<Param>> {
    let Some(Params(written)) = written else { return Some(Vec::new()) };
    let path = field::key(path, "params");
    let mut is_fine = true;
    for name in written.keys() {
        let message = if name.is_empty() {
            "a field has a name".to_owned()
        } else if let Some(forbidden) =
            FORBIDDEN.into_iter().find(|forbidden| name.eq_ignore_ascii_case(forbidden))
        {
            format!("`{forbidden}` is what the gateway writes or decides about; leave it out")
        } else {
            continue;
        };
        problems.add(field::key(&path, name), message);
        is_fine = false;
    }
    let bytes = serde_json::to_string(written).map_or(usize::MAX, |json| json.len());
    if bytes > MOST_BYTES {
        problems.add(path, format!("are {bytes} bytes as JSON; at most {MOST_BYTES}"));
        is_fine = false;
    }
    is_fine.then(|| {
        let compiled =
            written.iter().map(|(name, value)| Param { name: name.clone(), json: value.to_string() });
        compiled.collect()
    })
}
