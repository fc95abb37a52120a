//! Knows what the servers of models say when they do not answer, and says it to the agent in its own dialect.

pub use crate::call::FailureClass;

use super::{context, system_role};
use crate::call::FailureClass::{
    Connect, ContextLength, Quota, RateLimited, Rejected, Timeout, Translate, Unavailable,
};
use crate::call::turn::{AnswerFailure, ContextNumbers, MOST_RETRY_AFTER};
use crate::provider::adapter::ErrorAnswer;
use crate::wire::json::{Document, Kind, Limits, Value};

/// How much of an error's body is read, in bytes.
pub const MOST_ERROR_BYTES: usize = 64 << 10;

/// An answer of a model's server that is no 2xx.
#[derive(Clone, Copy)]
pub struct UpstreamError<'a> {
    pub status: u16,
    /// The field `retry-after`.
    pub retry_after: Option<&'a str>,
    /// The body without its content coding, of which the first [`MOST_ERROR_BYTES`] are read. Only JSON is: nothing of
    /// another body reaches the agent.
    pub body: &'a [u8],
}

/// What the agent reads of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRoute {
    /// The model's label.
    pub label: String,
    /// The route's rule: policy and name.
    pub rule: String,
}

/// What an error says.
#[derive(Default)]
struct ErrorText {
    message: Option<String>,
    /// Codes and types, in lower case.
    codes: Vec<String>,
    /// llama.cpp's numbers: the tokens of the conversation and of the context.
    numbers: Option<ContextNumbers>,
}

/// Classifies an answer that is no 2xx.
pub fn classify(error: &UpstreamError<'_>) -> AnswerFailure {
    let body = error.body.get(..error.body.len().min(MOST_ERROR_BYTES)).unwrap_or_default();
    let text = Document::parse(body.trim_ascii(), Limits::default())
        .map_or_else(|_| ErrorText::default(), |document| read_body(document.root()));
    let too_long = match error.status {
        ..=399 | 401 | 403 | 429 => None,
        _ => text.too_long(),
    };
    let class = match error.status {
        _ if too_long.is_some() => ContextLength,
        402 => Quota,
        400..=499 if text.is_quota() => Quota,
        400.. if text.refuses_system_role() => Rejected,
        408 | 504 => Timeout,
        429 => RateLimited,
        500.. => Unavailable,
        300..=499 => Rejected,
        _ => Translate,
    };
    let reason = text.reason().unwrap_or_else(|| match error.status {
        300..=399 => "the model's server redirects, which is not followed".to_owned(),
        status => format!("the model's server answers with status {status}, and no message that can be read"),
    });
    AnswerFailure {
        status: Some(error.status),
        retry_after: error.retry_after.and_then(seconds),
        context: too_long.flatten(),
        ..AnswerFailure::new(class, &reason)
    }
}

/// Whether its words make Claude Code ask in another way, so that it must read them in the place of the server's own.
pub fn is_advice(failure: &AnswerFailure) -> bool {
    failure.message.starts_with(system_role::ADVICE)
}

/// The failure that an error in the place of an answer, or inside of one, is: an object, or a text.
pub(in crate::provider) fn failure_of_error(error: Value<'_>) -> AnswerFailure {
    let mut text = ErrorText::default();
    text.read(error);
    let too_long = text.too_long();
    let has_code = |codes: &[&str]| text.codes.iter().any(|code| codes.contains(&code.as_str()));
    let class = match too_long {
        Some(_) => ContextLength,
        None if text.is_quota() || has_code(&["402"]) => Quota,
        None if has_code(&["429", "rate_limit_exceeded", "rate_limit_error"]) => RateLimited,
        None if text.refuses_system_role() => Rejected,
        None => Unavailable,
    };
    let reason = text.reason();
    let reason = reason.as_deref().unwrap_or("the model's server reports an error without a message");
    AnswerFailure { context: too_long.flatten(), ..AnswerFailure::new(class, reason) }
}

/// The seconds that a `retry-after` says; a date says none, because nobody here has a clock.
fn seconds(field: &str) -> Option<u64> {
    let (whole, fraction) = field.trim().split_once('.').unwrap_or((field.trim(), ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let more = u64::from(fraction.bytes().any(|digit| digit != b'0'));
    let seconds = whole.parse().unwrap_or(MOST_RETRY_AFTER).saturating_add(more);
    Some(seconds.min(MOST_RETRY_AFTER))
}

fn read_body(root: Value<'_>) -> ErrorText {
    let mut text = ErrorText::default();
    // Google writes a list with one object in it.
    let object = root.items().and_then(|mut items| items.next()).unwrap_or(root);
    // `error` of nearly all; Mistral and vLLM's older versions have nothing around it; FastAPI's has `detail`.
    for value in [get(object, "error"), Some(object), get(object, "detail")].into_iter().flatten() {
        if text.message.is_none() {
            text.read(value);
        }
    }
    text
}

fn get<'d>(object: Value<'d>, key: &str) -> Option<Value<'d>> {
    object.get(key).ok().flatten().filter(|value| !value.is_null())
}

impl ErrorText {
    fn read(&mut self, error: Value<'_>) {
        match error.kind() {
            Kind::String => self.message = error.text().map(std::borrow::Cow::into_owned),
            Kind::Array => {
                if let Some(first) = error.items().and_then(|mut items| items.next()) {
                    let message = get(first, "msg").or_else(|| get(first, "message")).and_then(Value::text);
                    self.message = message.map(std::borrow::Cow::into_owned);
                }
            }
            Kind::Object => self.read_object(error),
            Kind::Null | Kind::Bool | Kind::Number => {}
        }
    }

    fn read_object(&mut self, error: Value<'_>) {
        for key in ["code", "type", "status"] {
            let Some(value) = get(error, key) else { continue };
            let code = value.text().map(std::borrow::Cow::into_owned);
            let code = code.or_else(|| value.number_text().map(str::to_owned));
            self.codes.extend(code.map(|code| code.to_ascii_lowercase()));
        }
        let message = get(error, "message").and_then(Value::text).filter(|text| !text.is_empty());
        // OpenRouter says `Provider returned error`, and what that was beside it.
        let raw = get(error, "metadata").and_then(|metadata| get(metadata, "raw")).and_then(Value::text);
        self.message = match (message, raw) {
            (Some(message), Some(raw)) => Some(format!("{message}: {raw}")),
            (message, raw) => message.or(raw).map(std::borrow::Cow::into_owned),
        };
        let number = |key: &str| get(error, key)?.number_text()?.parse().ok();
        if let (Some(prompt), Some(maximum)) = (number("n_prompt_tokens"), number("n_ctx")) {
            self.numbers = context::measured(prompt, None, maximum);
        }
    }

    /// Whether the conversation is too long, and by how much if that is known.
    fn too_long(&self) -> Option<Option<ContextNumbers>> {
        let numbers = context::too_long(self.message.as_deref().unwrap_or_default(), &self.codes)?;
        Some(numbers.or(self.numbers))
    }

    fn refuses_system_role(&self) -> bool {
        self.message.as_deref().is_some_and(system_role::is_refused)
    }

    /// The message, behind the advice on which Claude Code does without messages of the role.
    fn reason(&self) -> Option<String> {
        let message = self.message.as_ref()?;
        Some(if self.refuses_system_role() {
            format!("{}: {message}", system_role::ADVICE)
        } else {
            message.clone()
        })
    }

    fn is_quota(&self) -> bool {
        const WORDS: [&str; 2] = ["insufficient_quota", "credit balance"];
        let message = self.message.as_deref().unwrap_or_default().to_ascii_lowercase();
        let texts = self.codes.iter().chain([&message]);
        texts.into_iter().any(|text| WORDS.iter().any(|word| text.contains(word)))
    }
}

/// The answer that an agent of Messages reads if no model answers. Never 401, 403, 404: clients log in anew over these, or
/// say that the model does not exist.
pub fn agent_error(failure: &AnswerFailure, route: &AgentRoute) -> ErrorAnswer {
    let (status, kind) = status_and_kind(failure);
    let wait = failure.retry_after.filter(|_| failure.class == RateLimited);
    let headers = wait.map(|seconds| ("retry-after", seconds.to_string())).into_iter().collect();
    let body = error_body(kind, &agent_message(failure, route, "gave no answer"));
    ErrorAnswer { status, headers, body }
}

fn status_and_kind(failure: &AnswerFailure) -> (u16, &'static str) {
    match failure.class {
        Connect => (502, "api_error"),
        Timeout => (504, "timeout_error"),
        RateLimited => (429, "rate_limit_error"),
        Unavailable if matches!(failure.status, Some(503 | 529)) => (529, "overloaded_error"),
        Unavailable => (502, "api_error"),
        Translate if !failure.is_of_request => (502, "api_error"),
        Translate | Quota | ContextLength | Rejected => (400, "invalid_request_error"),
    }
}

/// The event that ends a stream of Messages in its middle, as JSON.
pub(in crate::provider) fn error_event(failure: &AnswerFailure, route: &AgentRoute) -> String {
    let kind = if failure.retry_may_help() { "overloaded_error" } else { "api_error" };
    error_body(kind, &agent_message(failure, route, "broke off its answer"))
}

/// <https://platform.claude.com/docs/en/api/errors>
fn error_body(kind: &str, message: &str) -> String {
    let message = serde_json::Value::from(message);
    format!(r#"{{"type":"error","error":{{"type":"{kind}","message":{message}}}}}"#)
}

/// What people read, and of a conversation that is too long Anthropic's own words: on these alone Claude Code compacts.
fn agent_message(failure: &AnswerFailure, route: &AgentRoute, what: &str) -> String {
    if failure.class == ContextLength {
        return match failure.context {
            Some(ContextNumbers { prompt, output: None, maximum }) => {
                format!("prompt is too long: {prompt} tokens > {maximum} maximum")
            }
            Some(ContextNumbers { prompt, output: Some(output), maximum }) => {
                format!("input length and `max_tokens` exceed context limit: {prompt} + {output} > {maximum}")
            }
            None => "prompt is too long".to_owned(),
        };
    }
    let AgentRoute { label, rule } = route;
    let (class, reason) = (failure.class_word(), &failure.message);
    format!("[postern] {label} {what}\nClass: {class}\nReason: {reason}\nRoute: {rule}")
}
