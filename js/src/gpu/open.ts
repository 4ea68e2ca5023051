import { deviceFor, type DeviceOptions, type GPUSessionOptions } from './device.js';
import { GPUSession, unlessLost } from './gpu-session.js';
import { decodePlan, type Plan } from '../plan/plan.js';
import { buildProgram } from './program.js';
import { checkCount } from '../values/errors.js';
import { openRemote, type WorkerOptions } from '../worker/remote.js';
import type { Session } from '../session/session.js';

export interface SessionOptions extends DeviceOptions, GPUSessionOptions, WorkerOptions {
  /** The most steps of one run, up to 4096. 64 if not given. */
  maxSteps?: number;
}

/**
 * Makes a plan ready to run: finds a device, builds the pipelines without blocking the page,
 * makes the buffers. Rejects with an {@link RlxError}: `plan`, `version`, `device`, `limit`,
 * `shader`, `memory`, `lost`.
 *
 * ```ts
 * const session = await openSession(await (await fetch('digits.rlxp')).arrayBuffer());
 * await session.run('init');
 * const { reading } = await session.run('step', { x, labels, rate: 1e-3 }, { read: ['loss'] });
 * console.log((await reading!).values.loss);
 * ```
 */
export async function openSession(file: Uint8Array | ArrayBuffer, options: SessionOptions = {}): Promise<Session> {
  return options.worker ? openRemote(file, options) : openLocal(decodePlan(file), options);
}

/** {@link openSession} in this thread, for a plan that was read already. */
export async function openLocal(plan: Plan, options: Omit<SessionOptions, 'worker'> = {}): Promise<Session> {
  const { maxSteps = 64, inFlight = 3, staging = 4 } = options;
  checkCount('maxSteps', maxSteps, 1, 4096);
  checkCount('inFlight', inFlight, 1, 64);
  checkCount('staging', staging, 1, 64);
  const { device, plan: variant } = await deviceFor(plan, options);
  try {
    const program = await unlessLost(device.gpu, () => buildProgram(device.gpu, variant, maxSteps));
    return new GPUSession(device, variant, program, inFlight, staging);
  } catch (reason) {
    if (device.owned) device.gpu.destroy();
    throw reason;
  }
}
