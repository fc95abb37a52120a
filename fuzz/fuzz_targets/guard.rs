//! Cutting an answer never matters to its guard, whatever the dialect; and where nothing can be denied, every byte
//! goes on as it came.
#![no_main]

use std::sync::Arc;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use postern::call::{
    Api, CallNote, CallVerdict, Dialect, Inputs, Judge, RequestFacts, Service, ShellTerms, Start, Tool,
    ToolCall, Vendor,
};
use postern::id::{Id, Timestamp};
use postern::provider::adapter;
use postern::provider::adapter::ModelRequestHead;
use postern::provider::answer::{BrokenAnswer, FailurePolicy, Guard, GuardLimits, GuardSettings, TypedLines};
use postern::provider::kind::Offered;
use postern::wire::event_stream::{self, Header};
use postern::wire::json;

/// An endpoint with the content type of its streams.
const ENDPOINTS: [(Vendor, Api, Dialect, &str, &str); 6] = [
    (Vendor::Anthropic, Api::Messages, Dialect::Anthropic, "/v1/messages", SSE),
    (Vendor::OpenAi, Api::ChatCompletions, Dialect::OpenAIChat, "/v1/chat/completions", SSE),
    (Vendor::OpenAi, Api::Responses, Dialect::OpenAIResponses, "/v1/responses", SSE),
    (
        Vendor::Gemini,
        Api::GenerateContent,
        Dialect::Gemini,
        "/v1beta/models/m:streamGenerateContent",
        "application/json",
    ),
    (Vendor::Bedrock, Api::Converse, Dialect::Bedrock, "/model/m/converse-stream", FRAMES),
    (Vendor::Bedrock, Api::InvokeModel, Dialect::Bedrock, "/model/m/invoke-with-response-stream", FRAMES),
];

const SSE: &str = "text/event-stream";
const FRAMES: &str = "application/vnd.amazon.eventstream";

/// What streams of the dialects are made of; of a frame, its event type stands in front.
const PARTS: [&str; 42] = [
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Held\",\"input\":{}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Denied\",\"input\":{}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n",
    "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":3}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    "data: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"t\",\"type\":\"function\",\"function\":{\"name\":\"Held\",\"arguments\":\"\"}}]}}]}\n\n",
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"t\",\"type\":\"function\",\"function\":{\"name\":\"Denied\",\"arguments\":\"{}\"}}]}}]}\n\n",
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{}\"}}]}}]}\n\n",
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n",
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: [DONE]\n\n",
    "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"r\",\"output\":[]}}\n\n",
    "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"id\":\"f\",\"call_id\":\"t\",\"name\":\"Held\",\"arguments\":\"\"}}\n\n",
    "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"id\":\"g\",\"call_id\":\"u\",\"name\":\"Denied\",\"arguments\":\"\"}}\n\n",
    "event: response.function_call_arguments.delta\ndata: {\"type\":\"response.function_call_arguments.delta\",\"item_id\":\"f\",\"output_index\":0,\"delta\":\"{}\"}\n\n",
    "event: response.function_call_arguments.done\ndata: {\"type\":\"response.function_call_arguments.done\",\"item_id\":\"f\",\"output_index\":0,\"arguments\":\"{}\"}\n\n",
    "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"id\":\"f\",\"call_id\":\"t\",\"name\":\"Held\",\"arguments\":\"{}\"}}\n\n",
    "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"id\":\"g\",\"call_id\":\"u\",\"name\":\"Denied\",\"arguments\":\"{}\"}}\n\n",
    "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"output\":[{\"type\":\"function_call\",\"id\":\"f\",\"call_id\":\"t\",\"name\":\"Held\",\"arguments\":\"{}\"}]}}\n\n",
    "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"custom_tool_call\",\"id\":\"s\",\"call_id\":\"v\",\"name\":\"exec\",\"input\":\"const a='b'; text(await tools.Held({a}))\"}}\n\n",
    "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"custom_tool_call\",\"id\":\"s\",\"call_id\":\"v\",\"name\":\"exec\",\"input\":\"x = a / /`/.b`${tools.Denied([{}])}`\"}}\n\n",
    "[{\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"x\"}]}}]}",
    ",{\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"name\":\"Held\",\"args\":{}}}]}}]}",
    ",\r\n{\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"Denied\",\"args\":{}}}]},\"finishReason\":\"STOP\"}]}",
    "]",
    "messageStart {\"role\":\"assistant\"}",
    "contentBlockStart {\"contentBlockIndex\":0,\"start\":{\"toolUse\":{\"toolUseId\":\"t\",\"name\":\"Held\"}}}",
    "contentBlockStart {\"contentBlockIndex\":1,\"start\":{\"toolUse\":{\"toolUseId\":\"u\",\"name\":\"Denied\"}}}",
    "contentBlockDelta {\"contentBlockIndex\":0,\"delta\":{\"toolUse\":{\"input\":\"{}\"}}}",
    "contentBlockDelta {\"contentBlockIndex\":0,\"delta\":{\"text\":\"x\"}}",
    "contentBlockStop {\"contentBlockIndex\":0}",
    "messageStop {\"stopReason\":\"tool_use\"}",
    "chunk {\"bytes\":\"eyJ0eXBlIjoibWVzc2FnZV9zdG9wIn0=\"}",
    ": comment\n\n",
    "data:{}\r\n\r",
];

/// A part by its number, or bytes as they are.
type Piece = Result<u8, Vec<u8>>;

fuzz_target!(|input: (u8, bool, Vec<Piece>, Vec<u16>)| {
    let (endpoint, open, pieces, cuts) = input;
    let endpoint = usize::from(endpoint) % ENDPOINTS.len();
    let bytes: Vec<u8> = pieces.iter().flat_map(|piece| written(piece, ENDPOINTS[endpoint].4)).collect();
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| usize::from(*cut) % (bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let failure = if open { FailurePolicy::Open } else { FailurePolicy::Closed };
    let whole = guarded(endpoint, &bytes, &[], failure, true);
    assert_eq!(guarded(endpoint, &bytes, &cuts, failure, true), whole, "another split, another answer");
    let (observed, result, _) = guarded(endpoint, &bytes, &cuts, failure, false);
    assert_eq!((observed, result), (bytes, Ok(())), "observed bytes are others");
});

fn written(piece: &Piece, content_type: &str) -> Vec<u8> {
    let number = match piece {
        Ok(number) => usize::from(*number) % PARTS.len(),
        Err(bytes) => return bytes.clone(),
    };
    match PARTS[number].split_once(' ') {
        Some((name, json)) if content_type == FRAMES && json.starts_with('{') => {
            let headers = [Header::string(":message-type", "event"), Header::string(":event-type", name)];
            let mut frame = Vec::new();
            event_stream::encode(&headers, json.as_bytes(), &mut frame).expect("a frame");
            frame
        }
        _ => PARTS[number].into(),
    }
}

fn guarded(
    endpoint: usize,
    bytes: &[u8],
    cuts: &[usize],
    failure: FailurePolicy,
    denies: bool,
) -> (Vec<u8>, Result<(), BrokenAnswer>, Vec<CallNote>) {
    let (vendor, api, dialect, path, content_type) = ENDPOINTS[endpoint];
    let service = Service { vendor, api, dialect: Some(dialect) };
    let asked = ModelRequestHead { service, path, query: None, is_subscription: false };
    let facts = RequestFacts { stream: true, ..RequestFacts::default() };
    let adapter = adapter(dialect);
    let framing = adapter.framing(&asked, &facts, content_type);
    let transcript = adapter.transcript(&asked, &facts).expect("an endpoint with answers");
    let limits = GuardLimits {
        event_bytes: 4096,
        tool_input_bytes: 64,
        body_bytes: 16_384,
        json: json::Limits::default(),
    };
    let judge = Arc::new(Names { denies });
    let mut guard = Guard::new(
        transcript,
        framing,
        GuardSettings {
            judge,
            failure,
            limits,
            inputs: Inputs::Full,
            writes: false,
            offered: Offered::default(),
            conversation: String::new(),
            typed: TypedLines::default(),
            // The same at every time, so that a finding can be repeated.
            event_id: || Id::new(Timestamp::from_unix_millis(0), [0; 10]),
            ask_at: None,
            reads_evidence: None,
        },
    );
    let mut out = Vec::new();
    let mut start = 0;
    let mut result = Ok(());
    for end in cuts.iter().copied().chain([bytes.len()]) {
        result = result.and_then(|()| guard.write(Bytes::copy_from_slice(&bytes[start..end]), &mut out));
        start = end;
    }
    result = result.and_then(|()| guard.finish(&mut out));
    (out.concat(), result, guard.take_notes())
}

/// Goes by the names of tools.
struct Names {
    denies: bool,
}

impl Judge for Names {
    fn denies(&self, _: bool) -> bool {
        self.denies
    }

    fn shell(&self) -> ShellTerms {
        ShellTerms { reads: true, ..ShellTerms::default() }
    }

    fn start(&self, tool: &Tool<'_>) -> Start {
        match tool.name {
            "Denied" => Start::Deny(CallVerdict::builtin("test", "denied")),
            "Held" => Start::NeedsInput,
            _ => Start::Allow(CallVerdict::allowed()),
        }
    }

    fn complete(&self, call: &ToolCall<'_>) -> CallVerdict {
        match self.start(&call.tool) {
            Start::Allow(verdict) | Start::Deny(verdict) => verdict,
            Start::Observe | Start::NeedsInput => CallVerdict::allowed(),
        }
    }
}
