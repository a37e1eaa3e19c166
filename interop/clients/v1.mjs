// TypeScript SDK v1: node v1.mjs URL TOKEN

import { load, run } from './scenario.mjs';

const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');

const [, , url, token] = process.argv;
const client = new Client({ name: 'interop-ts-v1', version: '1' }, { capabilities: { elicitation: {}, sampling: {}, roots: {} } });
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } });

await run({
  connect: () => client.connect(transport),
  version: () => transport.protocolVersion,
  list: async () => (await client.listTools()).tools,
  call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
  close: async () => {
    await transport.terminateSession();
    await client.close();
  },
});
