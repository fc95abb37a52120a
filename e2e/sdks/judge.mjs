// Has the official Node SDKs read what an upstream answers: a JSON line per question in, one per verdict out.

import {Agent} from 'node:https';
import {createInterface} from 'node:readline';
import Anthropic from '@anthropic-ai/sdk';
import {
  BedrockRuntimeClient,
  ConverseCommand,
  ConverseStreamCommand,
  InvokeModelCommand,
  InvokeModelWithResponseStreamCommand,
} from '@aws-sdk/client-bedrock-runtime';
import {GoogleGenAI} from '@google/genai';
import {NodeHttpHandler} from '@smithy/node-http-handler';
import OpenAI from 'openai';

const PROMPT = 'go';
const MESSAGES = [{role: 'user', content: PROMPT}];
const TURNS = [{role: 'user', content: [{text: PROMPT}]}];

/** The items of Responses that are calls with a name, or that a client carries out. */
const CALLS = [
  'function_call', 'custom_tool_call', 'local_shell_call', 'shell_call', 'apply_patch_call', 'computer_call',
  'tool_search_call', 'mcp_call', 'mcp_approval_request',
];

const JUDGES = {anthropic, chat, responses, gemini, converse, invoke};

for await (const line of createInterface({input: process.stdin})) {
  const question = JSON.parse(line);
  let verdict;
  try {
    verdict = {ok: true, ...(await JUDGES[question.dialect](question))};
  } catch (error) {
    verdict = {ok: false, error: `${error?.constructor?.name}: ${error?.message}`};
  }
  process.stdout.write(`${JSON.stringify(verdict)}\n`);
}

async function anthropic({base, model, headers, stream, more}) {
  const client = new Anthropic({baseURL: base, maxRetries: 0});
  const ask = {model, max_tokens: 64, messages: MESSAGES, ...more};
  const message = stream
    ? await client.beta.messages.stream(ask, {headers}).finalMessage()
    : await client.beta.messages.create(ask, {headers});
  return anthropicMessage(message);
}

function anthropicMessage({content, stop_reason, model, usage}) {
  const calls = of(content, 'tool_use').map(({id, name, input}) => ({id, name, input}));
  const hosted = of(content, 'server_tool_use', 'mcp_tool_use').map(({type, name, input}) => ({type, name, input}));
  return {
    tool_calls: calls,
    server_calls: hosted,
    blocks: content.map(({type}) => type),
    text: of(content, 'text').map(({text}) => text).join(''),
    thinking: of(content, 'thinking').map(({thinking}) => thinking).join(''),
    stop: stop_reason,
    model,
    usage,
  };
}

async function chat({base, model, headers, stream}) {
  const client = new OpenAI({baseURL: base, maxRetries: 0});
  const ask = {model, messages: MESSAGES};
  const {choices, model: answered, usage} = stream
    ? await client.chat.completions.stream(ask, {headers}).finalChatCompletion()
    : await client.chat.completions.create(ask, {headers});
  return {choices: choices.map(chatChoice), model: answered, usage: usage ?? null};
}

function chatChoice({index, finish_reason, message}) {
  const {content, tool_calls = [], function_call: legacy} = message;
  return {
    index,
    finish: finish_reason,
    content,
    tool_calls: (tool_calls ?? []).map(chatCall),
    function_call: legacy ? {name: legacy.name, arguments: legacy.arguments} : null,
  };
}

function chatCall({id, type, function: called, custom}) {
  return type === 'custom'
    ? {id, name: custom.name, arguments: custom.input}
    : {id, name: called.name, arguments: called.arguments};
}

async function responses({base, model, headers, stream}) {
  const client = new OpenAI({baseURL: base, maxRetries: 0});
  const ask = {model, input: PROMPT};
  const {output, status, output_text, model: answered, usage} = stream
    ? await client.responses.stream(ask, {headers}).finalResponse()
    : await client.responses.create(ask, {headers});
  const calls = output.filter(({type}) => CALLS.includes(type));
  return {
    items: output.map(({type}) => type),
    tool_calls: calls.map(({type, name, call_id, arguments: given, input}) => ({type, name, call_id, arguments: given ?? input})),
    status,
    text: output_text,
    model: answered,
    usage: usage ?? null,
  };
}

async function gemini({base, model, headers, stream}) {
  const client = new GoogleGenAI({apiKey: process.env.GEMINI_API_KEY, httpOptions: {baseUrl: base, headers}});
  const ask = {model, contents: PROMPT};
  const verdict = {tool_calls: [], hosted: [], text: '', finish: []};
  const chunks = stream ? await client.models.generateContentStream(ask) : [await client.models.generateContent(ask)];
  for await (const chunk of chunks) {
    verdict.model = chunk.modelVersion ?? verdict.model;
    verdict.usage = chunk.usageMetadata ?? verdict.usage;
    for (const candidate of chunk.candidates ?? []) {
      if (candidate.finishReason) verdict.finish.push(candidate.finishReason);
      const {groundingMetadata, urlContextMetadata} = candidate;
      if (Object.keys(groundingMetadata ?? {}).length) verdict.hosted.push('grounding_metadata');
      if (Object.keys(urlContextMetadata ?? {}).length) verdict.hosted.push('url_context_metadata');
      for (const part of candidate.content?.parts ?? []) geminiPart(part, verdict);
    }
  }
  return verdict;
}

function geminiPart({functionCall, thoughtSignature, executableCode, toolCall, text, thought}, verdict) {
  if (executableCode) verdict.hosted.push('executable_code');
  if (toolCall) verdict.hosted.push('tool_call');
  if (functionCall) {
    const {id, name, args} = functionCall;
    verdict.tool_calls.push({id, name, args, signed: Boolean(thoughtSignature)});
  }
  if (text && !thought) verdict.text += text;
}

/** A client whose requests go through the proxy of the environment, and carry the question's headers. */
function bedrock({base, headers}) {
  const requestHandler = new NodeHttpHandler({httpsAgent: new Agent({proxyEnv: process.env})});
  const client = new BedrockRuntimeClient({region: 'us-east-1', endpoint: base, maxAttempts: 1, requestHandler});
  client.middlewareStack.add(
    next => args => {
      Object.assign(args.request.headers, headers);
      return next(args);
    },
    {step: 'build', name: 'headers'},
  );
  return client;
}

async function converse(question) {
  const client = bedrock(question);
  const ask = {modelId: question.model, messages: TURNS};
  if (question.stream) return converseEvents((await client.send(new ConverseStreamCommand(ask))).stream);
  const {output, stopReason, usage} = await client.send(new ConverseCommand(ask));
  const blocks = output.message.content;
  return {
    tool_calls: blocks.filter(({toolUse}) => toolUse).map(({toolUse}) => converseCall(toolUse, toolUse.input)),
    text: blocks.map(({text}) => text ?? '').join(''),
    stop: stopReason,
    usage,
  };
}

/** The AWS SDK has no accumulator: this one refuses what its users could not read. */
async function converseEvents(events) {
  const blocks = [];
  const verdict = {tool_calls: [], text: '', stop: null, usage: null};
  for await (const {contentBlockStart: start, contentBlockDelta: delta, contentBlockStop: end, messageStop, metadata} of events) {
    if (start) blocks[start.contentBlockIndex] = {start: start.start.toolUse, input: ''};
    if (delta) {
      const block = (blocks[delta.contentBlockIndex] ??= {input: ''});
      verdict.text += delta.delta.text ?? '';
      block.input += delta.delta.toolUse?.input ?? '';
    }
    if (end) blocks[end.contentBlockIndex].stopped = true;
    if (messageStop) verdict.stop = messageStop.stopReason;
    if (metadata) verdict.usage = metadata.usage;
  }
  if (!blocks.every(({stopped}) => stopped)) throw new Error('a content block has no end');
  const calls = blocks.filter(({start}) => start);
  verdict.tool_calls = calls.map(({start, input}) => converseCall(start, JSON.parse(input || '{}')));
  return verdict;
}

function converseCall({toolUseId, name, type}, input) {
  return {id: toolUseId, name, input, type};
}

async function invoke(question) {
  const client = bedrock(question);
  const body = JSON.stringify({anthropic_version: 'bedrock-2023-05-31', max_tokens: 64, messages: MESSAGES});
  const ask = {modelId: question.model, contentType: 'application/json', body};
  const decoded = bytes => JSON.parse(new TextDecoder().decode(bytes));
  if (!question.stream) return messages(decoded((await client.send(new InvokeModelCommand(ask))).body));
  const events = [];
  for await (const {chunk} of (await client.send(new InvokeModelWithResponseStreamCommand(ask))).body) {
    events.push(decoded(chunk.bytes));
  }
  return messagesEvents(events);
}

/** What a client of InvokeModel puts together from the events of Claude, or the text of another model. */
function messagesEvents(events) {
  if (!events.some(({type}) => type)) {
    return {tool_calls: [], server_calls: [], text: events.map(({outputText}) => outputText ?? '').join('')};
  }
  const starts = events.filter(({type}) => type === 'message_start');
  if (starts.length !== 1) throw new Error(`${starts.length} messages start`);
  const {message} = starts[0];
  const blocks = message.content;
  for (const {type, index, content_block, delta} of events) {
    if (type === 'content_block_start') {
      if (index !== blocks.length) throw new Error(`block ${index} comes after ${blocks.length} blocks`);
      blocks.push({...content_block, json: ''});
    } else if (type === 'content_block_delta') {
      blocks[index].json += delta.partial_json ?? '';
      blocks[index].text = (blocks[index].text ?? '') + (delta.text ?? '');
    } else if (type === 'content_block_stop') {
      if (blocks[index].json) blocks[index].input = JSON.parse(blocks[index].json);
    } else if (type === 'message_delta') {
      message.stop_reason = delta.stop_reason;
    }
  }
  if (!events.some(({type}) => type === 'message_stop')) throw new Error('the message has no end');
  return messages(message);
}

function messages({content, stop_reason}) {
  const named = ({id, name, input}) => ({id, name, input});
  return {
    tool_calls: of(content, 'tool_use').map(named),
    server_calls: of(content, 'server_tool_use', 'mcp_tool_use').map(named),
    text: of(content, 'text').map(({text}) => text).join(''),
    stop: stop_reason,
  };
}

function of(blocks, ...types) {
  return blocks.filter(({type}) => types.includes(type));
}
