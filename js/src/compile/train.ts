import { type DeviceOptions, requestAdapter, infoOf } from '../gpu/device.js';
import { onAverages } from '../graph/averages.js';
import { asyncAtCaller } from '../graph/caller-stack.js';
import { Graph, type Parts, type Port, type StepOptions } from '../graph/graph.js';
import { type Initial } from '../graph/initial.js';
import { declaredParams, initialParams } from '../graph/params.js';
import type { Program } from '../program/program.js';
import type { BySymbol, GraphTypes, Name, OutputNames, PlanFile, Some, StepTypes, TypesOfGraphs, ValueNames } from '../program/types.js';
import { checkPlace, openProgram, type Place, programOptions, type ProgramOptions } from '../runtime/open.js';
import { Trainer } from '../runtime/trainer.js';
import { checkCount, checkOptions, checkWord, classOf, need, RlxError, unknownName } from '../values/errors.js';
import { nextMessage } from '../values/task.js';
import { call, freshCompiler, initOptions, type Job, type Limits, openCheck, plan, planCache, requirementsOf, type Target, targets as allTargets } from './compiler.js';
import { built, builtEach } from './journal.js';
import { compileThere } from './service.js';
import { compileTuned, type TuneOptions } from './tune.js';

/** Graphs that are compiled together: entries share parameters and states. */
export interface Module {
  /** The plan's name, `main` by default. */
  name?: string;
  /** Graphs, or their text form. */
  entries: Readonly<Record<string, Graph | string>>;
  /** The sizes of symbolic dimensions. */
  symbols?: Readonly<Record<string, number>>;
  /** The device's capabilities; by default those of every WebGPU device. */
  limits?: Limits;
  /** Several targets, for one file: a program runs the first that the device allows. */
  targets?: readonly Target[];
  /** `webgpu` if not given. `wasm` is for every browser's CPU, `wasm-relaxed` for those with relaxed SIMD, which is faster. */
  target?: Target;
  /**
   * Times the candidate schedules of each group of kernels on the page's GPU and uses the fastest. This takes
   * seconds to minutes, once: results are stored in IndexedDB, by group and device; with all results stored,
   * compiling takes about twice as long as untuned. Plans then differ between devices. WebAssembly is not tuned.
   */
  tune?: boolean | TuneOptions;
}

export interface ModuleProgramOptions extends ProgramOptions {
  /** `best` if not given, which takes the CPU rather than a software GPU: it is faster. */
  on?: Place;
}

/** The job of a module whose options are checked; the symbols are those of `graphs`, its entries if not given. @internal */
export function jobOf(module: Module, graphs?: Module['entries']): Job {
  checkOptions('a module', module, 'name entries symbols limits target targets tune');
  const { name = 'main', entries, symbols = {}, limits = {}, target, targets = [target ?? 'webgpu'] } = module ?? {};
  if (target !== undefined && module.targets) throw new RlxError('attr', `a module: target is '${target}' and targets are given: give one of them`, { name: 'target' });
  if (!Array.isArray(targets) || !targets.length) throw new RlxError('attr', `a module: targets are ${classOf(targets)}: they must be a list of one or more`, { name: 'targets' });
  for (const one of targets) checkWord('target', one, allTargets.join(' '));
  if (new Set(targets).size < targets.length) throw new RlxError('attr', `a module: targets are ${targets.join(', ')}: each is given once`, { name: 'targets' });
  if (typeof name !== 'string') throw new RlxError('attr', `a module: the name is ${classOf(name)}: it must be a text`, { name: 'name' });
  checkLimits(limits);
  if (Object(entries) !== entries) throw new RlxError('missing', `the entries of a module are ${classOf(entries)}: they must be graphs by name`);
  const texts = Object.entries(entries).map(([entry, graph]) => ({ name: entry, text: textOf(entry, graph) }));
  if (!texts.length) throw new RlxError('missing', 'a module has no entries: they must be graphs by name');
  checkSymbols(symbols, Object.values(graphs ?? entries));
  return { name, entries: texts, symbols, limits, targets };
}

/** Refuses sizes of symbols that no graph has, and symbols without a size; of a text they are not known. */
function checkSymbols(symbols: NonNullable<Module['symbols']>, graphs: readonly (Graph | string)[]): void {
  if (!graphs.every((graph) => graph instanceof Graph)) return;
  const known = new Set(graphs.flatMap((graph) => graph.symbols));
  for (const name of Object.keys(symbols)) if (!known.has(name)) throw unknownName('symbols: the module has no symbol', name, known);
  const open = [...known].find((name) => symbols[name] === undefined);
  if (open !== undefined) throw new RlxError('symbol', `symbols: size ${open} has no value: give one in symbols, or leave it open with openSizes of @rlx-go/rlx/sizes`, { name: open });
}

function textOf(entry: string, graph: Graph | string): string {
  if (typeof graph === 'string') return graph;
  if (graph instanceof Graph) return graph.text();
  throw new RlxError('missing', `entry ${entry} is ${classOf(graph)}: it must be a graph or its text`, { name: entry });
}

/**
 * A module, or a function that returns one: its graphs are then built by answers that were kept, if it builds the same graphs as
 * on an earlier visit, and the compiler is not loaded. The function may be called twice, must return at once, and must
 * build all graphs of the module.
 */
export type ModuleSource<G extends Module['entries'] = Module['entries']> = ModuleOf<G> | (() => ModuleOf<G>);

/** A module with the types of its entries. */
export type ModuleOf<G extends Module['entries']> = Omit<Module, 'entries' | 'symbols'> & { entries: G; /** The sizes of symbolic dimensions. */ symbols?: BySymbol<TypesOfGraphs<G>, number> };

/** Compiles graphs to a plan file, which {@link openProgram} runs, here or in a page without the compiler. */
export async function compile<const G extends Module['entries'] = Module['entries']>(module: ModuleSource<G>): Promise<PlanFile<TypesOfGraphs<G>>> {
  return asyncAtCaller(compile, async () => {
    const check = openCheck(), { job, tune } = await ofGraphs('compile', module as ModuleSource, (made: Module) => ({ job: jobOf(made), tune: made.tune }));
    return compileJob({ job, tune, check }, initOptions());
  });
}

/**
 * The plan files of a module: one for each device with extra capabilities, then one for each
 * target it does not name; and the values computed from its graphs. @internal
 */
export async function compileAll<T>(module: ModuleSource, otherwise: readonly Target[], levels: readonly Limits[], use: (made: Module) => T): Promise<{ files: Uint8Array[]; starts: T }> {
  const check = openCheck(), { job, starts } = await ofGraphs('ahead', module, (made: Module) => ({
    job: jobOf(made.target || made.targets ? made : { ...made, targets: otherwise }), starts: use(made),
  }));
  for (const level of levels) checkLimits(level);
  const more = job.targets.includes('webgpu') ? levels.map((level): Job => ({ ...job, limits: { ...job.limits, ...level }, targets: ['webgpu'] })) : [];
  const files: Uint8Array[] = [];
  for (const one of [...more, ...job.targets.map((target): Job => ({ ...job, targets: [target] }))]) files.push(await compileJob({ job: one, check }, {}));
  return { files, starts };
}

/** What is computed of the graphs of a source. @internal */
export const ofGraphs = <S, T>(what: string, source: S | (() => S), use: (made: S) => T): Promise<T> => built(what, source, planCache(), freshCompiler, use);

/** The ports and texts of graphs, which are built in parts, each in a task of its own. @internal */
export async function graphTexts(makers: Readonly<Record<string, () => Parts<Graph>>>): Promise<{ name: string; ports: readonly Port[]; text: string }[]> {
  const check = openCheck(), all = Object.values(makers), made = await builtEach('program', all.join(), all, planCache(), freshCompiler, (graph) => ({ ports: graph.ports, text: graph.text() }));
  check();
  return Object.keys(makers).map((name, i) => ({ name, ...made[i]! }));
}

/** What is to be compiled; `check` throws once the compiler is closed. */
interface Work { job: Job; tune?: Module['tune']; check(): void; /** Plan files made before, by limits and targets. */ made?: Map<string, Uint8Array<ArrayBuffer>> }

/** Compiles, after tuning on a device if requested and useful, or takes a plan that is kept. @internal */
export async function compileJob({ job, tune, check, made }: Work, where: DeviceOptions): Promise<Uint8Array<ArrayBuffer>> {
  const key = made && JSON.stringify([job.limits, job.targets]), found = key && made.get(key);
  if (found) return found;
  const make = () => {
    check();
    if (tune && job.targets[0] === 'webgpu') return compileTuned(job, tune === true ? {} : tune, where);
    const { compileAt } = initOptions();
    return compileAt === undefined ? call('compile', job) : compileThere(compileAt, job);
  };
  const file = await (tune ? make() : plan(job, make));
  if (key) made.set(key, file);
  return file;
}

/**
 * A program on graphs, on the device of {@link init} unless the options have another. Without WebGPU it runs on
 * the CPU, and `fallbackReason` has the reason. Parameters with a declared initial value have it; others must be loaded before a
 * run that uses them, as by {@link initialParams}, which draws all.
 */
export async function program<const G extends Module['entries'] = Module['entries']>(module: ModuleSource<G>, options: ModuleProgramOptions = {}): Promise<Program<TypesOfGraphs<G>>> {
  return asyncAtCaller(program, () => programOn(module as ModuleSource, options) as Promise<Program<any>>);
}

async function programOn(module: ModuleSource, options: ModuleProgramOptions): Promise<Program> {
  checkOptions('program', options, programOptions);
  const check = openCheck(), { job, tune, begin } = await ofGraphs('program', module, (made: Module) => ({
    job: jobOf(made), tune: made.tune, begin: declaredParams(made.entries, made.symbols),
  }));
  const made = await openJob({ job, tune, check }, options ?? {});
  try {
    await made.load(begin, { allowMissing: true });
  } catch (reason) {
    made.close();
    throw reason;
  }
  return made;
}

/** A program on graphs in their text form. Nothing is known of how their parameters begin. @internal */
export const programOfTexts = (name: string, entries: Job['entries'], limits: Limits, options: ModuleProgramOptions): Promise<Program> =>
  openJob({ job: { name, entries, symbols: {}, limits, targets: ['webgpu'] }, check: openCheck() }, options);

/** The plan file that {@link programOfTexts} would open, without a program. @internal */
export async function planOfTexts(name: string, entries: Job['entries'], limits: Limits, options: ModuleProgramOptions): Promise<Uint8Array<ArrayBuffer>> {
  const where = withDefaults(options), from = await prefersGPU(options) ? where.device ?? await requestAdapter(where) : undefined;
  const job: Job = { name, entries, symbols: {}, limits: { ...from && { device: adapterText(from) }, ...limits }, targets: [from ? 'webgpu' : cpuTarget()] };
  return compileJob({ job, check: openCheck() }, where);
}

/** Refuses unknown limits, and values that are no counts. */
function checkLimits(limits: Limits): void {
  const counts = 'maxStorageBuffersPerShaderStage maxStorageBufferBindingSize maxBufferSize maxComputeWorkgroupStorageSize maxComputeInvocationsPerWorkgroup subgroup';
  checkOptions('limits', limits, `f16 device ${counts}`);
  if (typeof (limits?.device ?? '') !== 'string') throw new RlxError('attr', `limits.device is ${classOf(limits.device)}: it must be a text`, { name: 'device' });
  for (const [name, n] of Object.entries(limits ?? {})) if (counts.includes(name) && n !== undefined) checkCount(`limits.${name}`, n, 0);
}

const trainingOptions = 'optimizer loss schedule frozen groups policy name constantKeys allowUnreached measureNorm history precision rate entries evalAverages params seed symbols limits tune';

/** Opens a program on a job: one that recovers, if asked to, and after a loss again, compiled for the device that is there then. */
async function openJob(work: Work, { recover, ...options }: ModuleProgramOptions): Promise<Program> {
  if (!recover) return openOnce(work, options);
  const recovery = await import('../runtime/recover.js').catch(() => console.warn('rlx: what recovers from a lost device cannot be loaded; training will not')); // offline, for one
  if (!recovery) return openOnce(work, options);
  const again: Work = { ...work, made: new Map() }, { device, worker = false } = withDefaults(options);
  return recovery.openRecovering((given) => openOnce(again, { ...options, ...given }), { recover, worker, ...device && { device } });
}

async function openOnce(work: Work, { on = 'best', ...given }: ModuleProgramOptions): Promise<Program> {
  checkPlace(on);
  const options = withDefaults(given), { job } = work, of = (from: GPUAdapter | GPUDevice): Work => ({ ...work, job: { ...job, limits: { device: adapterText(from), ...job.limits } } });
  if (on === 'cpu') return openOnCPU(work, given);
  try {
    const from = options.device ?? await requestAdapter(options);
    if (on === 'best' && !options.device && isSoftware(from)) throw new RlxError('device', 'the GPU here is software on the CPU');
    return await openProgram(await compileJob(of(from), options), options);
  } catch (reason) {
    if (on === 'gpu' || !(reason instanceof RlxError) || reason.kind !== 'device') throw reason;
    return Object.assign(await openOnCPU(work, given), { fallbackReason: reason.message });
  }
}

/** Whether a program with these options runs on a GPU by default: there is one, and it is not software. @internal */
export async function prefersGPU(given: ModuleProgramOptions): Promise<boolean> {
  const { on = 'best', ...rest } = given;
  if (on !== 'best') return on === 'gpu';
  const adapter = await requestAdapter(withDefaults(rest)).catch(() => undefined);
  return !!adapter && !isSoftware(adapter);
}

/** The threads of a subgroup for which products of one row with packed weights have kernels. */
const warp = 32;
/** The most arrays of a kernel that language models gain by: with 12 a token takes 275 kernels instead of 329 with 8, and no fewer with 16. */
const mostArrays = 12;

/** The limits of the GPU of a program with these options that make its products of one row faster. @internal */
export async function limitsHere({ on, ...rest }: ModuleProgramOptions): Promise<Limits> {
  const options = withDefaults(rest), from = on === 'cpu' ? undefined : options.device ?? await requestAdapter(options).catch(() => undefined);
  const { subgroupMinSize, subgroupMaxSize } = from ? infoOf(from) : {}, { features } = requirementsOf({ subgroup: warp });
  if (subgroupMinSize !== warp || subgroupMaxSize !== warp || !features.every((name) => from!.features.has(name as GPUFeatureName))) return {};
  return { subgroup: warp, maxStorageBuffersPerShaderStage: Math.min(from!.limits.maxStorageBuffersPerShaderStage, mostArrays) };
}

/** Whether an adapter computes on the CPU, as SwiftShader, Mesa's llvmpipe and Windows' basic driver do. @internal */
export const isSoftware = (from: GPUAdapter | GPUDevice): boolean => !!infoOf(from).isFallbackAdapter || /swiftshader|llvmpipe|basic render/i.test(adapterText(from));

/** The names that an adapter reports, by which the compiler finds its profile. @internal */
export function adapterText(from: GPUAdapter | GPUDevice): string {
  const { vendor, architecture, device, description } = infoOf(from);
  return [vendor, architecture, device, description].join(' ');
}

/** A function with relaxed SIMD instructions: it validates only where those are supported. */
const relaxedModule = Uint8Array.of(
  0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 20, 1, 18, 0,
  65, 0, 253, 17, 65, 0, 253, 17, 65, 0, 253, 17, 253, 133, 2, 26, 11,
);

/** The target of plans for the CPU here. @internal */
export const cpuTarget = (): Target => WebAssembly.validate(relaxedModule) ? 'wasm-relaxed' : 'wasm';

/** Compiles for the CPU and opens a program there, in a worker unless that is not wanted. */
async function openOnCPU({ job, check, made }: Work, { worker = initOptions().worker ?? true, device, gpu, ...options }: ProgramOptions): Promise<Program> {
  const own: Work = { job: { ...job, targets: [cpuTarget()] }, check, ...made && { made } };
  return openProgram(await compileJob(own, {}), { ...options, worker: typeof Worker === 'function' && worker, on: 'cpu' });
}

/**
 * The options with the defaults of `init`: programs run in a worker if workers are available and
 * the page passes no device. @internal
 */
export function withDefaults(given: ProgramOptions): ProgramOptions {
  const { gpu, device, powerPreference, worker } = initOptions();
  const options = { ...gpu && { gpu }, ...device && { device }, ...powerPreference && { powerPreference }, ...given };
  need((options.device ?? { limits: true } as { limits?: unknown }).limits, 'attr', 'device', 'a GPUDevice; "on" says where a program runs', options.device);
  return { worker: worker ?? (!options.gpu && !options.device && typeof Worker === 'function'), ...options };
}

export interface TrainingOptions<G extends Readonly<Record<string, Graph>> = Readonly<Record<string, Graph>>, T extends GraphTypes = any, L extends string = string, A extends Readonly<Record<string, Graph>> = {}> extends StepOptions<L>, ModuleProgramOptions {
  /** The number of losses to keep on the device, so that all are reported. 64 if not given, 0 for none. */
  history?: number;
  /** The learning rate without a schedule, 0.001 if not given: the input `lr`, to be changed by `trainer.program.bind('step', { lr })`. */
  rate?: number;
  /** Additional entries, such as `eval`: a function that builds them, where the graph is one, too. */
  entries?: G | (() => G);
  /** Additional entries that read the averages of the trained parameters, {@link UpdateOptions.average}, in place of the parameters. */
  evalAverages?: A | (() => A);
  /** Initial values of parameters that override their declarations. */
  params?: Some<ValueNames<T>, Initial>;
  /** The seed of random parameters. 0 if not given. */
  seed?: number;
  /** The sizes of symbolic dimensions. */
  symbols?: BySymbol<{ readonly step: T } & TypesOfGraphs<G> & TypesOfGraphs<A>, number>;
  limits?: Limits;
  /** See {@link Module.tune}. */
  tune?: boolean | TuneOptions;
}

/**
 * Makes a training step of a graph that has a loss, compiles it, opens a program and sets the
 * parameters. A function that returns the graph is for pages without the compiler, as in {@link ModuleSource}.
 *
 * ```ts
 * const trainer = await train(model, { optimizer: { kind: 'adam' }, rate: 1e-3 });
 * await trainer.run({ steps: 1000, batches: batches({ x, labels }, { size: 32, shuffle: 1 }) });
 * ```
 */
export async function train<T extends GraphTypes, const G extends Readonly<Record<string, Graph>> = {}, L extends string = string, const A extends Readonly<Record<string, Graph>> = {}>(
  graph: Graph<T> | (() => Graph<T>), options: TrainingOptions<G, T, Name<L, OutputNames<T>>, A>,
): Promise<Trainer<{ readonly step: StepTypes<T> } & TypesOfGraphs<G> & TypesOfGraphs<A>>> {
  return asyncAtCaller(train, () => trainerOf(graph, options as TrainingOptions) as Promise<Trainer<any>>);
}

type Entries = TrainingOptions['entries'];

/** The entries besides the step, those that read averages of the optimizer of a name last. */
function furtherEntries(entries: Entries, evalAverages: Entries, step: Graph, optimizer?: string): Record<string, Graph> {
  const made = (given: Entries) => typeof given === 'function' ? given() : given ?? {}, all: Record<string, Graph> = { ...made(entries) };
  for (const [entry, graph] of Object.entries(made(evalAverages))) {
    if (entry === 'step' || Object.hasOwn(all, entry)) throw new RlxError('name', `evalAverages: there is another entry ${entry}`, { name: entry });
    if (!(graph instanceof Graph)) throw new RlxError('missing', `evalAverages: entry ${entry} is ${classOf(graph)}: it must be a graph`, { name: entry });
    all[entry] = onAverages(entry, graph, step, optimizer);
  }
  return all;
}

/** Refuses the optimizer `sophia` without an entry that updates its curvature, which would stay 0. */
function checkCurvature({ optimizer, groups = [] }: TrainingOptions, entries: readonly Graph[]): void {
  if (![optimizer, ...groups.map((group) => group.optimizer)].some((one) => one?.kind === 'sophia')) return;
  if (entries.some(({ outputs }) => outputs?.some(({ name, state }) => state && /^optim\/(.*:)?h\//.test(name)))) return;
  throw new RlxError('graph', 'train: no entry updates the curvature of the optimizer sophia: entries must have the graph of graph.curvature', { name: 'entries' });
}

async function trainerOf(source: Graph | (() => Graph), options: TrainingOptions): Promise<Trainer> {
  checkOptions('train', options, `${trainingOptions} ${programOptions}`);
  const { optimizer, loss = 'loss', schedule, frozen, groups, policy, name, constantKeys, allowUnreached, measureNorm, history = 64, precision, rate, entries, evalAverages, params = {}, seed = 0, symbols = {}, limits = {}, tune = false, recover, ...rest } = options ?? {} as TrainingOptions;
  if (!(source instanceof Graph || typeof source === 'function')) throw new RlxError('missing', `train: the first argument is ${classOf(source)}: it must be a graph`);
  if (rate !== undefined && schedule) throw new RlxError('attr', `train: rate is ${rate}, and the schedule is '${schedule.kind}' with a rate of its own: give one of them`, { name: 'rate' });
  if (rate !== undefined && !(typeof rate === 'number' && rate >= 0 && rate < Infinity)) throw new RlxError('attr', `rate is ${typeof rate === 'number' ? rate : classOf(rate)}: a learning rate is a finite number from 0 on`, { name: 'rate' });
  const check = openCheck();
  /** Leaves the thread to other tasks, where graphs do not have to be made at once. */
  const pause = async () => {
    if (!(source instanceof Graph)) return;
    await nextMessage();
    check();
  };
  await pause(); // the caller may have built the graph in this task
  const derived = (graph: Graph) => {
    if (!(graph instanceof Graph)) throw new RlxError('missing', `train: the function returns ${classOf(graph)}: it must return a graph`);
    const bound = Object.keys(symbols).length > 0 ? graph.bind(symbols) : graph;
    const step = bound.step({ optimizer, loss, history, ...schedule && { schedule }, ...frozen && { frozen }, ...groups && { groups }, ...policy && { policy }, ...name && { name }, ...constantKeys && { constantKeys }, ...allowUnreached && { allowUnreached }, ...measureNorm && { measureNorm }, ...precision && { precision } });
    return { graph, bound, step };
  };
  const finished = ({ graph, bound, step }: ReturnType<typeof derived>) => {
    const more = furtherEntries(entries, evalAverages, step, name);
    checkCurvature(options, Object.values(more));
    const starts = source instanceof Graph ? undefined : initialParams(bound, params, seed);
    return { job: jobOf({ name: graph.name, entries: { step, ...more }, symbols, limits, tune }, { graph, ...more }), bound, starts };
  };
  const parts = source instanceof Graph ? derived(source) : undefined;
  if (parts) await pause();
  const { job, bound, starts } = parts ? finished(parts) : await ofGraphs('train', source, (graph) => finished(derived(graph)));
  await pause();
  const begin = starts ?? initialParams(bound, params, seed);
  const made = await openJob({ job, tune, check }, { recover: recover ?? !withDefaults(rest).device, ...rest });
  try {
    await made.load(begin, { allowMissing: true }); // of other entries
    if (!schedule) await made.bind('step', { lr: rate ?? 1e-3 });
  } catch (reason) {
    made.close();
    throw reason;
  }
  return new Trainer(made, { loss });
}
