// Requests a GPUDevice and queries its capabilities.

import type { Plan, Requires } from '../plan/plan.js';
import { need, RlxError } from '../values/errors.js';

// These types appear in public declarations. Newer versions of TypeScript's library declare them;
// in older ones they are empty unless @webgpu/types is installed. Either way these declarations
// merge with them.
declare global {
  interface GPU {}
  interface GPUDevice {}
}

/** The source of a device. */
export interface DeviceOptions {
  /** A device of the caller, which this library never destroys. */
  device?: GPUDevice;
  /** In place of `navigator.gpu`, as for Dawn in Node. */
  gpu?: GPU;
  /** `high-performance` if not given. */
  powerPreference?: 'low-power' | 'high-performance';
}

/** How a program uses the device. */
export interface GPUProgramOptions {
  /** The maximal number of runs in flight, 1 to 64. By default 3, and up to 64 while they are less than 8 ms of work. */
  inFlight?: number;
  /**
   * Whether a program is ready before its slowest kernels are compiled: until then drafts replace them, with equal
   * results, at a fraction of their speed. True by default.
   */
  drafts?: boolean;
  /** How many staging buffers reads go through, up to 64 and at least 3. By default 4, and up to 32 for small reads that would wait. */
  staging?: number;
}

/** An open device, and whether it is destroyed with what uses it. */
export interface OpenDevice {
  readonly gpu: GPUDevice;
  /** False for a device of the caller. */
  readonly owned: boolean;
  /** The adapter's name: "NVIDIA lovelace", say. */
  readonly description: string;
}

type Capable = GPUAdapter | GPUDevice;

/** What an adapter or a device says of itself. @internal */
export const infoOf = (from: Capable): Partial<GPUAdapterInfo> =>
  (from as GPUAdapter).info ?? (from as GPUDevice).adapterInfo ?? {};

/** Describes the missing capabilities of an adapter or a device for a plan. */
function unmet({ target, requires: { features, limits, subgroup: [min, max] } }: Plan, from: Capable): string[] {
  const { subgroupMinSize, subgroupMaxSize } = infoOf(from), has = from.limits as unknown as Record<string, number>;
  return [
    target === 'webgpu' ? '' : `target ${target}`,
    ...features.filter((name) => !from.features.has(name as GPUFeatureName)),
    ...Object.entries(limits).map(([name, n]) => n <= has[name]! ? '' : `${name} ${n} (here ${has[name]})`),
    !max || (subgroupMinSize! >= min && subgroupMaxSize! <= max) ? '' : 'its subgroup sizes',
  ].filter(Boolean);
}

/** The first of a plan and its variants that an adapter or a device can run. @internal */
export function pickVariant(plan: Plan, from: Capable): Plan {
  const found = [plan, ...plan.variants].find((one) => !unmet(one, from)[0]);
  if (found) return found;
  throw new RlxError('limit', `plan ${plan.name}: the device lacks ${unmet(plan, from).join(', ')}`, { op: plan.name });
}

/** Requests an adapter. Rejects with an {@link RlxError} of kind `device` if there is none. @internal */
export async function requestAdapter({ gpu, powerPreference = 'high-performance' }: DeviceOptions): Promise<GPUAdapter> {
  gpu ??= globalThis.navigator?.gpu;
  if (!gpu) throw new RlxError('device', 'WebGPU is not here: use https or another browser; in Node, the option gpu');
  // Where the browser's GPU process ends meanwhile, as it may at its first start, there is none: the next call finds one.
  const request = () => gpu.requestAdapter?.({ powerPreference }).catch(() => {}), adapter = await request() ?? await request();
  if (!adapter) throw new RlxError('device', 'WebGPU has no adapter here');
  return adapter;
}

/**
 * Opens a device with the features and limits given, and the default ones for the rest.
 * Rejects with an {@link RlxError} of kind `device`. @internal
 */
export async function requestDevice(adapter: GPUAdapter, requires: Pick<Requires, 'features' | 'limits'>): Promise<OpenDevice> {
  try {
    const gpu = await adapter.requestDevice({
      label: 'rlx',
      requiredFeatures: requires.features as GPUFeatureName[],
      requiredLimits: requires.limits,
    });
    return describe(gpu, adapter);
  } catch (cause) {
    throw new RlxError('device', `the adapter gives no device: ${(cause as Error).message}`, { cause });
  }
}

/** A device with its name, of an adapter of ours or itself, which is the caller's. @internal */
export function describe(gpu: GPUDevice, from: Capable): OpenDevice {
  const { vendor, architecture, description } = infoOf(from);
  return { gpu, owned: gpu !== from, description: description || [vendor, architecture].filter(Boolean).join(' ') || 'WebGPU' };
}

/**
 * Calls a function when a device is lost; the returned function cancels that. The device's promise, which may
 * outlive many programs, then retains nothing of the listener. @internal
 */
export function onLost(gpu: GPUDevice, listener: (info: GPUDeviceLostInfo) => void): () => void {
  let notify: typeof listener | undefined = listener;
  void gpu.lost.then((info) => notify?.(info));
  return () => { notify = undefined; };
}

/** A device that can run one of a plan's variants, and that variant. @internal */
export async function deviceFor(plan: Plan, options: DeviceOptions): Promise<{ device: OpenDevice; plan: Plan }> {
  const given = options.device, from = given ?? await requestAdapter(options);
  need(from.limits, 'attr', 'device', 'a GPUDevice', given);
  const variant = pickVariant(plan, from);
  return { device: given ? describe(given, given) : await requestDevice(from as GPUAdapter, variant.requires), plan: variant };
}
