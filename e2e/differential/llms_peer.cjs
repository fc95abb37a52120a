// The translation of @musistudio/llms with its `reasoning` transformer, asked for one translation a line, without its server.
// Usage: node llms_peer.cjs DIRECTORY, which has the package. A line of standard input is `{request}` or `{request, answer,
// stream}`; a line of standard output is `{request}`, `{message}`, `{events}` (the text of a stream) or `{error}`.

const {createRequire} = require('node:module');
const {createInterface} = require('node:readline');

const answers = process.stdout.write.bind(process.stdout);
// Its transformers print what they read.
console.log = console.error = () => {};

const {default: Server} = createRequire(`${process.argv[2]}/`)('@musistudio/llms');
const context = {req: {id: 'one'}};

async function main() {
  const {transformerService} = new Server({logger: false, useEnvFile: false, useJsonFile: false, initialConfig: {}});
  await transformerService.initialize();
  const messages = transformerService.getTransformer('Anthropic');
  const reasoning = new (transformerService.getTransformer('reasoning'))();
  reasoning.logger = messages.logger;
  for await (const line of createInterface({input: process.stdin})) {
    const result = await translated(JSON.parse(line), messages, reasoning).catch(error => ({error: String(error)}));
    answers(`${JSON.stringify(result)}\n`);
  }
}

// The order of the package's own routes. The transformer loses what is said in empty deltas, so it is there for reasoning alone.
async function translated({request, answer, stream}, messages, reasoning) {
  if (answer === undefined) return {request: await reasoning.transformRequestIn(await messages.transformRequestOut(request))};
  const type = stream ? 'text/event-stream' : 'application/json';
  const upstream = new Response(stream ? pieces(answer) : answer, {headers: {'Content-Type': type}});
  const thought = /"reasoning(_content)?":/.test(answer) ? await reasoning.transformResponseOut(upstream) : upstream;
  const result = await messages.transformResponseIn(thought, context);
  return stream ? {events: await result.text()} : {message: await result.json()};
}

// Events come one by one, as they do from servers: what comes together with the end is lost.
function pieces(text) {
  const waiting = text.split(/(?<=\n\r?\n)/);
  const encoder = new TextEncoder();
  return new ReadableStream({
    pull(controller) {
      if (waiting.length) controller.enqueue(encoder.encode(waiting.shift()));
      else controller.close();
    },
  }, {highWaterMark: 0});
}

main();
