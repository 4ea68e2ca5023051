// Whether a page that trains for long holds on to memory: steps in Chromium, in the page's own thread with snapshots for
// recovery, and what is held before and after them, garbage collected.
//
//   node js/bench/hold.mjs [PLAN.rlxp] [cpu|gpu] [STEPS]     by default digits-mlp of the demo, on the CPU, 100,000
//
// On SwiftShader the digits' network makes some ten steps a second: the plan of js/test/linear.mjs is for the GPU.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openChromium } from '../test/rig/chromium.mjs';
import { countGPU } from '../test/rig/counter.mjs';
import { scriptPage, serve } from '../test/rig/serve.mjs';

const script = `
import { liveTensors, openProgram, Trainer } from '/dist/runtime.js';
const random = ({ dtype, shape, range: [low, high] = [0, 2] }) => {
  const data = new (dtype === 'f32' ? Float32Array : Int32Array)(shape.reduce((a, b) => a * b, 1));
  return () => data.map(() => dtype === 'f32' ? Math.random() : low + Math.floor(Math.random() * (high - low)));
};
globalThis.begin = async (on) => {
  const program = globalThis.program = await openProgram(await (await fetch('/plan.rlxp')).arrayBuffer(), { on, recover: true, staging: 8 }); // a fixed number of staging buffers
  const { plan: { entries, slots } } = program, of = (name) => entries.find((entry) => entry.name === name), { inputs, scalars } = of('step');
  await program.run('init', Object.fromEntries(of('init').scalars.map((i) => [slots[i].name, 1])));
  const makers = inputs.map((i) => [slots[i].name, random(slots[i])]), trainer = new Trainer(program);
  const rest = Object.fromEntries(scalars.map((i) => [slots[i].name, 1e-3]));
  const batches = () => Object.fromEntries(makers.map(([name, make]) => [name, make()]));
  globalThis.train = async (steps) => { const { seconds } = await trainer.run({ steps, batches, inputs: rest, every: 50 }); return seconds; };
  return program.device.description;
};
globalThis.held = () => ({ buffers: gpuCounter.liveBuffers(), tensors: liveTensors(), wasm: memories.reduce((sum, memory) => sum + (memory.deref()?.buffer.byteLength ?? 0), 0) });
globalThis.ready = true;
`;

/** Lists the memories of WebAssembly that a page makes. */
function listMemories() {
  globalThis.memories = [];
  const { Memory } = WebAssembly;
  WebAssembly.Memory = function (descriptor) {
    const memory = new Memory(descriptor);
    globalThis.memories.push(new WeakRef(memory));
    return memory;
  };
}

/**
 * Trains in Chromium, and returns what a page holds before and after, in bytes and numbers.
 * @param {{plan: Uint8Array, on: 'cpu' | 'gpu', steps: number, warmUp: number}} options
 */
export async function hold({ plan, on, steps, warmUp }) {
  const server = await serve({ '/': scriptPage, '/page.mjs': { body: script, type: 'text/javascript' }, '/plan.rlxp': { body: Buffer.from(plan) }, '/dist': join(import.meta.dirname, '../dist') });
  const browser = await openChromium();
  try {
    await browser.context.addInitScript(countGPU);
    await browser.context.addInitScript(listMemories);
    const page = await browser.open(`${server.origin}/`), session = await page.context().newCDPSession(page);
    const held = async () => {
      await page.evaluate('void gpuCounter.take()'); // a counter holds what it has counted
      for (let i = 0; i < 3; i++) await session.send('HeapProfiler.collectGarbage');
      const { usedSize, backingStorageSize } = await session.send('Runtime.getHeapUsage');
      return { heap: usedSize, arrays: backingStorageSize, ...await page.evaluate('held()') };
    };
    await page.waitForFunction(() => globalThis.ready);
    const device = await page.evaluate((on) => globalThis.begin(on), on);
    await page.evaluate((n) => globalThis.train(n), warmUp);
    const before = await held(), seconds = await page.evaluate((n) => globalThis.train(n), steps), after = await held();
    return { device, seconds, before, after };
  } finally {
    await browser.close();
    await server.close();
  }
}

if (process.argv[1] === import.meta.filename) {
  const [path = join(import.meta.dirname, '../../demo/web/assets/digits-mlp.rlxp'), on = 'cpu', steps = 100_000] = process.argv.slice(2);
  const { device, seconds, before, after } = await hold({ plan: readFileSync(path), on, steps: Number(steps), warmUp: 2000 });
  console.log(`${steps} steps on ${device} in ${seconds.toFixed(0)} s`);
  for (const name of Object.keys(before)) console.log(`${name.padEnd(8)} ${before[name]} before, ${after[name]} after`);
}
