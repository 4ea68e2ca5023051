// The rules of plans that are about the plan, not the file: 9 and up. The comment of the Go
// package ir/plan lists them with their reasons; it checks the same, in the same order.

import { sizeOf } from '../values/dtype.js';
import { RlxError } from '../values/errors.js';
import type { Binding, Copy, Dispatch, Entry, Kernel, Plan, Slot, Step } from './plan.js';

/** The stride of uniform rows, and what offsets of storage bindings are multiples of. */
export const rowBytes = 256;
/** The size of the status word with its details. */
export const statusBytes = 16;
/** The greatest depth of repeats. */
export const maxCounters = 7;

const maxDispatches = 1 << 20, maxRepeat = 1 << 16, maxUniformBytes = 1 << 14, maxRowsBytes = 1 << 20;

/**
 * The bytes of an element of each type on the device, where a bool is a word; of quantised
 * types the bytes of a block.
 */
export const typeBytes: Record<string, number> = {
  bool: 4, i8: 1, u8: 1, i16: 2, u16: 2, f16: 2, bf16: 2, i32: 4, u32: 4, f32: 4, i64: 8, u64: 8, f64: 8, c64: 8, c128: 16,
  q8_0: 34, q4_0: 18, q4_1: 20, q5_0: 22, q5_1: 24, q2_k: 84, q3_k: 110, q4_k: 144, q5_k: 176, q6_k: 210, q8_k: 292,
};

/** The kinds of buffer that a slot of each role can lie in. */
const kindsOf = { input: 'input', scalar: '', param: 'state', state: 'state', output: 'temp state input constant' };

/** Throws: a part of a plan breaks a rule. */
export function refuse(rule: number, what: string, kind: 'plan' | 'version' = 'plan'): never {
  throw new RlxError(kind, `plan: ${what} (rule ${rule})`);
}

function need(ok: unknown, rule: number, what: string): asserts ok {
  if (!ok) refuse(rule, what);
}

/** Throws an {@link RlxError} of kind `plan` unless the plan can be run. Its variants are not looked at. */
export function validate(plan: Plan): void {
  const { buffers, slots, constants, kernels, status, entries, requires: { limits } } = plan;
  for (const { bytes } of buffers) need(bytes > 0 && bytes % rowBytes === 0 && bytes <= limits['maxBufferSize']!, 9, `a buffer of ${bytes} bytes`);
  const persistent = validateSlots(plan, slots);
  for (const { buffer, offset, data } of constants) place(plan, { buffer, offset, bytes: data.length }, 4, 'a constant', 'constant state');
  for (const kernel of kernels) validateKernel(kernel, limits);
  if (status) {
    place(plan, { ...status, bytes: statusBytes }, rowBytes, 'the status word', 'status');
    need(differ([0, ...status.codes.map(({ code }) => code)]), 25, 'two status codes');
  }
  const names = new Set(['']);
  let rows = 0;
  for (const entry of entries) {
    const { name, uniformBytes } = entry, what = `entry ${name}`;
    need(!names.has(name), 26, what);
    names.add(name);
    need(fitsRow(uniformBytes), 22, what);
    need((rows += Math.ceil(uniformBytes / rowBytes) * rowBytes) <= maxRowsBytes, 23, what);
    validateEntry(plan, entry, persistent, what);
    need(work(plan, entry, entry.steps, 0) <= maxDispatches, 40, `${what} has too many dispatches`);
  }
}

const differ = (list: unknown[]): boolean => new Set(list).size === list.length;
const fitsRow = (bytes: number): boolean => bytes % 4 === 0 && bytes <= maxUniformBytes;

function window({ buffers }: Plan, { buffer, offset, bytes }: Binding, alignment: number, what: string): void {
  need(offset + bytes <= (buffers[buffer]?.bytes ?? -1) && offset % alignment === 0 && bytes % 4 === 0, 14, `${what} lies outside its buffer`);
}

/** A window that may lie in some kinds of buffer only. */
function place(plan: Plan, at: Binding, alignment: number, what: string, kinds: string): void {
  window(plan, at, alignment, what);
  need(kinds.includes(plan.buffers[at.buffer]!.kind), 15, `${what} lies in the wrong buffer`);
}

/** A window that is not empty, and whether it is written. */
interface Span extends Binding { written: boolean; what: string }

/** Sorts windows; where any two are in conflict, two neighbours are. */
function apart(spans: Span[], rule: number): void {
  spans.sort((a, b) => a.buffer - b.buffer || a.offset - b.offset);
  spans.forEach((b, i) => {
    const a = spans[i - 1];
    const free = a?.buffer !== b.buffer || (a.written ? b.written && a.offset + a.bytes <= b.offset : !b.written);
    need(free, rule, `${b.what} lies on another`);
  });
}

/** Returns the names of parameters and states. */
function validateSlots(plan: Plan, slots: Slot[]): Set<string> {
  const persistent = new Set<string>(), owned: Span[] = [];
  for (const slot of slots) {
    const { name, role, dtype, shape, offset, bytes, range } = slot, what = `${role} ${name}`;
    need(name, 10, what);
    const block = dtype[0] !== 'q' ? 1 : dtype.endsWith('k') ? 256 : 32, n = shape.reduce((n, d) => n * (d || 1), 1), size = shape.includes(0) ? 0 : n;
    need(Number.isSafeInteger(n) && size % block === 0 && bytes === Math.ceil(size / block * typeBytes[dtype]! / 4) * 4, 11, `${what} is not of ${bytes} bytes`);
    need(!range || (role === 'input' && /^[iu]/.test(dtype) && range[0] <= range[1]), 12, what);
    if (role === 'scalar') {
      need(['f32', 'i32', 'u32', 'bool'].includes(dtype) && shape.length === 0 && offset % 4 === 0, 13, what);
      continue;
    }
    place(plan, slot, 4, what, kindsOf[role]);
    if (role === 'param' || role === 'state') {
      need(!persistent.has(name), 16, what);
      persistent.add(name);
    }
    if (role !== 'output' && bytes > 0) owned.push({ ...slot, written: true, what });
  }
  apart(owned, 17);
  return persistent;
}

function validateKernel({ name, source, workgroup, sharedBytes, storage, scalarBytes, counters }: Kernel, limits: Record<string, number>): void {
  const what = `kernel ${name}`;
  need(/^[a-z0-9_]+$/.test(name) && source, 18, what);
  need(workgroup.every((n, i) => n > 0 && n <= limits[`maxComputeWorkgroupSize${'XYZ'[i]}`]!) && sizeOf(workgroup) <= limits['maxComputeInvocationsPerWorkgroup']!, 19, what);
  need(sharedBytes <= limits['maxComputeWorkgroupStorageSize']!, 20, what);
  need(storage.length > 0 && storage.length <= limits['maxStorageBuffersPerShaderStage']!, 21, what);
  need(fitsRow(scalarBytes), 22, what);
  need(counters <= maxCounters, 24, what);
}

function validateEntry({ slots }: Plan, { inputs, scalars, outputs, uniformBytes }: Entry, persistent: Set<string>, what: string): void {
  for (const [list, roles] of [[inputs, 'input'], [scalars, 'scalar'], [outputs, 'output param state']] as const) {
    for (const i of list) need(slots[i] && roles.includes(slots[i].role), 27, `${what} lists slot ${i}`);
  }
  const of = <T>(field: (slot: Slot) => T, ...lists: number[][]) => lists.flat().map((i) => field(slots[i]!));
  const results = of(({ role, name }) => role === 'output' && persistent.has(name), outputs);
  need(differ(of(({ name }) => name, inputs, scalars)) && differ(of(({ name }) => name, outputs)) && !results.includes(true), 28, `${what} uses a name twice`);
  const places = of(({ offset }) => offset, scalars);
  need(differ(places) && places.every((offset) => offset + 4 <= uniformBytes), 29, `${what} has a scalar outside its row, or two in one place`);
}

/** The dispatches and iterations of a list of steps. */
function work(plan: Plan, entry: Entry, steps: Step[], depth: number): number {
  let total = 0;
  for (const step of steps) {
    if (step.kind === 'repeat') {
      const { count } = step;
      need(count > 0 && count <= maxRepeat, 38, `a repeat of ${count}`);
      total += count * Math.max(1, work(plan, entry, step.steps, depth + 1));
    } else {
      if (step.kind === 'copy') validateCopy(plan, step);
      else validateDispatch(plan, entry, step, depth);
      total++;
    }
  }
  return total;
}

const writable = ({ buffers }: Plan, buffer: number): boolean => !['constant', 'input'].includes(buffers[buffer]!.kind);

function validateCopy(plan: Plan, { from, fromOffset, to, toOffset, bytes }: Copy): void {
  const what = 'a copy';
  window(plan, { buffer: from, offset: fromOffset, bytes }, 4, what);
  window(plan, { buffer: to, offset: toOffset, bytes }, 4, what);
  need(from !== to, 37, what);
  need(bytes > 0, 34, what);
  need(writable(plan, to), 35, what);
}

function validateDispatch(plan: Plan, { uniformBytes }: Entry, { kernel, groups, bindings }: Dispatch, depth: number): void {
  const k = plan.kernels[kernel], { limits } = plan.requires;
  need(k, 30, `kernel ${kernel}`);
  const what = `a dispatch of ${k.name}`;
  need(groups.every((n) => n > 0 && n <= limits['maxComputeWorkgroupsPerDimension']!), 31, what);
  need(bindings.length === k.storage.length, 32, what);
  need(k.counters <= depth && k.scalarBytes <= uniformBytes, 33, what);
  apart(bindings.map((binding, i) => {
    const written = k.storage[i] !== 'read', { buffer, bytes } = binding;
    window(plan, binding, rowBytes, what);
    need(bytes > 0 && bytes <= limits['maxStorageBufferBindingSize']!, 34, what);
    need(!written || writable(plan, buffer), 35, what);
    return { ...binding, written, what };
  }), 36);
}
