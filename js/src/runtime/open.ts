import { deviceFor, type DeviceOptions, type GPUProgramOptions } from '../gpu/device.js';
import { buildExecutable } from '../gpu/executable.js';
import { GPUProgram, unlessLost } from '../gpu/gpu-program.js';
import { decodePlan } from '../plan/decode.js';
import { allSteps, type Plan, type Repeat } from '../plan/plan.js';
import type { Program } from '../program/program.js';
import type { EntryTypes, PlanFile } from '../program/types.js';
import { asError, checkCount, checkOptions, checkWord, RlxError } from '../values/errors.js';
import type { WorkerOptions } from '../worker/remote.js';
import type { RecoverOptions } from './recover.js';

/** The place of a program: a GPU, the CPU, or the CPU only without a GPU. */
export type Place = 'gpu' | 'cpu' | 'best';

/** Throws unless the value is a {@link Place}. @internal */
export const checkPlace = (on: Place): void => checkWord('on', on, 'gpu cpu best');

/** The options of a program. @internal */
export const programOptions = 'on worker device gpu powerPreference maxSteps memory inFlight staging drafts code recover';

export interface ProgramOptions extends DeviceOptions, GPUProgramOptions, WorkerOptions {
  /** The maximal number of steps of one run, up to 4096. 64 if not given. */
  maxSteps?: number;
  /**
   * The memory limit of the program, in bytes; a plan that needs more is refused before any memory
   * is allocated. The default in Node is the environment variable `RLX_MEMORY` (as `8GiB`), or the
   * memory of the machine or its control group. A page knows no such figure: its limits are the 4
   * GiB of a WebAssembly memory, and the device's `maxBufferSize` for each buffer.
   */
  memory?: number;
  /** `best` by default. A plan only runs in a place that it or one of its variants targets. */
  on?: Place;
  /**
   * The plan's code for the CPU, compiled ahead of time for hosts that cannot compile, such as workerd: a
   * module of the bytes that `planCode` returns. The program then runs in one thread.
   */
  code?: WebAssembly.Module;
  /**
   * Goes on when the device, or the worker, is lost: the program is opened again, on another device, with the states of the last
   * snapshot in host memory. Runs of a trainer, and `fit`, make snapshots and go on by themselves; other calls in progress reject
   * with kind `lost`, and later ones wait. Bound inputs are kept, in host memory, too; tensors of `upload` and `keep` are gone.
   * Three losses within a minute end the program with the error. False if not given, true for `train`. A device of the caller
   * needs `recover.device`.
   */
  recover?: boolean | RecoverOptions;
}

/**
 * Makes a plan ready to run: finds a device, builds the pipelines without blocking the page,
 * makes the buffers. A plan for WebAssembly runs on the CPU: `fallbackReason` has the reason if there
 * was a variant for a GPU. Rejects with an {@link RlxError}: `plan`, `version`, `device`, `limit`,
 * `shader`, `wasm`, `memory`, `lost`. A file with open sizes is for `openSized` of `/sized`.
 *
 * ```ts
 * const program = await openProgram(await (await fetch('digits.rlxp')).arrayBuffer());
 * await program.run('init');
 * const { reading } = await program.run('step', { x, labels, rate: 1e-3 }, { read: ['loss'] });
 * console.log((await reading).values.loss);
 * ```
 */
export async function openProgram<E extends EntryTypes = any>(file: PlanFile<E> | Uint8Array | ArrayBuffer, options?: ProgramOptions): Promise<Program<E>> {
  options ??= {};
  checkOptions('openProgram', options, programOptions);
  if (options.recover) return (await import('./recover.js')).openRecovering((given) => openProgram(file, { ...options, recover: false, ...given }), options);
  return options.worker ? (await import('../worker/remote.js')).openRemote(file, options) : openLocal(decodePlan(file), options);
}

/** {@link openProgram} in this thread, for a plan that was read already. @internal */
export async function openLocal(plan: Plan, options: Omit<ProgramOptions, 'worker'>): Promise<Program> {
  const { maxSteps = 64, memory, on = 'best', code: given } = options;
  checkCount('maxSteps', maxSteps, 1, 4096);
  for (const name of ['inFlight', 'staging'] as const) checkCount(name, options[name] ?? 1, 1, 64);
  checkPlace(on);
  const code = on === 'gpu' ? undefined : pickCode(plan, given);
  if (on === 'cpu' && !code) throw new RlxError('device', `plan ${plan.name} has no code for the CPU`, { op: plan.name });
  let fallbackReason: string | undefined;
  if (!code || on !== 'cpu' && [plan, ...plan.variants].some(({ target }) => target === 'webgpu')) {
    try {
      return await openGPU(plan, options, maxSteps);
    } catch (reason) {
      if (!code || (reason as RlxError).kind !== 'device') throw reason;
      fallbackReason = (reason as RlxError).message;
    }
  }
  return Object.assign(await openCPU(code, maxSteps, memory, given), { fallbackReason });
}

/** Refuses a plan that needs more memory than the limit. A page without a limit does not load the code. */
async function checkMemory(plan: Plan, maxSteps: number, memory: number | undefined): Promise<void> {
  if (memory !== undefined || (globalThis as { process?: unknown }).process) (await import('../host/memory.js')).checkMemory(plan, maxSteps, memory);
}

/**
 * The first of a plan and its variants whose code is valid here, or the plan itself; undefined if
 * there is no code. Throws an {@link RlxError} of kind `device` if none is valid.
 */
function pickCode(plan: Plan, given?: WebAssembly.Module): Plan | undefined {
  const all = [plan, ...plan.variants].filter(({ code }) => code);
  const found = all.find(({ code }) => given || WebAssembly.validate(code!));
  if (!found && all[0]) throw new RlxError('device', 'WebAssembly has no SIMD here');
  return found;
}

/** Opens a program on the CPU. Its code is loaded here, as a page with WebGPU does not need it. */
async function openCPU(plan: Plan, maxSteps: number, memory: number | undefined, given?: WebAssembly.Module): Promise<Program> {
  try {
    await checkMemory(plan, maxSteps, memory);
    const cpu = await import('../cpu/cpu-program.js');
    return await cpu.openCPU(plan, maxSteps, given);
  } catch (reason) {
    throw asError(reason, 'wasm');
  }
}

async function openGPU(plan: Plan, options: ProgramOptions, maxSteps: number): Promise<Program> {
  const { device, plan: variant } = await deviceFor(plan, options);
  try {
    await checkMemory(variant, maxSteps, options.memory);
    const executable = await unlessLost(device.gpu, buildExecutable(device.gpu, variant, maxSteps, options.drafts ?? true));
    const loops = allSteps(variant.entries).some((step) => (step as Repeat).condition) ? await import('../gpu/loops.js') : undefined;
    return new GPUProgram(device, variant, executable, options.inFlight, options.staging, loops);
  } catch (reason) {
    if (device.owned) device.gpu.destroy();
    throw asError(reason);
  }
}
