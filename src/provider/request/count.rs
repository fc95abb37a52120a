//! Counts what a request holds, and how many tokens it asks for.

use super::RequestEditor;
use crate::wire::json::Value;

impl RequestEditor<'_> {
    /// Counts a message.
    pub fn has_message(&mut self) {
        self.facts.conversation.messages += 1;
    }

    /// Counts an image.
    pub fn has_image(&mut self) {
        self.facts.conversation.images += 1;
    }

    /// Counts the result of a tool.
    pub fn has_tool_result(&mut self) {
        self.facts.conversation.tool_results += 1;
    }

    /// Notes how many tokens the model may write. Where several fields say it, the largest number counts: which one the
    /// provider obeys differs.
    pub fn bounds_tokens(&mut self, most: Option<Value<'_>>) {
        self.facts.max_tokens = self.facts.max_tokens.max(most.and_then(whole_number));
    }
}

/// Reads a number that providers take for a whole one: `1e3`, `1000.0` and, in Google's JSON, `"1000"` too.
fn whole_number(value: Value<'_>) -> Option<u64> {
    let text = value.number_text().map(Into::into).or_else(|| value.text())?;
    text.parse().ok().or_else(|| {
        let number: f64 = text.parse().ok().filter(|number: &f64| *number >= 0.0)?;
        // A number that is larger than any count is the largest count.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
        Some(number.ceil() as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Api, BlockedCalls, Conversation, Dialect, Service, Vendor};
    use crate::provider::adapter::ModelRequestHead;
    use crate::provider::request::read;
    use crate::provider::request::testing::Open;
    use crate::wire::json::{Document, Limits};

    /// The messages, images, results of tools and most tokens of a request.
    fn counted(dialect: Dialect, api: Api, path: &str, body: &str) -> (u64, u64, u64, Option<u64>) {
        let service = Service { vendor: Vendor::Custom, api, dialect: Some(dialect) };
        let head = ModelRequestHead { service, path, query: None, is_subscription: false };
        let adapter = crate::provider::adapter(dialect);
        let body = (body.as_bytes(), Limits::default());
        let read = read(adapter, &head, body, (&Open, &BlockedCalls::new(4)), None).unwrap();
        let Conversation { messages, images, tool_results } = read.facts.conversation;
        (messages, images, tool_results, read.facts.max_tokens)
    }

    #[test]
    fn every_dialect_counts_messages_images_and_results() {
        let anthropic = r#"{"model":"m","max_tokens":9,"system":"s","messages":[
            {"role":"user","content":[{"type":"text","text":"image"},{"type":"image","source":{"type":"base64","data":""}}]},
            {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"type":"image"}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"t",
                "content":[{"type":"image","source":{"type":"base64","data":""}}]}]}]}"#;
        let chat = r#"{"model":"m","max_completion_tokens":9,"max_tokens":2,"messages":[
            {"role":"system","content":"image_url"},
            {"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}},{"type":"text","text":"t"},
                {"type":"image_url","image_url":{"url":"data:,"}}]},
            {"role":"tool","tool_call_id":"t","content":"r"}]}"#;
        let responses = r#"{"model":"m","max_output_tokens":9,"input":[
            {"role":"user","content":[{"type":"input_text","text":"t"},{"type":"input_image","image_url":"data:,"}]},
            {"type":"message","role":"assistant","content":"c"},{"role":"user","content":"c"},{"type":"reasoning"},
            {"type":"function_call","call_id":"t","name":"n","arguments":"{}"},
            {"type":"function_call_output","call_id":"t","output":[{"type":"input_image","image_url":"data:,"}]}]}"#;
        let gemini = r#"{"generation_config":{"max_output_tokens":"9"},"contents":[
            {"role":"user","parts":[{"text":"t"},{"inlineData":{"mimeType":"image/png","data":""}}]},
            {"role":"model","parts":[{"functionCall":{"name":"n","args":{"mimeType":"image/png"}}}]},
            {"role":"user","parts":[{"functionResponse":{"name":"n","response":{},
                "parts":[{"inlineData":{"mime_type":"image/png","data":""}}]}},
                {"inlineData":{"mimeType":"audio/wav","data":""}}]}]}"#;
        let converse = r#"{"inferenceConfig":{"maxTokens":9},"system":[{"text":"s"}],"messages":[
            {"role":"user","content":[{"text":"t"},{"image":{"format":"png","source":{"bytes":""}}}]},
            {"role":"assistant","content":[{"toolUse":{"toolUseId":"t","name":"n","input":{}}}]},
            {"role":"user","content":[{"toolResult":{"toolUseId":"t",
                "content":[{"image":{"format":"png","source":{"bytes":""}}}]}}]}]}"#;
        let invoke = anthropic.replace("\"model\":\"m\"", "\"anthropic_version\":\"bedrock-2023-05-31\"");
        let model = "/model/anthropic.claude-3/invoke";
        let gemini_path = "/v1beta/models/gemini-2.5-pro:generateContent";
        for (dialect, api, path, body) in [
            (Dialect::Anthropic, Api::Messages, "/v1/messages", anthropic),
            (Dialect::OpenAIChat, Api::ChatCompletions, "/v1/chat/completions", chat),
            (Dialect::OpenAIResponses, Api::Responses, "/v1/responses", responses),
            (Dialect::Gemini, Api::GenerateContent, gemini_path, gemini),
            (Dialect::Bedrock, Api::Converse, "/model/amazon.nova-pro/converse", converse),
            (Dialect::Bedrock, Api::InvokeModel, "/model/amazon.nova-pro/invoke", converse),
            (Dialect::Bedrock, Api::InvokeModel, model, &invoke),
        ] {
            assert_eq!(counted(dialect, api, path, body), (3, 2, 1, Some(9)), "{path}");
        }
    }

    #[test]
    fn a_text_that_stands_for_the_messages_is_one() {
        let body = r#"{"model":"m","input":"hello"}"#;
        assert_eq!(counted(Dialect::OpenAIResponses, Api::Responses, "/v1/responses", body), (1, 0, 0, None));
    }

    #[test]
    fn a_number_is_read_however_it_is_written() {
        let read = |json: &str| {
            let document = Document::parse(json.as_bytes(), Limits::default()).unwrap();
            whole_number(document.root())
        };
        for json in ["4096", "4096.0", "4.096e3", "\"4096\"", "4095.5"] {
            assert_eq!(read(json), Some(4096), "{json}");
        }
        assert_eq!(read("1e300"), Some(u64::MAX));
        for json in ["-1", "null", "\"many\"", "\"nan\"", "[1]"] {
            assert_eq!(read(json), None, "{json}");
        }
    }
}
