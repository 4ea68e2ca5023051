import { checkType, type DType, arrayTypes, type TensorData } from '../values/dtype.js';
import { checkCount, checkOptions, checkWord, classOf, RlxError, shown, unknownName } from '../values/errors.js';
import { compiler, invoke, release } from '../wasm/compiler.js';
import type { Answerer } from '../wasm/module.js';
import { Request } from '../wasm/wire.js';
import type { GraphTypes, OutputsOf } from '../program/types.js';
import { callBack, type Called, methodsAtCaller, trimmedTo } from './caller-stack.js';
import { checkInitial, type Initial } from './initial.js';
import { BuilderOps, ValueOps } from './ops.gen.js';
import { type InitialRule, ruleOf } from './rule.js';
import { type Attributes, type Axes, type Dim, dimOf, type OperandOf, snake, type ValueType } from './types.js';

/** An operand: a value, or a number, which gets the element type of the op's other operands. */
export type Operand = OperandOf<Value>;

/** The result of an index out of range: zeros, the nearest element, or wrapped from the other end. */
export type Outside = 'fill' | 'clip' | 'wrap';
const outsides = 'fill clip wrap';

/** The compiler's code of an {@link Outside}. */
function codeOf(op: string, outside: Outside): number {
  checkWord(`${op}: outside`, outside, outsides);
  return outsides.split(' ').indexOf(outside);
}

/**
 * A value in a graph under construction. Its ops are its methods; numbers may stand in for
 * other operands. Elementwise ops broadcast as NumPy does.
 */
export class Value extends ValueOps<Value> implements ValueType {
  readonly dtype: string;
  readonly shape: readonly Dim[];
  /** The graph it belongs to. */
  readonly builder: GraphBuilder;
  /** Its number there. @internal */
  readonly id: number;

  /** @internal */
  constructor(builder: GraphBuilder, id: number, { dtype, shape }: ValueType) {
    super();
    this.builder = builder;
    this.id = id;
    this.dtype = dtype;
    this.shape = shape;
  }

  /** This value, or the input that stands for it in the body that is being built. @internal */
  get local(): Value { return GraphBuilder.local(this); }

  /** @internal */
  protected override apply(op: string, operands: readonly (Operand | undefined)[], attributes?: Attributes): Value[] {
    return this.builder.apply(op, [this, ...operands], attributes);
  }

  /** The matrix product, over the last axis and the one before last; axes before those are batch axes. */
  matmul(y: Value): Value { return this.builder.callFunction('matmul', [this, y]); }
  /** The mean over rows of the cross-entropy of logits and integer labels. A label out of range is an error at run time. */
  crossEntropyMean(labels: Value): Value { return this.builder.callFunction('cross_entropy_mean', [this, labels]); }
  /**
   * The slices along an axis at indices; an index out of range gives zeros, the nearest slice, or wraps around. With
   * `unordered` the derivative may add f32 in any order: faster, but not reproducible.
   */
  take(indices: Value, axis = 0, outside: Outside = 'fill', unordered = false): Value {
    return this.builder.callFunction(unordered ? 'take_unordered' : 'take', [this, indices], [axis, codeOf('take', outside)]);
  }
  /** The elements along an axis at indices of the same rank; indices out of range are as in `take`. */
  takeAlongAxis(indices: Value, axis = -1, outside: Outside = 'fill'): Value {
    return this.builder.callFunction('take_along_axis', [this, indices], [axis, codeOf('takeAlongAxis', outside)]);
  }
  /** {@link Value.reduceSum}. */
  sum(axes?: Axes, keepDims?: boolean): Value { return this.reduceSum(axes, keepDims); }
  /** Removes the axes of size 1, or the given ones. */
  squeeze(axes: Axes = this.shape.flatMap((size, i) => size === 1 ? [i] : [])): Value {
    const list = typeof axes === 'number' ? [axes] : axes;
    if (!Array.isArray(list) || !list.every(Number.isInteger)) throw new RlxError('attr', `squeeze: axes are ${shown(axes)}: they must be a list of whole numbers`, { op: 'squeeze' });
    const gone = list.map((axis) => axis < 0 ? axis + this.shape.length : axis), wrong = gone.find((axis) => this.shape[axis] !== 1);
    if (wrong !== undefined) throw new RlxError('shape', `squeeze(${this.dtype}[${this.shape}]): axis ${wrong} has the size ${this.shape[wrong]}, not 1`, { op: 'squeeze' });
    return this.reshape(this.shape.filter((_, i) => !gone.includes(i)));
  }
  /** x as `shape`, whose last axes have the sizes of x, or any where x has the size 1. */
  broadcastTo(shape: readonly Dim[]): Value {
    if (!Array.isArray(shape) || shape.length < this.shape.length) throw new RlxError('shape', `broadcastTo(${this.dtype}[${this.shape}]): ${shown(shape)} has fewer axes`, { op: 'broadcastTo' });
    return this.broadcastInDim({ shape, axes: this.shape.map((_, i) => shape.length - this.shape.length + i) });
  }
  /** An axis of this value, counted from the first one. */
  #axis(op: string, axis: number): number {
    const at = Number.isInteger(axis) ? axis < 0 ? axis + this.shape.length : axis : -1;
    if (!(at in this.shape)) throw new RlxError('attr', `${op}(${this.dtype}[${this.shape}]): it has no axis ${shown(axis)}`, { op });
    return at;
  }
  /** `size` elements along an axis from `start`, and all along the others. */
  sliceAxis(axis: number, start: number, size: Dim): Value {
    const at = this.#axis('sliceAxis', axis);
    return this.slice({ start: this.shape.map((_, i) => i === at ? start : 0), size: this.shape.map((n, i) => i === at ? size : n), stride: this.shape.map(() => 1) });
  }
  /** The median along an axis, the last one if not given, which the result lacks: the 0.5-{@link ValueOps.quantile}. */
  median(axis = -1): Value { return this.quantile({ axis, q: 0.5 }); }
  /** x with axis `from` at position `to`; the others keep their order. */
  moveAxis(from: number, to: number): Value {
    const source = this.#axis('moveAxis', from), target = this.#axis('moveAxis', to);
    const perm = [...this.shape.keys()].filter((axis) => axis !== source);
    perm.splice(target, 0, source);
    return this.transpose(perm);
  }
  /** `n` equal consecutive parts along an axis, 0 if not given, whose size is a multiple of `n`. */
  splitEvenly(n: number, axis = 0): Value[] {
    checkCount('splitEvenly: the number of parts', n, 1);
    const at = this.#axis('splitEvenly', axis), size = this.shape[at];
    if (typeof size !== 'number' || size % n) throw new RlxError('shape', `splitEvenly(${this.dtype}[${this.shape}]): axis ${axis} must have a size that is a multiple of ${n}`, { op: 'splitEvenly' });
    return this.split({ sizes: Array<number>(n).fill(size / n), axis: at });
  }
  /** x + weight·(y − x), of floats, computed from the nearer end: a weight of 1 gives y (torch.lerp). */
  lerp(y: Operand, weight: Operand): Value {
    const [end, part] = [y, weight].map((one) => this.builder.value(one, this.dtype as DType)) as [Value, Value], difference = end.sub(this);
    return part.lt(0.5).select(this.add(part.mul(difference)), end.sub(part.neg().add(1).mul(difference)));
  }
  /** The number of set bits of each element, of an integer type, in that type. */
  popCount(): Value { return this.builder.callFunction('pop_count', [this]); }
  /** The number of zero bits before the first set bit of each element, of an integer type, in that type: its width for 0. */
  clz(): Value { return this.builder.callFunction('clz', [this]); }
  /** x where this condition is true, else y: `select`. */
  where(x: Operand, y: Operand): Value { return this.select(x, y); }
  /**
   * A convolution, see {@link ValueOps.conv2d}. With `padding: 'same'` a stride of 1 keeps the sizes; an odd element of padding
   * is at the end, as in PyTorch. `'valid'` has no padding.
   */
  override conv2d(weight: Operand, bias?: Operand, attributes: Parameters<ValueOps<Value>['conv2d']>[2] & { padding?: 'same' | 'valid' } = {}): Value {
    const { padding, ...rest } = attributes ?? {};
    if (padding !== undefined) checkWord('conv2d: padding', padding, 'same valid');
    if (padding !== undefined && (rest.padLo ?? rest.padHi)) throw new RlxError('attr', `conv2d: padding is '${padding}' and padLo or padHi are given: give one of them`, { op: 'conv2d' });
    if (padding !== 'same') return super.conv2d(weight, bias, rest);
    const total = [0, 1].map((i) => (Number((weight as Value | undefined)?.shape?.[i]) - 1) * (rest.dilations?.[i] ?? 1));
    return super.conv2d(weight, bias, { ...rest, padLo: total.map((n) => Math.floor(n / 2)), padHi: total.map((n) => Math.ceil(n / 2)) });
  }
  /** A new axis of size 1. */
  expandDims(axis: number): Value { return this.builder.callFunction('expand_dims', [this], [axis]); }
  /** A random key made from this one and an integer. */
  foldIn(n: Operand): Value { return this.builder.callFunction('fold_in', [this, this.builder.value(n, 'u32')]); }
}

/**
 * One step of a {@link GraphBuilder.scan}, for the loop's constants, the carries and the step's
 * slices. It builds with the builder it is given; values of the graph around it may be used like
 * its own, and parameters that it declares are the graph's.
 */
export type LoopBody<C extends Values = Values, K extends Values = Values, X extends Values = Values, Y extends Values = Values> =
  (b: GraphBuilder, consts: Alike<C>, carries: Alike<K>, slices: Alike<X>) => { carries: K; ys?: Y };

/** A list of values. */
export type Values = readonly Value[];

/** A list of the same length as another. */
export type Alike<T extends Values> = { -readonly [I in keyof T]: Value };

export interface LoopOptions<C extends Values = Values, K extends Values = Values, X extends Values = Values> {
  /** Values that are the same in every step. Those that the body takes from the graph around it join them. */
  consts?: C;
  /** The initial carries. */
  carries?: K;
  /** Values that are cut into slices along their first axis, one for each step. */
  xs?: X;
  /** The number of steps; optional if there are `xs`. */
  length?: Dim;
  /**
   * Makes the loop in this many segments of equal length, each under a {@link GraphBuilder.checkpoint}: the backward pass stores the
   * carries between segments alone, and recomputes one segment at a time. It holds least for about the square root of the number of steps.
   */
  segments?: number;
  /** Whether the steps begin with the last slice. */
  reverse?: boolean;
}

/** A graph of a {@link GraphBuilder.whileLoop}. Like a {@link LoopBody} it may use outer values. */
export type WhileBody<T, C extends Values = Values, K extends Values = Values> = (b: GraphBuilder, consts: Alike<C>, carries: Alike<K>) => T;

export interface WhileOptions<C extends Values = Values, K extends Values = Values> {
  /** Values that are the same in every step. Those that the graphs take from the one around them join them. */
  consts?: C;
  /** The initial carries. */
  carries: K;
  /**
   * The maximal number of steps, 0 for no bound. Reverse-mode derivatives need a bound. Without one a run on the GPU
   * synchronises with the device every 8 to 64 steps, to check the condition.
   */
  maxSteps?: number;
}

/** A graph that {@link GraphBuilder.call} adds to another: a {@link Graph}. */
export interface Callee<T extends GraphTypes = any> {
  readonly types?: T;
  readonly name: string;
  /** @internal */
  readonly handle: number;
  readonly ports: readonly (ValueType & { readonly name: string; readonly kind: 'input' | 'param' | 'state'; readonly initial?: InitialRule; readonly frozen: boolean })[];
  readonly outputs: readonly { readonly name: string; readonly state: boolean }[];
  readonly initial: ReadonlyMap<string, Initial>;
  bind(symbols: Readonly<Record<string, number>>): Callee<T>;
  free(): void;
}

/** Throws unless the value is a function. `what` begins the message. @internal */
export function checkFunction(what: string, given: unknown): void {
  if (typeof given !== 'function') throw new RlxError('graph', `${what} ${classOf(given)}: it must be a function`);
}

/** Whether values of a type have tangents. */
const isFloat = ({ dtype }: ValueType): boolean => /^(b?f(16|32|64)|c64)$/.test(dtype);

/** The sizes that values determine for the symbols of a graph's ports. */
function sizesFor({ name: graph, ports }: Callee, inputs: Readonly<Record<string, Value>>): Record<string, number> {
  const sizes: Record<string, number> = {};
  for (const { name, shape } of ports) {
    shape.forEach((dim, axis) => {
      const size = inputs[name]?.shape[axis];
      if (typeof dim !== 'string' || !/^[A-Za-z_]\w*$/.test(dim) || typeof size !== 'number') return;
      if ((sizes[dim] ??= size) !== size) throw new RlxError('shape', `call: size ${dim} of graph ${graph} is ${sizes[dim]}, and ${size} in ${name}`, { op: 'call', name });
    });
  }
  return sizes;
}

/** Refuses lists of an op that are not lists of values. */
function checkValues(op: string, lists: Readonly<Record<string, readonly unknown[]>>): void {
  for (const [name, list] of Object.entries(lists)) {
    const wrong = Array.isArray(list) ? list.findIndex((one) => !(one instanceof Value)) : 0;
    if (wrong < 0) continue;
    const given = Array.isArray(list) ? `have ${classOf(list[wrong])} in them` : `are ${classOf(list)}`;
    throw new RlxError(list === undefined ? 'missing' : 'graph', `${op}: ${name} ${given}: they must be values of a graph`, { op, name });
  }
}

/** An input, a parameter or a state as it was declared. @internal */
export interface DeclaredPort { kind: string; name: string; type: ValueType; initial: Initial | undefined; frozen: boolean }

/** Builds a graph, see {@link graph}. Invalid calls throw an {@link RlxError} at once. */
export class GraphBuilder extends BuilderOps<Value> {
  readonly #instance: Answerer = compiler();
  readonly #handle: number;
  readonly #numbers = new Map<string, Value>();
  #open = true;
  /** The open scopes, joined by slashes. */
  #scope = '';
  #label = '';
  readonly #ports: DeclaredPort[] = [];
  /** Inputs, parameters and states, by their full names. */
  readonly #declared = new Map<string, Value>();
  readonly #after = new Map<string, Value>();
  /** The values of parameters in a loop over blocks, which stacks the parameters around it. @internal */
  slices?: ReadonlyMap<string, Value>;
  /** The initial values of parameters and states. @internal */
  readonly initial = new Map<string, Initial>();
  /** The graph around that of a body, whose values the body may use. */
  readonly #outer: GraphBuilder | undefined;
  /** The graph around that of a body, unless the body is only tried: it has the ports that the body declares. */
  readonly #host: GraphBuilder | undefined;
  /** The values of the enclosing graph that a body captures, with the input for each. */
  readonly #captured = new Map<Value, { name: string; value: Value }>();

  /** @internal */
  constructor(name: string, outer?: GraphBuilder, tried = false) {
    super();
    this.#outer = outer;
    this.#host = tried ? undefined : outer;
    this.#handle = invoke(new Request('builder').text(name)).u32();
  }

  /** `what` names the caller in errors. */
  #request(method: string, what = method): Request {
    if (!this.#open) throw new RlxError('closed', 'the graph is finished');
    return new Request(method, what).u32(this.#handle);
  }

  #values(request: Request): Value[] {
    const r = invoke(request, this.#instance);
    return r.list(() => new Value(this, r.u32(), { dtype: r.text(), shape: r.list(() => dimOf(r.text())) }));
  }

  #value(request: Request): Value { return this.#values(request)[0]!; }

  #port(kind: string, name: string, dtype: DType, shape: readonly Dim[], initial?: Initial, frozen = false): Value {
    if (initial !== undefined) checkInitial(name, initial);
    if (typeof frozen !== 'boolean') throw new RlxError('attr', `${kind}: frozen is ${classOf(frozen)}: it must be a boolean`, { name: shown(name) });
    const request = this.#request('port', kind).text(kind).text(name).text(dtype, `the element type of ${name}`).texts(shape, `the shape of ${name}`);
    const { rule = '', args = [] } = ruleOf(initial) ?? {};
    const made = this.#value(request.text(rule).list(args, (r, n) => r.f64(n)).u32(Number(frozen)));
    if (initial !== undefined) this.initial.set(name, initial);
    this.#declared.set(name, made);
    this.#ports.push({ kind, name, type: made, initial, frozen });
    return made;
  }

  /** A value that is given at each run. */
  input(name: string, dtype: DType, shape: readonly Dim[] = []): Value {
    return this.#host ? this.#capture(this.#host.input(name, dtype, shape)).value : this.#port('input', name, dtype, shape);
  }

  /**
   * A parameter: persistent and trained, unless it is `frozen`. `initial` is its initial value, see {@link Initial}; by
   * default ones for the scale of a norm, else `glorot` from two axes on, else 0.
   */
  param(name: string, dtype: DType, shape: readonly Dim[], initial?: Initial, frozen?: boolean): Value {
    name = this.#within(name);
    const slice = this.slices?.get(name);
    if (slice) return slice;
    return this.#host ? this.#capture(this.#host.param(name, dtype, shape, initial, frozen)).value : this.#port('param', name, dtype, shape, initial, frozen);
  }

  /**
   * A state: kept between runs, and changed by {@link GraphBuilder.setState}. It begins as `initial`, by default as 0, the
   * running variance of a batch norm as 1.
   */
  state(name: string, dtype: DType, shape: readonly Dim[] = [], initial?: Initial): Value {
    name = this.#within(name);
    return this.#host ? this.#capture(this.#host.state(name, dtype, shape, initial)).value : this.#port('state', name, dtype, shape, initial);
  }

  /** The input, parameter or state that was declared before, by its full name, such as `block0/w`. */
  declared(name: string): Value | undefined {
    const own = this.#declared.get(name);
    return this.slices?.get(name) ?? (this.#host ? this.#host.declared(name) ?? own : own ?? this.#outer?.declared(name));
  }

  /**
   * Builds a part of the graph and returns the result of `build`. The scope's name prefixes those of parameters and
   * states (`w` becomes `name/w`) and labels. Scopes nest; inputs and outputs keep their names.
   */
  scope<T>(name: string, build: () => T): T {
    return this.scoped(name, build, callBack);
  }

  /** The full name of the open scope, empty outside of scopes. */
  get scopeName(): string { return [this.#host?.scopeName, this.#scope].filter(Boolean).join('/'); }

  /** The builder of the graph around all bodies. @internal */
  get root(): GraphBuilder { return this.#host?.root ?? this; }

  /** A builder of a separate graph, for trying a function that may use values of this one. @internal */
  scratch(): GraphBuilder { return new GraphBuilder('scratch', this, true); }

  /** The parameters and states that were declared, by their full names. @internal */
  get declarations(): readonly DeclaredPort[] { return [...this.#ports]; }

  /** Runs an exported function of this package, `called`: errors begin at its caller. @internal */
  inside<T>(called: Called, run: () => T): T { return trimmedTo(called, run); }

  /** Runs a function of the caller. @internal */
  outside<T>(run: () => T): T { return callBack(run); }

  /** Builds outside of all scopes, without a label. @internal */
  unscoped<T>(build: () => T): T {
    const scope = this.#scope, label = this.#label;
    this.#scope = '';
    this.label('');
    try {
      return build();
    } finally {
      this.#scope = scope;
      this.#setLabel(label);
    }
  }

  /** {@link GraphBuilder.scope} that calls its function through `call`. @internal */
  scoped<T>(name: string, build: () => T, call: (build: () => T) => T = (run) => run()): T {
    if (!name || typeof name !== 'string') throw new RlxError('name', `scope: the name is ${name === '' ? "''" : classOf(name)}: it must be a text that is not empty`);
    checkFunction(`scope ${name} is built by`, build);
    const scope = this.#scope, label = this.#label;
    this.#scope = this.#within(name);
    this.label('');
    const made = call(build);
    this.#scope = scope;
    this.#setLabel(label);
    return made;
  }

  /** A name in the open scopes. An empty name stays empty, and is refused. */
  #within(name: string): string {
    if (typeof name !== 'string') throw new RlxError(name === undefined ? 'missing' : 'attr', `the name is ${classOf(name)}: it must be a text`);
    return this.#scope && name ? `${this.#scope}/${name}` : name;
  }

  /** Sets the next value of a state. */
  setState(name: string, value: Value): void { this.#setState('state', this.#within(name), value); }

  /**
   * Sets the next value of a state to `next(now)`: `now` is the value that an earlier call of `setState` or `updateState` has
   * set, or else that at the start of the run. So a part of a model that a graph has twice moves its state twice.
   */
  updateState(name: string, next: (now: Value) => Value): void {
    checkFunction('updateState', next);
    const full = this.#within(name), now = this.#after.get(full) ?? this.declared(full);
    if (!now) throw new RlxError('name', `updateState: unknown state ${shown(full)}`, { op: 'updateState', name: shown(full) });
    this.#setState('update', full, callBack(() => next(now)));
  }

  #setState(method: string, name: string, value: Value): void {
    this.#result(method, name, value, 'a carry, or a result,');
    this.#after.set(name, value);
  }

  /** Names a result. */
  output(name: string, value: Value): void { this.#result('output', name, value, 'one of its results'); }

  #result(method: string, name: string, value: Value, as: string): void {
    if (this.#host) throw new RlxError('graph', `${shown(name)} cannot be set in a body: return the value as ${as}, and set it in the graph around`, { name });
    invoke(this.#request(method, method === 'output' ? method : 'setState').text(name).u32(this.#idOf(value)), this.#instance);
  }

  /** Sets the label of the nodes that follow, in errors and kernel labels. */
  label(text: string): void { this.#setLabel(this.#within(text) || this.#scope); }

  #setLabel(text: string): void {
    invoke(this.#request('label').text(text), this.#instance);
    this.#label = text;
  }

  /** A literal: elements in row-major order. */
  constant(dtype: DType, shape: readonly number[], data: TensorData): Value {
    if (!ArrayBuffer.isView(data)) throw new RlxError('dtype', `constant: the elements are ${classOf(data)}: they must be in a typed array`, { op: 'constant' });
    const request = this.#request('constant').text(dtype, 'the element type').texts(shape, 'the shape');
    if (Object.hasOwn(arrayTypes, dtype)) checkType('constant: the literal', dtype, data);
    return this.#value(request.data(new Uint8Array(data.buffer, data.byteOffset, data.byteLength)));
  }

  /** A value of a shape with all elements equal to n. */
  full(dtype: DType, shape: readonly Dim[], n: number): Value {
    return this.#value(this.#request('full').text(dtype, 'the element type').texts(shape, 'the shape').f64(n, 'the value'));
  }

  /** A random key, u32[2], from a seed. */
  randomKey(seed: number): Value { return this.callFunction('random_key', [], [seed]); }

  /** An operand as a value: numbers become constants without axes. */
  value(operand: Operand, dtype: DType): Value {
    if (operand instanceof Value) return operand;
    if (typeof operand !== 'number' && typeof operand !== 'boolean') {
      throw new RlxError('dtype', `an operand is ${classOf(operand)}: it must be a value, a number or a boolean`);
    }
    const type: DType = typeof operand === 'boolean' ? 'bool' : dtype, key = `${type} ${Number(operand)}`;
    let made = this.#numbers.get(key);
    if (!made) this.#numbers.set(key, made = this.full(type, [], Number(operand)));
    return made;
  }

  /** This builder, or that of a body in it which one of the operands belongs to: ops of outer and inner values are the body's. */
  #innermost(operands: readonly unknown[]): GraphBuilder {
    let found: GraphBuilder = this;
    for (const operand of operands) {
      if (!(operand instanceof Value)) continue;
      for (let b: GraphBuilder | undefined = operand.builder; b; b = b.#outer) if (b === found) found = operand.builder;
    }
    return found;
  }

  #idOf(value: Value): number { return (value?.builder === this ? value : this.#capture(value).value).id; }

  /** The input of a body for a captured value of an enclosing graph. */
  #capture(value: Value): { name: string; value: Value } {
    if (!(value instanceof Value)) throw new RlxError('graph', `a value is ${classOf(value)}: it must be one of the graph`);
    if (!this.#outer) throw new RlxError('graph', `a value, ${value.dtype}[${value.shape}], belongs to another graph: one of a body is to be returned from it`);
    const outer = value.builder === this.#outer ? value : this.#outer.#capture(value).value;
    let inner = this.#captured.get(outer);
    if (!inner) {
      const name = `outer${this.#captured.size}`;
      this.#captured.set(outer, inner = { name, value: this.#port('input', name, outer.dtype as DType, outer.shape) });
    }
    return inner;
  }

  /** The innermost graph that is being built by {@link GraphBuilder.building}. */
  static #built: GraphBuilder | undefined;

  /** Calls a function during which {@link Value.local} is of this graph. @internal */
  building<T>(build: () => T): T {
    const around = GraphBuilder.#built;
    GraphBuilder.#built = this;
    try {
      return build();
    } finally {
      GraphBuilder.#built = around;
    }
  }

  /** The value of the graph that is being built for one of a graph around it; another value is returned as it is. @internal */
  static local(value: Value): Value {
    const built = GraphBuilder.#built;
    for (let b = built; b; b = b.#outer) if (b.#outer === value.builder) return built!.#capture(value).value;
    return value;
  }

  /** Adds an op. Numbers get the element type of the first value that is not boolean, or f32. @internal */
  apply(op: string, operands: readonly (Operand | undefined)[], attributes: Attributes = {}, graphs: readonly number[] = []): Value[] {
    if (!Array.isArray(operands)) throw new RlxError(operands === undefined ? 'missing' : 'dtype', `${op}: the operands are ${classOf(operands)}: they must be a list`, { op });
    const given = operands.filter((operand) => operand !== undefined), inner = this.#innermost(given);
    if (inner !== this) return inner.apply(op, operands, attributes, graphs);
    const typed = given.find((operand): operand is Value => operand instanceof Value && operand.dtype !== 'bool');
    const ids = given.map((operand) => this.#idOf(this.value(operand, (typed?.dtype ?? 'f32') as DType)));
    if (Object(attributes) !== attributes) throw new RlxError('attr', `${op}: the attributes are ${classOf(attributes)}: they must be an object, as { axis: 0 }`, { op });
    const named = Object.entries(attributes).filter(([, value]) => value !== undefined);
    for (const [name, value] of named) {
      if (/number|boolean|string/.test(typeof value) || Array.isArray(value) || ArrayBuffer.isView(value)) continue;
      throw new RlxError('attr', `${op}: ${name} is ${classOf(value)}: it must be a number, a boolean, a text or a list of those`, { op, name });
    }
    const request = this.#request('op', op).text(op).list(ids, (r, id) => r.u32(id))
      .list(named, (r, [name, value]) => r.text(snake(name)).attribute(name === 'axes' && typeof value === 'number' ? [value] : value!))
      .list(graphs, (r, handle) => r.u32(handle));
    return this.#values(request);
  }

  /** Calls a function of the compiler that adds several ops. @internal */
  callFunction(name: string, values: readonly Value[], numbers: readonly number[] = []): Value {
    const inner = this.#innermost(values);
    if (inner !== this) return inner.callFunction(name, values, numbers);
    for (const n of numbers) if (typeof n !== 'number') throw new RlxError(n === undefined ? 'missing' : 'attr', `${name}: an argument is ${classOf(n)}: it must be a number`, { op: name });
    const request = this.#request('call', name).text(name).list(values, (r, value) => r.u32(this.#idOf(value))).list(numbers, (r, n) => r.f64(n));
    return this.#value(request);
  }

  /**
   * Builds the bodies of a node, for values like the given ones, and makes the node. The values that the bodies
   * capture from this graph become inputs at a common index.
   */
  #withBodies<T>(like: readonly ValueType[], index: number, builds: Readonly<Record<string, Branch>>, make: (captured: readonly Value[], graphs: readonly number[]) => T): T {
    const bodies: GraphBuilder[] = [], graphs: number[] = [];
    try {
      for (const [name, build] of Object.entries(builds)) {
        checkFunction(`${name} is built by`, build);
        const body = new GraphBuilder(name, this);
        bodies.push(body);
        body.#fill(like, build);
      }
      const captured = [...new Set(bodies.flatMap((body) => [...body.#captured.keys()]))];
      for (const body of bodies) {
        const names = like.map((_, i) => `in${i}`);
        names.splice(index, 0, ...captured.map((value) => body.#capture(value).name));
        graphs.push(body.finish(names));
      }
      return make(captured, graphs);
    } finally {
      for (const body of bodies) body.drop();
      for (const handle of graphs) release(this.#instance, handle);
    }
  }

  #fill(like: readonly ValueType[], build: Branch): void {
    const inputs = like.map(({ dtype, shape }, i) => this.#port('input', `in${i}`, dtype as DType, shape)), results = callBack(() => build(this, inputs));
    if (!Array.isArray(results)) throw new RlxError('graph', `a body returns ${classOf(results)}: it must return a list of values`);
    results.forEach((value, i) => invoke(this.#request('output').text(`out${i}`).u32(this.#idOf(value)), this.#instance));
  }

  /**
   * A loop over slices. Returns the final carries, and the `ys` of all steps, stacked along a first axis.
   */
  scan<const C extends Values = [], const K extends Values = [], const X extends Values = [], const Y extends Values = []>(
    options: LoopOptions<C, K, X>, body: LoopBody<C, NoInfer<K>, X, Y>,
  ): { carries: Alike<K>; ys: Alike<Y> } {
    checkOptions('scan', options, 'consts carries xs length reverse segments');
    const { consts = [], carries = [], xs = [], length, reverse = false, segments } = (options ?? {}) as LoopOptions;
    checkValues('scan', { consts, carries, xs });
    checkFunction('scan: a step is built by', body);
    const steps = length ?? xs[0]?.shape[0];
    if (steps === undefined) throw new RlxError('shape', 'scan: a loop without xs needs a length', { op: 'scan' });
    if (segments !== undefined) return this.#segmented({ consts, carries, xs, reverse, segments }, steps, body as LoopBody) as { carries: Alike<K>; ys: Alike<Y> };
    const like = [...consts, ...carries, ...xs.map(({ dtype, shape }) => ({ dtype, shape: shape.slice(1) }))];
    const cut = consts.length + carries.length;
    const step: Branch = (b, values) => {
      const made = (body as LoopBody)(b, values.slice(0, consts.length), values.slice(consts.length, cut), values.slice(cut));
      if (!Array.isArray(made?.carries)) throw new RlxError('graph', `scan: the body returns ${classOf(made)}: it must return { carries, ys }, lists of values`, { op: 'scan' });
      return [...made.carries, ...made.ys ?? []];
    };
    return this.#withBodies(like, consts.length, { step }, (captured, graphs) => {
      const attributes = { consts: consts.length + captured.length, carries: carries.length, length: [steps], reverse };
      const out = this.apply('scan', [...consts, ...captured, ...carries, ...xs], attributes, graphs);
      return { carries: out.slice(0, carries.length) as Alike<K>, ys: out.slice(carries.length) as Alike<Y> };
    });
  }

  /** A loop over segments, whose body is a checkpoint of the loop over the steps of one. */
  #segmented({ consts = [], carries = [], xs = [], reverse = false, segments = 1 }: LoopOptions, steps: Dim, body: LoopBody): { carries: Value[]; ys: Value[] } {
    const length = Number(steps) / segments, first = consts.length, last = first + carries.length;
    checkCount('scan: segments', segments, 1);
    if (!Number.isInteger(length)) throw new RlxError('attr', `scan: segments is ${segments}: it must divide the number of steps, ${steps}`, { op: 'scan', name: 'segments' });
    const inner: Branch = (b, values) => {
      const made = b.scan({ consts: values.slice(0, first), carries: values.slice(first, last), xs: values.slice(last), length, reverse }, body as LoopBody<Values, Value[]>);
      return [...made.carries, ...made.ys];
    };
    const outer = this.scan({ consts, carries, xs: xs.map((x) => x.reshape([segments, length, ...x.shape.slice(1)])), length: segments, reverse }, (b, consts: Values, carries: Values, xs: Values) => {
      const out = b.checkpoint([...consts, ...carries, ...xs], inner);
      return { carries: out.slice(0, carries.length), ys: out.slice(carries.length) };
    });
    return { carries: outer.carries, ys: outer.ys.map((y) => y.reshape([steps, ...y.shape.slice(2)])) };
  }

  /**
   * A loop: runs `step`, which returns the next carries, while `condition` returns true, a boolean of rank 0.
   * Returns the final carries.
   */
  whileLoop<const C extends Values = [], const K extends Values = []>(
    options: WhileOptions<C, K>, condition: WhileBody<Value, C, K>, step: WhileBody<NoInfer<K>, C, NoInfer<K>>,
  ): Alike<K> {
    checkOptions('while_loop', options, 'consts carries maxSteps');
    const { consts = [], carries, maxSteps = 0 } = (options ?? {}) as WhileOptions;
    checkValues('while_loop', { consts, carries });
    checkFunction('while_loop: the condition is built by', condition);
    checkFunction('while_loop: a step is built by', step);
    const n = consts.length;
    const bodies: Record<string, Branch> = {
      condition: (b, values) => [(condition as WhileBody<Value>)(b, values.slice(0, n), values.slice(n))],
      step: (b, values) => (step as WhileBody<Values>)(b, values.slice(0, n), values.slice(n)),
    };
    return this.#withBodies([...consts, ...carries], n, bodies, (captured, graphs) =>
      this.apply('while_loop', [...consts, ...captured, ...carries], { consts: n + captured.length, maxSteps }, graphs)) as Alike<K>;
  }

  /**
   * A conditional: the results of the first graph if the predicate, a boolean of rank 0, is true, else of the
   * second. The graphs may capture other values of this graph.
   */
  cond<const O extends Values, const R extends Values>(predicate: Value, operands: O, whenTrue: Branch<O, R>, whenFalse: Branch<O, NoInfer<R>>): Alike<R> {
    checkValues('cond', { predicate: [predicate], operands });
    return this.#withBodies(operands, operands.length, { when_true: whenTrue as Branch, when_false: whenFalse as Branch }, (captured, graphs) =>
      this.apply('cond', [predicate, ...operands, ...captured], {}, graphs)) as Alike<R>;
  }

  /**
   * The results of a part of the graph that the backward pass recomputes from its operands, without storing its values
   * (JAX's checkpoint). The part may capture other values of this graph and declare parameters.
   */
  checkpoint<const O extends Values, const R extends Values>(operands: O, build: Branch<O, R>): Alike<R> {
    checkValues('checkpoint', { operands });
    return this.#withBodies(operands, operands.length, { part: build as Branch }, (captured, graphs) =>
      this.apply('checkpoint', [...operands, ...captured], { residuals: 0 }, graphs)) as Alike<R>;
  }

  /** `x` where the condition is true, else `y`. */
  where(condition: Value, x: Operand, y: Operand): Value { return this.apply('select', [condition, x, y])[0]!; }
  /** {@link GraphBuilder.concatenate}. */
  concat(values: readonly Operand[], axis?: number): Value { return this.concatenate(values, axis); }

  /**
   * Adds a graph and returns its outputs by name. `inputs` has a value for each of its inputs;
   * their sizes bind its symbols. A parameter or state not in `inputs` is this graph's of the same
   * name, within the open scope: it is declared if missing, and updated as in the added graph. The
   * update of a state in `inputs` is dropped.
   */
  call<T extends GraphTypes>(graph: Callee<T>, inputs: { readonly [N in keyof T['inputs']]: Value } & Readonly<Record<string, Value>>): { readonly [N in keyof OutputsOf<T>]: Value } {
    if (typeof graph?.handle !== 'number') throw new RlxError(graph === undefined ? 'missing' : 'graph', `call: the first argument is ${classOf(graph)}: it must be a graph`, { op: 'call' });
    if (Object(inputs) !== inputs) throw new RlxError(inputs === undefined ? 'missing' : 'graph', `call: the inputs of graph ${graph.name} are ${classOf(inputs)}: they must be values by name`, { op: 'call' });
    checkValues('call', { inputs: Object.values(inputs) });
    for (const name of Object.keys(inputs)) if (!graph.ports.some((port) => port.name === name)) throw unknownName(`call: graph ${graph.name} has no port`, name, graph.ports.map((port) => port.name), 'call');
    const symbols = sizesFor(graph, inputs), bound = Object.keys(symbols).length ? graph.bind(symbols) : graph;
    try {
      const made = this.#splice(bound.handle, bound.ports.map((port) => inputs[port.name] ?? this.#portFor(graph, port)));
      const results: Record<string, Value> = {};
      graph.outputs.forEach(({ name, state }, i) => {
        if (!state) results[name] = made[i]!;
        else if (!inputs[name]) this.setState(name, made[i]!);
      });
      return results as { readonly [N in keyof OutputsOf<T>]: Value };
    } finally {
      if (bound !== graph) bound.free();
    }
  }

  /** The port of this graph for one of a called graph. */
  #portFor({ name: graph, initial }: Callee, { name, kind, dtype, shape, initial: rule, frozen }: Callee['ports'][number]): Value {
    if (kind === 'input') throw new RlxError('missing', `call: input ${name} of graph ${graph} is ${dtype}[${shape}], and is not given`, { op: 'call', name });
    const begin = initial.get(name) ?? rule;
    return this.declared(this.#within(name)) ?? (kind === 'param' ? this.param(name, dtype as DType, shape, begin, frozen) : this.state(name, dtype as DType, shape, begin));
  }

  /** The outputs of a graph for values of its ports. */
  #splice(graph: number, values: Values): Value[] {
    return this.#values(this.#request('splice', 'call').u32(graph).list(values, (r, value) => r.u32(this.#idOf(value))));
  }

  /** The outputs of a derivative of a function, for the operands, the values that the function captures, and more. */
  #derived(op: string, transform: string, xs: Values, build: Branch, more: Values): Value[] {
    checkValues(op, { operands: xs, more });
    return this.#withBodies(xs, xs.length, { [op]: build }, (captured, [graph]) => {
      const request = new Request('derive', op).u32(graph!).text(transform).text('out0').texts(xs.map((_, i) => `in${i}`)).u32(1).u32(0).texts([]);
      const derived = invoke(request, this.#instance).u32();
      try {
        return this.#splice(derived, [...xs, ...captured, ...more]);
      } finally {
        release(this.#instance, derived);
      }
    });
  }

  /**
   * The results of a function, and the gradients of the first of them, of rank 0, by each of `xs`, which are floats. It
   * differentiates inside a graph, for example for an inner training step. Other values that the function uses are constants.
   */
  valueAndGrad<const X extends Values, const R extends Values>(xs: X, build: Branch<X, R>): { values: Alike<R>; grads: Alike<X> } {
    const made = this.#derived('valueAndGrad', 'value_and_grad', xs, build, []), cut = made.length - xs.length;
    return { values: made.slice(0, cut) as Alike<R>, grads: made.slice(cut) as Alike<X> };
  }

  /** The gradients of {@link GraphBuilder.valueAndGrad}. */
  grad<const X extends Values>(xs: X, build: Branch<X>): Alike<X> {
    return this.#derived('grad', 'value_and_grad', xs, build, []).slice(-xs.length) as Alike<X>;
  }

  /** The results of a function of `xs`, which are floats, and their tangents, for a tangent for each of `xs`. */
  jvp<const X extends Values, const R extends Values>(xs: X, tangents: Alike<X>, build: Branch<X, R>): { values: Alike<R>; tangents: Alike<R> } {
    const made = this.#derived('jvp', 'jvp', xs, build, tangents as Values), cut = made.length / 2;
    return { values: made.slice(0, cut) as Alike<R>, tangents: made.slice(cut) as Alike<R> };
  }

  /** The results of a function of `xs`, which are floats, and a cotangent for each of `xs`, from those of the results. */
  vjp<const X extends Values, const R extends Values>(xs: X, cotangents: Alike<NoInfer<R>>, build: Branch<X, R>): { values: Alike<R>; cotangents: Alike<X> } {
    const made = this.#derived('vjp', 'vjp', xs, build, cotangents as Values), cut = made.length - xs.length;
    return { values: made.slice(0, cut) as Alike<R>, cotangents: made.slice(cut) as Alike<X> };
  }

  /** Builds a body that uses nothing but its operands, and returns its handle with the types of its results. */
  #closed(op: string, name: string, like: readonly ValueType[], build: Branch): { graph: number; results: ValueType[] } {
    const body = new GraphBuilder(name, this), results: ValueType[] = [];
    try {
      body.#fill(like, (b, values) => {
        const made = build(b, values);
        if (Array.isArray(made)) results.push(...made as ValueType[]);
        return made;
      });
      if (body.#captured.size) throw new RlxError('graph', `${op}: ${name} uses ${body.#captured.size} values of the graph around it: give them as operands`, { op });
      return { graph: body.finish(), results };
    } finally {
      body.drop();
    }
  }

  #custom(op: string, operands: Values, attributes: Attributes, bodies: readonly { graph: number }[]): Value[] {
    try {
      return this.apply(op, operands, attributes, bodies.map(({ graph }) => graph));
    } finally {
      for (const { graph } of bodies) release(this.#instance, graph);
    }
  }

  /**
   * The inclusive scan of operands of one shape along an axis, 0 if not given, by an associative operator, as JAX's `associative_scan`. `combine`
   * gets the scalars of a run of elements and of the run after it, one for each operand, and returns those of the combined
   * run; it uses nothing but its arguments, and elementwise ops alone. `reverse` begins at the end. The order of association is unspecified.
   */
  associativeScan<const O extends Values>(operands: O, combine: (b: GraphBuilder, x: Alike<O>, y: Alike<O>) => Values, options: { axis?: number; reverse?: boolean } = {}): Alike<O> {
    const op = 'associativeScan';
    checkValues(op, { operands });
    checkFunction(`${op}: the operator is built by`, combine);
    checkOptions(op, options, 'axis reverse');
    const { axis = 0, reverse } = options, n = operands.length, scalars = operands.map(({ dtype }) => ({ dtype, shape: [] }));
    const body = this.#closed(op, 'the operator', [...scalars, ...scalars], (b, values) => combine(b, values.slice(0, n) as Alike<O>, values.slice(n) as Alike<O>));
    return this.#custom('associative_scan', operands, { axis: axis < 0 ? axis + (operands[0]?.shape.length ?? 0) : axis, reverse }, [body]) as Alike<O>;
  }

  /**
   * A function with its own forward derivative. `jvp` gets the operands and a tangent for each that is a float, and returns a
   * tangent for each float result; it is linear in the tangents. Reverse mode transposes it, higher orders differentiate it.
   * Both functions use nothing but their arguments.
   */
  customJVP<const O extends Values, const R extends Values>(operands: O, f: Branch<O, R>, jvp: (b: GraphBuilder, operands: Alike<O>, tangents: Value[]) => Values): Alike<R> {
    checkValues('customJVP', { operands });
    checkFunction('customJVP: the function is built by', f);
    checkFunction('customJVP: the derivative is built by', jvp);
    const n = operands.length, floats = operands.filter(isFloat);
    const primal = this.#closed('customJVP', 'the function', operands, f as Branch);
    const tangent = this.#closed('customJVP', 'the derivative', [...operands, ...floats], (b, values) => jvp(b, values.slice(0, n) as Alike<O>, values.slice(n)));
    return this.#custom('custom_jvp', operands, {}, [primal, tangent]) as Alike<R>;
  }

  /**
   * A function with its own reverse derivative. `forward` returns results, and what `backward` needs; `backward` gets the
   * latter and a cotangent for each float result, and returns one for each float operand. It is linear in the cotangents.
   * Both functions use nothing but their arguments.
   */
  customVJP<const O extends Values, const R extends Values, const K extends Values>(
    operands: O, forward: (b: GraphBuilder, operands: Alike<O>) => { results: R; kept: K }, backward: (b: GraphBuilder, kept: Alike<K>, cotangents: Value[]) => Values,
  ): Alike<R> {
    checkValues('customVJP', { operands });
    checkFunction('customVJP: the function is built by', forward);
    checkFunction('customVJP: the derivative is built by', backward);
    let n = 0;
    const f = this.#closed('customVJP', 'the function', operands, (b, values) => {
      const made = forward(b, values as Alike<O>);
      if (!Array.isArray(made?.results) || !Array.isArray(made.kept)) throw new RlxError('graph', `customVJP: the function returns ${classOf(made)}: it must return { results, kept }, lists of values`, { op: 'customVJP' });
      n = made.results.length;
      return [...made.results, ...made.kept] as Values;
    });
    const kept = f.results.slice(n), floats = f.results.slice(0, n).filter(isFloat);
    const g = this.#closed('customVJP', 'the derivative', [...kept, ...floats], (b, values) => backward(b, values.slice(0, kept.length) as Alike<K>, values.slice(kept.length)));
    return this.#custom('custom_vjp', operands, { results: n }, [f, g]).slice(0, n) as Alike<R>;
  }

  /** Finishes the graph and returns its handle; its ports are in the order of the names, if given. @internal */
  finish(names: readonly string[] = []): number {
    const request = this.#request('build').texts(names);
    this.#open = false;
    return invoke(request, this.#instance).u32();
  }

  /** Ends the construction without a graph. @internal */
  drop(): void {
    if (!this.#open) return;
    this.#open = false;
    release(this.#instance, this.#handle);
  }
}

/** One side of a {@link GraphBuilder.cond}: a builder and the operands in, values out. Like a {@link LoopBody} it may use outer values. */
export type Branch<O extends Values = any, R extends Values = Values> = (b: GraphBuilder, values: Alike<O>) => R;

[Value, ValueOps, GraphBuilder, BuilderOps].forEach(methodsAtCaller);
