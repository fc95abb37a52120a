//! `toolOutputs`, as users write it: which results of tools are shortened in requests to models, and how.

use serde::{Deserialize, Serialize};

use crate::call::Kind;
use crate::tool_output::Repeats;

/// What becomes of long results of tools. It saves tokens and is no protection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a mapping: {of, compress, repeats}")]
pub struct WrittenToolOutputs {
    /// Whose results. Absent: those of tools that run commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<Vec<WrittenOutputsOf>>,
    /// Long results keep their beginning, their end, and lines that look like diagnostics. All of a text is kept as
    /// evidence before the request leaves; without the gateway's setting `evidence` nothing is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compress: Option<WrittenCompress>,
    /// What becomes of a result that stands whole earlier in the same request. Absent: Keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeats>,
}

/// Tools: by what they do, or by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a mapping: {kind} or {tools}")]
pub struct WrittenOutputsOf {
    /// Shell or Fetch, of tools that are known by their names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Names of tools in every spelling; `*` stands for any run of characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

/// When a result is cut, and what is left of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a mapping: {above, head, tail, diagnostics}")]
pub struct WrittenCompress {
    /// What has more of either is cut. Absent: 400 lines, 6000 tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above: Option<WrittenAmount>,
    /// What is left of the beginning at most. Absent: 60 lines, 1200 tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<WrittenAmount>,
    /// What is left of the end at most, twice that of errors. Absent: 120 lines, 2400 tokens. Head and tail together are
    /// at most two thirds of `above`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<WrittenAmount>,
    /// How many lines that look like diagnostics are left of the rest, 0 to 200. Absent: 40.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<i64>,
}

/// Lines and tokens. A token is four bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a mapping: {lines, tokens}")]
pub struct WrittenAmount {
    /// 1 to 100000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<i64>,
    /// 256 to 1000000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<i64>,
}
