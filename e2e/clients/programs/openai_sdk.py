"""The OpenAI SDK for Python: answer | stream | batches | another | unnamed | forbidden."""

import openai
import report_sdk

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
TOOL = {"type": "function", "name": "shell", "parameters": SCHEMA, "strict": False}


def ask(**options):
    answer = openai.OpenAI(max_retries=0, **options).chat.completions.create(
        model="gpt-6", messages=[{"role": "user", "content": "hello"}]
    )
    return {"text": answer.choices[0].message.content}


def stream():
    client = openai.OpenAI(max_retries=0)
    with client.responses.stream(model="gpt-6", input="run echo", tools=[TOOL]) as events:
        call = events.get_final_response().output[0]
    turns = [
        {"role": "user", "content": "run echo"},
        {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments},
        {"type": "function_call_output", "call_id": call.call_id, "output": "ran"},
    ]
    with client.responses.stream(model="gpt-6", input=turns, tools=[TOOL]) as events:
        text = events.get_final_response().output_text
    return {"tool": [call.name, call.arguments], "text": text}


report_sdk.run(
    {
        "answer": ask,
        "stream": stream,
        "batches": lambda: {"text": str(openai.OpenAI(max_retries=0).batches.list())},
        "another": lambda: ask(api_key="sk-another-key"),
        "unnamed": lambda: ask(base_url=report_sdk.BASES["unnamed"]),
        "forbidden": lambda: ask(base_url=report_sdk.BASES["forbidden"]),
    },
    openai.OpenAIError,
)
