"""A turn of the Anthropic SDK for Python, streamed: the blocks of its final message."""

import json
import sys

import anthropic

TOOL = {
    "name": "Bash",
    "description": "Runs a command",
    "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}},
}

try:
    client = anthropic.Anthropic(max_retries=0, timeout=20, **json.loads(sys.argv[1]))
    asked = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 64,
        "tools": [TOOL],
        "messages": [{"role": "user", "content": "tidy up"}],
    }
    with client.messages.stream(**asked) as events:
        message = events.get_final_message()
    print(
        json.dumps(
            {
                "blocks": [block.model_dump() for block in message.content],
                "stop": message.stop_reason,
                "key": client.api_key,
            }
        )
    )
except anthropic.AnthropicError as error:
    print(json.dumps({"error": str(error), "status": getattr(error, "status_code", None)}))
