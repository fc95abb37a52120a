//! Whether a request looks like inference wherever it goes: by method and path, at hosts that no table knows.

use http::Method;

use crate::name::lenient;
use crate::name::path::NormalPath;

/// Endings that are those of an inference endpoint and hardly anything else's, in lower case. Their first sign is `/`.
const ENDINGS: &[&str] = &[
    // OpenAI and all who speak its API, whatever their base.
    "/chat/completions",
    "/v1/responses",
    // Anthropic and all who speak its API.
    "/v1/messages",
    // Bedrock's streams.
    "/converse-stream",
    "/invoke-with-response-stream",
];

/// Custom methods of Google's APIs, Anthropic's on Vertex AI among them, in lower case.
const VERBS: &[&str] = &[":generatecontent", ":streamgeneratecontent", ":rawpredict", ":streamrawpredict"];

/// Bedrock's operations on a model whose words alone say too little.
const ON_MODELS: &[&str] = &["/converse", "/invoke"];

/// Whether a request has the method and path of an inference endpoint, also where only a lenient server takes the path
/// for one.
pub fn looks_like_inference(method: &Method, path: &NormalPath) -> bool {
    *method == Method::POST && lenient::readings(path.as_str()).iter().any(|reading| ends_so(reading))
}

/// Whether a path ends like an inference endpoint's. A base is not needed: `/chat/completions` alone is one too.
fn ends_so(path: &str) -> bool {
    let on_model = |ending: &&str| path.strip_suffix(*ending).is_some_and(is_model);
    ENDINGS.iter().chain(VERBS).any(|ending| path.ends_with(*ending)) || ON_MODELS.iter().any(on_model)
}

/// Whether a path is `…/model/ID`; an ARN has slashes of its own.
fn is_model(path: &str) -> bool {
    path.rsplit_once("/model/").is_some_and(|(_, id)| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inference_endpoint_is_known_by_its_path_at_any_base() {
        for path in [
            "/chat/completions",
            "/api/paas/v4/chat/completions",
            "/anything/v1/chat/completions/",
            "/anthropic/v1/messages",
            "/v1/responses",
            "/v1beta/models/gemini-3:generateContent",
            "/v1beta/models/gemini-3:streamGenerateContent",
            "/v1/projects/p/locations/l/publishers/anthropic/models/m:streamRawPredict",
            "/model/anthropic.claude/converse",
            "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fp/invoke",
            "/model/m/converse-stream",
            "/model/m/invoke-with-response-stream",
            "/V1/Chat/Completions",
            "//v1//chat/./completions",
            "/v1/x/../messages",
            "/v1/chat%2Fcompletions",
            "/v1/chat%252fcompletions",
            "/v1/chat/completions;x=1",
            "\\v1\\messages",
        ] {
            assert!(looks_like_inference(&Method::POST, &NormalPath::parse(path)), "{path}");
            assert!(!looks_like_inference(&Method::GET, &NormalPath::parse(path)), "{path}");
        }
        for path in [
            "/",
            "/v1/messages/batches",
            "/v2/messages",
            "/messages",
            "/responses",
            "/v1/chat/completions/c_1",
            "/completions",
            "/repos/a/b/pulls",
            "/a:generate",
            "/converse",
            "/lambda/invoke",
            "/model//invoke",
            "/v1/embeddings",
        ] {
            assert!(!looks_like_inference(&Method::POST, &NormalPath::parse(path)), "{path}");
        }
    }
}
