// Times each kernel of a plan, and its compilation by the driver, on the device that Dawn finds:
//
//   node js/bench/profile.mjs PLAN [ENTRY]
//
// The default entry is "step". Buffers hold zeros, so losses have no meaning and every label is
// valid; the time of a kernel does not depend on its input. A kernel runs alone, repeatedly in one
// pass, until the times are long enough to trust. It and its draft are compiled alone, too: without
// a driver cache that is a first visitor's wait, unless kernels are compiled in parallel.

import { readFileSync } from 'node:fs';
import { decodePlan } from '../dist/runtime.js';
import { openDawn } from '../test/rig/dawn.mjs';

const shortest = 30; // ms that a timed pass should take

const [file, name = 'step'] = process.argv.slice(2);
if (!file) {
  console.error('usage: node js/bench/profile.mjs PLAN [ENTRY]');
  process.exit(2);
}
const plan = decodePlan(readFileSync(file));
const entry = plan.entries.find((e) => e.name === name);
if (!entry) throw new Error(`${file} has no entry ${name}: it has ${plan.entries.map((e) => e.name).join(', ')}`);
const { device, adapter, close } = await openDawn();

const storage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
const buffers = plan.buffers.map(({ bytes }) => device.createBuffer({ size: Math.max(4, bytes), usage: storage }));
for (const { buffer, offset, data } of plan.constants) device.queue.writeBuffer(buffers[buffer], offset, data);
const uniforms = device.createBuffer({ size: 4096, usage: GPUBufferUsage.UNIFORM });

/** All dispatches of some steps, and how often each runs. */
function* dispatches(steps, times = 1) {
  for (const step of steps) {
    if (step.kind === 'dispatch') yield { ...step, times };
    if (step.kind === 'repeat') yield* dispatches(step.steps, times * step.count);
  }
}

/** The pipeline of some source, and the milliseconds that it took to make. */
async function compile(code) {
  const start = performance.now(), module = device.createShaderModule({ code });
  const pipeline = await device.createComputePipelineAsync({ layout: 'auto', compute: { module, entryPoint: 'main' } });
  return { pipeline, ms: performance.now() - start };
}

/** The pipelines of all kernels, and of their drafts, with the milliseconds of each. */
async function compileAll(kernels) {
  const made = [];
  for (const { source, draft } of kernels) made.push({ kernel: await compile(source), draft: draft && await compile(draft) });
  return made;
}

/** The milliseconds of one dispatch. */
async function time(pipeline, { kernel, groups, bindings }) {
  const { scalarBytes, counters } = plan.kernels[kernel];
  const bound = bindings.map(({ buffer, offset, bytes }, binding) => ({ binding, resource: { buffer: buffers[buffer], offset, size: bytes } }));
  const sets = [device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries: bound })];
  const rows = [...scalarBytes ? [scalarBytes] : [], ...Array(counters).fill(16)];
  if (rows.length > 0) {
    const entries = rows.map((size, binding) => ({ binding, resource: { buffer: uniforms, size } }));
    sets.push(device.createBindGroup({ layout: pipeline.getBindGroupLayout(1), entries }));
  }
  const run = async (times) => {
    const encoder = device.createCommandEncoder(), pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    sets.forEach((set, i) => pass.setBindGroup(i, set));
    for (let i = 0; i < times; i++) pass.dispatchWorkgroups(...groups);
    pass.end();
    const start = performance.now();
    device.queue.submit([encoder.finish()]);
    await device.queue.onSubmittedWorkDone();
    return performance.now() - start;
  };
  await run(1);
  const once = await run(1), times = Math.ceil(Math.max(1, shortest / once));
  return times === 1 ? once : await run(times) / times;
}

const compiled = await compileAll(plan.kernels), rows = [];
for (const step of dispatches(entry.steps)) {
  const k = plan.kernels[step.kernel], ms = await time(compiled[step.kernel].kernel.pipeline, step);
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
