// The stand-in for every upstream: HTTPS over h2 and HTTP/1.1, plain resources, LLM answers and a git repository.
// It also is a CONNECT proxy that takes every name to itself, and serves the plain resources without TLS.
// Usage: node upstream.mjs CERTIFICATE KEY LOG REPOSITORIES ADDRESS TLS PLAIN MAIL, the last three being ports, or 0 for
// any. It prints the ports, and logs each request as a JSON line.

import {spawn} from 'node:child_process';
import {createHash} from 'node:crypto';
import {appendFileSync, readFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {createSecureServer} from 'node:http2';
import {connect} from 'node:net';
import {brotliDecompressSync, gunzipSync, zstdDecompressSync} from 'node:zlib';
import {anthropic, chat, gemini, responses} from './answers.mjs';
import {mail} from './mail.mjs';

const [, , certificate, key, log, repositories, address, ...ports] = process.argv;
const DECODERS = {gzip: gunzipSync, br: brotliDecompressSync, zstd: zstdDecompressSync};

/** 1 MiB that no codec, proxy or client may change; its digest is in `x-sha256`. */
const LARGE = Buffer.alloc(1 << 20, 'The quick brown fox jumps over the lazy dog. \0\r\n\xff', 'latin1');

/** What Anthropic answers to a conversation with these words in it. */
const OUTAGES = {
  'postern-overloaded': [529, 'overloaded_error', 'Overloaded'],
  'postern-no-credit': [400, 'invalid_request_error', 'Your credit balance is too low to access the Anthropic API.'],
};

/** A user of Copilot, and a model of theirs. */
const COPILOT = {
  login: 'standin', access_type_sku: 'free_educational_quota', copilot_plan: 'individual', chat_enabled: true, analytics_tracking_id: 'standin',
  endpoints: {api: 'https://api.githubcopilot.com', telemetry: 'https://telemetry.githubcopilot.com'},
};
const MODEL = {
  id: 'gpt-5.4', name: 'Stand-in', object: 'model', vendor: 'OpenAI', version: 'gpt-5.4', preview: false, model_picker_enabled: true,
  policy: {state: 'enabled', terms: ''}, supported_endpoints: ['/chat/completions', '/responses'],
  capabilities: {
    type: 'chat', family: 'gpt-5.4', object: 'model_capabilities', tokenizer: 'o200k_base',
    limits: {max_context_window_tokens: 200000, max_output_tokens: 16384, max_prompt_tokens: 128000},
    supports: {streaming: true, tool_calls: true, parallel_tool_calls: true},
  },
};

const server = createSecureServer({
  cert: readFileSync(certificate),
  key: readFileSync(key),
  allowHTTP1: true,
});

const plain = createServer(serve);
plain.on('connect', (_, agent) => {
  const tunnel = connect(server.address().port, '127.0.0.1', () => {
    agent.write('HTTP/1.1 200 OK\r\n\r\n');
    agent.pipe(tunnel).pipe(agent);
  });
  for (const end of [agent, tunnel]) end.on('error', () => [agent, tunnel].forEach(each => each.destroy()));
});

server.on('request', serve);
server.on('sessionError', () => {});
const listeners = [server, plain, mail];
await Promise.all(listeners.map((each, i) => new Promise(resolve => each.listen(Number(ports[i]), address, resolve))));
console.log(...listeners.map(each => each.address().port));

async function serve(request, response) {
  const chunks = [];
  try {
    for await (const chunk of request) chunks.push(chunk);
  } catch {
    return; // The client went away; what was asked is not known.
  }
  const body = Buffer.concat(chunks);
  const url = new URL(request.url, 'https://upstream');
  const host = request.authority ?? request.headers.host;
  note(request, host, body);
  if (host.startsWith('git.')) return git(request, response, url, body);
  // Google writes the model into the path, and whether the answer streams.
  const path = url.pathname.replace(/^\/v1beta\/models\/[^/]+:/, '/v1beta/models/*:');
  const answer = ROUTES[`${request.method} ${path}`];
  if (!answer) return send(response, 404, {error: {type: 'not_found_error', message: `no ${url.pathname} here`}});
  await answer(response, request, body);
}

const ROUTES = {
  // Claude Code does not start as long as one of its two hosts answers anything else.
  'GET /api/hello': response => send(response, 200, {message: 'hello'}),
  'GET /v1/oauth/hello': response => send(response, 200, {message: 'hello'}),
  'GET /public/data': (response, request) =>
    send(response, 200, {text: 'as the upstream wrote it', key: request.headers.authorization ?? null}),
  'GET /public/large': response => {
    response.writeHead(200, {'content-type': 'application/octet-stream', 'x-sha256': digest(LARGE)});
    response.end(LARGE);
  },
  'POST /upload': (response, _, body) => send(response, 200, {bytes: body.length, sha256: digest(body)}),
  // GitHub's word on who may use Copilot and where, and which models are there.
  'GET /copilot_internal/user': response => send(response, 200, COPILOT),
  'GET /models': response => send(response, 200, {object: 'list', data: [MODEL]}),
  'POST /chat/completions': llm(chat),
  'POST /responses': llm(responses),
  'POST /v1/messages': llm(anthropic),
  'POST /v1/messages/count_tokens': response => send(response, 200, {input_tokens: 7}),
  'POST /v1/chat/completions': llm(chat),
  'POST /v1/responses': llm(responses),
  'POST /v1beta/models/*:generateContent': llm(gemini),
  'POST /v1beta/models/*:streamGenerateContent': llm(gemini, true),
  'POST /v1beta/models/*:countTokens': response => send(response, 200, {totalTokens: 7}),
};

/** Answers an LLM request with what `dialect` makes of its body: one JSON object, or server-sent events. */
function llm(dialect, streams = false) {
  return async (response, request, body) => {
    const text = decoded(request, body).toString();
    const outage = Object.keys(OUTAGES).find(word => text.includes(word));
    if (outage) {
      const [status, type, message] = OUTAGES[outage];
      return send(response, status, {type: 'error', error: {type, message}});
    }
    const asked = JSON.parse(text);
    const {message, events} = dialect(asked);
    if (!asked.stream && !streams) return send(response, 200, message);
    response.writeHead(200, {'content-type': 'text/event-stream', 'cache-control': 'no-cache'});
    for (const event of events) {
      response.write(event);
      await new Promise(resolve => setImmediate(resolve)); // One frame or chunk an event, as a model writes them.
    }
    response.end();
  };
}

/** Serves a repository by CGI (git-http-backend), which reads the body and writes a head of header lines. */
function git(request, response, url, body) {
  if (!request.headers.authorization) {
    response.writeHead(401, {'www-authenticate': 'Basic realm="git"'});
    return response.end();
  }
  const backend = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env.PATH,
      GIT_PROJECT_ROOT: repositories,
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_PROTOCOL: request.headers['git-protocol'] ?? '',
      REQUEST_METHOD: request.method,
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      CONTENT_LENGTH: String(decoded(request, body).length),
      REMOTE_USER: 'agent', // Without one it takes no push.
    },
  });
  const out = [];
  backend.stdout.on('data', chunk => out.push(chunk));
  backend.stdin.on('error', () => {}); // It may end before it has read everything.
  backend.stdin.end(decoded(request, body));
  backend.on('close', () => {
    const answer = Buffer.concat(out);
    const end = answer.indexOf('\r\n\r\n');
    const head = Object.fromEntries(answer.toString('latin1', 0, end).split('\r\n').map(line => line.split(/: (.*)/)));
    const {Status: status = '200', ...headers} = head;
    response.writeHead(parseInt(status, 10), headers);
    response.end(answer.subarray(end + 4));
  });
}

function note(request, host, body) {
  const line = {
    host,
    method: request.method,
    path: request.url,
    http: request.httpVersion,
    headers: Object.fromEntries(Object.entries(request.headers).filter(([name]) => !name.startsWith(':'))),
    bytes: body.length,
    sha256: digest(body),
    text: /json/.test(request.headers['content-type'] ?? '') ? decoded(request, body).toString() : null,
  };
  appendFileSync(log, `${JSON.stringify(line)}\n`);
}

function decoded(request, body) {
  const decode = DECODERS[request.headers['content-encoding']];
  return decode ? decode(body) : body;
}

function send(response, status, value) {
  const body = JSON.stringify(value);
  response.writeHead(status, {'content-type': 'application/json', 'content-length': Buffer.byteLength(body)});
  response.end(body);
}

function digest(bytes) {
  return createHash('sha256').update(bytes).digest('hex');
}
