"""The three dialects of the agents: the results of tools in a request, and an answer that calls a tool or ends the task."""

import json
from dataclasses import dataclass

JSON, SSE = "application/json", "text/event-stream"


@dataclass(frozen=True)
class Call:
    """A call of the shell with a command, or of the agent's own tool that reads a file, with its path."""

    kind: str
    argument: str


class Anthropic:
    """Messages, as Claude Code speaks it."""

    host = "api.anthropic.com"
    paths = ("/v1/messages",)

    def is_turn(self, asked):
        return any(tool.get("name") == "Bash" for tool in asked.get("tools", []))

    def results(self, asked):
        """The texts of the results so far, in their order."""
        return [text for _, text in self.blocks(asked)]

    def replace_first(self, asked, text):
        """Puts another text in the place of the first result."""
        next(self.blocks(asked))[0]["content"] = text

    def blocks(self, asked):
        """Each result, as the object that it stands in and its text."""
        for message in asked["messages"]:
            for block in message["content"] if isinstance(message["content"], list) else []:
                if block.get("type") == "tool_result":
                    yield block, text_of(block.get("content", ""))

    def answer(self, asked, call, number):
        block = {"type": "text", "text": "The task is done."}
        if call:
            name, key = {"shell": ("Bash", "command"), "read": ("Read", "file_path")}[call.kind]
            block = {"type": "tool_use", "id": f"toolu_standin{number:02}", "name": name, "input": {key: call.argument}}
        stop = "tool_use" if call else "end_turn"
        message = {
            "id": f"msg_standin{number:02}", "type": "message", "role": "assistant", "model": asked["model"], "content": [block],
            "stop_reason": stop, "stop_sequence": None, "usage": {"input_tokens": 12, "output_tokens": 8},
        }
        if not asked.get("stream"):
            return JSON, json.dumps(message)
        empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block.get("text")}
        if call:
            empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        return SSE, events([
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 8}},
            {"type": "message_stop"},
        ])

    def parts(self, asked):
        """What a cache reads, in its order; and how many of the parts each mark of the agent covers."""
        parts, marks = [], []
        system = asked.get("system") or []
        system = system if isinstance(system, list) else [{"type": "text", "text": system}]
        groups = [("tool", tool) for tool in asked.get("tools", [])] + [("system", block) for block in system]
        for message in asked["messages"]:
            content = message["content"]
            blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
            groups += [(message["role"], block) for block in blocks]
        for role, block in groups:
            # It differs in each turn of Claude Code, whose maker's servers take it out.
            if str(block.get("text")).startswith("x-anthropic-billing-header"):
                continue
            parts.append(json.dumps([role, without_marks(block)], sort_keys=True, ensure_ascii=False))
            if "cache_control" in block:
                marks.append(len(parts))
        return parts, marks


class Responses:
    """OpenAI Responses, as Codex speaks it: its shell is a function, or JavaScript for its custom tool `exec`."""

    host = "api.openai.com"
    paths = ("/v1/responses",)

    def is_turn(self, asked):
        return bool(asked.get("tools")) or any(item.get("type") == "additional_tools" for item in asked["input"])

    def results(self, asked):
        return [text for _, text in self.blocks(asked)]

    def replace_first(self, asked, text):
        next(self.blocks(asked))[0]["output"] = text

    def blocks(self, asked):
        for item in asked["input"]:
            if str(item.get("type")).endswith("_call_output"):
                yield item, text_of(item.get("output", ""))

    def answer(self, asked, call, number):
        item = {
            "type": "message", "id": f"msg_standin{number:02}", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "The task is done.", "annotations": []}],
        }
        if call:
            item = self._called(asked, call, number)
        response = self._response(asked, f"resp_standin{number:02}", [item])
        if not asked.get("stream"):
            return JSON, json.dumps(response)
        written = [
            {"type": "response.created", "response": {**response, "status": "in_progress", "output": [], "usage": None}},
            {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": response},
        ]
        return SSE, events([{**event, "sequence_number": place} for place, event in enumerate(written)])

    def silent(self, asked):
        """The events of a response in which nothing is said: Codex begins a WebSocket so."""
        response = self._response(asked, "resp_standin_begin", [])
        written = [
            {"type": "response.created", "response": {**response, "status": "in_progress", "usage": None}},
            {"type": "response.completed", "response": response},
        ]
        return [{**event, "sequence_number": place} for place, event in enumerate(written)]

    def _response(self, asked, name, output):
        return {
            "id": name, "object": "response", "created_at": 1700000000, "model": asked["model"], "status": "completed",
            "output": output, "error": None, "incomplete_details": None, "instructions": None, "metadata": {}, "parallel_tool_calls": True,
            "temperature": 1, "top_p": 1, "tool_choice": "auto", "tools": [],
            "usage": {
                "input_tokens": 12, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 8,
                "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 20,
            },
        }

    def _called(self, asked, call, number):
        head = {"id": f"ctc_standin{number:02}", "call_id": f"call_standin{number:02}", "status": "completed"}
        # It has no tool for files: what it reads, it reads by its shell.
        command = call.argument if call.kind == "shell" else f"cat {call.argument}"
        function = next((tool for tool in asked.get("tools") or [] if tool.get("type") == "function"), None)
        if function:
            return {**head, "type": "function_call", "name": function["name"], "arguments": json.dumps({"cmd": command})}
        code = f"const r = await tools.exec_command({{cmd: {json.dumps(command)}}});\ntext(r.output);"
        return {**head, "type": "custom_tool_call", "namespace": "functions", "name": "exec", "input": code}

    def parts(self, asked):
        head = {key: asked.get(key) for key in ("model", "instructions", "tools")}
        parts = [json.dumps(head, sort_keys=True, ensure_ascii=False), *(json.dumps(item, sort_keys=True, ensure_ascii=False) for item in asked["input"])]
        return parts, [len(parts)]


class Gemini:
    """generateContent, as the Gemini CLI speaks it."""

    host = "generativelanguage.googleapis.com"
    paths = (":generateContent", ":streamGenerateContent")

    def is_turn(self, asked):
        return bool(asked.get("tools"))

    def results(self, asked):
        return [text for _, text in self.blocks(asked)]

    def replace_first(self, asked, text):
        next(self.blocks(asked))[0]["functionResponse"]["response"] = {"output": text}

    def blocks(self, asked):
        for content in asked["contents"]:
            for part in content.get("parts", []):
                if "functionResponse" in part:
                    yield part, "\n".join(str(value) for value in part["functionResponse"]["response"].values())

    def answer(self, asked, call, number):
        part = {"text": "The task is done."}
        schema = asked.get("generationConfig", {}).get("responseJsonSchema")
        if schema:
            part = {"text": json.dumps({name: 1 if "NT" in str(field.get("type")).upper() else "done" for name, field in schema["properties"].items()})}
        elif call:
            name, key = {"shell": ("run_shell_command", "command"), "read": ("read_file", "file_path")}[call.kind]
            part = {"functionCall": {"id": f"standin{number:02}", "name": name, "args": {key: call.argument}}}
        message = {
            "candidates": [{"content": {"parts": [part], "role": "model"}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 12, "candidatesTokenCount": 8, "totalTokenCount": 20},
            "modelVersion": "stand-in", "responseId": f"standin{number:02}",
        }
        return None, message

    def parts(self, asked):
        head = {key: asked.get(key) for key in ("systemInstruction", "tools")}
        parts = [json.dumps(head, sort_keys=True, ensure_ascii=False), *(json.dumps(each, sort_keys=True, ensure_ascii=False) for each in asked["contents"])]
        return parts, [len(parts)]


def text_of(content):
    """The text of a result, which is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content if isinstance(block, dict))


def without_marks(block):
    return {key: value for key, value in block.items() if key != "cache_control"}


def events(each):
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in each)
