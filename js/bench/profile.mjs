// Times each kernel of a plan, and its compilation by the driver, on the device that Dawn finds:
//
//   node js/bench/profile.mjs PLAN [ENTRY]
//
// The default entry is "step". Buffers hold zeros, so losses have no meaning and every label is
// valid; the time of a kernel does not depend on its input, but for scatters, which add all to one
// row. A kernel runs alone, repeatedly in one pass, until the times are long enough to trust. It and
// its draft are compiled alone, too: without a driver cache that is a first visitor's wait, unless
// kernels are compiled in parallel.

import { readFileSync } from 'node:fs';
import { decodePlan } from '../dist/runtime.js';
import { openDawn } from '../test/rig/dawn.mjs';
import { dispatches, KernelTimer } from './kernel-timer.mjs';

const [file, name = 'step'] = process.argv.slice(2);
if (!file) {
  console.error('usage: node js/bench/profile.mjs PLAN [ENTRY]');
  process.exit(2);
}
const plan = decodePlan(readFileSync(file));
const entry = plan.entries.find((e) => e.name === name);
if (!entry) throw new Error(`${file} has no entry ${name}: it has ${plan.entries.map((e) => e.name).join(', ')}`);
const { device, adapter, close } = await openDawn(plan.requires);

const timer = new KernelTimer(device, plan);

/** The pipelines of all kernels, and of their drafts, with the milliseconds of each. */
async function compileAll(kernels) {
  const made = [];
  for (const { source, draft } of kernels) made.push({ kernel: await timer.compile(source), draft: draft && await timer.compile(draft) });
  return made;
}

const compiled = await compileAll(plan.kernels), rows = [];
for (const step of dispatches(entry.steps)) {
  const k = plan.kernels[step.kernel], ms = await timer.time(compiled[step.kernel].kernel.pipeline, step);
  rows.push({ kernel: k.name, groups: step.groups.join('×'), threads: k.workgroup.join('×'), times: step.times, ms });
}
const total = rows.reduce((sum, { times, ms }) => sum + times * ms, 0), whole = (ms) => Math.round(ms);
const byTime = plan.kernels.map(({ name }, i) => ({ kernel: name, compiled: compiled[i].kernel.ms, draft: compiled[i].draft?.ms ?? 0 }));
byTime.sort((a, b) => (b.draft || b.compiled) - (a.draft || a.compiled));
console.log(`${plan.name}, entry ${name}, on ${adapter.info.description || adapter.info.device}`);
console.table(rows.map((row) => ({ ...row, ms: row.ms.toFixed(3), share: `${(100 * row.times * row.ms / total).toFixed(1)} %` })));
console.log(`together ${total.toFixed(2)} ms`);
console.table(byTime.map(({ kernel, compiled, draft }) => ({ kernel, 'ms to compile': whole(compiled), 'its draft': draft ? whole(draft) : '' })));
const sum = (of) => whole(byTime.reduce((ms, row) => ms + of(row), 0));
console.log(`${byTime.length} kernels compiled in ${sum((row) => row.compiled)} ms, with drafts in ${sum((row) => row.draft || row.compiled)}`);
close();
