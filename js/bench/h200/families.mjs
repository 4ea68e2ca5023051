// Training steps of the families of models of ir/irtest/families on this machine's GPU, over Dawn: a program for
// pack.mjs, or by itself after `go run ./js/bench/plans -families -subgroups 32 build/families`:
//
//   RLX_PLANS=build/families RLX_DAWN_BACKEND=default node js/bench/h200/families.mjs [NAME]...
//
// Prints the milliseconds of a step, the median of five turns, those that this process computes meanwhile, and the
// dispatches of a step. RLX_STEPS steps (16) share one submission.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openProgram } from '../../dist/runtime.js';
import { openGPU } from '../../test/rig/dawn.mjs';
import { dispatchesOf } from './lm-jobs.mjs';

const shortest = 60; // ms that a turn should take
const submissions = 8; // that a turn has at least, so that steps are encoded while others run
const turns = 5;
const together = Number(process.env.RLX_STEPS ?? 16);
const read = (name) => readFileSync(join(process.env.RLX_PLANS, name));
const wanted = process.argv.slice(2);
const names = JSON.parse(read('families.json')).filter((name) => wanted.length === 0 || wanted.includes(name));
const gpu = openGPU();

async function time(name) {
  const begun = performance.now();
  const program = await openProgram(read(`family-${name}.rlxp`), { gpu, drafts: false });
  await program.run('fill');
  const run = async (count) => {
    const start = performance.now();
    for (let i = 0; i < count; i++) await program.run('step', null, { steps: together });
    await program.read('output/loss'); // waits for all steps
    return (performance.now() - start) / count / together;
  };
  await run(1);
  const opened = performance.now() - begun, count = Math.max(submissions, Math.ceil(shortest / together / await run(1))), times = [];
  const before = process.cpuUsage();
  for (let i = 0; i < turns; i++) times.push(await run(count));
  const { user, system } = process.cpuUsage(before), host = (user + system) / 1000 / turns / count / together;
  const { steps } = program.plan.entries.find((entry) => entry.name === 'step');
  program.close();
  return { host, ms: times.sort((a, b) => a - b)[turns >> 1], dispatches: dispatchesOf(steps), opened };
}

for (const name of names) {
  try {
    const { ms, host, dispatches, opened } = await time(name);
    console.log(`${name.padEnd(30)} ${ms.toFixed(3).padStart(9)} ms ${host.toFixed(3).padStart(9)} of the processor ${String(dispatches).padStart(6)} dispatches, opened in ${(opened / 1000).toFixed(1)} s`);
  } catch (error) {
    console.log(`${name.padEnd(30)} ${error.message}`);
  }
}
process.exit(0);
