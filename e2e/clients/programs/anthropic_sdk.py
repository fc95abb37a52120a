"""The Anthropic SDK for Python: answer | stream | batches | another | unnamed | forbidden."""

import anthropic
import report_sdk

TOOL = {"name": "Bash", "description": "Runs a command", "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}}
ASKED = {"role": "user", "content": "run echo"}


def ask(**options):
    client = anthropic.Anthropic(max_retries=0, **options)
    answer = client.messages.create(model="claude-sonnet-5", max_tokens=64, messages=[ASKED])
    return {"text": answer.content[0].text}


def stream():
    client = anthropic.Anthropic(max_retries=0)
    asked = {"model": "claude-sonnet-5", "max_tokens": 64, "tools": [TOOL]}
    with client.messages.stream(messages=[ASKED], **asked) as events:
        call = events.get_final_message().content[0]
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "ran"}]}
    output = {"role": "assistant", "content": [call.model_dump(include={"type", "id", "name", "input"})]}
    with client.messages.stream(messages=[ASKED, output, result], **asked) as events:
        text = "".join(events.text_stream)
    return {"tool": [call.name, call.input["command"]], "text": text}


report_sdk.run(
    {
        "answer": ask,
        "stream": stream,
        "batches": lambda: {"text": str(anthropic.Anthropic(max_retries=0).messages.batches.list())},
        "another": lambda: ask(api_key="sk-ant-another-key"),
        "unnamed": lambda: ask(base_url=report_sdk.BASES["unnamed"]),
        "forbidden": lambda: ask(base_url=report_sdk.BASES["forbidden"]),
    },
    anthropic.AnthropicError,
)
