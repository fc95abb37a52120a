// What the stand-in's models say, in each provider's shape: calls of the first shell-like tool, then DONE once their results are back.
// The commands are the ones that the last prompt asks for; a prompt with SEARCH in it makes Claude Code search the web, one
// with SUBAGENT has a subagent run them. Who is asked to shorten a conversation says where it stands.

const DONE = 'The tool has run.';
const COMMAND = 'echo postern-tool-ran';
const SEARCH = 'postern-search';
const SUBAGENT = 'postern-subagent';
/** What Claude Code asks for when a conversation has become too long. */
const SHORTEN = /create a detailed summary of (the|this) conversation/;

/** The command of the next call in what was asked so far, as JSON, behind so many results; none once all have run. */
function command(asked, results) {
  return commands(asked)[results];
}

/** The commands of the last prompt: a task's in backquotes, a file that is to be made, else an echo. */
function commands(asked) {
  const task = [...wanted(asked).matchAll(/`([^`]+)`/g)].map(([, text]) => JSON.parse(`"${text}"`));
  return task.length ? task : [wanted(asked) === 'run echo' ? COMMAND : wanted(asked)];
}

/** The last prompt. */
function wanted(asked) {
  return asked.match(/run `[^`]+`(, then `[^`]+`)*|run echo|(sudo )?touch \/[\w./-]*postern-\w+/g)?.at(-1) ?? 'run echo';
}

/** How often a word stands in a text. */
function count(text, word) {
  return text.split(word).length - 1;
}

/** An Anthropic Messages answer. */
export function anthropic({model, messages, tools = []}) {
  const asked = JSON.stringify(messages);
  const [call, results] = [claudes(asked, tools), count(asked, '"tool_result"')];
  const calls = call !== undefined;
  const block = calls
    ? {type: 'tool_use', id: `toolu_standin0${results}`, ...call}
    : {type: 'text', text: DONE};
  const message = {
    id: `msg_standin0${results}`, type: 'message', role: 'assistant', model, content: [block],
    stop_reason: calls ? 'tool_use' : 'end_turn', stop_sequence: null,
    usage: {input_tokens: 12, output_tokens: 8},
  };
  const deltas = calls
    ? halves(JSON.stringify(block.input)).map(partial_json => ({type: 'input_json_delta', partial_json}))
    : halves(DONE).map(text => ({type: 'text_delta', text}));
  const empty = calls ? {...block, input: {}} : {...block, text: ''};
  return {message, events: named([
    {type: 'message_start', message: {...message, content: [], stop_reason: null}},
    {type: 'content_block_start', index: 0, content_block: empty},
    ...deltas.map(delta => ({type: 'content_block_delta', index: 0, delta})),
    {type: 'content_block_stop', index: 0},
    {type: 'message_delta', delta: {stop_reason: message.stop_reason, stop_sequence: null}, usage: {output_tokens: 8}},
    {type: 'message_stop'},
  ])};
}

/** What Claude Code is to call next, if anything: it looks for its own tools before it can search. */
function claudes(asked, tools) {
  const results = count(asked, '"tool_result"');
  const named = name => tools.find(tool => tool.name === name && tool.input_schema);
  if (asked.includes(SEARCH) && named('Bash')) {
    if (asked.includes('"name":"WebSearch"')) return undefined;
    if (named('WebSearch') || results) return {name: 'WebSearch', input: {query: 'a guarded door'}};
    return {name: 'ToolSearch', input: {query: 'select:WebSearch', max_results: 5}};
  }
  const tool = named('Bash') ?? tools.find(({input_schema}) => input_schema);
  if (asked.includes(SUBAGENT) && named('Agent')) {
    const input = {description: 'Runs a command', prompt: 'run echo', subagent_type: 'local'};
    return results ? undefined : {name: 'Agent', input};
  }
  const next = command(asked, results);
  return tool && next ? {name: tool.name, input: {command: next}} : undefined;
}

/** An OpenAI Chat Completions answer: a call of the shell, or of the first tool. A summary says how many commands have run. */
export function chat({model, messages, tools = [], stream_options}, tokens = 12) {
  const asked = JSON.stringify(messages);
  const before = Number(asked.match(/(\d+) have run/g)?.at(-1).split(' ')[0] ?? 0);
  const results = before + messages.filter(({role}) => role === 'tool').length;
  const shortens = SHORTEN.test(JSON.stringify(messages.at(-1)));
  const text = shortens ? `<summary>${wanted(asked)} is the task, of which ${results} have run.</summary>` : DONE;
  const tool = tools.find(({function: {name}}) => name === 'Bash') ?? tools[0];
  const next = command(asked, results);
  const calls = Boolean(tool && next && !shortens);
  const call = calls && {name: tool.function.name, arguments: JSON.stringify({command: next})};
  const tool_calls = calls ? [{id: `call_standin0${results + 1}`, type: 'function', function: call}] : undefined;
  const finish_reason = calls ? 'tool_calls' : 'stop';
  const head = {id: 'chatcmpl-standin01', created: 1700000000, model};
  const usage = {prompt_tokens: tokens, completion_tokens: 8, total_tokens: tokens + 8};
  const message = {
    ...head, usage, object: 'chat.completion',
    choices: [{index: 0, message: {role: 'assistant', content: calls ? null : text, tool_calls}, finish_reason}],
  };
  const deltas = calls
    ? [{role: 'assistant', content: null, tool_calls: [{index: 0, ...tool_calls[0]}]}]
    : halves(text).map(content => ({content}));
  const chunks = [...deltas.map(delta => ({delta, finish_reason: null})), {delta: {}, finish_reason}];
  const events = chunks.map(choice => ({...head, object: 'chat.completion.chunk', choices: [{index: 0, ...choice}]}));
  if (stream_options?.include_usage) events.push({...head, object: 'chat.completion.chunk', choices: [], usage});
  return {message, events: [...events.map(event => `data: ${JSON.stringify(event)}\n\n`), 'data: [DONE]\n\n']};
}

/** An OpenAI Responses answer. Codex's shell is JavaScript for its custom tool `exec`. */
export function responses({model, input, tools = []}) {
  const asked = JSON.stringify(input);
  const next = command(asked, count(asked, '"custom_tool_call_output"') + count(asked, '"function_call_output"'));
  const item = !next || !(tools.length || asked.includes('"additional_tools"'))
    ? {type: 'message', id: 'msg_standin01', role: 'assistant', status: 'completed',
       content: [{type: 'output_text', text: DONE, annotations: []}]}
    : called(tools, next);
  const response = {
    id: 'resp_standin01', object: 'response', created_at: 1700000000, model, status: 'completed', output: [item],
    error: null, incomplete_details: null, instructions: null, metadata: {}, parallel_tool_calls: true,
    temperature: 1, top_p: 1, tool_choice: 'auto', tools: [],
    usage: {input_tokens: 12, input_tokens_details: {cached_tokens: 0}, output_tokens: 8,
            output_tokens_details: {reasoning_tokens: 0}, total_tokens: 20},
  };
  const opened = {...response, status: 'in_progress', output: [], usage: null};
  const events = [
    {type: 'response.created', response: opened},
    {type: 'response.output_item.added', output_index: 0, item: {...item, status: 'in_progress'}},
    {type: 'response.output_item.done', output_index: 0, item},
    {type: 'response.completed', response},
  ];
  return {message: response, events: named(events.map((event, sequence_number) => ({...event, sequence_number})))};
}

/** A Gemini answer. A question for JSON, as the CLI's router has it, gets an object of that schema. */
export function gemini({contents, generationConfig, tools = []}) {
  const asked = JSON.stringify(contents);
  const names = tools.flatMap(({functionDeclarations = []}) => functionDeclarations).map(({name}) => name);
  const name = names.find(each => each === 'run_shell_command') ?? names[0];
  const next = command(asked, count(asked, '"functionResponse"'));
  const part = name && next ? {functionCall: {id: 'standin01', name, args: {command: next}}} : {text: filled(generationConfig?.responseJsonSchema)};
  const message = {
    candidates: [{content: {parts: [part], role: 'model'}, finishReason: 'STOP', index: 0}],
    usageMetadata: {promptTokenCount: 12, candidatesTokenCount: 8, totalTokenCount: 20},
    modelVersion: 'stand-in', responseId: 'standin01',
  };
  return {message, events: [`data: ${JSON.stringify(message)}\r\n\r\n`]};
}

/** JSON of a schema whose fields are numbers and texts. */
function filled(schema) {
  if (!schema) return DONE;
  const field = ([name, {type}]) => [name, /INTEGER|NUMBER/i.test(type) ? 1 : DONE];
  return JSON.stringify(Object.fromEntries(Object.entries(schema.properties).map(field)));
}

function called(tools, command) {
  const head = {id: 'ctc_standin01', call_id: 'call_standin01', status: 'completed'};
  const named = tools.find(({type}) => type === 'function');
  const code = `const r = await tools.exec_command({cmd: ${JSON.stringify(command)}});\ntext(JSON.stringify(r));`;
  if (!named) return {...head, type: 'custom_tool_call', namespace: 'functions', name: 'exec', input: code};
  return {...head, type: 'function_call', name: named.name, arguments: JSON.stringify({command, cmd: command})};
}

function named(events) {
  return events.map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
}

function halves(text) {
  const middle = text.length >> 1;
  return [text.slice(0, middle), text.slice(middle)];
}
