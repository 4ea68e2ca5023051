import { deviceFor, type DeviceOptions, type GPUSessionOptions } from '../gpu/device.js';
import { GPUSession, unlessLost } from '../gpu/gpu-session.js';
import { decodePlan } from '../plan/decode.js';
import type { Plan } from '../plan/plan.js';
import { buildProgram } from '../gpu/program.js';
import { asError, checkCount, checkOptions, checkWord, RlxError } from '../values/errors.js';
import { openRemote, type WorkerOptions } from '../worker/remote.js';
import type { Session } from '../program/session.js';
import type { EntryTypes } from '../program/types.js';

/** The place of a session: a GPU, the CPU, or the CPU only without a GPU. */
export type Place = 'gpu' | 'cpu' | 'best';

/** Throws unless the value is a {@link Place}. @internal */
export const checkPlace = (on: Place): void => checkWord('on', on, 'gpu cpu best');

/** The options of a session. @internal */
export const sessionOptions = 'on worker device gpu powerPreference maxSteps memory inFlight staging drafts code';

export interface SessionOptions extends DeviceOptions, GPUSessionOptions, WorkerOptions {
  /** The most steps of one run, up to 4096. 64 if not given. */
  maxSteps?: number;
  /**
   * The most bytes that the session's plan may take; one that takes more is refused before any of them is
   * allocated. If not given it is, in Node, the environment variable `RLX_MEMORY` (as `8GiB`), else what the
   * machine or the control group has. A page knows of no such figure: what bounds it are the 4 GiB of a
   * WebAssembly memory, and the device's `maxBufferSize` for each buffer.
   */
  memory?: number;
  /** `best` by default. A plan only runs in a place that it or one of its variants targets. */
  on?: Place;
  /**
   * The plan's code for the CPU, compiled already, for where none can be compiled at run time, as in
   * workerd: a module of the bytes that `planCode` gives. The session is then in one thread.
   */
  code?: WebAssembly.Module;
}

/**
 * Makes a plan ready to run: finds a device, builds the pipelines without blocking the page,
 * makes the buffers. A plan for WebAssembly runs on the CPU: its `fallbackReason` says why where a
 * variant for a GPU was there. Rejects with an {@link RlxError}: `plan`, `version`, `device`, `limit`,
 * `shader`, `wasm`, `memory`, `lost`.
 *
 * ```ts
 * const session = await openSession(await (await fetch('digits.rlxp')).arrayBuffer());
 * await session.run('init');
 * const { reading } = await session.run('step', { x, labels, rate: 1e-3 }, { read: ['loss'] });
 * console.log((await reading!).values.loss);
 * ```
 */
export async function openSession<E extends EntryTypes = any>(file: Uint8Array | ArrayBuffer, options: SessionOptions = {}): Promise<Session<E>> {
  options ??= {};
  checkOptions('openSession', options, sessionOptions);
  return (options.worker ? openRemote(file, options) : openLocal(decodePlan(file), options)) as Promise<Session<any>>;
}

/** {@link openSession} in this thread, for a plan that was read already. */
export async function openLocal(plan: Plan, options: Omit<SessionOptions, 'worker'>): Promise<Session> {
  const { maxSteps = 64, memory, inFlight, staging = 4, on = 'best', code: given } = options;
  checkCount('maxSteps', maxSteps, 1, 4096);
  checkCount('inFlight', inFlight ?? 1, 1, 64);
  checkCount('staging', staging, 1, 64);
  checkPlace(on);
  const code = on === 'gpu' ? undefined : pickCode(plan, given);
  if (on === 'cpu' && !code) throw new RlxError('device', `plan ${plan.name} has no code for the CPU`, { op: plan.name });
  let fallbackReason: string | undefined;
  if (!code || on !== 'cpu' && [plan, ...plan.variants].some(({ target }) => target === 'webgpu')) {
    try {
      return await openGPU(plan, options, maxSteps, staging);
    } catch (reason) {
      if (!code || (reason as RlxError).kind !== 'device') throw reason;
      fallbackReason = (reason as RlxError).message;
    }
  }
  return Object.assign(await openCPU(code, maxSteps, memory, given), { fallbackReason });
}

/** Refuses a plan that takes more memory than it may. A page that sets no bound knows of none, and does without the code. */
async function checkMemory(plan: Plan, maxSteps: number, memory: number | undefined): Promise<void> {
  if (memory !== undefined || (globalThis as { process?: unknown }).process) (await import('../host/memory.js')).checkMemory(plan, maxSteps, memory);
}

/** The first of a plan and its variants whose code this engine takes, or is given; undefined where none has any. Throws an {@link RlxError} of kind `device` where it takes none. */
function pickCode(plan: Plan, given?: WebAssembly.Module): Plan | undefined {
  const all = [plan, ...plan.variants].filter(({ code }) => code);
  const found = all.find(({ code }) => given || WebAssembly.validate(code!));
  if (!found && all[0]) throw new RlxError('device', 'WebAssembly has no SIMD here');
  return found;
}

/** The code of sessions on the CPU is fetched here: a page with WebGPU does without. */
async function openCPU(plan: Plan, maxSteps: number, memory: number | undefined, given?: WebAssembly.Module): Promise<Session> {
  try {
    await checkMemory(plan, maxSteps, memory);
    const cpu = await import('../cpu/cpu-session.js');
    return await cpu.openCPU(plan, maxSteps, given);
  } catch (reason) {
    throw asError(reason, 'wasm');
  }
}

async function openGPU(plan: Plan, options: SessionOptions, maxSteps: number, staging: number): Promise<Session> {
  const { device, plan: variant } = await deviceFor(plan, options);
  try {
    await checkMemory(variant, maxSteps, options.memory);
    const program = await unlessLost(device.gpu, () => buildProgram(device.gpu, variant, maxSteps, options.drafts ?? true));
    return new GPUSession(device, variant, program, options.inFlight, staging);
  } catch (reason) {
    if (device.owned) device.gpu.destroy();
    throw asError(reason);
  }
}
