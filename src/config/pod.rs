//! What the gateway knows of its pod: labels and annotations, from downward-API files or written out.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::source;
use super::value::TextOrVariable;
use crate::event::Workload;
use crate::file_path::FilePath;
use crate::problem::Problem;
use crate::yaml::read::FILE_PATH;

/// More than Kubernetes allows for all annotations of an object (256 KiB), with room for escapes.
const MAX_BYTES: u64 = 2 << 20;

/// Where policy comes from, and whom it is for.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicySettings {
    /// A file or a directory.
    pub path: FilePath,
    pub labels: PodMap,
    pub annotations: PodMap,
    /// Whose traffic events say it is; empty fields are left out there.
    #[serde(deserialize_with = "workload")]
    pub workload: Workload,
}

/// Labels or annotations of the pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PodMap {
    /// A file of the downward API, written anew whenever the pod's metadata change.
    File(FilePath),
    /// Written out in the settings; empty where nothing is written.
    Inline(BTreeMap<String, String>),
}

impl Default for PodMap {
    fn default() -> Self {
        Self::Inline(BTreeMap::new())
    }
}

impl<'de> Deserialize<'de> for PodMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(FILE_PATH, PodMapVisitor)
    }
}

struct PodMapVisitor;

impl<'de> Visitor<'de> for PodMapVisitor {
    type Value = PodMap;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path or a mapping")
    }

    fn visit_byte_buf<E: Error>(self, path: Vec<u8>) -> Result<PodMap, E> {
        Ok(PodMap::File(FilePath::joined(path)))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<PodMap, A::Error> {
        BTreeMap::deserialize(MapAccessDeserializer::new(entries)).map(PodMap::Inline)
    }
}

impl PodMap {
    /// The file it is read from, if it is.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Inline(_) => None,
        }
    }

    /// Reads it as it is now.
    ///
    /// # Errors
    /// The file cannot be read, or a line is not of the downward API's form.
    pub fn read(&self) -> Result<BTreeMap<String, String>, Problem> {
        match self {
            Self::Inline(map) => Ok(map.clone()),
            Self::File(path) => {
                let text = source::read_text(path, MAX_BYTES)?;
                downward(&text).map_err(|problem| problem.in_file(path.display().to_string()))
            }
        }
    }
}

fn workload<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Workload, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "camelCase")]
    struct WorkloadFields {
        namespace: TextOrVariable,
        pod: TextOrVariable,
        service_account: TextOrVariable,
        node: TextOrVariable,
    }
    let WorkloadFields { namespace, pod, service_account, node } = WorkloadFields::deserialize(deserializer)?;
    Ok(Workload {
        namespace: namespace.text,
        pod: pod.text,
        service_account: service_account.text,
        node: node.text,
    })
}

/// Reads the lines that kubelet writes, `key="value"`, the value quoted as Go's `%q` does.
fn downward(text: &str) -> Result<BTreeMap<String, String>, Problem> {
    let mut map = BTreeMap::new();
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        let entry = line.split_once('=').and_then(|(key, value)| Some((key, unquoted(value)?)));
        let Some((key, value)) = entry else {
            let mut problem = Problem::at("", "expected key=\"value\", as the downward API writes it");
            problem.position = Some((i + 1, 1));
            return Err(problem);
        };
        map.insert(key.to_owned(), value);
    }
    Ok(map)
}

/// Undoes Go's quoting of a string (strconv.Quote). `\x` bytes that make no UTF-8 become U+FFFD.
fn unquoted(quoted: &str) -> Option<String> {
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        let unescaped = match c {
            '"' => return None,
            '\\' => escaped(&mut chars, &mut bytes)?,
            other => Some(other),
        };
        if let Some(c) = unescaped {
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads what follows a backslash: a character, or one byte that goes to `bytes` as it is.
fn escaped(chars: &mut std::str::Chars<'_>, bytes: &mut Vec<u8>) -> Option<Option<char>> {
    let digits = match chars.next()? {
        'a' => return Some(Some('\x07')),
        'b' => return Some(Some('\x08')),
        'f' => return Some(Some('\x0c')),
        'n' => return Some(Some('\n')),
        'r' => return Some(Some('\r')),
        't' => return Some(Some('\t')),
        'v' => return Some(Some('\x0b')),
        c @ ('\\' | '"') => return Some(Some(c)),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => return None,
    };
    let mut code = 0;
    for _ in 0..digits {
        code = code * 16 + chars.next()?.to_digit(16)?;
    }
    if digits > 2 {
        return char::from_u32(code).map(Some);
    }
    bytes.push(u8::try_from(code).ok()?);
    Some(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_downward_form_is_read_with_its_escapes() {
        let text = "app=\"coder\"\nnote=\"two\\nlines \\\"quoted\\\" \\u00e9 \\xc3\\xa9 = x\"\nempty=\"\"\n";
        let map = downward(text).unwrap();
        assert_eq!(map["app"], "coder");
        assert_eq!(map["note"], "two\nlines \"quoted\" é é = x");
        assert_eq!(map["empty"], "");
    }

    #[test]
    fn a_line_of_another_form_is_said_with_its_number() {
        for bad in [
            "app=coder",
            "app",
            "app=\"a\"b\"",
            "app=\"\\q\"",
            "app=\"\\u12\"",
            "app=\"",
            "app=\"\\U00110000\"",
        ] {
            let problem = downward(&format!("ok=\"1\"\n{bad}\n")).unwrap_err();
            assert_eq!(problem.position, Some((2, 1)), "{bad}");
        }
    }

    #[test]
    fn a_missing_file_is_a_problem_that_names_it() {
        let problem = PodMap::File("/nonexistent/labels".into()).read().unwrap_err();
        assert!(problem.to_string().starts_with("/nonexistent/labels: "), "{problem}");
    }
}
