// The demo's server: its answers to invalid requests, and what it permits.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serve } from '../../js/test/rig/serve.mjs';
import { demoMounts, demoOptions } from '../../js/serve.mjs';

let server;
before(async () => { server = await serve(demoMounts, demoOptions); });
after(() => server.close());

test('what is no path is answered with 400, without a stack', async () => {
  for (const path of ['/%', '/%ff', '/a%zz', '//']) {
    const response = await fetch(server.origin + path), text = await response.text();
    assert.equal(response.status, 400, path);
    assert.equal(text, 'bad request\n');
  }
  assert.equal((await fetch(server.origin)).status, 200, 'it goes on');
});

test('no other page may frame it, not even what is not there', async () => {
  for (const path of ['/', '/none', '/%']) {
    const { headers } = await fetch(server.origin + path);
    assert.match(headers.get('content-security-policy'), /frame-ancestors 'none'/, path);
  }
});

/** Asks as fetch does not: with any method, any Host, and a path as it is. */
const ask = ({ path = '/', method = 'GET', host }) => new Promise((resolve, reject) => {
  const { hostname, port } = new URL(server.origin);
  request({ hostname, port, path, method, headers: host === undefined ? {} : { host } }, (response) => {
    response.resume().on('end', () => resolve({ status: response.statusCode, headers: response.headers }));
  }).on('error', reject).end();
});

test('it answers to GET and HEAD alone', async () => {
  for (const method of ['GET', 'HEAD']) assert.equal((await ask({ method })).status, 200, method);
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND']) {
    const { status, headers } = await ask({ method });
    assert.deepEqual([status, headers.allow], [405, 'GET, HEAD'], method);
  }
});

test('it answers to the names of this machine alone, whatever else leads to it', async () => {
  const { port } = new URL(server.origin);
  for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`, 'localhost']) assert.equal((await ask({ host })).status, 200, host);
  for (const host of ['example.com', `example.com:${port}`, `127.0.0.1.example.com:${port}`, `localhost.example.com`, `10.0.0.1:${port}`, '0.0.0.0', `evil:${port}@localhost`]) {
    for (const path of ['/', '/rlx/index.js', '/%']) assert.equal((await ask({ host, path })).status, 403, host);
  }
});

test('every answer keeps to its type and to its origin, and isolates its page', async () => {
  for (const [given, status] of [[{}, 200], [{ path: '/rlx/index.js' }, 200], [{ path: '/none' }, 404], [{ path: '/%' }, 400], [{ method: 'PUT' }, 405], [{ host: 'example.com' }, 403]]) {
    const { status: got, headers } = await ask(given);
    assert.equal(got, status);
    for (const [name, value] of Object.entries({
      'x-content-type-options': 'nosniff', 'cross-origin-resource-policy': 'same-origin', 'cross-origin-opener-policy': 'same-origin',
      'cross-origin-embedder-policy': 'require-corp', 'content-security-policy': demoOptions.csp,
    })) assert.equal(headers[name], value, `${name} of ${status}`);
  }
});

test('it serves nothing outside its folders, and no hidden files', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'rlx-'));
  mkdirSync(join(folder, 'in/.git'), { recursive: true });
  for (const name of ['out.txt', 'in/a.txt', 'in/.env', 'in/.git/config']) writeFileSync(join(folder, name), name);
  const before = server;
  server = await serve({ '/': join(folder, 'in'), '/deep': join(folder, 'in') });
  t.after(async () => {
    await server.close();
    server = before;
    rmSync(folder, { recursive: true });
  });
  assert.equal((await ask({ path: '/a.txt' })).status, 200);
  for (const up of ['..', '%2e%2e', '.%2e', '..%2f..', '%2e%2e%2f', '..%5c', '.\\..']) {
    for (const path of [`/${up}/out.txt`, `/deep/${up}/out.txt`, `/deep/x/${up}/${up}/out.txt`, `//${up}/out.txt`, `/${up}`]) {
      const { status } = await ask({ path });
      assert.ok(status === 404 || status === 400, `${path}: ${status}`);
    }
  }
  for (const path of ['/.env', '/.git/config', '/deep/.env', '/%2eenv', '/.git/', '/a.txt%00.html', '/in/../.env']) {
    assert.equal((await ask({ path })).status, 404, path);
  }
});
