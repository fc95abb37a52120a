// One request by Node's fetch: METHOD URL SIZE [NAME:VALUE]…

import {subscribe} from 'node:diagnostics_channel';

const [, , method, url, size, ...headers] = process.argv;
let issuer = '';
subscribe('undici:client:sendHeaders', ({socket}) => {
  issuer = socket.getPeerCertificate?.().issuer?.CN ?? issuer;
});
try {
  const answer = await fetch(url, {
    method,
    headers: headers.map(header => header.split(/:(.*)/).slice(0, 2)),
    body: Number(size) ? 'x'.repeat(Number(size)) : undefined,
    redirect: 'manual',
    signal: AbortSignal.timeout(30_000),
  });
  const body = Buffer.from(await answer.arrayBuffer());
  process.stdout.write(`status ${answer.status}\nissuer ${issuer}\nversion 1.1\n\n`);
  process.stdout.write(body);
} catch (error) {
  const said = [error, error.cause, error.cause?.cause].filter(Boolean).map(({message}) => message);
  process.stdout.write(`error ${said.join(': ').replaceAll('\n', ' ')}\n\n`);
}
