"""Where answers differ from those of the peers, and why the gateway's are right."""

from comparing import ABSENT, TRANSLATED
from rows import BOTH, LITELLM, LLMS, At, Row

TEXT, THINKING, CALL = (f"blocks/*:{kind}" for kind in ("text", "thinking", "tool_use"))
ONLY_OURS = {"theirs": ABSENT}
ONLY_THEIRS = {"ours": ABSENT}
USAGE = "usage/*_tokens"
BROKEN_OFF = ("stream/cut_in_text", "stream/cut_in_a_call", "stream/reason_error", "stream/error_in_mid_stream")
OPEN_END = '["the message ends in an open block", "the message ends without a reason"]'
CLOSED_BLOCK = '["a piece for a block that is not open"]'

ROWS = [
    # Calls.
    Row(
        "calls-of-one-index", (LLMS,), "A name with another id, or behind complete arguments, begins another call, whatever its index.",
        (At(f"{CALL}/input", '{"a": 1}', '{"a":1}{"b":2}'), At("blocks/1:tool_use", **ONLY_OURS)),
        ("stream/two_calls_of_index_0", "stream/calls_without_index", "stream/two_calls_without_ids"),
    ),
    Row(
        "calls-of-one-chunk", (LITELLM,), "Each call of a chunk is one.",
        (At(f"{CALL}/input", '{"a": 1}', '{"a":1}{"b":2}'), At("blocks/1:tool_use", **ONLY_OURS)), ("stream/two_calls_in_one_chunk",),
    ),
    Row(
        "interleaved-calls", BOTH, "A piece belongs to the call of its index; what belongs to others than the open block waits.",
        (At(f"{CALL}/input", '{"a": 1}', '{"a":'), At(f"{CALL}/input", '{"b": 2}', '{"b":1}2}'), At("wrong", "[]", CLOSED_BLOCK)),
        ("stream/interleaved_calls",),
    ),
    Row(
        "repeated-names", (LITELLM,), "The same name with the same id is the same call.",
        (At(f"{CALL}/input", '{"a": 1}', '{"a":'), At("blocks/1:tool_use", ABSENT, '*"input": "1}"*')), ("stream/name_with_every_piece",),
    ),
    Row(
        "function-calls", BOTH, "The older `function_call` is a call.",
        (At(CALL, **ONLY_OURS), At(TEXT, ABSENT, '*"text": ""*'), At("stop_reason", "tool_use", "end_turn")), ("*/function_call",),
    ),
    Row(
        "ids", BOTH, "Ids of digits alone, missing or repeated ones are made anew: they would meet those of other turns.",
        (At(f"{CALL}/id", "(made)"),),
    ),
    Row(
        "names-of-calls", (LLMS,), "The agent reads the name that it knows.",
        (At(f"{CALL}/name", f"mcp__server__{'n' * 60}", "mcp__server__*_*"),), ("*/long_name",),
    ),
    Row(
        "doubled-arguments", (LLMS,), "A chunk is read once, also behind reasoning.",
        (At(f"{CALL}/input", "{*}", "{*}{*}"),), ("stream/reasoning_and_a_call", "stream/recorded/xai/vercel/xai-tool-call.sse"),
    ),
    Row(
        "length-in-a-call", BOTH, "Behind `length` a call without its end goes, and what was said stays.",
        (At("blocks/1:tool_use", **ONLY_THEIRS), At("blocks/0:tool_use", **ONLY_THEIRS), At("error", TRANSLATED, "ValueError: *")),
        ("whole/length_in_a_call", "whole/recorded/agentgateway/response/completions/truncated_tool_call.json"),
    ),
    Row(
        "arguments", (LLMS,), "A call whose arguments are no object is no call: of a whole answer nothing is given out.",
        (At("error", "api_error", TRANSLATED),), ("whole/arguments_that_are_no_json",),
    ),
    Row(
        "words-of-errors", (LITELLM,), "Both refuse it, each in its own words.",
        (At("error", "api_error", "ValueError: *"),), ("whole/arguments_that_are_no_json",),
    ),
    # Texts.
    Row(
        "text-in-a-call", (LLMS,), "Text behind a call is a block of its own.",
        (At("blocks/2:text", **ONLY_OURS), At("blocks/1:tool_use/text", ABSENT, "Done."), At("wrong", "[]", '["text_delta in a block of tool_use"]')),
        ("stream/text_on_both_sides_of_a_call",),
    ),
    Row(
        "white-space", BOTH, "White space alone begins no block.",
        (At(TEXT, ABSENT, '{"text": "\\n\\n", "type": "text"}'),), ("stream/white_space",),
    ),
    Row(
        "empty-texts", (LITELLM,), "An answer that says nothing has no block: an empty text cannot be sent back.",
        (At(TEXT, ABSENT, '{"text": "", "type": "text"}'),),
    ),
    Row(
        "parts", BOTH, "Mistral's contents are arrays of parts, which are what they say they are.",
        (
            At(TEXT, '*"type": "text"}', ABSENT),
            At(f"{TEXT}/text", "*", '[{"*'),
            At(THINKING, '{"signed": "by the gateway", *', ABSENT),
            At("stop_reason", "end_turn", "null"),
            At(USAGE, "*", "0"),
            At("failed", ABSENT, "api_error"),
            At("error", TRANSLATED, "Exception: Invalid response object*"),
            At("wrong", "[]", '["text_delta without a text"]'),
        ),
        ("*/parts", "stream/recorded/mistral/live/thinking-stream.response.sse"),
    ),
    Row(
        "other-choices", BOTH, "The first choice alone is the answer.",
        (At(f"{TEXT}/text", "hello", "helloother"),), ("stream/second_choice",),
    ),
    Row(
        "annotations", (LLMS,), "Citations are no call of a hosted tool that the agent could have offered.",
        (At("blocks/*:server_tool_use", **ONLY_THEIRS), At("blocks/*:web_search_tool_result", **ONLY_THEIRS)),
    ),
    Row(
        "refused-words", (LLMS,), "A refusal is what the model says.",
        (At(TEXT, '*"type": "text"}', ABSENT),), ("*/refusal", "stream/recorded/openai-chat/sdk/inline-snapshot-*"),
    ),
    # Thinking.
    Row(
        "signatures", BOTH, "Thinking is signed by the gateway: clients discard unsigned thinking, and it goes back to the model that said it.",
        (At(f"{THINKING}/signed", "by the gateway"),),
    ),
    Row(
        "reasoning", (LLMS,), "Reasoning is thinking under either name, whole and streamed.",
        (At(THINKING, '{"signed": "by the gateway", *', ABSENT),), ("*/reasoning", "whole/reasoning_content", "whole/recorded/groq/*", "whole/recorded/ollama/*"),
    ),
    Row(
        "unasked-thinking", BOTH, "Who asks for no thinking gets none.",
        (At(THINKING, **ONLY_THEIRS),), ("*/reasoning_that_nobody_asked_for",),
    ),
    Row(
        "reasoning-behind-text", (LLMS,), "No block begins in an open one.",
        (At("blocks/2:text", **ONLY_OURS), At("wrong", "[]", '["a block begins in an open one", *')), ("stream/reasoning_behind_text",),
    ),
    # The end.
    Row(
        "calls-are-tool-use", BOTH, "An answer with a call stops for it, whatever is said: agents go by it.",
        (At("stop_reason", "tool_use", "end_turn"),),
    ),
    Row(
        "refusals", (LITELLM,), "Claude Code takes `refusal` for its own provider's safeguards.",
        (At("stop_reason", "end_turn", "refusal"),),
    ),
    Row(
        "content-filter", BOTH, "A filter's end is an end, with a text where nothing was said.",
        (At("stop_reason", "end_turn", "stop_sequence"), At(f"{TEXT}/text", "[postern] *", ""), At(TEXT, '{"text": "[postern] *', ABSENT)),
        ("*/content_filter", "*/content_filter_behind_text"),
    ),
    Row(
        "stop-sequences", BOTH, "vLLM says in `stop_reason` which sequence it met.",
        (At("stop_reason", "stop_sequence", "end_turn"), At("stop_sequence", "END", "null")), ("stream/stop_sequence",),
    ),
    Row(
        "broken-off", BOTH, "A stream that breaks off ends with an error, and nothing looks like a regular end.",
        (At("failed", "overloaded_error"), At("wrong", "[]", OPEN_END), At("wrong", "[]", '["an event stands behind the end"]'), At("stop_reason", "null", "end_turn")),
        BROKEN_OFF,
    ),
    Row(
        "done-alone", (LITELLM,), "`[DONE]` is an end.",
        (At("stop_reason", "end_turn", "null"), At("wrong", "[]", OPEN_END)), ("stream/done_without_a_reason",),
    ),
    Row("one-end", (LITELLM,), "A message has one end.", (At("wrong", "[]", '["a second end"]'),), ("stream/end_twice",)),
    Row(
        "text-behind-the-end", BOTH, "Until `[DONE]` text is text, in an open block; behind it nothing is.",
        (At("wrong", "[]", CLOSED_BLOCK), At(f"{TEXT}/text", "hello", "hel")), ("stream/text_behind_the_end", "stream/text_behind_done"),
    ),
    Row(
        "names-that-change", BOTH, "A call whose name changes cannot be read: the answer ends there with an error.",
        (
            At("failed", "api_error", ABSENT),
            At("stop_reason", "null", "tool_use"),
            At(USAGE),
            At("blocks/1:tool_use", ABSENT, '*"name": "B"*'),
            At(f"{CALL}/input", '{"a":', '{"a": 1}'),
        ),
        ("stream/another_name_in_a_call",),
    ),
    # Usage.
    Row(
        "estimates", BOTH, "Where no usage is reported the agent gets an estimate, by which it knows how full its context is.",
        (At(USAGE, "*", "0"), At("error", TRANSLATED, "AttributeError: *'usage'")), ("*/no_usage", "stream/done_without_a_reason", "stream/recorded/openai-chat/vercel/anthropic-fallback-tool-call.sse", *BROKEN_OFF),
    ),
    Row("early-usage", BOTH, "The last report counts, wherever it stands.", (At(USAGE, "*", "0"),), ("stream/usage_at_the_start",)),
    Row(
        "usage-beside-reasoning", (LLMS,), "Usage is reported in chunks without choices, too.",
        (At(USAGE, "*", "0"),), ("stream/reasoning*", "stream/recorded/xai/vercel/xai-tool-call.sse"),
    ),
    Row(
        "written-to-a-cache", (LLMS,), "What was written to a cache is counted apart.",
        (At("usage/input_tokens", "8", "12"), At("usage/cache_creation_input_tokens", "4", "0")), ("stream/tokens_written_to_a_cache",),
    ),
    Row(
        "cached-by-mistral", BOTH, "Mistral's `num_cached_tokens` are of those that a cache had.",
        (At("usage/input_tokens", "1"), At("usage/cache_read_input_tokens", "*", "0")), ("whole/recorded/tool-choice-matrix/mistral-*",),
    ),
    Row(
        "reasoning-tokens", (LITELLM,), "xAI leaves out reasoning where it counts what was said.",
        (At("usage/output_tokens", "222", "26"),), ("stream/recorded/xai/vercel/xai-tool-call.sse",),
    ),
]
