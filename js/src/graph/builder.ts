import { compiler, invoke, release } from './compiler.js';
import type { DType, TensorData } from '../values/dtype.js';
import { RlxError } from '../values/errors.js';
import type { Initial } from './graph.js';
import type { Instance } from '../wasm/module.js';
import { BuilderOps } from './ops.gen.js';
import { type Attributes, type Dim, dimOf, type Operand, snake, Value, type ValueType } from './value.js';
import { Request } from '../wasm/wire.js';

/** One step of a {@link GraphBuilder.scan}, for the loop's constants, the carries and the step's slices. */
export type LoopBody = (b: GraphBuilder, consts: Value[], carries: Value[], slices: Value[]) => { carries: readonly Value[]; ys?: readonly Value[] };

export interface LoopOptions {
  /** Values that are the same in every step: the body can use no others from outside. */
  consts?: readonly Value[];
  /** What the first step gets from the one before. */
  carries?: readonly Value[];
  /** Values that are cut into slices along their first axis, one for each step. */
  xs?: readonly Value[];
  /** How many steps; it may be left out where there are `xs`. */
  length?: Dim;
  /** Whether the steps begin with the last slice. */
  reverse?: boolean;
}

/** Builds a graph, see {@link graph}. What does not fit throws an {@link RlxError} at once. */
export class GraphBuilder extends BuilderOps {
  readonly #instance: Instance = compiler();
  readonly #handle: number;
  readonly #numbers = new Map<string, Value>();
  #open = true;
  /** What parameters begin with. @internal */
  readonly initial = new Map<string, Initial>();

  /** @internal */
  constructor(name: string) {
    super();
    this.#handle = invoke(new Request('builder').text(name)).u32();
  }

  #request(method: string): Request {
    if (!this.#open) throw new RlxError('closed', 'the graph is finished');
    return new Request(method).u32(this.#handle);
  }

  #values(request: Request): Value[] {
    const r = invoke(request, this.#instance);
    return r.list(() => new Value(this, r.u32(), { dtype: r.text(), shape: r.list(() => dimOf(r.text())) }));
  }

  #value(request: Request): Value { return this.#values(request)[0]!; }

  #port(kind: string, name: string, dtype: DType, shape: readonly Dim[]): Value {
    return this.#value(this.#request('port').text(kind).text(name).text(dtype).texts(shape));
  }

  /** A value that every run is given. */
  input(name: string, dtype: DType, shape: readonly Dim[] = []): Value { return this.#port('input', name, dtype, shape); }

  /** A parameter: kept between runs, and trained. It begins as 0, or as `glorot` if it has two axes or more. */
  param(name: string, dtype: DType, shape: readonly Dim[], initial?: Initial): Value {
    if (initial !== undefined) this.initial.set(name, initial);
    return this.#port('param', name, dtype, shape);
  }

  /** A state: kept between runs, and changed by {@link GraphBuilder.setState}. It begins as 0. */
  state(name: string, dtype: DType, shape: readonly Dim[] = []): Value { return this.#port('state', name, dtype, shape); }

  /** Gives a state, or a parameter, its value for the next run. */
  setState(name: string, value: Value): void { invoke(this.#request('state').text(name).u32(this.#idOf(value)), this.#instance); }

  /** Names a result. */
  output(name: string, value: Value): void { invoke(this.#request('output').text(name).u32(this.#idOf(value)), this.#instance); }

  /** Names what is built from here on, in errors and in the kernels' labels. */
  label(text: string): void { invoke(this.#request('label').text(text), this.#instance); }

  /** A literal: elements in row-major order. */
  constant(dtype: DType, shape: readonly number[], data: TensorData): Value {
    return this.#value(this.#request('constant').text(dtype).texts(shape).data(new Uint8Array(data.buffer, data.byteOffset, data.byteLength)));
  }

  /** One number in every place of a shape. */
  full(dtype: DType, shape: readonly Dim[], n: number): Value {
    return this.#value(this.#request('full').text(dtype).texts(shape).f64(n));
  }

  /** A random key, u32[2], from a seed. */
  randomKey(seed: number): Value { return this.call('random_key', [], [seed]); }

  /** An operand as a value: numbers become constants without axes. */
  value(operand: Operand, dtype: DType): Value {
    if (operand instanceof Value) return operand;
    const type: DType = typeof operand === 'boolean' ? 'bool' : dtype, key = `${type} ${Number(operand)}`;
    let made = this.#numbers.get(key);
    if (!made) this.#numbers.set(key, made = this.full(type, [], Number(operand)));
    return made;
  }

  #idOf(value: Value): number {
    if (value?.builder !== this) throw new RlxError('graph', 'the value belongs to another graph');
    return value.id;
  }

  /** Adds an op. Numbers get the element type of the first value that is not boolean, f32 where there is none. @internal */
  apply(op: string, operands: readonly (Operand | undefined)[], attributes: Attributes = {}, graphs: readonly number[] = []): Value[] {
    const given = operands.filter((operand) => operand !== undefined);
    const typed = given.find((operand): operand is Value => operand instanceof Value && operand.dtype !== 'bool');
    const ids = given.map((operand) => this.#idOf(this.value(operand, (typed?.dtype ?? 'f32') as DType)));
    const named = Object.entries(attributes).filter(([, value]) => value !== undefined);
    const request = this.#request('op').text(op).list(ids, (r, id) => r.u32(id))
      .list(named, (r, [name, value]) => r.text(snake(name)).attribute(value!))
      .list(graphs, (r, handle) => r.u32(handle));
    return this.#values(request);
  }

  /** Calls a function of the compiler that is more than one op. @internal */
  call(name: string, values: readonly Value[], numbers: readonly number[] = []): Value {
    const request = this.#request('call').text(name).list(values, (r, value) => r.u32(this.#idOf(value))).list(numbers, (r, n) => r.f64(n));
    return this.#value(request);
  }

  /** Runs a function that builds a graph of its own for values like the given ones, and returns the handle of that graph. */
  #closed(name: string, like: readonly ValueType[], build: (b: GraphBuilder, values: Value[]) => readonly Value[]): number {
    const b = new GraphBuilder(name);
    try {
      const results = build(b, like.map(({ dtype, shape }, i) => b.input(`in${i}`, dtype as DType, shape)));
      results.forEach((value, i) => b.output(`out${i}`, value));
    } catch (reason) {
      b.drop();
      throw reason;
    }
    return b.finish();
  }

  /**
   * A loop: runs a graph once for each slice. Returns the carries after the last step, and of
   * each of the `ys` those of all steps, stacked along a first axis.
   */
  scan({ consts = [], carries = [], xs = [], length, reverse = false }: LoopOptions, body: LoopBody): { carries: Value[]; ys: Value[] } {
    const steps = length ?? xs[0]?.shape[0];
    if (steps === undefined) throw new RlxError('shape', 'scan: a loop without xs needs a length', { op: 'scan' });
    const like = [...consts, ...carries, ...xs.map(({ dtype, shape }) => ({ dtype, shape: shape.slice(1) }))];
    const cut = consts.length + carries.length;
    const graph = this.#closed('step', like, (b, values) => {
      const made = body(b, values.slice(0, consts.length), values.slice(consts.length, cut), values.slice(cut));
      return [...made.carries, ...made.ys ?? []];
    });
    try {
      const out = this.apply('scan', [...consts, ...carries, ...xs], { consts: consts.length, carries: carries.length, length: [steps], reverse }, [graph]);
      return { carries: out.slice(0, carries.length), ys: out.slice(carries.length) };
    } finally {
      release(this.#instance, graph);
    }
  }

  /** What one of two graphs returns for the operands: the first where the predicate, a boolean without axes, is true. */
  cond(predicate: Value, operands: readonly Value[], whenTrue: Branch, whenFalse: Branch): Value[] {
    const graphs: number[] = [];
    try {
      graphs.push(this.#closed('when_true', operands, whenTrue));
      graphs.push(this.#closed('when_false', operands, whenFalse));
      return this.apply('cond', [predicate, ...operands], {}, graphs);
    } finally {
      for (const handle of graphs) release(this.#instance, handle);
    }
  }

  /** Ends the construction, and returns the graph's handle. @internal */
  finish(): number {
    const request = this.#request('build');
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

/** One side of a {@link GraphBuilder.cond}. */
export type Branch = (b: GraphBuilder, values: Value[]) => readonly Value[];
