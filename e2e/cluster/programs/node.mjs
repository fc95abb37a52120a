// One request by Node's fetch, which trusts what NODE_EXTRA_CA_CERTS adds: URL.

try {
  const answer = await fetch(process.argv[2]);
  console.log(JSON.stringify({status: answer.status, body: await answer.text()}));
} catch (error) {
  console.log(JSON.stringify({error: String(error.cause ?? error)}));
}
