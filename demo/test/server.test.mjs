// The demo's server: what it answers to what is asked wrongly, and what it lets others do.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { serve, strictCSP } from '../../js/test/rig/serve.mjs';
import { demoMounts } from '../../js/serve.mjs';

let server;
before(async () => { server = await serve(demoMounts, { csp: strictCSP }); });
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
