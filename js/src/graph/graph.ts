import type { BySymbol, GradTypes, GraphTypes, HessianTypes, HVPTypes, InScope, JacobianTypes, JetTypes, JVPTypes, Name, NthTypes, OutputNames, PortNames, Some, StepTypes, ValueAndGradTypes, ValueNames, VJPTypes } from '../program/types.js';
import type { DType } from '../values/dtype.js';
import { checkOptions, checkWord, classOf, need, RlxError, shown } from '../values/errors.js';
import { compiler, invoke, release } from '../wasm/compiler.js';
import type { Answerer } from '../wasm/module.js';
import { Request, type Response } from '../wasm/wire.js';
import { atCaller, callBack, methodsAtCaller } from './caller-stack.js';
import { checkFunction, GraphBuilder, Value } from './builder.js';
import type { Initial } from './initial.js';
import { type InitialRule, parseRule } from './rule.js';
import { hyperOf, type Optimizer, type Policy, stepRequest, type StepOptions, wordsOf } from './step.js';
import { type Dim, dimOf, type ValueType } from './types.js';

export type { Moments, Optimizer, ParamGroup, Policy, Schedule, StepOptions, UpdateOptions, UpdateRule } from './step.js';

/** An input, a parameter or a state of a graph. */
export interface Port extends ValueType {
  readonly name: string;
  readonly kind: 'input' | 'param' | 'state';
  /** The declared rule for the initial value; see also {@link Graph.initial}. */
  readonly initial?: InitialRule;
  /** Whether training does not change it. */
  readonly frozen: boolean;
  /** Whether the default initial value is ones: the scale of a norm, and the running variance of a batch norm. */
  readonly ones: boolean;
}

/** An output of a graph; a state's is its new value. */
export interface Output extends ValueType {
  readonly name: string;
  readonly state: boolean;
}

/** Options of {@link Graph.gradWith}. */
export interface GradOptions<V extends string = string, B extends string = string> {
  /** An output of rank 0. */
  output: V;
  /** All parameters if not given. */
  by?: readonly B[];
  /** The gradient by a port that the output does not depend on: an error if not given. */
  missing?: 'error' | 'zero';
  /** All that is needed is kept if not given. */
  policy?: Policy;
  /** Leaves out the graph's own outputs. */
  dropOutputs?: boolean;
}

// Graphs that are garbage are freed some time later.
const dropped = new FinalizationRegistry<{ instance: Answerer; handle: number }>(({ instance, handle }) => release(instance, handle));

/**
 * A graph. It is immutable: each method returns another graph. Methods throw an {@link RlxError} for invalid
 * arguments.
 */
export class Graph<T extends GraphTypes = any> {
  /** The types of the graph for TypeScript; the property does not exist. */
  declare readonly types?: T;
  readonly #instance: Answerer;
  readonly #handle: number;
  #freed = false;
  /** Inputs, parameters and states. */
  readonly ports: readonly Port[];
  readonly outputs: readonly Output[];
  readonly name: string;
  /** The declared initial values of its parameters. */
  readonly initial: ReadonlyMap<string, Initial>;

  /** @internal */
  constructor(handle: number, initial: ReadonlyMap<string, Initial> = new Map()) {
    this.#instance = compiler();
    this.#handle = handle;
    this.initial = initial;
    dropped.register(this, { instance: this.#instance, handle }, this);
    const r = invoke(new Request('describe').u32(handle), this.#instance);
    this.name = r.text();
    this.ports = r.list(() => readPort(r));
    this.outputs = r.list(() => ({ name: r.text(), state: r.u32() === 1, ...readType(r) }));
  }

  /** The compiler's handle. @internal */
  get handle(): number {
    if (this.#freed) throw new RlxError('closed', `graph ${this.name} was freed`);
    if (this.#instance !== compiler()) throw new RlxError('closed', `graph ${this.name} is gone: the compiler was started anew`);
    return this.#handle;
  }

  #request(method: string, what = method): Request { return new Request(method, what).u32(this.handle); }

  #derive(transform: string, output: string, names: readonly string[], order = 1, zeros = false, policy?: Policy): Graph<any> {
    const request = this.#request('derive', transform).text(transform).text(output, 'the output').texts(names, 'the list of ports').u32(order, 'order');
    return new Graph(invoke(request.u32(Number(zeros)).texts(wordsOf(policy))).u32(), this.initial);
  }

  /** The parameters that each pattern, like those of {@link StepOptions.frozen}, matches. @internal */
  matching(patterns: readonly string[]): string[][] {
    const r = invoke(this.#request('matching').texts(patterns), this.#instance);
    return patterns.map(() => r.list(() => r.text()));
  }

  /** The symbols among the sizes of its ports, sorted. */
  get symbols(): readonly string[] {
    const names = this.ports.flatMap(({ shape }) => shape.join(' ').match(/[A-Za-z_]\w*/g) ?? []);
    return [...new Set(names)].sort();
  }

  /** The graph as text, which {@link parseGraph} reads. */
  text(): string { return invoke(this.#request('text')).text(); }

  /**
   * The gradients of an output of rank 0, as outputs `grad/x`, without the graph's own outputs. By the
   * parameters if no ports are named.
   */
  grad<V extends string, B extends string>(output: Name<V, ValueNames<T>>, ...by: Name<B, PortNames<T>>[]): Graph<GradTypes<T, B>> { return this.#derive('grad', output, by); }
  /** {@link Graph.grad}, with the graph's own outputs. */
  valueAndGrad<V extends string, B extends string>(output: Name<V, ValueNames<T>>, ...by: Name<B, PortNames<T>>[]): Graph<ValueAndGradTypes<T, B>> { return this.#derive('value_and_grad', output, by); }
  /** Adds an input `cotangent/y` for each output, and outputs `grad/x`: the cotangents times the Jacobian. */
  vjp<B extends string>(...by: Name<B, PortNames<T>>[]): Graph<VJPTypes<T, B>> { return this.#derive('vjp', '', by); }
  /** Adds an input `tangent/x` for each port named, and outputs `tangent/y`: the Jacobian times the tangents. */
  jvp<B extends string>(...by: Name<B, PortNames<T>>[]): Graph<JVPTypes<T, B>> { return this.#derive('jvp', '', by); }
  /** Adds inputs `tangent/x` and outputs `hvp/x`: the Hessian of an output of rank 0, times the tangents. */
  hvp<V extends string, B extends string>(output: Name<V, ValueNames<T>>, ...by: Name<B, PortNames<T>>[]): Graph<HVPTypes<T, B>> { return this.#derive('hvp', output, by); }
  /** {@link Graph.grad} or {@link Graph.valueAndGrad} with options. */
  gradWith<V extends string, B extends string>(options: GradOptions<Name<V, ValueNames<T>>, Name<B, PortNames<T>>>): Graph<ValueAndGradTypes<T, B>> {
    checkOptions('gradWith', options, 'output by missing policy dropOutputs');
    const { output, by = [], missing = 'error', policy, dropOutputs = false } = options ?? {} as GradOptions;
    checkWord('gradWith: missing', missing, 'error zero');
    return this.#derive(dropOutputs ? 'grad' : 'value_and_grad', output, by, 1, missing === 'zero', policy);
  }
  /**
   * Adds outputs `jacobian/y/x`, of the shape of y followed by that of x, for one output and each port named. `forward`
   * batches over the elements of the port, and is for ports that are smaller than the output; `reverse` over those of the output.
   */
  jacobian<V extends string, B extends string>(mode: 'forward' | 'reverse', output: Name<V, ValueNames<T>>, ...by: Name<B, PortNames<T>>[]): Graph<JacobianTypes<T, V, B>> {
    checkWord('jacobian: mode', mode, 'forward reverse');
    return this.#derive(`jacobian_${mode}`, output, by);
  }
  /** Adds outputs `hessian/x/z` for an output of rank 0 and each pair of the ports named; all parameters if none are. */
  hessian<V extends string, B extends string>(output: Name<V, ValueNames<T>>, ...by: Name<B, PortNames<T>>[]): Graph<HessianTypes<T, B>> { return this.#derive('hessian', output, by); }
  /**
   * The derivatives along a curve up to an order (Taylor mode): adds inputs `series/1/x` to `series/n/x` for those of each port
   * named, and outputs `series/1/y` to `series/n/y` for those of each output. All ports of a float type if none are named.
   */
  jet<B extends string>(order: number, ...by: Name<B, PortNames<T>>[]): Graph<JetTypes<T, B>> { return this.#derive('jet', '', by, order); }
  /**
   * The graph of an entry that updates the curvature of a step with the optimizer `sophia`, to be run every ten steps or so. It
   * has the inputs of this graph.
   */
  curvature(options: { optimizer: Optimizer; loss?: string; frozen?: readonly string[]; name?: string; seed?: number }): Graph<T> {
    checkOptions('curvature', options, 'optimizer loss frozen name seed');
    const { optimizer, loss = 'loss', frozen = [], name = '', seed = 0 } = options ?? {};
    if (optimizer?.kind !== 'sophia') throw new RlxError('attr', `curvature: the optimizer is ${shown(optimizer?.kind)}: it must be sophia`, { name: 'optimizer' });
    const request = this.#request('curvature').text(loss, 'loss').numbers(hyperOf(optimizer), 'f64').texts(frozen, 'frozen').text(name, 'name').u32(seed, 'seed');
    return new Graph(invoke(request).u32(), this.initial);
  }
  /** The derivative of any order of an output by a port of rank 0. */
  nth<V extends string, B extends string>(output: Name<V, ValueNames<T>>, by: Name<B, PortNames<T>>, order: number): Graph<NthTypes<T, V>> { return this.#derive('nth', output, [by], order); }

  /** The graph over a batch axis of a size, at a position in each named port, and in each output (0 if not named). */
  vmap(size: Dim, ports: Some<PortNames<T>, number>, outputs?: Some<OutputNames<T>, number>): Graph<T> {
    const request = this.#request('vmap').text(typeof size === 'number' ? String(size) : size, 'size').numbers(ports as Numbers, 'f64', 'ports').numbers(outputs as Numbers | undefined ?? {}, 'f64', 'outputs');
    return new Graph(invoke(request).u32(), this.initial);
  }

  /**
   * The graph with its products in half precision: f32 matrix products, convolutions and attention
   * take rounded operands, accumulate in f32 and round the result. Other ops do not change.
   */
  mixed(type: 'bf16' | 'f16'): Graph<T> {
    checkWord('mixed: type', type, 'bf16 f16');
    return this.#derive('mixed', type, []);
  }

  /** Sets the sizes of symbolic dimensions. */
  bind(symbols: BySymbol<{ graph: T }, number>): Graph<T> {
    return new Graph(invoke(this.#request('bind').numbers(symbols as Numbers, 'u32', 'symbols')).u32(), this.initial);
  }

  /** A training step: the graph's outputs with the old parameters, and the update of the parameters. */
  step<L extends string = string>(options: StepOptions<Name<L, OutputNames<T>>>): Graph<StepTypes<T>> {
    const step = new Graph<StepTypes<T>>(invoke(stepRequest(this.handle, options)).u32(), this.initial), { precision } = options;
    return precision ? step.mixed(precision) : step;
  }

  /** Frees the graph now instead of when it is collected. */
  free(): void {
    if (this.#freed) return;
    this.#freed = true;
    dropped.unregister(this);
    release(this.#instance, this.#handle);
  }
}

type Numbers = Readonly<Record<string, number>>;

function readPort(r: Response): Port {
  const name = r.text(), kind = r.text() as Port['kind'], ones = r.u32() === 1, initial = parseRule(r.text());
  return { name, kind, ones, ...initial && { initial }, frozen: r.u32() === 1, ...readType(r) };
}

function readType(r: Response): ValueType {
  return { dtype: r.text(), shape: r.list(() => dimOf(r.text())) };
}

/** The element type and the shape of a port, and the initial value of a parameter. */
export type Declaration = readonly [dtype: DType, shape?: readonly Dim[], initial?: Initial];

/** The ports of a graph, by name. */
export interface Declarations {
  readonly inputs?: Readonly<Record<string, Declaration>>;
  readonly params?: Readonly<Record<string, Declaration>>;
  readonly states?: Readonly<Record<string, Declaration>>;
  /** The outputs whose types are checked. TypeScript then knows their element types. */
  readonly outputs?: Readonly<Record<string, Declaration>>;
}

/** Names of declarations. */
type Declared<P extends Declarations, K extends keyof Declarations> = P[K] extends Readonly<Record<string, Declaration>> ? keyof P[K] & string : never;

/** The types of a graph that is declared. A name with a slash is of a scope, which a declaration does not list. */
export interface DeclaredTypes<P extends Declarations, O> {
  inputs: { readonly [N in Declared<P, 'inputs'>]: NonNullable<P['inputs']>[N][0] };
  values: { readonly [N in Declared<P, 'params'>]: NonNullable<P['params']>[N][0] } & { readonly [N in Declared<P, 'states'>]: NonNullable<P['states']>[N][0] } & OutputTypes<P, O> & Scoped;
  outputs: OutputTypes<P, O>;
  symbols: { [K in 'inputs' | 'params' | 'states']: SymbolIn<NonNullable<P[K]>[Declared<P, K>][1]> }['inputs' | 'params' | 'states'];
}

/** The symbols among the sizes of a shape: any if a size is a polynomial. */
type SymbolIn<Shape> = Shape extends readonly Dim[] ? Shape[number] extends infer D ? D extends `${string}${' ' | '*' | '+' | '-'}${string}` ? string : Extract<D, string> : never : never;

/** The element types of outputs, as declared. */
type OutputTypes<P extends Declarations, O> = { readonly [N in Exclude<keyof O & string, Declared<P, 'states'>>]: N extends keyof P['outputs'] ? NonNullable<P['outputs']>[N] extends Declaration ? NonNullable<P['outputs']>[N][0] : string : string };

/** Values of scopes. */
type Scoped = { readonly [N in `${string}/${string}`]: InScope };

/** The signatures of {@link graph}. */
export interface GraphFunction {
  <const P extends Declarations, O extends Readonly<Record<string, Value>>>(
    name: string, declarations: P, build: (b: GraphBuilder, ports: { readonly [N in Declared<P, 'inputs'> | Declared<P, 'params'> | Declared<P, 'states'>]: Value }) => O & Readonly<Record<Declared<P, 'outputs'>, Value>>,
  ): Graph<DeclaredTypes<P, O>>;
  (name: string, build: (b: GraphBuilder) => void): Graph;
}

/**
 * Builds a graph. {@link init} must have been awaited.
 *
 * ```ts
 * const model = graph('line', (b) => {
 *   const x = b.input('x', 'f32', [8, 3]), t = b.input('t', 'f32', [8]), w = b.param('w', 'f32', [3]);
 *   const error = x.matmul(w).sub(t);
 *   b.output('loss', error.mul(error).mean());
 * });
 * ```
 *
 * With declarations TypeScript knows the names and element types of inputs, and what can be read:
 * the function gets their values, and returns outputs, and the next values of states, by name. Outputs that are
 * declared are checked against what the function returns, and TypeScript knows their element types, too.
 *
 * ```ts
 * const model = graph('line', { inputs: { x: ['f32', [8, 3]], t: ['f32', [8]] }, params: { w: ['f32', [3]] } }, (b, { x, t, w }) => {
 *   const error = x.matmul(w).sub(t);
 *   return { loss: error.mul(error).mean() };
 * });
 * ```
 */
export const graph: GraphFunction = atCaller((name: string, first: unknown, build?: unknown): Graph<any> =>
  typeof first === 'function' ? graphOf(name, (b) => callBack(() => first(b))) : graphOf(name, declared(name, first as Declarations, build)));

/** Builds a graph from declarations and a function. */
function declared(name: string, declarations: Declarations, build: unknown): (b: GraphBuilder) => unknown {
  if (build === undefined) checkFunction(`graph ${shown(name)} is built by`, declarations);
  checkOptions('graph', declarations, 'inputs params states outputs');
  checkFunction(`graph ${shown(name)} is built by`, build);
  const { inputs = {}, params = {}, states = {}, outputs } = declarations ?? {};
  return (b) => {
    const ports: Record<string, Value> = {};
    const declare = (list: Readonly<Record<string, Declaration>>, make: (port: string, dtype: DType, shape: readonly Dim[], initial?: Initial) => Value) => {
      for (const [port, type] of Object.entries(list)) {
        if (!Array.isArray(type)) throw new RlxError('attr', `graph ${name}: ${port} is ${classOf(type)}: it must be declared by [dtype, shape]`, { name: port });
        ports[port] = make(port, type[0], type[1] ?? [], type[2]);
      }
    };
    declare(inputs, (port, dtype, shape) => b.input(port, dtype, shape));
    declare(params, (...port) => b.param(...port));
    declare(states, (port, dtype, shape) => b.state(port, dtype, shape));
    const made = callBack(() => (build as (b: GraphBuilder, ports: Record<string, Value>) => unknown)(b, ports));
    if (made instanceof Promise) return made;
    if (Object(made) !== made) throw new RlxError('graph', `graph ${name}: the function returns ${classOf(made)}: it must return outputs by name`);
    if (outputs) checkOutputs(name, outputs, made as Record<string, Value>);
    for (const [output, value] of Object.entries(made as Record<string, Value>)) b[Object.hasOwn(states, output) ? 'setState' : 'output'](output, value);
    return undefined;
  };
}

/** Refuses outputs that are not as declared. */
function checkOutputs(graph: string, declared: NonNullable<Declarations['outputs']>, made: Readonly<Record<string, Value>>): void {
  for (const [name, [dtype, shape = []]] of Object.entries(declared)) {
    const given = made[name];
    if (!given) throw new RlxError('missing', `graph ${graph}: output ${name} is declared as ${dtype}[${shape}], and the function does not return it`, { name });
    const type = `${given.dtype}[${given.shape}]`;
    if (type !== `${dtype}[${shape}]`) throw new RlxError(given.dtype === dtype ? 'shape' : 'dtype', `graph ${graph}: output ${name} is ${type}: it must be ${dtype}[${shape}], as declared`, { name });
  }
}

/** Work in parts, with a result. @internal */
export type Parts<T> = Generator<void, T>;

function graphOf(name: string, build: (b: GraphBuilder) => unknown): Graph {
  if (typeof name !== 'string') throw new RlxError('attr', `graph: the name is ${classOf(name)}: it must be a text`, { op: 'graph' });
  checkFunction(`graph ${name} is built by`, build);
  const b = new GraphBuilder(name);
  try {
    const returned: unknown = build(b);
    if (returned instanceof Promise) {
      returned.catch(() => {});
      throw new RlxError('graph', `graph ${name} is built by a function that returns a promise: await what it needs before`);
    }
  } catch (reason) {
    b.drop();
    throw reason;
  }
  return finished(name, b);
}

/**
 * {@link graph} by a generator: between its parts, in which no scope is open, its caller may do other work.
 * @internal
 */
export function* graphInParts(name: string, build: (b: GraphBuilder) => Parts<void>): Parts<Graph> {
  const b = new GraphBuilder(name);
  try {
    yield* build(b);
  } catch (reason) {
    b.drop();
    throw reason;
  }
  return finished(name, b);
}

function finished(name: string, b: GraphBuilder): Graph {
  const made = new Graph(b.finish(), b.initial);
  if (made.outputs.length > 0) return made;
  made.free();
  throw new RlxError('graph', `graph ${name} has no outputs and no states: name a result with b.output`);
}

/** Reads a graph from its text form. */
export const parseGraph = atCaller((text: string): Graph => new Graph(invoke(new Request('parse', 'parseGraph').text(text, 'the graph')).u32()));

/** The entries of a module as text, which {@link parseModule} and Go's `ParseModule` read: the graphs one after the other, each under the name of its entry. */
export const moduleText = atCaller((entries: Readonly<Record<string, Graph>>): string => Object.entries(entries ?? {}).map(([name, graph]) => {
  need(graph instanceof Graph, 'graph', `moduleText: ${name}`, 'a graph', graph);
  return graph.text().replace(quoted, () => JSON.stringify(name));
}).join(''));

/** The entries of a module by name, from the text of one graph or several, as a model file of the command `rlx` holds. Their types are not known: see {@link parseGraph}. */
export const parseModule = atCaller((text: string): Record<string, Graph> => {
  const [first = '', ...rest] = (typeof text === 'string' ? text : '').split(/^(?=graph\b)/m), entries: Record<string, Graph> = {};
  let above = rest.length && !first.replace(/\/\/.*/g, '').trim() ? first : ''; // then empty lines in place of graphs, so that an error has its line of the text
  for (const part of above ? rest : [first, ...rest]) {
    const graph = parseGraph(above + part);
    above += part.replace(/[^\n]+/g, '');
    if (Object.hasOwn(entries, graph.name)) throw new RlxError('name', `parseModule: two graphs are called ${graph.name}`, { name: graph.name });
    entries[graph.name] = graph;
  }
  return entries;
});

/** The quoted name at the begin of a graph's text. */
const quoted = /"(?:[^"\\]|\\.)*"/;

methodsAtCaller(Graph);
