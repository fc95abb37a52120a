"""Where requests differ from those of the peers, and why the gateway's are right."""

from comparing import ABSENT, TRANSLATED
from rows import BOTH, LITELLM, LLMS, At, Row

TOOL, USER, ASSISTANT, SYSTEM = (f"messages/*:{role}" for role in ("tool", "user", "assistant", "system"))
AGENTGATEWAY = "request/recorded/agentgateway/requests/messages"
ONLY_OURS = {"theirs": ABSENT}
ONLY_THEIRS = {"ours": ABSENT}

ROWS = [
    Row(
        "unsayable", BOTH, "What Chat cannot say is refused with the reason; the peers send the request without it, or with a name that no server knows.",
        (At("error", "400; Class: Translate; Reason: *", TRANSLATED),),
        ("request/*_cannot_be_said", "request/recorded/anthropic/live/document-url", f"{AGENTGATEWAY}/responses_agent_subset"),
    ),
    # What is said of the request as a whole.
    Row(
        "stream-usage", BOTH, "Servers report the usage of a stream to those alone who ask for it.",
        (At("stream_options", '{"include_usage": true}', ABSENT),),
    ),
    Row(
        "fields-of-messages", (LITELLM,), "A field that Chat does not have is dropped, since strict servers refuse it.",
        tuple(At(field, **ONLY_THEIRS) for field in ("betas", "container", "context_management", "inference_geo", "mcp_servers", "service_tier", "something_new", "speed", "thread", "top_k")),
    ),
    Row("metadata", (LITELLM,), "Who the agent's user is stays with the agent.", (At("user", ABSENT, "u"),)),
    Row(
        "sampling", (LLMS,), "What Chat has under the same name, or another one, is kept.",
        (At("top_p", **ONLY_OURS), At("stop", **ONLY_OURS)),
    ),
    Row("formats", (LLMS,), "The form of an answer is `response_format`.", (At("response_format", **ONLY_OURS),)),
    Row(
        "strict-formats", (LITELLM,), "A schema goes on as it is: `strict` and closed objects are for the agent to ask for.",
        (
            At("response_format/json_schema/name", "answer", "structured_output"),
            At("response_format/json_schema/strict", ABSENT, "true"),
            At("response_format/json_schema/schema/additionalProperties", ABSENT, "false"),
        ),
    ),
    Row(
        "terms-of-the-policy", BOTH, "A policy caps the tokens of an answer, and fills in fields; the peers' adapters know no policy.",
        (At("max_tokens", "16384", "32000"), At("provider", '{"order": ["a"]}', ABSENT), At("seed", "7", ABSENT)),
        ("request/max_tokens_is_capped", "request/params_fill_what_the_body_has_not"),
    ),
    Row(
        "tokens-of-completion", BOTH, "OpenAI and Azure call it `max_completion_tokens`.",
        (At("max_completion_tokens", **ONLY_OURS), At("max_tokens", **ONLY_THEIRS)),
        ("request/a_pdf_is_a_file_where_servers_take_files", "request/max_tokens_is_of_completion_at_openai", "request/media_of_results_stand_behind_them"),
    ),
    Row(
        "effort", (LITELLM,), "Effort is sent where a policy says `Map`, and has the three steps that all servers know.",
        tuple(At("reasoning_effort", *each) for each in ((ABSENT, "*"), ("low", "high"), ("medium", "high"), ("high", "xhigh"))),
    ),
    Row(
        "thinking-fields", (LLMS,), "Effort is `reasoning_effort`, where a policy says `Map`; these fields are of certain vendors.",
        (At("enable_thinking", **ONLY_THEIRS), At("reasoning", **ONLY_THEIRS), At("thinking", **ONLY_THEIRS), At("reasoning_effort", **ONLY_OURS)),
    ),
    # The system.
    Row(
        "billing", BOTH, "What Claude Code tells Anthropic for its bills is no business of a model.",
        (At(f"{SYSTEM}/content", "*", "x-anthropic-billing-header: *<ours>"),),
    ),
    Row(
        "cache-control", (LLMS,), "Strict servers refuse `cache_control` and other fields of Messages' blocks.",
        tuple(At(place, **ONLY_THEIRS) for place in (f"{SYSTEM}/beside", f"{USER}/beside", f"{TOOL}/cache_control")),
    ),
    Row(
        "system-inside", BOTH, "What the operator says inside a conversation is said by the system there, and not lost, nor told as the user's words.",
        (
            At(SYSTEM, '{"content": "Be brief.", "role": "system"}', ABSENT),
            At(SYSTEM, '{"content": "System-role block", "role": "system"}', ABSENT),
            At(USER, ABSENT, '{"content": "Operator note (not from the user): *'),
            At(f"{USER}/content", '*"[of tool result call_image]"*', "Operator note (not from the user): *"),
        ),
        (f"{AGENTGATEWAY}/cache_control", "request/system_inside_stands_behind_results", "request/tool_additions_and_removals_change_tools", "request/recorded/anthropic/live/tool-addition-blocks"),
    ),
    # Turns.
    Row(
        "joined-texts", (LITELLM,), "Texts are lines of their own, and an empty one adds none.",
        (At(f"{USER}/content", "a\nb", "a\n\nb"), At(f"{ASSISTANT}/content", "First assistant block\nSecond assistant block", "First assistant blockSecond assistant block")),
        ("request/user_texts_are_joined_by_lines", f"{AGENTGATEWAY}/cache_control"),
    ),
    Row(
        "documents", BOTH, "A document is its text; the peers lose it.",
        (At(USER, '{"content": *', ABSENT),), ("request/documents_of_text_are_text", "request/a_search_result_is_its_title_source_and_text"),
    ),
    Row(
        "pdfs", BOTH, "A PDF is a file where servers take files, and named elsewhere; it is no picture, and is not lost in silence.",
        (
            At(USER, '{"content": "[document omitted*', ABSENT),
            At(f"{USER}/content", "*document omitted*", '*"data:application/pdf*'),
            At(f"{USER}/content", '*"type": "file"*', "read it"),
            At(f"{USER}/content/0:file", **ONLY_OURS),
            At(f"{USER}/content/0:image_url", ABSENT, '*"data:application/pdf*'),
        ),
        ("request/a_pdf_is_a_file_where_servers_take_files", "request/a_pdf_is_named_elsewhere"),
    ),
    Row(
        "pictures-left-out", BOTH, "A policy says that the model sees no pictures.",
        (At(f"{USER}/content", "look\n[image omitted]", '*"image_url"*'), At(f"{TOOL}/content", "[image omitted]", "*iVBORw0=*")),
        ("request/images_may_be_omitted",),
    ),
    Row("picture-types", (LLMS,), "The type of a picture is in its URL.", (At(f"{USER}/content/*:image_url/media_type", **ONLY_THEIRS),)),
    Row(
        "hosted-history", BOTH, "What a hosted tool was asked and said is text of the turn; the peers lose it.",
        (At(f"{ASSISTANT}/content", "*<theirs>"),), ("request/hosted_calls_and_results_are_text", "request/recorded/anthropic/live/container-reuse.01"),
    ),
    Row(
        "compactions", BOTH, "The summary of a conversation is text of the turn.",
        (At(ASSISTANT, '{"content": "What was said.", "role": "assistant"}', ABSENT), At(f"{ASSISTANT}/content", "What was said.", "")),
        ("request/a_compaction_is_its_summary",),
    ),
    Row(
        "foreign-thinking", BOTH, "Thinking goes back to the model alone that said it, unsigned thinking of others is no text of this one; an emptied turn goes.",
        (
            At(ASSISTANT, ABSENT, '*"hm"*'),
            At(f"{ASSISTANT}/thinking_blocks", **ONLY_THEIRS),
            At(f"{ASSISTANT}/thinking", **ONLY_THEIRS),
            At(f"{ASSISTANT}/reasoning_content", "", "*"),
            At(f"{ASSISTANT}/reasoning_content", ABSENT, "*"),
        ),
        ("request/an_emptied_turn_goes", "request/recorded/anthropic/live/tool-with-thinking.01", f"{AGENTGATEWAY}/reasoning_replay"),
    ),
    Row(
        "reasoning-of-calls", BOTH, "DeepSeek, Kimi and GLM refuse calls without the reasoning that led to them.",
        (At(f"{ASSISTANT}/reasoning_content", "", ABSENT),),
    ),
    # Calls and results.
    Row(
        "null-content", (LLMS,), "Beside calls alone the content is null: some servers refuse an empty text.",
        (At(f"{ASSISTANT}/content", "null", ""),),
    ),
    Row(
        "numbers", (LLMS,), "Arguments go on as they are written, so that long numbers keep their digits.",
        (At(f"{ASSISTANT}/tool_calls/0:A/function/arguments/big", "12345678901234567890", "12345678901234567000"),),
    ),
    Row(
        "errors-of-tools", BOTH, "Chat has no `is_error`: the model is told in words.",
        (At(f"{TOOL}/content", "Error: <theirs>"), At(f"{TOOL}/content", "Error: (no output)", "")),
    ),
    Row(
        "empty-results", BOTH, "An empty result is said in words, since some servers refuse an empty one.",
        (At(f"{TOOL}/content", "(no output)", ""), At(f"{TOOL}/content", "(no output)", "[]")),
    ),
    Row(
        "media-of-results", BOTH, "A result is a text; its pictures and files stand in the user's message behind it.",
        (
            At(f"{TOOL}/content", "done", "*iVBORw0=*"),
            At(f"{TOOL}/content", "(no output)", "*JVBERi0=*"),
            At(f"{TOOL}/content", "(no output)", '[{*data*aGVsbG8=*}]'),
            At(f"{TOOL}/content", "before image\nafter image", '[{*data*aGVsbG8=*}]'),
            At(f"{USER}/content", '*"[of tool result a]"*see?*', "see?"),
            At(USER, '*"[of tool result call_image]"*', ABSENT),
        ),
        ("request/media_of_results_stand_behind_them", f"{AGENTGATEWAY}/cache_control"),
    ),
    Row(
        "texts-of-results", (LLMS,), "The texts of a result are its text, not the JSON that holds them.",
        (At(f"{TOOL}/content", "*", '[{"text":"<ours>","type":"text"}]'), At(f"{TOOL}/content", "array result", '[{"type":"text","text":"<ours>","cache_control":*}]')),
    ),
    Row(
        "order-of-results", BOTH, "Results stand in the order of the calls, as strict templates want it.",
        (At(f"{TOOL}/tool_call_id"), At(f"{TOOL}/content")), ("request/results_stand_in_the_order_of_the_calls",),
    ),
    Row(
        "missing-results", BOTH, "A call without a result gets one: servers refuse such a conversation.",
        (At(TOOL, '*"content": "y"*', ABSENT), At(f"{TOOL}/content", "(no result)", "y"), At(f"{TOOL}/tool_call_id", "a", "b")),
        ("request/calls_without_results_have_one",),
    ),
    Row(
        "unknown-results", BOTH, "A result without a call is text of the user: servers refuse such a `tool` message.",
        (At(TOOL, **ONLY_THEIRS), At(USER, '*"[result of an unknown call]*', ABSENT)),
        ("request/a_repeated_result_is_unknown", "request/results_without_calls_are_text"),
    ),
    Row(
        "turns-in-a-row", BOTH, "Calls of turns in a row are of one turn, since their results come together.",
        (At(ASSISTANT, **ONLY_THEIRS), At(f"{ASSISTANT}/tool_calls/*"), At(f"{ASSISTANT}/content", "and", "")),
        ("request/assistant_turns_in_a_row_share_their_results",),
    ),
    # Tools.
    Row(
        "no-parallel-use", BOTH, "`disable_parallel_tool_use` is `parallel_tool_calls: false`.",
        (At("parallel_tool_calls", "false", ABSENT),),
    ),
    Row("any-tool", (LLMS,), "`any` is `required` in Chat.", (At("tool_choice", "required", "any"),)),
    Row(
        "choice-without-tools", BOTH, "Without tools no choice is sent, and none of a tool that is not sent.",
        (At("tool_choice", ABSENT, "*"), At("tool_choice", "auto", '*"web_search"*')),
    ),
    Row(
        "hosted-tools", BOTH, "What only the agent's provider can run is not offered to another model.",
        (
            At("tools", ABSENT, "*"),
            At("web_search_options", ABSENT, "{}"),
            At("tools/*:litellm_unnamed_tool_*", **ONLY_THEIRS),
            At("tools/*:tool_search_tool_bm25*", **ONLY_THEIRS),
            At("tools/*:function", **ONLY_THEIRS),
            At("tools/*:web_search", **ONLY_THEIRS),
        ),
        ("request/hosted_tools_go", "request/recorded/anthropic/live/*", f"{AGENTGATEWAY}/server_tools"),
    ),
    Row(
        "own-tools", BOTH, "Tools whose schema Anthropic's models know by heart are functions with a schema that is said.",
        (At("tools/*"),), ("request/own_tools_have_our_schema",),
    ),
    Row(
        "deferred-tools", BOTH, "A deferred tool is sent once a search has found it, and the search's result says its name.",
        (
            At("tools/*:Never", **ONLY_THEIRS),
            At("tools/*/function/parameters/defer_loading", ABSENT, "true"),
            At(f"{TOOL}/content", "Tool * is available.", "*tool_reference*"),
            At(f"{TOOL}/content", "Tool * is available.", ""),
        ),
    ),
    Row(
        "changed-tools", BOTH, "Tools that the system adds inside a conversation are sent, those that it takes away are not.",
        (At("tools/*:New", **ONLY_OURS), At("tools/*:Old", **ONLY_THEIRS)), ("request/tool_additions_and_removals_change_tools",),
    ),
    Row(
        "names", BOTH, "Chat's names have 1 to 64 of the characters A-Z, a-z, 0-9, _ and -.",
        (At("tools/*"), At(f"{ASSISTANT}/tool_calls/*"), At("tool_choice/function/name", "mcp__xxx*", "mcp__xxx*")), ("request/names_are_shortened_everywhere",),
    ),
    Row(
        "fields-of-tools", (LITELLM,), "A tool is its name, description and schema: strict servers refuse more.",
        tuple(At(f"tools/*:A/{field}", **ONLY_THEIRS) for field in ("eager_input_streaming", "function/strict", "function/parameters/allowed_callers", "function/parameters/input_examples")),
    ),
    Row("missing-descriptions", (LLMS,), "A tool without a description has none.", (At("tools/*:B/function/description", ABSENT, ""),)),
    Row(
        "closed-schemas", BOTH, "`schema:generic` is the default: some servers refuse `additionalProperties`.",
        (At("tools/*/function/parameters/additionalProperties", ABSENT, "false"),),
    ),
]
