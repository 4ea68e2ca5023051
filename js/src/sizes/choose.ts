// The device of programs with open sizes that are compiled here.

import { type DeviceOptions, requestAdapter, requestDevice } from '../gpu/device.js';
import { adapterText, cpuTarget, isSoftware } from '../compile/train.js';
import { type Limits, requirementsOf, type Target } from '../compile/compiler.js';
import type { Place } from '../runtime/open.js';
import { RlxError } from '../values/errors.js';
import { HostOnCPU, HostOnGPU, type Host, type LocalOptions } from './device.js';

/** A host, with its target and the name of its device for the compiler. */
interface Chosen { host: Host; target: Target; device?: string }

/** Chooses a device, as `program` does. */
export async function hostFor(options: LocalOptions & { on: Place }, limits: Limits): Promise<Chosen> {
  if (options.on === 'cpu') return { host: new HostOnCPU(options), target: cpuTarget() };
  try {
    return await openGPU(options, limits);
  } catch (reason) {
    if (options.on === 'gpu' || !(reason instanceof RlxError) || reason.kind !== 'device') throw reason;
    return { host: new HostOnCPU(options, reason.message), target: cpuTarget() };
  }
}

async function openGPU(options: LocalOptions & DeviceOptions & { on: Place }, limits: Limits): Promise<Chosen> {
  if (options.device) return { host: new HostOnGPU(options.device, false, options), target: 'webgpu', device: adapterText(options.device) };
  const adapter = await requestAdapter(options);
  if (options.on === 'best' && isSoftware(adapter)) throw new RlxError('device', 'the GPU here is software on the CPU');
  const { gpu } = await requestDevice(adapter, requirementsOf(limits));
  return { host: new HostOnGPU(gpu, true, options), target: 'webgpu', device: adapterText(adapter) };
}
