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
 * The modules to compile for a target: for WebGPU of no options all, and for others, whose graphs pass through the same
 * code before schedules are chosen, the first of each op whose plan differs from that one and every third of the rest; of
 * those with the same plan every tenth.
 */
function modulesFor(name) {
  if (name === 'webgpu') return sources;
  const ops = new Set();
  return sources.filter(({ name: module, plans }, i) => {
    if (plans[name] === plans.webgpu) return i % 10 === 0;
    const [op] = module.split(' '), first = !ops.has(op);
    ops.add(op);
    return first || i % 3 === 0;
  });
}

for (const [name, target] of Object.entries(targets)) {
  test(`plans for ${name} are those of a Go program`, async () => {
    const differ = [], modules = modulesFor(name);
    for (const source of modules) {
      if (await hashOf(source, target) !== source.plans[name]) differ.push(source.name);
    }
    assert.deepEqual(differ, []);
    assert.ok(modules.length >= ({ webgpu: 1000, wasm: 500 }[name] ?? 100), `only ${modules.length} modules`);
  });
}
