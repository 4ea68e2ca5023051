// What the replayer relies on. The Go package ir/plan checks the same, and more, when a plan
// is written; here it keeps a file of unknown origin from hanging the page.

import { deviceBytes } from '../values/dtype.js';
import { RlxError } from '../values/errors.js';
import type { Binding, Dispatch, Entry, Plan, Step } from './plan.js';

/** The stride of uniform rows, and what offsets of storage bindings are multiples of. */
export const rowBytes = 256;
/** The size of the status word with its details. */
export const statusBytes = 16;

const maxDispatches = 1 << 20, maxRepeat = 1 << 16, maxCounters = 7, maxUniformBytes = 1 << 14;

function need(ok: unknown, what: string): asserts ok {
  if (!ok) throw new RlxError('plan', `plan: ${what}`);
}

/** Throws an {@link RlxError} of kind `plan` unless the plan can be replayed. */
export function validate(plan: Plan): void {
  need(plan.target === 'webgpu', `it is for ${plan.target}`);
  for (const { bytes } of plan.buffers) need(bytes > 0 && bytes % rowBytes === 0, `a buffer of ${bytes} bytes`);
  const persistent = new Set<string>();
  for (const slot of plan.slots) {
    const { name, role, dtype, shape, bytes } = slot, known = deviceBytes(dtype, shape);
    need(Number.isSafeInteger(bytes) && (Number.isNaN(known) || known === bytes), `${name} of ${bytes} bytes is not ${dtype}[${shape}]`);
    if (role === 'scalar') {
      need(['f32', 'i32', 'u32', 'bool'].includes(dtype) && shape.length === 0, `scalar ${name} is ${dtype}[${shape}]`);
      continue;
    }
    window(plan, slot, 4, name);
    if (role === 'param' || role === 'state') {
      need(!persistent.has(name), `two states are named ${name}`);
      persistent.add(name);
    }
  }
  for (const { buffer, offset, data } of plan.constants) window(plan, { buffer, offset, bytes: data.length }, 4, 'a constant');
  for (const { name, storage, counters, scalarBytes } of plan.kernels) {
    need(storage.length > 0 && counters <= maxCounters && scalarBytes <= maxUniformBytes, `kernel ${name} has no or too many bindings`);
  }
  if (plan.status) window(plan, { ...plan.status, bytes: statusBytes }, rowBytes, 'the status word');
  const names = new Set<string>();
  for (const entry of plan.entries) {
    need(!names.has(entry.name), `two entries are named ${entry.name}`);
    names.add(entry.name);
    validateEntry(plan, entry);
  }
}

function window(plan: Plan, { buffer, offset, bytes }: Binding, alignment: number, what: string): void {
  const size = plan.buffers[buffer]?.bytes ?? -1;
  need(offset + bytes <= size && offset % alignment === 0 && bytes % 4 === 0, `${what} lies outside its buffer`);
}

function validateEntry(plan: Plan, entry: Entry): void {
  const { name, inputs, scalars, outputs, uniformBytes, steps } = entry;
  need(uniformBytes % 4 === 0 && uniformBytes <= maxUniformBytes, `entry ${name} has ${uniformBytes} bytes of scalars`);
  const roles = { input: inputs, scalar: scalars };
  for (const [role, list] of Object.entries(roles)) {
    for (const i of list) need(plan.slots[i]?.role === role, `entry ${name} has a wrong ${role}`);
  }
  for (const i of scalars) {
    const { offset } = plan.slots[i]!;
    need(offset % 4 === 0 && offset + 4 <= uniformBytes, `a scalar of entry ${name} lies outside its row`);
  }
  for (const i of outputs) need(plan.slots[i] && !['input', 'scalar'].includes(plan.slots[i].role), `entry ${name} has a wrong output`);
  const unique = (list: number[]) => new Set(list.map((i) => plan.slots[i]!.name)).size === list.length;
  need(unique([...inputs, ...scalars]) && unique(outputs), `entry ${name} uses a name twice`);
  need(work(plan, entry, steps, 0) <= maxDispatches, `entry ${name} has too many dispatches`);
}

/** The dispatches and iterations of a list of steps. */
function work(plan: Plan, entry: Entry, steps: Step[], depth: number): number {
  let total = 0;
  for (const step of steps) {
    if (step.kind === 'repeat') {
      need(step.count > 0 && step.count <= maxRepeat && depth < maxCounters, `a repeat of ${step.count}`);
      total += step.count * Math.max(1, work(plan, entry, step.steps, depth + 1));
    } else if (step.kind === 'copy') {
      window(plan, { buffer: step.from, offset: step.fromOffset, bytes: step.bytes }, 4, 'a copy');
      window(plan, { buffer: step.to, offset: step.toOffset, bytes: step.bytes }, 4, 'a copy');
      total++;
    } else {
      validateDispatch(plan, entry, step, depth);
      total++;
    }
  }
  return total;
}

function validateDispatch(plan: Plan, entry: Entry, { kernel, groups, bindings }: Dispatch, depth: number): void {
  const k = plan.kernels[kernel], limit = plan.requires.limits['maxComputeWorkgroupsPerDimension']!;
  need(k, `there is no kernel ${kernel}`);
  need(groups.every((n) => n > 0 && n <= limit), `${k.name} is run over ${groups} workgroups`);
  need(bindings.length === k.storage.length && k.counters <= depth && k.scalarBytes <= entry.uniformBytes, `${k.name} is bound wrongly`);
  bindings.forEach((a, i) => {
    window(plan, a, rowBytes, k.name);
    const writes = k.storage[i] !== 'read', kind = plan.buffers[a.buffer]!.kind;
    need(a.bytes > 0 && !(writes && (kind === 'constant' || kind === 'input')), `${k.name} is bound wrongly`);
    // One buffer is either only read in a dispatch, or its windows are writable and share no byte.
    for (let j = 0; j < i; j++) {
      const b = bindings[j]!, written = k.storage[j] !== 'read';
      const apart = a.buffer !== b.buffer || (writes ? written && (a.offset >= b.offset + b.bytes || b.offset >= a.offset + a.bytes) : !written);
      need(apart, `${k.name} reads and writes one place`);
    }
  });
}
