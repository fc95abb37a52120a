//! Reads `detectors.yaml`.

use regex::bytes::RegexBuilder;
use serde::Deserialize;

use super::Confidence;
use super::detector::{Detector, Form, More, Place};
use super::validator;

/// The detectors that are built in.
pub(super) const TEXT: &str = include_str!("detectors.yaml");

/// The most bytes that the shape of one detector takes compiled.
const MOST_COMPILED: usize = 8 << 20;

/// A detector as the file has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    id: String,
    #[serde(default)]
    place: Place,
    #[serde(default)]
    anchors: Vec<String>,
    #[serde(default)]
    begins: Option<String>,
    #[serde(default)]
    before: usize,
    #[serde(default)]
    shape: Option<String>,
    #[serde(default)]
    more: Option<More>,
    #[serde(default)]
    word: bool,
    #[serde(default)]
    validator: Option<String>,
    confidence: Confidence,
    #[serde(default)]
    rigid: bool,
    #[serde(default)]
    home: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "the examples are a test"))]
    pub(super) found: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "the examples are a test"))]
    pub(super) not: Vec<String>,
}

/// Reads the rows.
///
/// # Errors
/// The file is not as it should be; a test finds that.
pub(super) fn rows() -> Result<Vec<Row>, String> {
    serde_yaml::from_str(TEXT).map_err(|error| error.to_string())
}

/// Makes the detector of a row.
///
/// # Errors
/// As for [`rows`].
pub(super) fn detector(row: Row) -> Result<Detector, String> {
    let at = |error: &dyn std::fmt::Display| format!("{}: {error}", row.id);
    let compile = |shape: &String| {
        RegexBuilder::new(&format!(r"\A(?:{shape})"))
            .unicode(false)
            .size_limit(MOST_COMPILED)
            .build()
            .map_err(|error| at(&error))
    };
    let shape = row.shape.as_ref().map(compile).transpose()?;
    let named = |name: &String| validator::named(name).ok_or_else(|| at(&"no such validator"));
    let validator = row.validator.as_ref().map(named).transpose()?;
    if shape.is_none() && validator.is_none() {
        return Err(at(&"neither a shape nor a validator"));
    }
    if row.anchors.is_empty() != (row.place == Place::Value) {
        return Err(at(&"values have no anchors, all others have"));
    }
    let form = Form {
        place: row.place,
        before: row.before,
        begins: row.begins,
        word: row.word,
        shape,
        more: row.more,
        validator,
        anywhere: None,
    };
    Ok(Detector {
        id: row.id,
        confidence: row.confidence,
        is_rigid: row.rigid,
        home: row.home,
        anchors: row.anchors,
        form,
    })
}
