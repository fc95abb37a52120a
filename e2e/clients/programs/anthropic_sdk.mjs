// The Anthropic SDK for Node: answer | stream | batches | another | unnamed | forbidden.

import Anthropic from '@anthropic-ai/sdk';
import {FORBIDDEN, run, UNNAMED} from './report_sdk.mjs';

const asked = {model: 'claude-sonnet-5', max_tokens: 64, messages: [{role: 'user', content: 'run echo'}]};
const schema = {type: 'object', properties: {command: {type: 'string'}}};
const tools = [{name: 'Bash', description: 'Runs a command', input_schema: schema}];
const client = options => new Anthropic({maxRetries: 0, ...options});

async function ask(options) {
  const answer = await client(options).messages.create(asked);
  return {text: answer.content[0].text};
}

async function stream() {
  const first = await client().messages.stream({...asked, tools}).finalMessage();
  const [call] = first.content;
  const result = {role: 'user', content: [{type: 'tool_result', tool_use_id: call.id, content: 'ran'}]};
  const {type, id, name, input} = call;
  const messages = [...asked.messages, {role: 'assistant', content: [{type, id, name, input}]}, result];
  const text = await client().messages.stream({...asked, tools, messages}).finalText();
  return {tool: [name, input.command], text};
}

await run({
  answer: ask,
  stream,
  batches: async () => ({text: JSON.stringify(await client().messages.batches.list())}),
  another: () => ask({apiKey: 'sk-ant-another-key'}),
  unnamed: () => ask({baseURL: UNNAMED}),
  forbidden: () => ask({baseURL: FORBIDDEN}),
});
