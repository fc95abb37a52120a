// A server of models on this machine, as llama.cpp and vLLM are: Chat Completions, Messages and Responses, by plain HTTP.
// Usage: node models.mjs LOG; it prints its port, and logs each request as a JSON line. The first part of a path says how
// it behaves, and each such path remembers its own requests: /narrow/v1/chat/completions, /narrow-2/v1/chat/completions.

import {appendFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {anthropic, chat, responses} from './answers.mjs';

const [, , log] = process.argv;
/** The context of the narrow model, in tokens of four bytes. */
const CONTEXT = 32_768;
const DIALECTS = {'/v1/chat/completions': chat, '/v1/messages': anthropic, '/v1/responses': responses};

/** How many requests came by each path. */
const counts = new Map();

/** What a path does in the place of an answer; nothing is returned where it answers. */
const BEHAVIOURS = {
  narrow: (_, tokens) => tokens > CONTEXT && exceeded(tokens, CONTEXT),
  /** Not even the first request of an agent is short enough. */
  tiny: (_, tokens) => exceeded(tokens, CONTEXT / 4),
  /** vLLM counts what the answer may have too. */
  strict: (_, tokens, {max_tokens}) => tokens + max_tokens > CONTEXT && refusal(400, {
    message: `This model's maximum context length is ${CONTEXT} tokens. However, you requested ${max_tokens} output tokens and`
      + ` your prompt contains at least ${tokens} input tokens, for a total of at least ${tokens + max_tokens} tokens.`,
    type: 'BadRequestError', param: 'input_tokens', code: 400,
  }),
  /** The template of Qwen 3.5 and later, as llama.cpp runs it. */
  picky: (_, __, {messages}) => messages.slice(1).some(({role}) => role === 'system') && refusal(500, {
    code: 500, message: 'Jinja Exception: System message must be at the beginning.', type: 'server_error',
  }),
  busy: number => number === 1 && refusal(429, {message: 'Slow down', type: 'rate_limit_error'}, {'retry-after': '1'}),
  broken: () => refusal(500, {message: 'CUDA error: out of memory', type: 'InternalServerError', code: 500}),
  /** Breaks off in the middle of its first call. */
  cut: number => number === 1 && (response => response.destroy()),
  /** Reports an error there, once and always. */
  failing: number => number === 1 && failure,
  dead: () => failure,
};

const server = createServer(serve).listen(0, '127.0.0.1', () => console.log(server.address().port));

async function serve(request, response) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const [, name, path] = request.url.match(/^\/([\w-]+)(\/.*)$/) ?? [];
  const number = (counts.get(name) ?? 0) + 1;
  counts.set(name, number);
  const asked = body.length ? JSON.parse(body) : {};
  const tokens = Math.ceil(body.length / 4);
  const behaves = BEHAVIOURS[name?.split('-')[0]]?.(number, tokens, asked);
  const line = {path: request.url, number, tokens, refused: behaves?.status ?? null, headers: request.headers, text: body.toString()};
  appendFileSync(log, `${JSON.stringify(line)}\n`);
  // Messages has a type around its errors, which Chat Completions ignores.
  if (behaves?.status) return send(response, behaves.status, {type: 'error', error: behaves.error}, behaves.headers);
  const dialect = DIALECTS[path];
  if (!dialect) return send(response, 404, {error: {message: `no ${path} here`, type: 'NotFoundError', code: 404}});
  const {message, events} = dialect(asked, tokens);
  if (name.startsWith('pondering')) events.unshift(pondering(events[0]));
  if (!asked.stream) return send(response, 200, message);
  await stream(response, events, behaves);
}

/** Writes an answer's events; `ends` is what ends it behind the first of them, if anything does. */
async function stream(response, events, ends) {
  response.writeHead(200, {'content-type': 'text/event-stream'});
  for (const event of ends ? halved(events[0]) : events) {
    response.write(event);
    await new Promise(resolve => setImmediate(resolve));
  }
  return ends ? ends(response) : response.end();
}

/** The first event with a text before its call, and half of the call's arguments. */
function halved(event) {
  const chunk = JSON.parse(event.slice('data: '.length));
  const [{delta}] = chunk.choices;
  for (const call of delta.tool_calls ?? []) call.function.arguments = call.function.arguments.slice(0, -5);
  const text = {...chunk, choices: [{index: 0, delta: {role: 'assistant', content: 'I begin.'}, finish_reason: null}]};
  return [text, chunk].map(each => `data: ${JSON.stringify(each)}\n\n`);
}

/** What comes before the first event of a model that reasons. */
function pondering(event) {
  const chunk = JSON.parse(event.slice('data: '.length));
  const choices = [{index: 0, delta: {role: 'assistant', reasoning_content: 'I ponder.'}, finish_reason: null}];
  return `data: ${JSON.stringify({...chunk, choices})}\n\n`;
}

function failure(response) {
  response.end(`data: ${JSON.stringify({error: {message: 'The engine died', type: 'InternalServerError', code: 500}})}\n\n`);
}

/** The sentence and codes of llama.cpp. */
function exceeded(tokens, context) {
  const message = `request (${tokens} tokens) exceeds the available context size (${context} tokens), try increasing it`;
  return refusal(400, {code: 400, message, type: 'exceed_context_size_error', n_prompt_tokens: tokens, n_ctx: context});
}

function refusal(status, error, headers = {}) {
  return {status, error, headers};
}

function send(response, status, value, headers = {}) {
  response.writeHead(status, {'content-type': 'application/json', ...headers});
  response.end(JSON.stringify(value));
}
