// Compiles a plan with code: memory, the module's functions, and a list of calls for each entry.

import { crc32 } from '../plan/decode.js';
import type { Binding, Copy, Dispatch, Plan, Repeat, Step } from '../plan/plan.js';
import { refuse, rowBytes } from '../plan/validate.js';
import { type Runnable, type Runnables, runnable } from '../program/base.js';
import { maxOf, roundUp } from '../values/dtype.js';
import { RlxError } from '../values/errors.js';
import { gridBytes, type Kernels, runGrid } from './grid.js';
import { helpers, sharing, startThreads } from './threads.js';

export interface ExecutableEntry extends Runnable { steps: Call[] }
type Call = () => void;

export interface Executable extends Runnables<ExecutableEntry> {
  memory: ArrayBufferLike;
  /** The addresses of the plan's buffers, and of the row of scalars. */
  addresses: number[];
  row: number;
  threads: Worker[];
}

const pageBytes = 1 << 16;

/**
 * Lays out the memory, as the Go package internal/compiler/plan says, and compiles the module, unless it is given, for runs of up to
 * `maxSteps` steps, which are in this thread if `alone`.
 */
export async function buildExecutable(plan: Plan, maxSteps: number, given?: WebAssembly.Module, alone = !!given): Promise<Executable> {
  // Scratch memory of kernels follows, once for each thread.
  const own = maxOf(plan.kernels, ({ sharedBytes }) => roundUp(sharedBytes, rowBytes), rowBytes);
  const count = alone ? 0 : helpers(plan), grid = own * (1 + count), row = grid + gridBytes;
  const runnables = plan.entries.map((entry) => runnable(plan, entry, maxSteps));
  let end = maxOf(runnables, ({ stride }) => row + stride, row);
  const addresses = plan.buffers.map(({ bytes }) => (end += bytes) - bytes);
  if (end > 2 ** 32) throw (await import('../host/memory.js')).tooLarge(plan.name, end);
  const pages = Math.ceil(end / pageBytes), memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: count > 0 }), { buffer } = memory;
  for (const { buffer: at, offset, data } of plan.constants) new Uint8Array(buffer).set(data, addresses[at]! + offset);
  if (given && !WebAssembly.Module.customSections(given, `rlx ${crc32(plan.code!)}`)[0]) throw new RlxError('plan', `code is not planCode of ${plan.name}`);
  const module = given ?? await WebAssembly.compile(count > 0 ? sharing(plan.code!) : plan.code!), names = plan.kernels.map(({ source }) => source);
  const { exports } = await WebAssembly.instantiate(module, { rlx: { memory }, Math: Math as unknown as WebAssembly.ModuleImports });
  const words = count > 0 && new Int32Array(buffer, grid, gridBytes / 4);
  const calls = compileCalls(plan.kernels, addresses, row, buffer, names.map((name) => exports[name]) as unknown as Kernels, words);
  const entries = runnables.map((one): [string, ExecutableEntry] => [one.entry.name, { ...one, steps: calls(one.entry.steps, 0) }]);
  return { memory: buffer, addresses, row, maxSteps, entries: new Map(entries), threads: await startThreads(count, { module, memory, names, grid }, own) };
}

/** Returns a function that compiles steps inside `depth` repeats to calls. */
function compileCalls(kernelsOf: Plan['kernels'], addresses: number[], row: number, buffer: ArrayBufferLike, kernels: Kernels, words: Int32Array | false) {
  /** The iteration counts of the enclosing repeats. */
  const counts: number[] = [];
  const word = ({ buffer: at, offset }: Binding) => new Uint32Array(buffer, addresses[at]! + offset, 1);

  /** Runs a kernel with n arguments over a grid: a kernel of several workgroups gets its index and its scratch memory. */
  function runner(index: number, groups: number, n: number): (args: number[]) => void {
    const kernel = kernels[index]!;
    if (!kernel?.call || kernel.length !== (groups < 2 ? n : n + 3)) refuse(45, kernelsOf[index]!.name);
    if (groups < 2) return (args) => kernel(...args);
    return words ? (args) => runGrid(words, kernels, index, args, groups) : (args) => kernel(...args, 0, groups, 0);
  }

  function dispatch({ kernel, groups, bindings, grid }: Dispatch): Call {
    const { scalarBytes, counters } = kernelsOf[kernel]!;
    const args = bindings.map(({ buffer: at, offset }) => addresses[at]! + offset);
    if (scalarBytes > 0) args.push(row);
    const here = grid && word(grid), run = runner(kernel, groups[0]!, args.length + counters);
    return () => { if (here?.[0] !== 0) run(counters ? [...args, ...counts.slice(0, counters)] : args); };
  }

  function repeat({ count, steps, odd, condition }: Repeat, depth: number): Call {
    const even = calls(steps, depth + 1), bodies = [even, odd === steps ? even : calls(odd, depth + 1)], going = condition && word(condition);
    return () => {
      do {
        for (counts[depth] = 0; counts[depth]! < count; counts[depth]!++) for (const call of bodies[counts[depth]! % 2]!) call();
      } while (going?.[0]);
    };
  }

  function copy({ from, fromOffset, to, toOffset, bytes }: Copy): Call {
    const start = addresses[from]! + fromOffset, all = new Uint8Array(buffer);
    return () => all.copyWithin(addresses[to]! + toOffset, start, start + bytes);
  }

  const calls = (steps: Step[], depth: number): Call[] =>
    steps.map((step) => step.kind === 'dispatch' ? dispatch(step) : step.kind === 'copy' ? copy(step) : repeat(step, depth));
  return calls;
}
