// What every scripted client does: list, call, hear progress, cancel, be refused. It prints one line of JSON with what it saw.

import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

// load imports a module of a package that is installed in the folder INTEROP_CLIENTS, not beside this file.
export async function load(specifier) {
  const require = createRequire(process.env.INTEROP_CLIENTS + '/x.js');
  const path = require.resolve(specifier).replace('/dist/cjs/', '/dist/esm/').replace(/\.cjs$/, '.mjs');
  return import(pathToFileURL(path).href);
}

const seen = {};

// run takes the four things that differ between clients.
export async function run({ connect, list, call, version, close }) {
  const late = setTimeout(() => finish({ ...seen, hung: true }, 1), 60_000);
  try {
    await connect();
    seen.version = version();
    seen.tools = (await list()).map((t) => t.name).sort();
    const add = await call('add', { a: 2, b: 40 });
    seen.add = [add.content[0].text, add.structuredContent];
    const echo = await call('echo', { text: 'Grüße, 世界 "quoted"', list: [1, 2.5, null, false] });
    seen.echo = echo.structuredContent;
    const fail = await call('fail', { message: 'no luck' });
    seen.fail = [fail.isError, fail.content[0].text];
    try {
      const r = await call('no_such_tool', {});
      seen.unknown = ['result', r.isError === true];
    } catch (e) {
      seen.unknown = ['error', e.code];
    }
    seen.progress = [];
    await call('slow', { steps: 3, ms: 150 }, { onprogress: (p) => seen.progress.push([p.progress, p.total]) });
    const stop = new AbortController();
    try {
      await call('hang', {}, { signal: stop.signal, onprogress: () => stop.abort('enough') });
      seen.cancelled = 'answered';
    } catch (e) {
      seen.cancelled = 'thrown';
    }
    const after = await call('add', { a: 1, b: 1 });
    seen.after = after.content[0].text;
    await close();
  } catch (e) {
    seen.error = `${e.code ?? ''} ${e.message}`.trim();
  }
  clearTimeout(late);
  finish(seen, 0);
}

function finish(what, code) {
  process.stdout.write(JSON.stringify(what) + '\n', () => process.exit(code));
}
