// An official client of TypeScript asks the gateway's tools: node client.mjs REVISION EVENT ID; prints what it was answered.

const [revision, event, id] = process.argv.slice(2);
const url = new URL("http://postern.internal/mcp");
const OLD = revision === "2025-06-18";

async function connected() {
  const about = { name: "judge", version: "1" };
  if (OLD) {
    const { Client } = await import("sdk-of-2025-06-18/client/index.js");
    const { StreamableHTTPClientTransport } = await import("sdk-of-2025-06-18/client/streamableHttp.js");
    const client = new Client(about), transport = new StreamableHTTPClientTransport(url);
    await client.connect(transport);
    return [client, transport.protocolVersion];
  }
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const mode = revision === "2025-11-25" ? "legacy" : revision === "auto" ? "auto" : { pin: revision };
  const client = new Client(about, { versionNegotiation: { mode } });
  const transport = new StreamableHTTPClientTransport(url);
  await client.connect(transport);
  return [client, client.getNegotiatedProtocolVersion()];
}

async function called(client, name, input, read = JSON.parse) {
  try {
    const { content, isError } = await client.callTool({ name, arguments: input });
    return isError ? { wrong: content[0].text } : read(content[0].text);
  } catch (error) {
    return { error: error.code };
  }
}

const [client, agreed] = await connected();
const told = {
  agreed,
  server: client.getServerVersion()?.name,
  tools: (await client.listTools()).tools.map(({ name }) => name),
  denial: await called(client, "explain_denial", { event }),
  permissions: await called(client, "list_permissions", {}),
  allowed: await called(client, "check_action", { url: "https://api.example.com/v1", method: "POST" }),
  denied: await called(client, "check_action", { tool: "Bash", input: { command: "rm -rf /" } }),
  kept: await called(client, "read_evidence", { id }, String),
  found: await called(client, "read_evidence", { id, match: "second", from: 1, to: 2 }, String),
  missing: await called(client, "read_evidence", { id: "0".repeat(20) }, String),
  unknown: await called(client, "other", {}),
  wrong: await called(client, "check_action", {}),
};
await client.close();
console.log(JSON.stringify(told));
