// The server of GUIDE.md behind HTTP, under load: answers are those of single requests, times are measured, and nothing grows.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { transform } from 'esbuild';
import * as rlx from '../dist/index.js';
import * as nn from '../dist/nn.js';
import * as sizes from '../dist/sizes.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
const packages = { '@rlx-go/rlx': rlx, '@rlx-go/rlx/nn': nn, '@rlx-go/rlx/sizes': sizes };

/** The program of the guide up to its handler, on the CPU. */
async function served(t) {
  const guide = readFileSync(new URL('../GUIDE.md', import.meta.url), 'utf8'), [, source] = guide.match(/^## Serve\n[^]*?```ts\n([^]*?)\nconst post = /m);
  assert.ok(source.split('\n').filter((line) => line.trim()).length <= 60, 'the server has 60 lines at most');
  const { code } = await transform(source, { loader: 'ts', target: 'esnext' });
  const body = code.replace(/^import (?:\* as )?(\{[^}]*\}|\w+) from "([^"]*)";$/gm, 'const $1 = packages["$2"];')
    .replace('await init();', 'await init({ compileWorker: false, worker: false });').replace(/\n\}\);\nawait texts\.load/, "\n}, { on: 'cpu' });\nawait texts.load");
  const { handler, texts } = await new Function('packages', `return (async () => {${body} return { handler, texts }; })();`)(packages);
  const server = createServer(async (incoming, answer) => {
    const parts = [];
    for await (const part of incoming) parts.push(part);
    const response = await handler(new Request('http://localhost/', { method: 'POST', body: Buffer.concat(parts) }));
    answer.writeHead(response.status).end(await response.text());
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const agent = new Agent({ keepAlive: true });
  t.after(() => {
    agent.destroy();
    server.close();
    texts.close();
  });
  const ask = (text) => new Promise((done, fail) => {
    const call = request({ port: server.address().port, host: '127.0.0.1', method: 'POST', agent }, async (answer) => {
      let body = '';
      for await (const part of answer) body += part;
      done({ status: answer.statusCode, body });
    });
    call.on('error', fail).end(JSON.stringify(text));
  });
  return { ask, texts };
}

const textOf = (length) => Array.from({ length }, (_, i) => (length * 31 + i * 7) % 1000);

test('joined requests of any length have the answers of single ones, and memory does not grow', async (t) => {
  const { ask, texts } = await served(t), want = [];
  for (let length = 1; length <= 60; length++) want[length] = JSON.parse((await ask(textOf(length))).body);
  const load = async (requests) => {
    const times = [];
    await Promise.all(Array.from({ length: 8 }, async (_, client) => {
      for (let i = 0; i < requests; i++) {
        const length = 1 + (client * 13 + i * 7) % 60, began = performance.now(), { status, body } = await ask(textOf(length));
        times.push(performance.now() - began);
        assert.equal(status, 200, body);
        JSON.parse(body).forEach((x, k) => assert.ok(Math.abs(x - want[length][k]) < 1e-5, `${length} tokens`));
      }
    }));
    return times.sort((a, b) => a - b);
  };
  const inUse = () => {
    collect();
    const { heapUsed, external, arrayBuffers } = process.memoryUsage();
    return heapUsed + external + arrayBuffers;
  };
  await load(60); // every size is compiled
  const before = inUse(), steps = texts.steps, times = await load(150), after = inUse(), batches = texts.steps - steps;
  t.diagnostic(`${times.length} requests in ${batches} batches: median ${times[times.length >> 1].toFixed(2)} ms, 99 % within ${times[Math.floor(times.length * 0.99)].toFixed(2)} ms`);
  assert.ok(batches < times.length / 2, 'requests are joined');
  assert.ok(after < before * 1.25 + 4e6, `memory grows from ${before} to ${after} bytes`);
  for (const wrong of [[], [1000], Array(513).fill(1), 'x', [0.5]]) assert.equal((await ask(wrong)).status, 400);
});
