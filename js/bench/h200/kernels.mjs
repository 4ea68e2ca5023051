// Times the kernels of the families' training steps on this machine's GPU, over Dawn: a program for pack.mjs, or by
// itself after `go run ./js/bench/plans -families -subgroups 32 build/families`:
//
//   RLX_PLANS=build/families RLX_DAWN_BACKEND=default RLX_JOBS=residual,vit node js/bench/h200/kernels.mjs
//
// For each family it prints the milliseconds of all dispatches in turn in one pass, the sum of their times alone, and
// those that take more than a hundredth of the latter. Buffers hold zeros: a scatter adds all to one row. RLX_JOBS are all by default.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodePlan } from '../../dist/runtime.js';
import { openDawn } from '../../test/rig/dawn.mjs';
import { dispatches, KernelTimer } from '../kernel-timer.mjs';

const read = (name) => readFileSync(join(process.env.RLX_PLANS, name));
const names = process.env.RLX_JOBS?.split(',') ?? JSON.parse(read('families.json'));

async function timeFamily(name) {
  const plan = decodePlan(read(`family-${name}.rlxp`)), steps = [...dispatches(plan.entries.find((entry) => entry.name === 'step').steps)];
  const { device, close } = await openDawn(plan.requires);
  const timer = new KernelTimer(device, plan);
  const pipelines = (await Promise.all(plan.kernels.map(({ source }) => timer.compile(source)))).map(({ pipeline }) => pipeline);
  const rows = [];
  for (const step of steps) rows.push({ kernel: plan.kernels[step.kernel], groups: step.groups, ms: step.times * await timer.time(pipelines[step.kernel], step) });
  const together = await timer.timeAll(steps, pipelines), alone = rows.reduce((sum, { ms }) => sum + ms, 0);
  console.log(`${name}: ${steps.length} dispatches, ${together.toFixed(3)} ms together, ${alone.toFixed(3)} ms alone`);
  for (const { kernel, groups, ms } of rows.toSorted((a, b) => b.ms - a.ms)) {
    if (ms < alone / 100) break;
    console.log(`  ${ms.toFixed(4)} ms  ${kernel.name}  ${groups.join('×')} groups of ${kernel.workgroup.join('×')}`);
  }
  close();
}

for (const name of names) {
  try {
    await timeFamily(name);
  } catch (error) {
    console.log(`${name}: ${error.message}`);
  }
}
process.exit(0);
