// Scatters, sorts, running combinations, maps and layout changes on this machine's GPU, over Dawn: a program for
// pack.mjs, or by itself after `go run ./js/bench/plans build/plans`:
//
//   RLX_PLANS=build/plans RLX_DAWN_BACKEND=default node js/bench/h200/memory.mjs [NAME]...
//
// Prints the milliseconds of a step, and gigabytes or billions of keys a second. RLX_STEPS steps
// (16) share one submission: each submission costs a GPU some 12 µs, as much as a tenth of these
// kernels. The best of four runs counts.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openProgram } from '../../dist/runtime.js';
import { openDawn } from '../../test/rig/dawn.mjs';

const shortest = 60; // ms that a timed run should take
const repeats = 4;
const together = Number(process.env.RLX_STEPS ?? 16);
const read = (name) => readFileSync(join(process.env.RLX_PLANS, name));
const wanted = process.argv.slice(2);
const jobs = JSON.parse(read('memory.json')).filter(({ name }) => wanted.length === 0 || wanted.includes(name));
const { gpu, close } = await openDawn();
const adapter = await gpu.requestAdapter();
const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
const device = await adapter.requestDevice({ requiredLimits: { maxBufferSize, maxStorageBufferBindingSize } });

/** The milliseconds of a step, or nothing where the device cannot run the plan. */
async function time(name) {
  let program;
  try {
    program = await openProgram(read(`memory-${name}.rlxp`), { device, drafts: false });
  } catch (error) {
    if (error.kind !== 'limit') throw error;
    return console.log(`${name.padEnd(30)} ${error.message}`);
  }
  await program.run('fill');
  const steps = async (runs) => {
    await device.queue.onSubmittedWorkDone();
    const start = performance.now();
    for (let i = 0; i < runs; i++) await program.run('step', null, { steps: together });
    await device.queue.onSubmittedWorkDone();
    return (performance.now() - start) / together;
  };
  await steps(1);
  const once = await steps(1);
  const runs = Math.max(1, Math.ceil(shortest / together / once));
  const ms = (await steps(runs)) / runs;
  program.close();
  return ms;
}

// All jobs in turns, the best of each: the GPU's speed varies by a tenth.
const best = new Map();
for (let i = 0; i < repeats; i++) {
  for (const { name } of jobs) best.set(name, Math.min(best.get(name) ?? Infinity, await time(name) ?? NaN));
}
for (const { name, bytes, keys } of jobs) {
  const ms = best.get(name);
  const rates = [bytes > 0 && `${(bytes / ms / 1e6).toFixed(0)} GB/s`, keys > 0 && `${(keys / ms / 1e6).toFixed(2)} G keys/s`];
  if (ms > 0) console.log(`${name.padEnd(30)} ${ms.toFixed(3).padStart(9)} ms  ${rates.filter(Boolean).join('  ')}`);
}
close();
process.exit(0);
