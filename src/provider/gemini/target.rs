//! Reads path and query of a request: the model, whether it streams, and how bodies are wrapped.

use crate::call::Denial;
use crate::name::path::NormalPath;

/// The model, the method and the wrapping in a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GeminiTarget {
    /// The model, or `tunedModels/ID` or `endpoints/ID`; none where the body names it.
    pub(super) model: Option<String>,
    pub(super) streams: bool,
    /// Whether the body is that of Code Assist, which has the request in its field `request`.
    pub(super) wraps: bool,
}

impl GeminiTarget {
    pub(super) fn of(path: &str) -> Self {
        let path = NormalPath::parse(path);
        let mut segments = path.as_str().trim_end_matches('/').rsplit('/');
        let last = segments.next().unwrap_or_default();
        let (name, verb) = last.rsplit_once(':').unwrap_or((last, ""));
        let model = match segments.next() {
            Some("models") => Some(name.to_owned()),
            Some(kind @ ("tunedModels" | "endpoints")) => Some(format!("{kind}/{name}")),
            _ => None,
        };
        let wraps = model.is_none() && name == "v1internal";
        Self { model, streams: verb == "streamGenerateContent", wraps }
    }
}

/// Refuses a request whose answer would be no JSON (<https://cloud.google.com/apis/docs/system-parameters>): a tool
/// call in it could not be seen.
///
/// # Errors
/// If the query asks for such a format.
pub(super) fn check_format(query: Option<&str>) -> Result<(), Denial> {
    for pair in query.unwrap_or_default().split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = name.trim_start_matches("%24").trim_start_matches('$');
        let is_other = match name {
            "alt" => !is_readable(value),
            "callback" => !value.is_empty(),
            // An escaped name is decoded by the provider.
            escaped => escaped.contains('%'),
        };
        if is_other {
            return Err(Denial::unparseable(
                "query",
                "its answer would be neither JSON nor server-sent events; ask for alt=json or alt=sse, and escape \
                 no parameter's name",
            ));
        }
    }
    Ok(())
}

/// Whether answers in this format are read here. What may stand behind a semicolon is about enumerations.
fn is_readable(format: &str) -> bool {
    let options = format.strip_prefix("json").or_else(|| format.strip_prefix("sse"));
    let is_end =
        |rest: &str| rest.is_empty() || [";", "%3B", "%3b"].iter().any(|mark| rest.starts_with(mark));
    format.is_empty() || options.is_some_and(is_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_model_and_verb() {
        let table = [
            ("/v1beta/models/gemini-3-pro:generateContent", Some("gemini-3-pro"), false),
            ("/v1beta/models/gemini%2D3:streamGenerateContent", Some("gemini-3"), true),
            ("/v1/models/gemini-3%3AstreamGenerateContent", Some("gemini-3"), true),
            ("/v1beta/tunedModels/mine:generateContent", Some("tunedModels/mine"), false),
            ("/v1/projects/p/locations/l/publishers/google/models/g:streamGenerateContent", Some("g"), true),
            ("/v1/projects/p/locations/l/endpoints/42:generateContent", Some("endpoints/42"), false),
        ];
        for (path, model, streams) in table {
            let expected = GeminiTarget { model: model.map(str::to_owned), streams, wraps: false };
            assert_eq!(GeminiTarget::of(path), expected, "{path}");
        }
        let code_assist = GeminiTarget { model: None, streams: true, wraps: true };
        assert_eq!(GeminiTarget::of("/v1internal:streamGenerateContent"), code_assist);
    }

    #[test]
    fn an_answer_that_is_no_json_is_not_asked_for() {
        let passes = [
            "alt=sse",
            "%24alt=sse&key=x%20y",
            "$alt=json",
            "alt=",
            "key=1&callback=",
            "",
            "$alt=json%3Benum-encoding%3Dint",
        ];
        assert!(passes.iter().all(|query| check_format(Some(query)).is_ok()));
        let refused = [
            "alt=proto",
            "%24alt=media",
            "alt=json&$alt=proto",
            "callback=f",
            "%61lt=proto",
            "alt=%70roto",
            "alt=jsonp",
        ];
        assert!(refused.iter().all(|query| check_format(Some(query)).is_err()));
    }
}
