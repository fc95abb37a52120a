//! Knows the sentences in which servers say that a conversation is longer than their model's context.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::call::turn::ContextNumbers;

/// Codes and types of errors that say it. The first is OpenAI's, vLLM's and Groq's, the second llama.cpp's:
/// <https://github.com/ggml-org/llama.cpp/pull/15780>
const CODES: [&str; 2] = ["context_length_exceeded", "exceed_context_size_error"];

/// The sentences, the most exact ones first. `p` is the length of the conversation, `o` what the answer may have, `t` both,
/// `m` what the model takes, `list` the parts of `t`; all in tokens.
const SENTENCES: &[&str] = &[
    // Anthropic, and Bedrock with its models.
    r"prompt is too long: (?P<p>\d+) tokens > (?P<m>\d+) maximum",
    r"input length and `max_tokens` exceed context limit: (?P<p>\d+) \+ (?P<o>\d+) > (?P<m>\d+)",
    // vLLM, in the order of its versions from the newest.
    r"maximum context length is (?P<m>\d+) tokens\. However, you requested (?P<o>\d+) output tokens and your prompt contains (?:at least )?(?P<p>\d+) input tokens",
    r"is too large: (?P<o>\d+)\. This model's maximum context length is (?P<m>\d+) tokens and your request has (?P<p>\d+) input tokens",
    r"maximum context length is (?P<m>\d+) tokens\. However, your request has (?P<p>\d+) input tokens",
    r"You passed (?P<p>\d+) input tokens and requested (?P<o>\d+) output tokens\. However, the model's context length is only (?P<m>\d+)",
    r"prompt \(length (?P<p>\d+)\) is longer than the maximum model length of (?P<m>\d+)",
    // OpenAI, Azure, OpenRouter, DeepSeek, and vLLM's older versions.
    r"maximum context length is (?P<m>\d+) tokens[.,;]? however,? [a-z ]{1,40}(?P<t>\d+) tokens \((?P<list>[^)]{1,200})\)",
    r"maximum context length is (?P<m>\d+) tokens[.,;]? however,? [a-z ]{1,40}(?P<p>\d+) tokens",
    r"Input tokens exceed the configured limit of (?P<m>\d+) tokens\. Your messages resulted in (?P<p>\d+) tokens",
    r"exceeds the context window of this model",
    // SGLang.
    r"maximum context length of (?P<m>\d+) tokens\. You requested a total of \d+ tokens: (?P<p>\d+) tokens from the input messages and (?P<o>\d+) tokens for the completion",
    r"input \((?P<p>\d+) tokens\) is longer than the model's context length \((?P<m>\d+) tokens\)",
    r"Input length \((?P<p>\d+)\) exceeds (?:the )?model's maximum context length \((?P<m>\d+)\)",
    // llama.cpp.
    r"request \((?P<p>\d+) tokens\) exceeds the available context size \((?P<m>\d+) tokens\)",
    r"exceeds the available context size",
    // Gemini.
    r"input token count \((?P<p>\d+)\) exceeds the maximum number of tokens allowed \((?P<m>\d+)\)",
    r"input token count exceeds the maximum number of tokens allowed",
    // Mistral.
    r"Prompt contains (?P<p>\d+) tokens.{0,60}too large for model with (?P<m>\d+) maximum context length",
    // Groq.
    r"Please reduce the length of the messages or completion",
    // xAI.
    r"maximum prompt length is (?P<m>\d+) but the request contains (?P<p>\d+) tokens",
    // Bedrock Mantle: <https://github.com/BerriAI/litellm/pull/37862>; Bedrock.
    r"prompt tokens \((?P<p>\d+)\) exceed model maximum \((?P<m>\d+)\)",
    r"Input is too long for requested model",
    // Ollama.
    r"prompt too long; exceeded (?:max )?context length",
    // Any of these servers, with a sentence whose numbers are unknown.
    r"prompt is too long",
    r"maximum context length is \d+",
];

static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    SENTENCES.iter().filter_map(|sentence| Regex::new(&format!("(?i){sentence}")).ok()).collect()
});

/// Whether an error with this message and these codes says that the conversation is too long, and by how much if the
/// message has the numbers.
pub(super) fn too_long(message: &str, codes: &[String]) -> Option<Option<ContextNumbers>> {
    let found = PATTERNS.iter().find_map(|pattern| pattern.captures(message));
    match found {
        Some(captures) => Some(numbers(&captures)),
        None if codes.iter().any(|code| CODES.contains(&code.as_str())) => Some(None),
        None => None,
    }
}

fn numbers(captures: &Captures<'_>) -> Option<ContextNumbers> {
    let of = |name: &str| captures.name(name)?.as_str().parse::<u64>().ok();
    let maximum = of("m")?;
    match captures.name("list") {
        Some(list) => {
            let (prompt, output) = parts(list.as_str())?;
            measured(prompt, output, maximum)
        }
        None => measured(of("p")?, of("o"), maximum),
    }
}

/// The numbers, if they say what is too long.
pub(super) fn measured(prompt: u64, output: Option<u64>, maximum: u64) -> Option<ContextNumbers> {
    if prompt > maximum {
        return Some(ContextNumbers { prompt, output: None, maximum });
    }
    let output = output.filter(|output| prompt.saturating_add(*output) > maximum)?;
    Some(ContextNumbers { prompt, output: Some(output), maximum })
}

/// The tokens of the conversation and of the answer in `3975 in your prompt; 256 for the completion`.
fn parts(list: &str) -> Option<(u64, Option<u64>)> {
    let (mut prompt, mut output) = (0_u64, None);
    for part in list.split([',', ';']) {
        let tokens = part.split_ascii_whitespace().next()?.parse::<u64>().ok()?;
        if part.contains("completion") || part.contains("output") {
            output = Some(tokens);
        } else {
            prompt = prompt.saturating_add(tokens);
        }
    }
    Some((prompt, output))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentence_is_a_pattern() {
        assert_eq!(PATTERNS.len(), SENTENCES.len());
    }

    /// The numbers of a message, as `prompt+output>maximum`.
    fn read(message: &str) -> Option<String> {
        let numbers = too_long(message, &[])?;
        Some(numbers.map_or_else(String::new, |of| match of.output {
            Some(output) => format!("{}+{output}>{}", of.prompt, of.maximum),
            None => format!("{}>{}", of.prompt, of.maximum),
        }))
    }

    /// Messages of servers, with their numbers.
    const CASES: &[(&str, &str)] = &[
        ("prompt is too long: 213462 tokens > 200000 maximum", "213462>200000"),
        (
            "The model returned the following errors: prompt is too long: 227255 tokens > 200000 maximum",
            "227255>200000",
        ),
        (
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again",
            "188240+21333>200000",
        ),
        (
            "This model's maximum context length is 4097 tokens. However, your messages resulted in 4294 tokens. Please reduce the length of the messages.",
            "4294>4097",
        ),
        (
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 150000 tokens (149000 in the messages, 1000 in the functions). Please reduce the length of the messages or functions.",
            "150000>128000",
        ),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 4222 tokens (1222 in the messages, 3000 in the completion). Please reduce the length of the messages or completion.",
            "1222+3000>4096",
        ),
        (
            "This model's maximum context length is 4097 tokens, however you requested 4231 tokens (3975 in your prompt; 256 for the completion). Please reduce your prompt; or completion length.",
            "3975+256>4097",
        ),
        (
            "This endpoint's maximum context length is 131072 tokens. However, you requested about 132463 tokens (1463 of text input, 131000 in the output). Please reduce the length of either one.",
            "1463+131000>131072",
        ),
        (
            "This endpoint's maximum context length is 100 tokens. However, you requested about 132463 tokens (1463 of text input, 20 of tool input, 131000 in the output).",
            "1483>100",
        ),
        (
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens. Please reduce the length of the messages.",
            "300000>272000",
        ),
        ("Your input exceeds the context window of this model. Please adjust your input and try again.", ""),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is 4096 tokens and your request has 2104 input tokens (2000 > 4096 - 2104).",
            "2104+2000>4096",
        ),
        (
            "This model's maximum context length is 16384 tokens. However, your request has 20000 input tokens. Please reduce the length of the input messages.",
            "20000>16384",
        ),
        (
            "This model's maximum context length is 16384 tokens. However, you requested 4096 output tokens and your prompt contains at least 16000 input tokens, for a total of at least 20096 tokens.",
            "16000+4096>16384",
        ),
        (
            "You passed 8193 input tokens and requested 100 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 8092 tokens.",
            "8193>8192",
        ),
        (
            "The decoder prompt (length 12345) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller",
            "12345>4096",
        ),
        (
            "Requested token count exceeds the model's maximum context length of 202752 tokens. You requested a total of 202941 tokens: 170941 tokens from the input messages and 32000 tokens for the completion.",
            "170941+32000>202752",
        ),
        ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", "5000>4096"),
        ("Input length (265330) exceeds model's maximum context length (262144).", "265330>262144"),
        (
            "request (12345 tokens) exceeds the available context size (8192 tokens), try increasing it",
            "12345>8192",
        ),
        (
            "the request exceeds the available context size. try increasing the context size or enable context shift",
            "",
        ),
        (
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
            "1196265>1048575",
        ),
        ("The input token count exceeds the maximum number of tokens allowed 1048576.", ""),
        (
            "Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            "65673>32768",
        ),
        ("Please reduce the length of the messages or completion.", ""),
        (
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            "537812>131072",
        ),
        ("prompt tokens (400007) exceed model maximum (278528) for openai.gpt-5.5", "400007>278528"),
        ("Input is too long for requested model.", ""),
        ("prompt too long; exceeded max context length by 12 tokens", ""),
    ];

    #[test]
    fn the_sentences_of_known_servers_are_read_with_their_numbers() {
        for (message, expected) in CASES {
            assert_eq!(read(message).as_deref(), Some(*expected), "{message}");
        }
    }

    #[test]
    fn other_errors_are_not_taken_for_it() {
        for message in [
            "Rate limit reached for model x on tokens per minute (TPM): Limit 6000, Requested 7000, please reduce your message size and try again.",
            "Too many tokens, please wait before trying again.",
            "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
            "",
        ] {
            assert_eq!(read(message), None, "{message}");
        }
        assert_eq!(too_long("no", &["context_length_exceeded".to_owned()]), Some(None));
        assert_eq!(too_long("no", &["exceed_context_size_error".to_owned()]), Some(None));
        assert_eq!(too_long("no", &["invalid_request_error".to_owned()]), None);
    }

    #[test]
    fn numbers_that_do_not_say_what_is_too_long_are_left_out() {
        assert_eq!(measured(5, None, 10), None);
        assert_eq!(measured(5, Some(5), 10), None);
    }
}
