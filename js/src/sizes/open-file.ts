// Programs of files with open sizes, without the compiler.

import { requestAdapter, requestDevice } from '../gpu/device.js';
import type { Plan } from '../plan/plan.js';
import { checkPlace, type Place, type ProgramOptions } from '../runtime/open.js';
import { checkOptions, classOf, RlxError } from '../values/errors.js';
import type { EntryTypes, PlanFile } from '../program/types.js';
import { HostOnCPU, HostOnGPU, type Host, type LocalOptions } from './device.js';
import { OpenEntry } from './entry.js';
import { Family, holder, type Plans, type SizedProgram } from './family.js';
import { decodeOpen, FileSizing, type OpenFile } from './file.js';

/** Options of a program of a file with open sizes, which runs in this thread. */
export interface SizedOptions extends Omit<ProgramOptions, 'worker' | 'code'> {
  /** The number of sizes to keep ready, besides those in use. 16 by default. */
  buckets?: number;
}

/**
 * Opens a plan file with open sizes, which `rlx plan -buckets` writes. A call binds the sizes by the shapes of its inputs. It is padded to
 * the smallest plan of the file that serves them, and has the elements of the true sizes, up to the order of sums. All
 * sizes share parameters and states, on a GPU in the same memory. Plans are opened by the calls that need them, or by
 * {@link SizedProgram.prepare}.
 *
 * Rejects with an {@link RlxError}: `plan`, `version`, `device`, `limit`, and those of {@link openProgram}. A call of sizes
 * that no plan serves rejects with one of kind `limit` that lists the sizes of the file.
 *
 * ```ts
 * const program = await openSized(await (await fetch('encoder.rlxp')).arrayBuffer());
 * await program.load(weights);
 * const { reading } = await program.run('encode', { tokens: { shape: [3, 17], data } }, { read: ['mean'] });
 * ```
 */
export async function openSized<E extends EntryTypes = any>(file: PlanFile<E> | Uint8Array | ArrayBuffer, options: SizedOptions = {}): Promise<SizedProgram<E>> {
  checkOptions('openSized', options, 'on device gpu powerPreference maxSteps memory inFlight staging drafts buckets');
  const { on = 'best', buckets = 16, ...rest } = options ?? {};
  checkPlace(on);
  if (!Number.isSafeInteger(buckets) || buckets < 1) throw new RlxError('limit', `openSized: buckets is ${classOf(buckets)}: it must be a whole number from 1`, { name: 'buckets' });
  const read = decodeOpen(file instanceof Uint8Array ? file as Uint8Array<ArrayBuffer> : new Uint8Array(Object(file) as ArrayBuffer));
  const { host, fits } = await hostOf(read, { ...rest, on });
  try {
    const sizings = read.entries.map((entry, i) => new FileSizing(entry, read.buckets.filter((bucket) => bucket.entry === i)));
    const plans: Plans = {
      buckets,
      async plan({ name }, { bound }) { return planFor(sizings[read.entries.findIndex((entry) => entry.name === name)]!.bucket(bound).plan, fits); },
    };
    const family = new Family(plans, host), base = planFor(read.base, fits);
    await family.addClosed(base, new Map(base.entries.filter(({ name }) => name !== holder).map(({ name }) => [name, true])));
    family.addOpen(read.entries.map((entry, i) => new OpenEntry({ ...entry, inputs: entry.inputs.filter(({ shape }) => shape.some((dim) => typeof dim === 'string')) }, sizings[i]!, entry.writes)));
    return family as SizedProgram<any>;
  } catch (reason) {
    host.close();
    throw reason;
  }
}

/** Whether a plan is for a host. */
type Fits = (plan: Plan) => boolean;
const onGPU: Fits = ({ target }) => target === 'webgpu', onCPU: Fits = ({ code }) => !!code && WebAssembly.validate(code);

const all = (plan: Plan): Plan[] => [plan, ...plan.variants];

/** The first of a plan and its variants for a host, alone. */
function planFor(plan: Plan, fits: Fits): Plan {
  const found = all(plan).find(fits);
  if (!found) throw new RlxError('device', `plan ${plan.name}: the file has no plan for this device of some sizes`, { op: plan.name });
  return { ...found, variants: [] };
}

/** Chooses a device that all plans of a file can run on. */
async function hostOf({ base, buckets }: OpenFile, { on, device, ...options }: LocalOptions & { on: Place }): Promise<{ host: Host; fits: Fits }> {
  const code = on !== 'gpu' && all(base).some(onCPU), plans = on === 'cpu' ? [] : [base, ...buckets.map(({ plan }) => plan)].flatMap(all).filter(onGPU);
  if (!code && !plans.length) throw new RlxError('device', `plan ${base.name} has no code for ${on === 'gpu' ? 'a GPU' : 'the CPU'}`, { op: base.name });
  if (!plans.length) return { host: new HostOnCPU(options), fits: onCPU };
  try {
    return { host: device ? new HostOnGPU(device, false, options) : new HostOnGPU(await gpuFor(plans, options), true, options), fits: onGPU };
  } catch (reason) {
    if (!code || (reason as RlxError).kind !== 'device') throw reason;
    return { host: new HostOnCPU(options, (reason as RlxError).message), fits: onCPU };
  }
}

/** A GPU with what each of some plans needs. */
async function gpuFor(plans: readonly Plan[], options: LocalOptions): Promise<GPUDevice> {
  const limits: Record<string, number> = {};
  for (const { requires } of plans) for (const [name, n] of Object.entries(requires.limits)) limits[name] = Math.max(n, limits[name] ?? 0);
  return (await requestDevice(await requestAdapter(options), { features: [...new Set(plans.flatMap(({ requires }) => requires.features))], limits })).gpu;
}
