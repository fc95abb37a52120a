// Replays recorded answers over TLS, h2 and HTTP/1.1, byte for byte and in pieces; it also is a CONNECT proxy to itself.
// Usage: node upstream.mjs CERTIFICATE KEY MANIFEST ASKED; it prints the ports of TLS and of the proxy. A request says by
// `x-recording` which entry of the manifest it wants ({path, type}), and by `x-piece` how many bytes a write has, or
// (`kept-alive`, of Responses) that each event is followed by what the gateway says while it holds a call. Of a routed
// request no header comes here: its model is LABEL/PIECE/RECORDING, and its body is written to the file ASKED.

import {readFileSync, writeFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {createSecureServer} from 'node:http2';
import {connect} from 'node:net';

const [, , certificate, key, manifest, asked] = process.argv;
const recordings = JSON.parse(readFileSync(manifest));

const server = createSecureServer({cert: readFileSync(certificate), key: readFileSync(key), allowHTTP1: true});
// A connection that it closes at the moment when it is used again would fail a request.
server.keepAliveTimeout = 0;
server.on('request', replay);
server.on('sessionError', () => {});

const proxy = createServer();
proxy.on('connect', (_, agent) => {
  const tunnel = connect(server.address().port, '127.0.0.1', () => {
    agent.write('HTTP/1.1 200 OK\r\n\r\n');
    agent.pipe(tunnel).pipe(agent);
  });
  for (const end of [agent, tunnel]) end.on('error', () => [agent, tunnel].forEach(each => each.destroy()));
});

for (const each of [server, proxy]) await new Promise(resolve => each.listen(0, '127.0.0.1', resolve));
console.log(server.address().port, proxy.address().port);

async function replay(request, response) {
  const chunks = [];
  request.on('data', chunk => chunks.push(chunk));
  await new Promise(resolve => request.on('end', resolve));
  const {'x-recording': name, 'x-piece': pace} = request.headers['x-recording'] ? request.headers : routed(Buffer.concat(chunks));
  const {path, type} = recordings[name];
  const recorded = readFileSync(path);
  const bytes = pace === 'kept-alive' ? keptAlive(recorded) : recorded;
  const piece = Number(pace) || bytes.length;
  response.writeHead(200, {'content-type': type, 'request-id': 'req_recorded'});
  for (let at = 0; at < bytes.length; at += piece) {
    response.write(bytes.subarray(at, at + piece));
    await new Promise(resolve => setImmediate(resolve));
  }
  response.end();
}

function routed(body) {
  writeFileSync(asked, body);
  const [, piece, ...name] = JSON.parse(body).model.split('/');
  return {'x-recording': name.join('/'), 'x-piece': piece};
}

function keptAlive(bytes) {
  const events = bytes.toString().split(/(?<=\n\r?\n)/);
  let response;
  return Buffer.from(events.map(event => {
    const data = event.match(/^data: ?(\{.*)$/m);
    const said = data && JSON.parse(data[1]);
    response = said?.response ?? response;
    if (!response || said?.sequence_number === undefined || response.status !== 'in_progress') return event;
    const {id, model, created_at} = response;
    const empty = {object: 'response', status: 'in_progress', error: null, incomplete_details: null, instructions: null,
      metadata: {}, output: [], parallel_tool_calls: true, temperature: null, tool_choice: 'auto', tools: [], top_p: null, usage: null};
    const alive = {type: 'response.in_progress', response: {id, created_at, model, ...empty}, sequence_number: said.sequence_number};
    return `${event}event: response.in_progress\ndata: ${JSON.stringify(alive)}\n\n`;
  }).join(''));
}
