// Times every schedule of the benchmark's larger groups on this machine's GPU, over Dawn: a
// program for pack.mjs, or by itself after `go run ./js/bench/plans -trials build/trials`:
//
//   RLX_DATA=build RLX_DAWN_BACKEND=default node js/bench/h200/tune.mjs [JOB]...
//
// Prints for each group the untuned and the fastest schedule, in milliseconds, and the speed of the
// untuned ones relative to the fastest; with RLX_ALL=1 all times, as in
// js/bench/plans/testdata/tuned_h200.txt.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openProgram } from '../../dist/runtime.js';
import { openDawn } from '../../test/rig/dawn.mjs';

const repeats = 5;
const hopeless = 2.5; // candidates slower than the fastest by this factor after two rounds are not timed again
const unlikely = 8; // candidates whose estimate exceeds the best by this factor are not timed: 20 launches could take half a second each

const read = (name) => readFileSync(join(process.env.RLX_DATA, 'trials', name));
const wanted = process.argv.slice(2);
const trials = JSON.parse(read('trials.json')).filter(({ job }) => wanted.length === 0 || wanted.includes(job));
const { gpu, close } = await openDawn();
const adapter = await gpu.requestAdapter();
const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
const requiredFeatures = [...adapter.features].filter((name) => name.includes('subgroup')); // by plans for subgroups
const device = await adapter.requestDevice({ requiredFeatures, requiredLimits: { maxBufferSize, maxStorageBufferBindingSize } });

// The first trial of a group is the rule's choice.
const groups = [...new Set(trials.map(({ group }) => group))].map((key) => {
  const group = trials.filter((trial) => trial.group === key), least = Math.min(...group.map(({ cost }) => cost));
  return group.filter(({ cost }, k) => k === 0 || cost <= unlikely * least);
});

/** The milliseconds of a round. */
async function time(program, rounds) {
  const start = performance.now();
  await program.run('run');
  await device.queue.onSubmittedWorkDone();
  return (performance.now() - start) / rounds;
}

/** Times the trials of a group by turns, so that none has the GPU while it is slower, and keeps the best of each. */
async function compare(group) {
  const programs = await Promise.allSettled(group.map(({ file }) => openProgram(read(file), { device })));
  let running = group.map((trial, k) => ({ trial, program: programs[k].value }));
  for (const [k, { reason }] of programs.entries()) {
    group[k].ms = Infinity;
    if (reason) console.log(`# ${group[k].name} by ${group[k].schedule}: ${reason.message}`);
  }
  for (let i = 0; i <= repeats; i++) { // the first does not count: a program proves its entry then
    const times = [];
    for (const { trial, program } of running) times.push(program ? await time(program, trial.rounds) : Infinity);
    for (const [k, { trial }] of running.entries()) if (i > 0) trial.ms = Math.min(trial.ms, times[k]);
    if (i === 2) running = running.filter(({ trial }) => trial.ms <= hopeless * Math.min(...group.map(({ ms }) => ms)));
  }
  for (const { value } of programs) value?.close();
}

let untuned = 0, tuned = 0, near = 0;
for (const group of groups) {
  await compare(group);
  const [first] = group, best = group.toSorted((a, b) => a.ms - b.ms)[0];
  untuned += first.ms;
  tuned += best.ms;
  if (best.ms >= 0.85 * first.ms) near++;
  console.log([
    first.job.padEnd(24), first.name.padEnd(44), String(first.number).padStart(2), first.ms.toFixed(4).padStart(8), best.ms.toFixed(4).padStart(8),
    `${(100 * best.ms / first.ms).toFixed(0)} %`.padStart(6), ` ${first.schedule} -> ${best.schedule}`,
  ].join(' '));
  if (process.env.RLX_ALL) for (const t of group) console.log(`    ${t.schedule.padEnd(44)} ${t.ms.toFixed(4).padStart(8)}  estimated ${t.cost.toFixed(4)}`);
}
console.log(`# untuned ${untuned.toFixed(3)} ms, tuned ${tuned.toFixed(3)} ms, ${(100 * tuned / untuned).toFixed(1)} %; ${near} of ${groups.length} groups within 85 %`);
close();
process.exit(0);
