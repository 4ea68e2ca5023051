// Times the same jobs by plans of several folders, in turns, on the GPU that Dawn finds, to compare
// two ways of compiling them on a machine with varying clocks.
//
//   go run ./js/bench/plans build/before     and, after a change,     go run ./js/bench/plans build/after
//   RLX_DAWN_BACKEND=default node js/bench/turns.mjs JOBS build/before build/after
//
// JOBS is a regular expression of names in jobs.mjs. Prints the milliseconds of a step, the median and
// the least of all turns, and the loss of the third step, which should be the same.

import { openGPU } from '../test/rig/dawn.mjs';
import { gpuJobs, start, time } from './jobs.mjs';
import { open } from './peers/rlx.mjs';

const turns = 7, timing = { steps: 50, repeats: 2 };

const [jobs, ...folders] = process.argv.slice(2);
if (folders.length === 0) {
  console.error('usage: node js/bench/turns.mjs JOBS FOLDER...');
  process.exit(2);
}
Object.defineProperty(globalThis, 'navigator', { value: { gpu: openGPU() }, configurable: true });
const peer = await open();

/** A job's times by the plans of each folder. */
async function compare(spec) {
  const rows = [];
  for (const folder of folders) {
    process.env.RLX_PLANS = folder; // where peers/rlx.mjs finds plans
    rows.push({ folder, walls: [], ...await start(peer, spec) });
  }
  for (let turn = 0; turn < turns; turn++) {
    for (const row of rows) row.walls.push((await time(row.job, timing)).wall);
  }
  for (const { job } of rows) await job.dispose();
  return rows.map(({ folder, walls, loss }) => {
    const sorted = walls.toSorted((a, b) => a - b), median = sorted[turns >> 1];
    return { job: spec.name, plans: folder, median: median.toFixed(4), least: sorted[0].toFixed(4), rate: spec.rate(median), loss };
  });
}

const rows = [];
for (const spec of gpuJobs.filter(({ name }) => new RegExp(jobs).test(name))) rows.push(...await compare(spec));
console.table(rows);
process.exit(0);
