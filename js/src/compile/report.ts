// How a device computes a module, node by node, and why it cannot.

import { type DeviceOptions, pickVariant } from '../gpu/device.js';
import { Graph, parseGraph } from '../graph/graph.js';
import { decodePlan } from '../plan/decode.js';
import { checkWord, RlxError } from '../values/errors.js';
import { call, type Job, type NodeReport, openCheck, type Target, targets, type Work } from './compiler.js';
import { checked, type DeviceInfo, type DeviceName, type Found, usable } from './device.js';
import { adapterText, compileJob, cpuTarget, jobOf, type Module, type ModuleSource, ofGraphs } from './train.js';

/** What is reported on: a graph, or a module. */
export type Reported = Graph | ModuleSource;

/** How a device, or a target, computes the nodes of a module. */
export class DeviceReport {
  readonly device: DeviceInfo;
  /**
   * A row for each node: entry by entry, the nodes of a subgraph after the node that has it. Inputs, parameters and states have a
   * row only if they are unsupported.
   */
  readonly rows: readonly NodeReport[];
  /** Why the module is refused though each node is supported: it takes too much memory, or limits that the device lacks. */
  readonly refused: RlxError | undefined;
  /** What a run of each entry takes, in their order. */
  readonly work: readonly Work[];

  /** @internal */
  constructor(device: DeviceInfo, rows: readonly NodeReport[], refused: RlxError | undefined, work: readonly Work[]) {
    this.device = device;
    this.rows = rows;
    this.refused = refused;
    this.work = work;
  }

  /** The rows of nodes that the device cannot compute. */
  get unsupported(): NodeReport[] { return this.rows.filter(({ level }) => level === 'unsupported'); }

  /** Undefined if the device can compute the module; else an error of kind `unsupported` for the first node that it cannot, or `refused`. */
  get error(): RlxError | undefined {
    const [first, ...more] = this.unsupported;
    if (!first) return this.refused;
    const { entry, node, op, reason } = first, others = more.length ? `, and ${more.length} nodes more` : '';
    return new RlxError('unsupported', `${this.device.name} cannot compute ${node} of entry ${entry}: ${reason}${others}`, { op, node });
  }

  /** The numbers of nodes by level, and a line for each node that is unsupported. */
  toString(): string {
    const { device: { name }, rows, refused, unsupported } = this, counts: Record<string, number> = {};
    for (const { level } of rows) counts[level] = (counts[level] ?? 0) + 1;
    const head = refused ? `${name} refuses the module, and none of its ${rows.length} nodes` : unsupported[0] ? `${name} cannot compute ${unsupported.length} of ${rows.length} nodes` : `${name} computes all ${rows.length} nodes`;
    const levels = ['native', 'claimed', 'decomposed', 'unsupported'].flatMap((level) => counts[level] ? [`${counts[level]} ${level}`] : []);
    return [`${head}: ${levels.join(', ') || 'it has none'}`, ...refused ? [`  ${refused.message}`] : [], ...unsupported.map(({ entry, node, reason }) => `  ${entry}: ${node}: ${reason}`)].join('\n');
  }

  /** The report as the Go package writes it. */
  toJSON() {
    const { device: { name, description }, rows, refused } = this;
    return {
      device: name, description, computes: !this.error, ...refused && { refused: refused.message },
      rows: rows.map(({ entry, node, level, reason }) => ({ entry, node, level, ...reason && { reason } })),
    };
  }
}

/** What is compiled, with all sizes. @internal */
export interface Subject { job: Job; check(): void }

/** The size of a symbol for which the module gives none. */
const symbolSize = 16;

/** Reads what is reported on, once for several devices. @internal */
export async function subjectOf(what: string, given: Reported): Promise<Subject> {
  const check = openCheck(), source: ModuleSource = given instanceof Graph ? { entries: { [given.name]: given } } : given;
  const job = await ofGraphs(what, source, (made: Module) => {
    const graphs = Object.values(Object(made?.entries)).map((one) => typeof one === 'string' ? parseGraph(one) : one).filter((one) => one instanceof Graph);
    const symbols = Object.fromEntries(graphs.flatMap(({ symbols }) => symbols.map((name) => [name, symbolSize])));
    return jobOf({ ...made, symbols: { ...symbols, ...made?.symbols } });
  });
  return { job, check };
}

/** The kinds of errors by which a compiler, or a device, refuses a module. */
const refusals = ['unsupported', 'limit', 'memory', 'device'];

/** The report of a subject for a target. `fits` throws if the device cannot run a plan file. */
async function reportOf({ job, check }: Subject, device: DeviceInfo, given: Partial<Job>, fits?: (file: Uint8Array) => Promise<void>): Promise<DeviceReport> {
  const own = { ...job, ...given };
  let file: Uint8Array | undefined, refused: RlxError | undefined;
  try {
    file = await compileJob({ job: own, check }, {}); // kept, and taken again when the module is opened
    await fits?.(file);
  } catch (reason) {
    if (!(reason instanceof RlxError) || !refusals.includes(reason.kind)) throw reason;
    refused = reason;
  }
  const { rows, work } = await call('report', own, !!file);
  return new DeviceReport(device, rows, rows.some(({ level }) => level === 'unsupported') ? undefined : refused, work);
}

/** The report of a subject for a device. @internal */
export function reportFor(subject: Subject, { info, from }: Found): Promise<DeviceReport> {
  const { limits } = subject.job;
  return reportOf(subject, info, from ? { targets: ['webgpu'], limits: { device: adapterText(from), ...limits } } : { targets: [cpuTarget()] }, async (file) => {
    const { checkMemory } = await import('../host/memory.js'), whole = decodePlan(file), plan = from ? pickVariant(whole, from) : whole;
    if (!from && !WebAssembly.validate(plan.code!)) throw new RlxError('device', 'WebAssembly refuses the code of the plan');
    checkMemory(plan, 1, undefined);
    if (!from) checkMemory(plan, 1, 2 ** 32);
  });
}

/**
 * How a device of this page or process computes each node of a module. A node counts as computed only if the compiler accepts it, and
 * the module only if the device has the limits and the memory for its plan. Sizes that the module gives to no symbol count as 16.
 * Rejects with an {@link RlxError}: `name` for an unknown device, `device` for one that is not usable.
 *
 * ```ts
 * const report = await reportOn(model, 'webgpu');
 * if (report.error) console.log(`${report}`);
 * ```
 */
export async function reportOn(module: Reported, device: DeviceName, options?: DeviceOptions): Promise<DeviceReport> {
  const found = await usable(device, checked('reportOn', options));
  return reportFor(await subjectOf('reportOn', module), found);
}

/**
 * How plans for a target compute each node of a module, whatever devices are here: for a build, say. The limits are those of the module.
 * Rejects with an {@link RlxError} of kind `name` for an unknown target.
 */
export async function reportTarget(module: Reported, target: Target): Promise<DeviceReport> {
  checkWord('target', target, targets.join(' '));
  const gpu = target === 'webgpu', device: DeviceInfo = { name: gpu ? 'webgpu' : 'cpu', description: `target ${target}`, on: gpu ? 'gpu' : 'cpu', software: !gpu, error: undefined };
  return reportOf(await subjectOf('reportTarget', module), device, { targets: [target] });
}
