"""Small answers of Chat with the habits of servers, streamed and whole: one habit each."""

import hashlib
import json

LONG = "mcp__server__" + "n" * 60
# As both the gateway and LiteLLM shorten it.
SHORTENED = f"{LONG[:55]}_{hashlib.sha256(LONG.encode()).hexdigest()[:8]}"
USAGE = {"prompt_tokens": 20, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 8}}


def stream(*chunks, done=True):
    """The events of these chunks, and what says that there are no more."""
    events = [f"data: {json.dumps(each)}" for each in chunks] + (["data: [DONE]"] if done else [])
    return "".join(f"{event}\n\n" for event in events)


def chunk(delta, finish=None, **more):
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} | more


def end(finish="stop"):
    return chunk({}, finish)


def usage(reported=None):
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": reported or USAGE}


def piece(index, arguments, identity=None, name=None):
    """A delta with a piece of a call; the first has id and name."""
    head = {"id": identity, "type": "function"} if identity else {}
    named = {"name": name} if name else {}
    place = {} if index is None else {"index": index}
    return {"tool_calls": [place | head | {"function": named | {"arguments": arguments}}]}


def text(content):
    return chunk({"content": content})


STREAMS = {
    "text": stream(chunk({"role": "assistant", "content": ""}), text("Hel"), text("lo"), end(), usage()),
    "no_usage": stream(text("hello"), end()),
    "usage_at_the_start": stream(chunk({"role": "assistant", "content": ""}, usage=USAGE), text("hello"), end()),
    "usage_with_every_chunk": stream(chunk({"content": "hel"}, usage=USAGE | {"completion_tokens": 1}), chunk({"content": "lo"}, usage=USAGE), end(), usage()),
    "usage_with_the_end": stream(text("hello"), chunk({}, "stop", usage=USAGE)),
    "tokens_written_to_a_cache": stream(text("hello"), end(), usage(USAGE | {"prompt_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 4}})),
    "length": stream(text("hello"), end("length"), usage()),
    "two_calls": stream(
        chunk(piece(0, "", "call_a", "A")), chunk(piece(0, '{"a":')), chunk(piece(0, "1}")),
        chunk(piece(1, "", "call_b", "B")), chunk(piece(1, '{"b":2}')), end("tool_calls"), usage(),
    ),
    "text_and_a_call": stream(text("I look."), chunk(piece(0, '{"a":1}', "call_a", "A")), end("tool_calls"), usage()),
    "two_calls_of_index_0": stream(chunk(piece(0, '{"a":1}', "call_a", "A")), chunk(piece(0, '{"b":2}', "call_b", "B")), end("tool_calls"), usage()),
    "two_calls_in_one_chunk": stream(
        chunk({"tool_calls": piece(0, '{"a":1}', "call_a", "A")["tool_calls"] + piece(1, '{"b":2}', "call_b", "B")["tool_calls"]}),
        end("tool_calls"), usage(),
    ),
    "calls_without_index": stream(chunk(piece(None, '{"a":1}', "call_a", "A")), chunk(piece(None, '{"b":2}', "call_b", "B")), end("tool_calls"), usage()),
    "interleaved_calls": stream(
        chunk(piece(0, '{"a":', "call_a", "A")), chunk(piece(1, '{"b":', "call_b", "B")), chunk(piece(0, "1}")), chunk(piece(1, "2}")),
        end("tool_calls"), usage(),
    ),
    "index_with_a_gap": stream(chunk(piece(1, '{"a":1}', "call_a", "A")), end("tool_calls"), usage()),
    "name_with_every_piece": stream(chunk(piece(0, '{"a":', "call_a", "A")), chunk(piece(0, "1}", "call_a", "A")), end("tool_calls"), usage()),
    "id_behind_the_name": stream(chunk(piece(0, "", None, "A")), chunk(piece(0, '{"a":1}', "call_a")), end("tool_calls"), usage()),
    "call_without_arguments": stream(chunk(piece(0, "", "call_a", "A")), end("tool_calls"), usage()),
    "call_without_id": stream(chunk(piece(0, '{"a":1}', None, "A")), end("tool_calls"), usage()),
    "ids_of_digits": stream(chunk(piece(0, '{"a":1}', "7", "A")), end("tool_calls"), usage()),
    "same_id_twice": stream(chunk(piece(0, '{"a":1}', "call_a", "A")), chunk(piece(1, '{"b":2}', "call_a", "B")), end("tool_calls"), usage()),
    "stop_behind_a_call": stream(chunk(piece(0, '{"a":1}', "call_a", "A")), end("stop"), usage()),
    "length_in_a_call": stream(chunk(piece(0, '{"a":', "call_a", "A")), end("length"), usage()),
    "text_behind_a_call": stream(chunk(piece(0, '{"a":1}', "call_a", "A")), text("Done."), end("tool_calls"), usage()),
    "text_on_both_sides_of_a_call": stream(text("I look."), chunk(piece(0, '{"a":1}', "call_a", "A")), text("Done."), end("tool_calls"), usage()),
    "two_calls_without_ids": stream(chunk(piece(0, '{"a":1}', None, "A")), chunk(piece(0, '{"b":2}', None, "B")), end("tool_calls"), usage()),
    "empty_names": stream(chunk(piece(0, '{"a":', "call_a", "A")), chunk({"tool_calls": [{"index": 0, "id": "", "function": {"name": "", "arguments": "1}"}}]}), end("tool_calls"), usage()),
    "another_name_in_a_call": stream(chunk(piece(0, '{"a":', "call_a", "A")), chunk(piece(0, "1}", "call_a", "B")), end("tool_calls"), usage()),
    "arguments_that_are_no_json": stream(chunk(piece(0, "{'a':1}", "call_a", "A")), end("tool_calls"), usage()),
    "function_call": stream(chunk({"function_call": {"name": "A", "arguments": ""}}), chunk({"function_call": {"arguments": '{"a":1}'}}), end("function_call"), usage()),
    "long_name": (
        {"tools": [{"name": LONG, "description": "Long.", "input_schema": {"type": "object"}}]},
        stream(chunk(piece(0, '{"a":1}', "call_a", SHORTENED)), end("tool_calls"), usage()),
    ),
    "cut_in_text": stream(text("hel"), done=False),
    "cut_in_a_call": stream(chunk(piece(0, '{"a":', "call_a", "A")), done=False),
    "end_without_done": stream(text("hello"), end(), usage(), done=False),
    "done_without_a_reason": stream(text("hello")),
    "error_in_mid_stream": stream(text("hel"), {"error": {"message": "overloaded", "type": "server_error", "code": 503}}),
    "reason_error": stream(text("hel"), end("error")),
    "refusal": stream(chunk({"role": "assistant", "refusal": ""}), chunk({"refusal": "I do "}), chunk({"refusal": "not."}), end(), usage()),
    "content_filter": stream(end("content_filter"), usage()),
    "content_filter_behind_text": stream(text("hel"), end("content_filter"), usage()),
    "nothing": stream(end(), usage()),
    "white_space": stream(text("\n\n"), chunk(piece(0, '{"a":1}', "call_a", "A")), end("tool_calls"), usage()),
    "reasoning_content": stream(chunk({"reasoning_content": "I "}), chunk({"reasoning_content": "think."}), text("hello"), end(), usage()),
    "reasoning": stream(chunk({"reasoning": "I "}), chunk({"reasoning": "think."}), text("hello"), end(), usage()),
    "reasoning_and_text_in_one_chunk": stream(chunk({"reasoning_content": "I think.", "content": "hello"}), end(), usage()),
    "reasoning_and_a_call": stream(chunk({"reasoning_content": "I think."}), chunk(piece(0, '{"a":1}', "call_a", "A")), end("tool_calls"), usage()),
    "reasoning_behind_text": stream(text("hel"), chunk({"reasoning_content": "I think."}), text("lo"), end(), usage()),
    "reasoning_alone": stream(chunk({"reasoning_content": "I think."}), end(), usage()),
    "reasoning_that_nobody_asked_for": ({"thinking": None}, stream(chunk({"reasoning_content": "I think."}), text("hello"), end(), usage())),
    "parts": stream(chunk({"content": [{"type": "text", "text": "hel"}]}), chunk({"content": [{"type": "text", "text": "lo"}]}), end(), usage()),
    "end_with_the_last_piece": stream(chunk({"content": "hello"}, "stop"), usage()),
    "end_twice": stream(text("hello"), end(), end(), usage()),
    "text_behind_the_end": stream(text("hel"), end(), text("lo"), usage()),
    "second_choice": stream(text("hello"), chunk({}) | {"choices": [{"index": 1, "delta": {"content": "other"}}]}, end(), usage()),
    "stop_sequence": ({"stop_sequences": ["END"]}, stream(text("hello"), chunk({}) | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "stop_reason": "END"}]}, usage())),
    "annotations": stream(text("hello"), chunk({"annotations": [{"type": "url_citation", "url_citation": {"url": "https://a.example", "title": "A"}}]}), end(), usage()),
    "text_behind_done": stream(text("hel"), end(), usage()) + stream(text("lo")),
    "asked_for_whole": ({"stream": False}, stream(text("I look."), chunk(piece(0, '{"a":1}', "call_a", "A")), end("tool_calls"), usage())),
    "comments": ": OPENROUTER PROCESSING\n\n" + stream(text("hello"), end(), usage()),
}


def whole(message, finish="stop", reported=USAGE):
    choice = {"index": 0, "message": {"role": "assistant", "content": None} | message, "finish_reason": finish}
    return json.dumps({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": reported})


def called(identity, name, arguments):
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


WHOLE = {
    "text": whole({"content": "hello"}),
    "text_and_calls": whole({"content": "I look.", "tool_calls": [called("call_a", "A", '{"a":1}'), called("call_b", "B", '{"b":2}')]}, "tool_calls"),
    "stop_with_a_call": whole({"tool_calls": [called("call_a", "A", '{"a":1}')]}),
    "no_arguments": whole({"tool_calls": [called("call_a", "A", "")]}, "tool_calls"),
    "arguments_that_are_no_json": whole({"tool_calls": [called("call_a", "A", "{'a':1}")]}, "tool_calls"),
    "length_in_a_call": whole({"content": "I look.", "tool_calls": [called("call_a", "A", '{"a":')]}, "length"),
    "length": whole({"content": "hel"}, "length"),
    "refusal": whole({"refusal": "I do not."}),
    "content_filter": whole({"content": ""}, "content_filter"),
    "reasoning_content": whole({"reasoning_content": "I think.", "content": "hello"}),
    "reasoning": whole({"reasoning": "I think.", "content": "hello"}),
    "parts": whole({"content": [{"type": "text", "text": "hello"}]}),
    "function_call": whole({"function_call": {"name": "A", "arguments": '{"a":1}'}}, "function_call"),
    "annotations": whole({"content": "hello", "annotations": [{"type": "url_citation", "url_citation": {"url": "https://a.example", "title": "A"}}]}),
    "long_name": (
        {"tools": [{"name": LONG, "description": "Long.", "input_schema": {"type": "object"}}]},
        whole({"tool_calls": [called("call_a", SHORTENED, '{"a":1}')]}, "tool_calls"),
    ),
    "nothing": whole({"content": ""}),
    "no_usage": whole({"content": "hello"}, "stop", None),
    "reasoning_that_nobody_asked_for": ({"thinking": None}, whole({"reasoning_content": "I think.", "content": "hello"})),
    "asked_for_as_a_stream": ({"stream": True}, whole({"content": "I look.", "tool_calls": [called("call_a", "A", '{"a":1}')]}, "tool_calls")),
    "ids_of_digits": whole({"tool_calls": [called("7", "A", '{"a":1}')]}, "tool_calls"),
}
