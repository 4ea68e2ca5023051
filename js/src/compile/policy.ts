// Which device a module runs on: the fastest that can compute it, or the first of a list.

import type { DeviceOptions } from '../gpu/device.js';
import type { Program } from '../program/program.js';
import type { TypesOfGraphs } from '../program/types.js';
import { programOptions } from '../runtime/open.js';
import { checkOptions, need, RlxError } from '../values/errors.js';
import { estimate, ratesOf } from './calibrate.js';
import type { Work } from './compiler.js';
import { checked, deviceNames, type DeviceInfo, findDevice, type Found, usable } from './device.js';
import { type DeviceReport, type Reported, reportFor, type Subject, subjectOf } from './report.js';
import { type Module, type ModuleProgramOptions, type ModuleSource, program } from './train.js';

/** Which devices may be used, and the order in which they are tried. An empty policy is the fastest usable device first. */
export interface DevicePolicy {
  /** The devices to use, the first choice first. */
  only?: readonly string[];
  /** Devices to try before all others, in order. No effect with `only`. */
  prefer?: readonly string[];
  /** Devices not to use. */
  deny?: readonly string[];
}

export interface ChooseOptions extends DeviceOptions {
  /**
   * A policy, or a list such as `'webgpu,cpu'`: see {@link parsePolicy}. If not given it is, in Node, Deno and Bun, the list of
   * the environment variable `RLX_DEVICE`, and else the fastest device.
   */
  devices?: string | DevicePolicy;
}

/**
 * The policy of a list as the variable `RLX_DEVICE` has it, separated by commas: names are the devices to use in order, a name after
 * a minus sign is denied, and `auto` is any device. `'webgpu,cpu'` is WebGPU if it is usable, `'-webgpu'` any other device, `'cpu,auto'` prefers the CPU.
 * Devices of Go, such as `cuda`, may be in a list: they are not here. Throws an {@link RlxError} of kind `name` for a list with an empty name.
 */
export function parsePolicy(list: string): DevicePolicy {
  need(typeof list === 'string', 'attr', 'the list of devices', 'a text', list);
  const names = list.split(',').map((name) => name.trim()), only = names.filter((name) => name !== 'auto' && !name.startsWith('-'));
  if (names.some((name) => !name || name === '-')) throw new RlxError('name', `the list of devices '${list}' has an empty name: it must be of the form 'webgpu,cpu'`);
  const deny = names.flatMap((name) => name.startsWith('-') ? [name.slice(1)] : []);
  return { ...only[0] && { [names.includes('auto') ? 'prefer' : 'only']: only }, ...deny[0] && { deny } };
}

/** The policy of the options, or of the environment. */
function policyOf(given: string | DevicePolicy | undefined): DevicePolicy {
  const list = given ?? ((globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.RLX_DEVICE || {});
  if (typeof list === 'string') return parsePolicy(list);
  need(Object(list) === list, 'attr', 'devices', 'a list such as webgpu,cpu, or a policy', list);
  checkOptions('devices', list, 'only prefer deny');
  for (const [name, names] of Object.entries(list)) if (names) need(Array.isArray(names) && names.every((one) => typeof one === 'string'), 'attr', `devices.${name}`, 'a list of names', names);
  return list;
}

/** A rough rank of usable devices, the fastest first, where no rates are known: a GPU in software is slower than the CPU. */
const rank = ({ on, software }: DeviceInfo): number => on === 'cpu' ? 1 : software ? 2 : 0;

/** Sorts usable devices, the fastest first: by rates if all have them, for some work or for products. */
async function sorted(all: readonly Found[], workOf?: () => Promise<readonly Work[]>): Promise<Found[]> {
  const rates = await Promise.all(all.map(({ info }) => ratesOf(info))), work = rates.every(Boolean) ? await workOf?.() : undefined;
  const costs = new Map(all.map((one, i) => {
    const known = rates.every(Boolean) && rates[i];
    return [one, !known ? rank(one.info) : work ? estimate(known, work) : 1 / known.operations];
  }));
  return [...all].sort((a, b) => costs.get(a)! - costs.get(b)!);
}

/** The usable devices. */
const usableDevices = async (options: DeviceOptions): Promise<Found[]> => (await Promise.all(deviceNames.map((name) => findDevice(name, options)))).filter(({ info }) => !info.error);

/** The reports of devices on one subject, each made once. */
class Reports {
  readonly #subject: Subject;
  readonly #made = new Map<string, Promise<DeviceReport>>();

  constructor(subject: Subject) { this.#subject = subject; }

  of(found: Found): Promise<DeviceReport> {
    const { name } = found.info, made = this.#made.get(name) ?? reportFor(this.#subject, found);
    this.#made.set(name, made);
    return made;
  }

  /** Devices in the order of the estimated time. */
  async sorted(all: readonly Found[]): Promise<Found[]> {
    return sorted(all, async () => (await this.of(all[0]!)).work); // which is that of any device
  }
}

/**
 * The reports of all usable devices, the fastest first. Those that can compute the module are those without an `error`. The order is by the estimated time
 * of the module if all usable devices have rates ({@link calibrate}); else a GPU, the CPU, and a GPU in software.
 */
export async function devicesFor(module: Reported, options?: DeviceOptions): Promise<DeviceReport[]> {
  const given = checked('devicesFor', options), reports = new Reports(await subjectOf('devicesFor', module)), made: DeviceReport[] = [];
  for (const found of await reports.sorted(await usableDevices(given))) made.push(await reports.of(found));
  return made;
}

/** The usable device with the highest rate of products, if all usable devices have rates; else a GPU, the CPU, or a GPU in software. Rejects with kind `device` if there is none. */
export async function fastest(options?: DeviceOptions): Promise<DeviceInfo> {
  const [first] = await sorted(await usableDevices(checked('fastest', options)));
  if (!first) throw new RlxError('device', 'no device is usable here: there is neither WebGPU nor SIMD in WebAssembly');
  return first.info;
}

/** Why devices were passed over, as one error. */
function none(reasons: readonly RlxError[]): RlxError {
  const kinds = reasons.map(({ kind }) => kind), [first] = kinds.filter((kind) => kind !== 'name' && kind !== 'device');
  return new RlxError(first ?? (kinds.includes('device') ? 'device' : 'name'), reasons.map(({ message }) => message).join('; '), { cause: new AggregateError(reasons) });
}

/**
 * The report of the first device, in the order of the policy, that is usable and can compute all of a module. `device.on` is the option with
 * which `program` and `train` run there. Rejects with an {@link RlxError} that has the reasons of all devices: of kind `unsupported` (or `limit`, `memory`) if one cannot
 * compute the module, `device` for one that is not usable, `name` for an unknown one, or a policy that denies all.
 */
export async function chooseFor(module: Reported, given?: ChooseOptions): Promise<DeviceReport> {
  checkOptions('chooseFor', given, 'devices gpu device powerPreference');
  const { devices, ...options } = given ?? {}, policy = policyOf(devices), reports = new Reports(await subjectOf('chooseFor', module)), reasons: RlxError[] = [];
  for (const name of await orderOf(policy, reports, options)) {
    const found = await usable(name, options).catch((reason: RlxError) => {
      if (!passedOver.includes(reason.kind)) throw reason;
      reasons.push(reason);
    });
    const report = found && await reports.of(found), error = report?.error;
    if (report && !error) return report;
    if (error) reasons.push(error);
  }
  if (!reasons[0]) throw new RlxError('name', `the policy denies every device: it must allow one of ${deviceNames.join(', ')}`);
  throw none(reasons);
}

/** The kinds of errors of devices that are unknown or not usable. */
const passedOver = ['name', 'device'];

/** The names of the devices to try. Those that are not usable come last, unless the policy names them: they are tried for their error. */
async function orderOf({ only, prefer = [], deny = [] }: DevicePolicy, reports: Reports, options: DeviceOptions): Promise<string[]> {
  const usableFirst = only ?? [...prefer, ...(await reports.sorted(await usableDevices(options))).map(({ info }) => info.name), ...deviceNames];
  return [...new Set<string>(usableFirst)].filter((name) => !deny.includes(name) && !deny.includes(name.split(':')[0]!));
}

/**
 * A program on the first device, in the order of the policy, that can compute the module: {@link program} there. The errors are those of
 * {@link chooseFor} and of `program`.
 *
 * ```ts
 * const opened = await openFor({ entries: { model } }, { devices: 'webgpu,cpu' });
 * ```
 */
export async function openFor<const G extends Module['entries'] = Module['entries']>(module: ModuleSource<G>, given?: Omit<ModuleProgramOptions, 'on'> & ChooseOptions): Promise<Program<TypesOfGraphs<G>>> {
  checkOptions('openFor', given, `devices ${programOptions.replace('on ', '')}`);
  const { devices, ...options } = given ?? {}, { gpu, device, powerPreference } = options;
  const report = await chooseFor(module as ModuleSource, { ...devices !== undefined && { devices }, ...gpu && { gpu }, ...device && { device }, ...powerPreference && { powerPreference } });
  return program(module, { ...options, on: report.device.on });
}
