// A POP3 server that holds one letter (RFC 1939). It speaks first: whom a client wants, its first bytes cannot say.

import {createServer} from 'node:net';
import {createInterface} from 'node:readline';

const LETTER = 'Subject: hello\r\n\r\nas the upstream wrote it';
const ANSWERS = {
  USER: '+OK', PASS: '+OK', QUIT: '+OK',
  RETR: `+OK\r\n${LETTER}\r\n.`,
};

export const mail = createServer(agent => {
  agent.on('error', () => agent.destroy());
  agent.write('+OK ready\r\n');
  createInterface({input: agent}).on('line', line => agent.write(`${ANSWERS[line.split(' ')[0]] ?? '-ERR'}\r\n`));
});
