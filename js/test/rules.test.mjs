// Rules that are the same in Go and in TypeScript, by cases that the tests of both read: initial
// values of parameters, refusals, and defaults of attributes.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { before, describe, test } from 'node:test';
import { graph, init, initialParams, parseGraph, RlxError, program } from '../dist/index.js';

const shared = (name) => JSON.parse(readFileSync(new URL(`../../ir/irtest/cases/${name}.json`, import.meta.url), 'utf8'));

before(() => init({ compileWorker: false }));

describe('parameters begin with the bits that Go draws', () => {
  const { params } = shared('initial');
  for (const seed of new Set(params.map((p) => p.seed))) {
    const list = params.filter((p) => p.seed === seed);
    for (const order of [list, list.toReversed()]) {
      test(`seed ${seed}, ${order[0].name} first`, () => {
        const made = graph('model', (b) => { for (const { name, dtype, shape } of order) b.output(name, b.param(name, dtype, shape)); });
        const given = Object.fromEntries(list.filter(({ initial }) => initial !== null).map(({ name, initial }) => [name, initial]));
        const begun = initialParams(made, given, seed);
        for (const { name, sha256 } of list) {
          const { buffer, byteOffset, byteLength } = begun[name].data;
          assert.equal(createHash('sha256').update(new Uint8Array(buffer, byteOffset, byteLength)).digest('hex'), sha256, name);
        }
      });
    }
  }
  for (const seed of [-1, 2 ** 32, 0.5, NaN]) {
    test(`seed ${seed} is refused`, () => assert.throws(() => initialParams(graph('g', (b) => b.output('y', b.param('w', 'f32', [2]))), {}, seed), { kind: 'limit', message: /^seed is / }));
  }
});

describe('refusals', () => {
  const graphs = new Map();
  for (const { name, graph: given, with: options = {}, init: params = {}, remedy, run, kind, words = [] } of shared('refusals').cases) {
    test(name, async () => {
      if (Array.isArray(given)) graphs.set(name, parseGraph(`graph "main" {\n  ${given.join('\n  ')}\n}\n`));
      const made = graphs.get(Array.isArray(given) ? name : given);
      const attempt = async (more = {}) => {
        if (run) {
          const opened = await program({ entries: { [run]: made } }, { on: 'cpu', worker: false });
          await opened.run(run, { key: Uint32Array.of(1, 2) }).finally(() => opened.close());
          return;
        }
        made.step({ optimizer: { kind: 'adam' }, ...options, ...more });
        initialParams(made, params);
      };
      if (!kind) return attempt();
      await assert.rejects(attempt(), (error) => {
        assert.ok(error instanceof RlxError && error.kind === kind, `${error.kind}: ${error.message}`);
        for (const word of words) assert.ok(error.message.includes(word), `${error.message} says nothing of ${word}`);
        return true;
      });
      if (remedy) await attempt(remedy);
    });
  }
});

describe('attributes that are left out', () => {
  const typeOf = (text) => {
    const [, dtype, dims] = /^(\w+)\[(.*)\]$/.exec(text);
    return [dtype, dims ? dims.split(',').map(Number) : []];
  };
  for (const { op, in: operands, attrs, err = false } of shared('defaults')) {
    if (operands.some((type) => /^(i64|u64|f64|c64|i4|u4)/.test(type))) continue; // which no port has here
    test(op, () => {
      let text, refused;
      try {
        text = graph('g', (b) => {
          const made = b.apply(op, operands.map((type, i) => b.input(`x${i}`, ...typeOf(type))), {});
          made.forEach((value, i) => b.output(`y${i}`, value));
        }).text();
      } catch (error) {
        assert.ok(error instanceof RlxError, error);
        refused = error;
      }
      assert.equal(refused !== undefined, err, refused?.message);
      if (!err) assert.ok(text.includes(`${op}(`) && (attrs === '' || text.includes(`) ${attrs}`)), `${text} lacks ${attrs}`);
    });
  }
});
