// The OpenAI SDK for Node: answer | stream | batches | another | unnamed | forbidden.

import OpenAI from 'openai';
import {FORBIDDEN, run, UNNAMED} from './report_sdk.mjs';

const schema = {type: 'object', properties: {command: {type: 'string'}}};
const tools = [{type: 'function', name: 'shell', parameters: schema, strict: false}];
const client = options => new OpenAI({maxRetries: 0, ...options});

async function ask(options) {
  const messages = [{role: 'user', content: 'hello'}];
  const answer = await client(options).chat.completions.create({model: 'gpt-6', messages});
  return {text: answer.choices[0].message.content};
}

async function stream() {
  const asked = {model: 'gpt-6', tools};
  const first = await client().responses.stream({...asked, input: 'run echo'}).finalResponse();
  const [{call_id, name, arguments: written}] = first.output;
  const input = [
    {role: 'user', content: 'run echo'},
    {type: 'function_call', call_id, name, arguments: written},
    {type: 'function_call_output', call_id, output: 'ran'},
  ];
  const second = await client().responses.stream({...asked, input}).finalResponse();
  return {tool: [name, written], text: second.output_text};
}

await run({
  answer: ask,
  stream,
  batches: async () => ({text: JSON.stringify(await client().batches.list())}),
  another: () => ask({apiKey: 'sk-another-key'}),
  unnamed: () => ask({baseURL: UNNAMED}),
  forbidden: () => ask({baseURL: FORBIDDEN}),
});
