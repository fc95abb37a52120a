"""LiteLLM's adapter between Messages and Chat Completions, asked for one translation a line, without its server.

A line of standard input is `{request}` or `{request, answer, stream}`; a line of standard output is `{request}`, `{message}`,
`{events}` (the text of a stream) or `{error}`.
"""

import asyncio
import json
import os
import sys
from itertools import takewhile

# Otherwise it asks GitHub for prices when it is imported.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from litellm.litellm_core_utils.llm_response_utils.convert_dict_to_response import convert_to_model_response_object  # noqa: E402
from litellm.llms.anthropic.pass_through.adapters.transformation import AnthropicAdapter  # noqa: E402
from litellm.llms.openai.chat.gpt_transformation import OpenAIChatCompletionStreamingHandler  # noqa: E402
from litellm.types.utils import ModelResponse  # noqa: E402

ADAPTER = AnthropicAdapter()
MODEL, PROVIDER = "qwen3-coder", "hosted_vllm"


class Chunks:
    """The chunks of a Chat stream, as LiteLLM's client of such servers gives them to the adapter."""

    def __init__(self, text):
        self.parser = OpenAIChatCompletionStreamingHandler(streaming_response=iter(()), sync_stream=True)
        events = [line.removeprefix("data:").strip() for line in text.splitlines() if line.startswith("data:")]
        self.waiting = takewhile(lambda event: event != "[DONE]", events)

    def __aiter__(self):
        return self

    async def __anext__(self):
        for event in self.waiting:
            return self.parser.chunk_parser(json.loads(event))
        raise StopAsyncIteration


async def joined(chunks, names):
    events = ADAPTER.translate_completion_output_params_streaming(chunks, MODEL, names)
    return b"".join([event async for event in events]).decode()


def translated(question):
    request, names = ADAPTER.translate_completion_input_params_with_tool_mapping(
        question["request"] | {"model": MODEL}, custom_llm_provider=PROVIDER
    )
    if "answer" not in question:
        return {"request": request}
    if question["stream"]:
        return {"events": asyncio.run(joined(Chunks(question["answer"]), names))}
    answer = convert_to_model_response_object(json.loads(question["answer"]), ModelResponse())
    return {"message": ADAPTER.translate_completion_output_params(answer, names)}


def main():
    # Whatever the package prints is not an answer.
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        try:
            result = translated(json.loads(line))
        except Exception as error:  # noqa: BLE001
            result = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(result, default=lambda value: value.model_dump(exclude_none=True)), file=answers, flush=True)


main()
