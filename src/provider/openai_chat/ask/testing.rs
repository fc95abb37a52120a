//! What tests of requests share: terms from JSON, and files that say what a request becomes.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{ChatRequest, ChatTerms, EffortTerms, Images, ask};
use crate::call::Vendor;
use crate::call::turn::prompt::Unsayable;
use crate::provider::openai_chat::transform::{Transform, Transforms};
use crate::provider::translate::prompt;
use crate::wire::json::{Document, Limits};

/// Translates a body of Messages under these terms, with what the terms do not say as policy has it by default.
pub(in crate::provider::openai_chat) fn translated(
    body: &str,
    terms: &Value,
) -> Result<ChatRequest, Unsayable> {
    let words = |key: &str| terms[key].as_array().cloned().unwrap_or_default();
    let text = |key: &str, default: &'static str| terms[key].as_str().unwrap_or(default).to_owned();
    let transforms: Transforms =
        words("transforms").iter().map(|word| word.as_str().unwrap().parse::<Transform>().unwrap()).collect();
    let params = if terms["params"].is_null() { String::new() } else { terms["params"].to_string() };
    let (model, vendor) = (text("model", "qwen3-coder"), text("vendor", "custom"));
    let document = Document::parse(body.as_bytes(), Limits::default()).unwrap();
    let terms = ChatTerms {
        model: &model,
        label: "coder",
        vendor: Vendor::ALL.iter().copied().find(|known| known.as_str() == vendor).unwrap(),
        max_tokens: terms["max_tokens"].as_u64(),
        images: if terms["images"] == "Omit" { Images::Omit } else { Images::Send },
        effort: if terms["effort"] == "Map" { EffortTerms::Map } else { EffortTerms::Drop },
        params: &params,
        transforms,
    };
    ask(&prompt(&document)?, &terms)
}

/// Compares each file of a folder with what its request becomes. `POSTERN_BLESS=1` writes them.
pub(in crate::provider::openai_chat) fn compare(folder: &str) {
    let folder = Path::new(file!()).parent().unwrap().join(folder);
    // The path of this file is relative to the package.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let golden: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let actual = actual(&golden);
        if std::env::var_os("POSTERN_BLESS").is_some() {
            fs::write(&path, serde_json::to_string_pretty(&actual).unwrap() + "\n").unwrap();
            continue;
        }
        // As text, since the order of keys counts.
        let (expected, actual) = (golden.to_string(), actual.to_string());
        assert_eq!(expected, actual, "{}", path.display());
    }
}

/// What a file says once it is written.
fn actual(golden: &Value) -> Value {
    let body = golden["messages"].to_string();
    let mut actual = Map::new();
    actual.insert("terms".to_owned(), golden["terms"].clone());
    actual.insert("messages".to_owned(), golden["messages"].clone());
    match translated(&body, &golden["terms"]) {
        Err(error) => {
            actual.insert("error".to_owned(), error.to_string().into());
        }
        Ok(request) => {
            let again = translated(&body, &golden["terms"]).unwrap();
            assert_eq!(request.body, again.body, "the same request becomes the same bytes");
            actual.insert("chat".to_owned(), serde_json::from_slice(&request.body).unwrap());
            let names = request.names.iter().map(|(sent, agent)| (sent.to_owned(), json!(agent)));
            actual.insert("names".to_owned(), names.collect::<Map<_, _>>().into());
            let notes = request.notes.iter().map(|(word, count)| (word.to_owned(), json!(count)));
            actual.insert("notes".to_owned(), notes.collect::<Map<_, _>>().into());
        }
    }
    actual.into()
}
