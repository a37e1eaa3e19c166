// TypeScript SDK v2: node v2.mjs URL TOKEN legacy|auto|2026-07-28

import { load, run } from './scenario.mjs';

const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');

const [, , url, token, mode] = process.argv;
const client = new Client(
  { name: 'interop-ts-v2', version: '1' },
  { capabilities: { elicitation: {}, sampling: {}, roots: {} }, versionNegotiation: { mode: /^\d/.test(mode) ? { pin: mode } : mode } },
);
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } });

await run({
  connect: () => client.connect(transport),
  version: () => client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion,
  list: async () => (await client.listTools()).tools,
  call: (name, args, options) => client.callTool({ name, arguments: args }, options),
  close: () => client.close(),
});
