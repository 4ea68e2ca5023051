// The compiler in a page makes the plans that a Go program makes: byte for byte, for every
// module of the conformance suite, for WebGPU, for devices whose plans differ, and for WebAssembly.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { before, test } from 'node:test';
import { compile, init } from '../dist/index.js';
import { load } from './conformance-suite.mjs';

/** What a page gives to compile for each target that the suite has hashes for. */
const targets = {
  webgpu: { target: 'webgpu' },
  'webgpu f16': { target: 'webgpu', limits: { f16: true } },
  'webgpu subgroups 32': { target: 'webgpu', limits: { subgroup: 32 } },
  'webgpu of an M1': { target: 'webgpu', limits: { device: 'apple metal-3' } },
  wasm: { target: 'wasm' },
};

let sources;
before(async () => {
  sources = JSON.parse(new TextDecoder().decode(await load('sources.json')));
  await init({ compileWorker: false });
});

/** The SHA-256 of the plan of a module, undefined where the target refuses it. */
async function hashOf({ name, entries }, target) {
  const texts = Object.fromEntries(entries.map((entry) => [entry.name, entry.text]));
  const plan = await compile({ name, entries: texts, ...target }).catch(() => undefined);
  return plan && createHash('sha256').update(plan).digest('hex');
}

/**
 * The modules to compile for a target: all, but of those whose plan by Go is that for WebGPU of no options every
 * tenth, as the page's is compared for that.
 */
const modulesFor = (name) => sources.filter(({ plans }, i) => name === 'webgpu' || plans[name] !== plans.webgpu || i % 10 === 0);

for (const [name, target] of Object.entries(targets)) {
  test(`plans for ${name} are those of a Go program`, async () => {
    const differ = [], modules = modulesFor(name);
    for (const source of modules) {
      if (await hashOf(source, target) !== source.plans[name]) differ.push(source.name);
    }
    assert.deepEqual(differ, []);
    assert.ok(modules.length > 100 && (target.limits || modules.length > 900), `only ${modules.length} modules`);
  });
}
