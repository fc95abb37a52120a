//! Paths in which a model is named by an ARN.

use crate::name::path::NormalPath;

/// The resources that a model's ARN may name. A prompt is none: it is stored at the provider and brings its own tools.
const MODELS: [&str; 8] = [
    "foundation-model",
    "inference-profile",
    "application-inference-profile",
    "provisioned-model",
    "custom-model",
    "custom-model-deployment",
    "imported-model",
    "default-prompt-router",
];

/// The path of a request that names its model by an ARN, with a name in its place. The AWS SDKs escape the slash of
/// an ARN, which makes a path ambiguous where nothing is known of the host; AWS reads the label between two slashes
/// whole. None for everything else.
pub(in crate::provider) fn without_arn(raw: &str) -> Option<NormalPath> {
    let mut segments = raw.strip_prefix("/model/")?.split('/');
    let (label, operation) = (segments.next()?, segments.next()?);
    if segments.next().is_some() {
        return None;
    }
    let arn = label.replace("%3A", ":").replace("%3a", ":").replace("%2F", "/").replace("%2f", "/");
    let mut parts = arn.splitn(6, ':');
    let is_bedrock = matches!(parts.next(), Some("arn"))
        && parts.next().is_some_and(|partition| partition.starts_with("aws"))
        && parts.next() == Some("bedrock");
    let (kind, id) = parts.nth(2)?.split_once('/')?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    let is_model = MODELS.contains(&kind) && !id.is_empty() && id.bytes().all(is_plain) && !id.contains("..");
    (is_bedrock && is_model).then(|| NormalPath::parse(&format!("/model/{id}/{operation}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(label: &str, operation: &str) -> Option<String> {
        without_arn(&format!("/model/{label}/{operation}")).map(|path| path.as_str().to_owned())
    }

    #[test]
    fn an_arn_of_a_model_stands_for_its_name() {
        let arn = "arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Aapplication-inference-profile%2Fa1b2c3";
        assert_eq!(read(arn, "converse").unwrap(), "/model/a1b2c3/converse");
        let plain = "arn:aws-us-gov:bedrock:us-gov-east-1::foundation-model%2fanthropic.claude-v2:1";
        assert_eq!(read(plain, "invoke").unwrap(), "/model/anthropic.claude-v2:1/invoke");
    }

    #[test]
    fn nothing_else_with_an_escaped_slash_is_read() {
        for label in [
            "arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aprompt%2FABCDEFGHIJ%3A1",
            "arn:aws:bedrock:us-east-1:1:inference-profile%2F..",
            "arn:aws:bedrock:us-east-1:1:inference-profile%2Fa%2F..%2F..",
            "arn:aws:bedrock:us-east-1:1:inference-profile%2F",
            "arn:aws:bedrock:us-east-1:1:inference-profile%5Ca",
            "arn:aws:bedrock:us-east-1:1:inference-profile%252Fa",
            "arn:aws:sagemaker:us-east-1:1:inference-profile%2Fa",
            "..%2Fguardrail-checks",
            "x%2Fy",
        ] {
            assert_eq!(read(label, "invoke"), None, "{label}");
        }
        assert_eq!(without_arn("/model/arn:aws:bedrock:r:1:inference-profile%2Fa/invoke/x"), None);
    }
}
