// The devices of this page or process.

import { describe, type DeviceOptions, requestAdapter } from '../gpu/device.js';
import type { Device } from '../program/program.js';
import { checkOptions, RlxError, unknownName } from '../values/errors.js';
import { adapterText, cpuTarget, isSoftware, withDefaults } from './train.js';

/** The names of devices, as the Go package has them: `cpu` is WebAssembly here. */
export type DeviceName = Device['name'];
export const deviceNames: readonly DeviceName[] = ['cpu', 'webgpu'];

/** A device of this page or process. */
export interface DeviceInfo extends Device {
  /** The option `on` with which a program runs there. */
  readonly on: 'gpu' | 'cpu';
  /** Whether it computes on the processor: the CPU, or a GPU in software. */
  readonly software: boolean;
  /** Why it is not usable, of kind `device`; undefined if it is. */
  readonly error: RlxError | undefined;
}

/** A device, and what WebGPU says of it. @internal */
export interface Found { info: DeviceInfo; from?: GPUAdapter | GPUDevice }

/** A function with an instruction of SIMD, which all code for the CPU needs. */
const simdModule = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 9, 1, 7, 0, 65, 0, 253, 17, 26, 11);

/** A device by its name, usable or not. Throws an {@link RlxError} of kind `name` for an unknown one. @internal */
export async function findDevice(name: string, given: DeviceOptions): Promise<Found> {
  if (name === 'cpu') {
    const error = WebAssembly.validate(simdModule) ? undefined : new RlxError('device', 'WebAssembly has no SIMD here');
    return { info: { name, description: `WebAssembly with ${cpuTarget() === 'wasm' ? '' : 'relaxed '}SIMD`, on: 'cpu', software: true, error } };
  }
  if (name !== 'webgpu') throw unknownName('there is no device', name, deviceNames);
  const options = withDefaults(given);
  try {
    const from = options.device ?? await requestAdapter(options);
    const { description } = describe(from as GPUDevice, from), device = adapterText(from).trim();
    return { info: { name, description: device.includes(description) ? device : description, on: 'gpu', software: isSoftware(from), error: undefined }, from };
  } catch (reason) {
    if ((reason as RlxError).kind !== 'device') throw reason;
    return { info: { name, description: '', on: 'gpu', software: false, error: reason as RlxError } };
  }
}

/** Options that are checked. @internal */
export function checked(what: string, options: DeviceOptions | undefined): DeviceOptions {
  checkOptions(what, options, 'gpu device powerPreference');
  return options ?? {};
}

/** A device that is usable. Rejects with an {@link RlxError} of kind `name` for an unknown one, and `device` for one that is not usable. @internal */
export async function usable(name: string, options: DeviceOptions): Promise<Found> {
  const found = await findDevice(name, options);
  if (found.info.error) throw found.info.error;
  return found;
}

/** The devices of this page or process, sorted by name: the CPU, and the GPU of the options, of those of `init`, or of the page. */
export async function devices(options?: DeviceOptions): Promise<DeviceInfo[]> {
  const given = checked('devices', options);
  return Promise.all(deviceNames.map(async (name) => (await findDevice(name, given)).info));
}
