// Memory budgets: the memory of a program is known, and refused, before any of it is allocated.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { compile, graph, init, openProgram, program, train } from '../dist/index.js';
import { seal } from './linear.mjs';
import { openDawn } from './rig/dawn.mjs';

before(() => init());

/** A graph whose input has a number of rows of a KiB, and whose result has as many. */
const rows = (n) => graph('rows', (b) => b.output('y', b.input('x', 'f32', [n, 256]).sin()));
const limits = { maxBufferSize: 2 ** 40, maxStorageBufferBindingSize: 2 ** 40 };

/** Runs a function with a value of RLX_MEMORY. */
async function withVariable(value, run) {
  const before = process.env.RLX_MEMORY;
  process.env.RLX_MEMORY = value;
  try {
    return await run();
  } finally {
    if (before === undefined) delete process.env.RLX_MEMORY;
    else process.env.RLX_MEMORY = before;
  }
}

/** Opens a program and returns the error; one that opens fails the test. */
async function refusal(open) {
  try {
    (await open()).close();
  } catch (error) {
    assert.equal(error.name, 'RlxError', error.stack);
    return error;
  }
  return assert.fail('the program was opened');
}

/** The bytes that a plan takes, by its refusal of 1. */
const takes = async (open) => (await refusal(() => open({ memory: 1 }))).place.needed;

for (const [where, open] of Object.entries({
  'on the CPU': (module, options) => program(module, { on: 'cpu', ...options }),
  'on WebGPU': async (module, options) => {
    const { device } = await dawn();
    return program(module, { device, on: 'gpu', ...options });
  },
})) {
  describe(where, () => {
    let module;
    before(() => { module = { entries: { main: rows(1000) } }; });

    test('the option memory is the bound, to the byte', async () => {
      const needed = await takes((options) => open(module, options));
      assert.ok(needed >= 2 * 1000 * 1024 && needed < 2.5 * 1000 * 1024, `${needed} bytes`);
      const error = await refusal(() => open(module, { memory: needed - 1 }));
      assert.deepEqual([error.kind, error.place], ['memory', { op: error.place.op, needed, allowed: needed - 1 }]);
      assert.match(error.message, new RegExp(`${needed} bytes.*${needed - 1}`));
      (await open(module, { memory: needed })).close();
    });

    test('the variable RLX_MEMORY is the bound without the option', async () => {
      for (const [value, allowed] of [['1MiB', 2 ** 20], ['1.5 MB', 1.5e6], ['500K', 512000], ['4096', 4096]]) {
        const { kind, place } = await withVariable(value, () => refusal(() => open(module)));
        assert.deepEqual([kind, place.allowed], ['memory', allowed]);
      }
      for (const value of ['3MB', '1 GiB']) await withVariable(value, async () => (await open(module)).close());
      await withVariable('4096', async () => (await open(module, { memory: 2 ** 30 })).close());
      for (const value of ['much', '-1', '0', '1e30', '8GiBB', 'NaN', '2k']) {
        const { kind, message } = await withVariable(value, () => refusal(() => open(module)));
        assert.equal(kind, 'attr', value);
        assert.match(message, /RLX_MEMORY.*8GiB/);
      }
    });

    test('rows of scalars count', async () => {
      const scaled = { entries: { main: graph('scaled', (b) => b.output('y', b.input('x', 'f32', [4]).mul(b.input('s', 'f32', [])))) } };
      const few = await takes((options) => open(scaled, { maxSteps: 1, ...options })), many = await takes((options) => open(scaled, { maxSteps: 4096, ...options }));
      assert.equal(many - few, 4095 * 256);
    });

    test('the option is a number of bytes', async () => {
      for (const memory of [0, -1, 1.5, NaN, '1GiB', null, {}]) assert.equal((await refusal(() => open(module, { memory }))).kind, 'limit', `${memory}`);
    });
  });
}

test('a training step has a bound too, in a worker as well', async () => {
  const model = graph('model', (b) => b.output('loss', b.param('w', 'f32', [1 << 20]).square().mean()));
  const { kind, place } = await refusal(async () => (await train(model, { optimizer: { kind: 'adam' }, on: 'cpu', memory: 8 << 20 })).program);
  assert.equal(kind, 'memory');
  assert.ok(place.needed >= 3 * (4 << 20) && place.allowed === 8 << 20, JSON.stringify(place));
});

test('the CPU has no more than the 4 GiB of a WebAssembly memory, whatever is allowed', async () => {
  const gigabyte = () => graph('wide', (b) => {
    for (let i = 0; i < 5; i++) b.output(`y${i}`, b.input(`x${i}`, 'f32', [1 << 28]).sin());
  });
  const { kind, place } = await refusal(() => program({ entries: { main: gigabyte() } }, { on: 'cpu', memory: 2 ** 50 }));
  assert.equal(kind, 'memory');
  assert.equal(place.allowed, 2 ** 32);
  assert.ok(place.needed > 10 * 2 ** 30, `${place.needed} bytes`);
});

test('a buffer that is larger than the device has is refused before it is made', async () => {
  const { device } = await dawn(), plan = await compile({ entries: { main: rows(1 << 20) }, limits });
  const error = await refusal(() => openProgram(plan, { device }));
  assert.equal(error.kind, 'limit');
  assert.match(error.message, /maxBufferSize \d+ \(here \d+\)/);
});

describe('absurd sizes are errors of ours', () => {
  const sizes = [2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 46, 2 ** 53 - 1, 2 ** 53, 2 ** 62, 2 ** 63, 2 ** 64, 1e300, Infinity, NaN, -1, -(2 ** 31), 0.5, -0, '2**62', '9223372036854775807', '99999999999999999999', '-1', 'NaN', '', '1e9'];
  const builds = {
    input: (b, n) => b.input('x', 'f32', [n]),
    'input of several axes': (b, n) => b.input('x', 'f32', [n, n, n]),
    param: (b, n) => b.param('w', 'f32', [n, 2]),
    state: (b, n) => b.state('s', 'f64', [2, n]),
    full: (b, n) => b.full('f32', [n, n], 1),
    constant: (b, n) => b.constant('f32', [n], new Float32Array(1)),
    iota: (b, n) => b.iota({ dtype: 'f32', shape: [n] }),
    broadcast: (b, n) => b.full('f32', [], 1).broadcastInDim({ shape: [n, 3], axes: [] }),
    pad: (b, n) => b.input('x', 'f32', [4]).pad(0, { low: [n], high: [n], interior: [0] }),
    'interior of pad': (b, n) => b.input('x', 'f32', [4]).pad(0, { low: [0], high: [0], interior: [n] }),
    tile: (b, n) => b.input('x', 'f32', [4, 4]).tile([n, n]),
    repeat: (b, n) => b.input('x', 'f32', [4]).repeat({ axis: 0, repeats: n }),
    'one hot': (b, n) => b.input('x', 'i32', [4]).oneHot({ classes: [n] }),
    reshape: (b, n) => b.input('x', 'f32', [4]).reshape({ shape: [n] }),
    scan: (b, n) => b.scan({ carries: [b.full('f32', [], 1)], length: n }, (_, __, [c]) => ({ carries: [c.mul(2)], ys: [c] })).ys[0],
    matmul: (b, n) => b.input('x', 'f32', [n, 2]).matmul(b.input('y', 'f32', [2, n])),
  };
  for (const [name, build] of Object.entries(builds)) {
    test(name, async () => {
      for (const n of sizes) {
        try {
          const made = graph('absurd', (b) => b.output('y', build(b, n).mul(2)));
          const plan = await compile({ entries: { main: made }, target: 'wasm', symbols: {} });
          (await openProgram(plan, { on: 'cpu', memory: 1 << 20 })).close();
        } catch (error) {
          assert.equal(error.name, 'RlxError', `${n}: ${error.stack}`);
          assert.ok(!['internal', 'wasm', 'gpu'].includes(error.kind), `${n}: ${error.kind}: ${error.message}`);
        }
      }
    });
  }
});

test('a plan file that states absurd sizes is refused', async () => {
  const file = await compile({ entries: { main: rows(4) }, target: 'wasm' });
  const bytes = Buffer.from(file), at = bytes.indexOf('BUFS');
  for (const [size, kinds] of [[2n ** 46n, ['memory', 'plan']], [2n ** 53n - 256n, ['memory', 'plan']], [2n ** 63n, ['plan']], [-256n, ['plan']], [0n, ['plan']]]) {
    for (const everywhere of [false, true]) {
      const changed = Buffer.from(bytes);
      // A record of the section: its length, a kind, a size of 64 bits.
      changed.writeBigInt64LE(BigInt.asIntN(64, size), at + 24);
      if (everywhere) raiseLimits(changed, size);
      const { kind } = await refusal(() => openProgram(seal(new Uint8Array(changed)), { on: 'cpu' }));
      assert.ok(kinds.includes(kind), `${size}: ${kind}`);
    }
  }
});

/** Has a plan ask for devices with buffers of a size. */
function raiseLimits(bytes, size) {
  const at = bytes.indexOf('REQS') + 12, features = bytes.readUInt32LE(at);
  assert.equal(features, 0);
  for (const limit of [1, 2]) bytes.writeBigInt64LE(BigInt.asIntN(64, size), at + 4 + 8 * limit);
}

let opened;
const dawn = () => opened ??= openDawn({ backend: 'null' });
