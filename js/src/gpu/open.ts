import { type Device, deviceFor, type DeviceOptions } from './device.js';
import { GPUSession, type GPUSessionOptions, unlessLost } from './gpu-session.js';
import { decodePlan, type Plan } from '../plan/plan.js';
import { buildProgram } from './program.js';
import { openRemote, type WorkerOptions } from '../worker/remote.js';
import type { Session } from '../session/session.js';

export interface SessionOptions extends DeviceOptions, GPUSessionOptions, WorkerOptions {
  /** The most steps of one run. 64 if not given. */
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
export async function openLocal(plan: Plan, options: Omit<SessionOptions, 'worker'> = {}): Promise<GPUSession> {
  const { device, plan: variant } = await deviceFor(plan, options);
  try {
    return await openOn(device, variant, options);
  } catch (reason) {
    if (device.owned) device.gpu.destroy();
    throw reason;
  }
}

/** Makes a plan ready to run on a device that has what it requires. */
export async function openOn(device: Device, plan: Plan, options: GPUSessionOptions & { maxSteps?: number } = {}): Promise<GPUSession> {
  const program = await unlessLost(device.gpu, () => buildProgram(device.gpu, plan, options.maxSteps ?? 64));
  return new GPUSession(device, plan, program, options);
}
