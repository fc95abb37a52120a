"""Has the official Python SDKs read what an upstream answers: a JSON line per question in, one per verdict out."""

import json
import os
import sys

import accepted
import anthropic
import boto3
import openai
from botocore.config import Config
from google import genai

PROMPT, MESSAGES = "go", [{"role": "user", "content": "go"}]
TURNS = [{"role": "user", "content": [{"text": PROMPT}]}]
REGION = "us-east-1"
# The items of Responses that are calls with a name, or that a client carries out.
CALLS = [
    "function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call",
    "tool_search_call", "mcp_call", "mcp_approval_request",
]


def main():
    for line in sys.stdin:
        question = json.loads(line)
        read = JUDGES[question["dialect"]]
        try:
            verdict = {"ok": True} | read(question)
        except Exception as error:  # noqa: BLE001: whatever an SDK throws is its verdict
            verdict = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(verdict), flush=True)


def anthropic_messages(question):
    client = anthropic.Anthropic(base_url=question["base"], max_retries=0)
    ask = {"model": question["model"], "max_tokens": 64, "messages": MESSAGES, "extra_headers": question["headers"]}
    ask |= question.get("more", {})
    if not question["stream"]:
        return anthropic_message(client.beta.messages.create(**ask))
    with client.beta.messages.stream(**ask) as stream:
        return anthropic_message(stream.get_final_message())


def anthropic_message(message):
    blocks = [block.model_dump() for block in message.content]
    calls = [{"id": block["id"], "name": block["name"], "input": block["input"]} for block in of(blocks, "tool_use")]
    hosted = [
        {"type": block["type"], "name": block["name"], "input": block["input"]}
        for block in of(blocks, "server_tool_use", "mcp_tool_use")
    ]
    return {
        "tool_calls": calls,
        "server_calls": hosted,
        "blocks": [block["type"] for block in blocks],
        "text": "".join(block["text"] for block in of(blocks, "text")),
        "thinking": "".join(block["thinking"] for block in of(blocks, "thinking")),
        "stop": message.stop_reason,
        "model": message.model,
        "usage": message.usage.model_dump(mode="json", exclude_none=True),
    }


def chat_completions(question):
    client = openai.OpenAI(base_url=question["base"], max_retries=0)
    ask = {"model": question["model"], "messages": MESSAGES, "extra_headers": question["headers"]}
    if not question["stream"]:
        return chat_completion(client.chat.completions.create(**ask))
    with client.chat.completions.stream(**ask) as stream:
        return chat_completion(stream.get_final_completion())


def chat_request(question):
    accepted.chat_request(question["body"])
    return {}


def chat_completion(completion):
    return {
        "choices": [chat_choice(choice) for choice in completion.choices],
        "model": completion.model,
        "usage": completion.usage and completion.usage.model_dump(mode="json", exclude_none=True),
    }


def chat_choice(choice):
    legacy = choice.message.function_call
    return {
        "index": choice.index,
        "finish": choice.finish_reason,
        "content": choice.message.content,
        "tool_calls": [chat_call(call) for call in choice.message.tool_calls or []],
        "function_call": legacy and {"name": legacy.name, "arguments": legacy.arguments},
    }


def chat_call(call):
    if call.type == "custom":
        return {"id": call.id, "name": call.custom.name, "arguments": call.custom.input}
    return {"id": call.id, "name": call.function.name, "arguments": call.function.arguments}


def responses(question):
    client = openai.OpenAI(base_url=question["base"], max_retries=0)
    ask = {"model": question["model"], "input": PROMPT, "extra_headers": question["headers"]}
    if not question["stream"]:
        return response(client.responses.create(**ask))
    with client.responses.stream(**ask) as stream:
        return response(stream.get_final_response())


def response(answer):
    items = [item.model_dump(mode="json") for item in answer.output]
    calls = [item for item in items if item["type"] in CALLS]
    return {
        "items": [item["type"] for item in items],
        "tool_calls": [response_call(item) for item in calls],
        "status": answer.status,
        "text": answer.output_text,
        "model": answer.model,
        "usage": answer.usage and answer.usage.model_dump(mode="json", exclude_none=True),
    }


def response_call(item):
    given = item.get("arguments")
    return {
        "type": item["type"],
        "name": item.get("name"),
        "call_id": item.get("call_id"),
        "arguments": item.get("input") if given is None else given,
    }


def gemini(question):
    options = genai.types.HttpOptions(base_url=question["base"], headers=question["headers"])
    client = genai.Client(api_key=os.environ["GEMINI_API_KEY"], http_options=options)
    ask = {"model": question["model"], "contents": PROMPT}
    if not question["stream"]:
        return gemini_answer([client.models.generate_content(**ask)])
    return gemini_answer(list(client.models.generate_content_stream(**ask)))


def gemini_answer(chunks):
    verdict = {"tool_calls": [], "hosted": [], "text": "", "finish": [], "model": None, "usage": None}
    for chunk in chunks:
        verdict["model"] = chunk.model_version or verdict["model"]
        if chunk.usage_metadata:
            verdict["usage"] = chunk.usage_metadata.model_dump(mode="json", exclude_none=True)
        for candidate in chunk.candidates or []:
            if candidate.finish_reason:
                verdict["finish"].append(str(getattr(candidate.finish_reason, "value", candidate.finish_reason)))
            for kind in ("grounding_metadata", "url_context_metadata"):
                matches = getattr(candidate, kind, None)
                verdict["hosted"] += [kind] if matches and matches.model_dump(exclude_none=True) else []
            for part in (candidate.content and candidate.content.parts) or []:
                gemini_part(part, verdict)
    return verdict


def gemini_part(part, verdict):
    call = part.function_call
    if call:
        signed = bool(part.thought_signature)
        verdict["tool_calls"].append({"id": call.id, "name": call.name, "args": call.args, "signed": signed})
    verdict["hosted"] += [kind for kind in ("executable_code", "tool_call") if getattr(part, kind, None)]
    if part.text and not part.thought:
        verdict["text"] += part.text


def bedrock(question):
    client = boto3.client(
        "bedrock-runtime",
        region_name=REGION,
        endpoint_url=question["base"],
        config=Config(retries={"max_attempts": 0, "mode": "standard"}),
    )
    add = lambda params, **_: params["headers"].update(question["headers"])  # noqa: E731
    client.meta.events.register("before-call.bedrock-runtime.*", add)
    return client


def converse(question):
    client, ask = bedrock(question), {"modelId": question["model"], "messages": TURNS}
    if question["stream"]:
        return converse_events(list(client.converse_stream(**ask)["stream"]))
    answer = client.converse(**ask)
    blocks = answer["output"]["message"]["content"]
    calls = [block["toolUse"] for block in blocks if "toolUse" in block]
    return {
        "tool_calls": [converse_call(call, call["input"]) for call in calls],
        "text": "".join(block.get("text", "") for block in blocks),
        "stop": answer["stopReason"],
        "usage": answer.get("usage"),
    }


def converse_events(events):
    """boto3 has no accumulator: this one refuses what its users could not read."""
    blocks, verdict = {}, {"tool_calls": [], "text": "", "stop": None, "usage": None}
    for event in events:
        ((kind, body),) = event.items()
        if kind == "contentBlockStart":
            blocks[body["contentBlockIndex"]] = {"start": body["start"].get("toolUse"), "input": ""}
        elif kind == "contentBlockDelta":
            block = blocks.setdefault(body["contentBlockIndex"], {"start": None, "input": ""})
            verdict["text"] += body["delta"].get("text", "")
            if "toolUse" in body["delta"]:
                block["input"] += body["delta"]["toolUse"]["input"]
        elif kind == "contentBlockStop":
            blocks[body["contentBlockIndex"]]["stopped"] = True
        elif kind == "messageStop":
            verdict["stop"] = body["stopReason"]
        elif kind == "metadata":
            verdict["usage"] = body["usage"]
    if not all(block.get("stopped") for block in blocks.values()):
        raise ValueError("a content block has no end")
    calls = [block for _, block in sorted(blocks.items()) if block["start"]]
    verdict["tool_calls"] = [converse_call(block["start"], json.loads(block["input"] or "{}")) for block in calls]
    return verdict


def converse_call(call, given):
    return {"id": call["toolUseId"], "name": call["name"], "input": given, "type": call.get("type")}


def invoke(question):
    client = bedrock(question)
    ask = {"modelId": question["model"], "body": json.dumps({"anthropic_version": "bedrock-2023-05-31", "max_tokens": 64, "messages": MESSAGES})}
    if not question["stream"]:
        return messages(json.loads(client.invoke_model(**ask)["body"].read()))
    events = client.invoke_model_with_response_stream(**ask)["body"]
    return messages_events([json.loads(event["chunk"]["bytes"]) for event in events])


def messages_events(events):
    """Joins the events of InvokeModel as a client does: a message of Claude, or the text of another model."""
    if not any("type" in event for event in events):
        return {"tool_calls": [], "server_calls": [], "text": "".join(event.get("outputText", "") for event in events)}
    (start,) = [event["message"] for event in events if event.get("type") == "message_start"]
    blocks, ended = start["content"], False
    for event in events:
        kind = event.get("type")
        if kind == "content_block_start":
            if event["index"] != len(blocks):
                raise ValueError(f"block {event['index']} comes after {len(blocks)} blocks")
            blocks.append(event["content_block"] | {"json": ""})
        elif kind == "content_block_delta":
            delta, block = event["delta"], blocks[event["index"]]
            block["json"] += delta.get("partial_json", "")
            block["text"] = block.get("text", "") + delta.get("text", "")
        elif kind == "content_block_stop":
            block = blocks[event["index"]]
            if block["json"]:
                block["input"] = json.loads(block["json"])
        elif kind == "message_delta":
            start["stop_reason"] = event["delta"]["stop_reason"]
        ended = ended or kind == "message_stop"
    if not ended:
        raise ValueError("the message has no end")
    return messages(start)


def messages(message):
    named = lambda block: {key: block[key] for key in ("id", "name", "input")}  # noqa: E731
    return {
        "tool_calls": [named(block) for block in of(message["content"], "tool_use")],
        "server_calls": [named(block) for block in of(message["content"], "server_tool_use", "mcp_tool_use")],
        "text": "".join(block["text"] for block in of(message["content"], "text")),
        "stop": message["stop_reason"],
    }


def of(blocks, *types):
    return [block for block in blocks if block["type"] in types]


JUDGES = {
    "anthropic": anthropic_messages,
    "chat": chat_completions,
    "chat request": chat_request,
    "responses": responses,
    "gemini": gemini,
    "converse": converse,
    "invoke": invoke,
}

main()
