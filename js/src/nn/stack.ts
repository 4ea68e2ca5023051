// Repeated blocks.

import type { DeclaredPort, GraphBuilder, Value } from '../graph/builder.js';
import type { Initial } from '../graph/initial.js';
import { part } from '../graph/part.js';
import { type InitialRule, resolved, ruleOf } from '../graph/rule.js';
import type { DType } from '../values/dtype.js';
import { checkOptions } from '../values/errors.js';
import { builderOf, checkBuild, type Context, contextOf, drawKey, during, inside, isValue, Layer, newStream } from './layer.js';

/** Options of {@link stack}. */
export interface StackOptions {
  /**
   * Runs the blocks as one loop over parameters that are stacked along a first axis, `block/linear0/weight` of [n, ...]: the
   * graph does not grow with n. If not set the blocks are unrolled, with parameters `block/0/linear0/weight` and so on.
   */
  scan?: boolean;
  /** Recomputes each block from its input in the backward pass, without storing its values. */
  checkpoint?: boolean;
}

/**
 * Applies n blocks of equal structure to x: f to x, f to the result, and so on; f returns a value
 * of the type of x. It gets the number of the block, always 0 with `scan`, which calls it once.
 * Parameters of the blocks are in the scope `name`. With `scan` or `checkpoint` f declares no
 * states, and its value belongs to a separate builder; it may use values around it, as a mask.
 */
export function stack(x: Value, name: string, n: number, f: (x: Value, block: number) => Value, options?: StackOptions): Value {
  checkBuild(stack, f);
  return inside(stack, builderOf(stack, x), () => {
    checkOptions('nn.stack', options, 'scan checkpoint');
    const l = new Layer(x, 'stack'), { b } = l;
    l.requireCount(n, 'the number of blocks', 0);
    if (n === 0) return x;
    const { scan, checkpoint = false } = options ?? {};
    return b.scoped(name, () => scan ? scanned(l, n, (y) => f(y, 0), checkpoint) : unrolled(l, n, f, checkpoint));
  });
}

/** Calls the function of a block, which must return the type of x. */
function called(l: Layer, x: Value, f: (x: Value) => Value): Value {
  const y = x.builder.outside(() => f(x));
  if (y?.dtype !== x.dtype || `${y.shape}` !== `${x.shape}`) l.fail('shape', `a block returns ${y?.dtype}[${y?.shape}]`);
  return y;
}

/** {@link during} for a block with a builder of its own: layers of values around it are the block's. */
const duringBlock = <T>(b: GraphBuilder, change: Partial<Context>, build: () => T): T => b.building(() => during(b, change, build));

function unrolled(l: Layer, n: number, f: (x: Value, block: number) => Value, checkpoint: boolean): Value {
  const { b } = l;
  let y = l.x;
  for (let i = 0; i < n; i++) y = b.scoped(String(i), () => checkpoint ? recomputed(y, (z) => f(z, i)) : called(l, y, (z) => f(z, i)));
  return y;
}

/** The result of a block that the backward pass recomputes from x, its input. @internal */
export function recomputed(x: Value, f: (x: Value) => Value): Value {
  const l = new Layer(x, 'stack'), { random } = probe(l, f), { b } = l;
  const [y] = b.checkpoint(random ? [x, drawKey(b, 'block')] : [x], (body, [input, key]) => [duringBlock(body, blockContext(body, key), () => called(l, input!, f))]);
  return y!;
}

/** The context of a block in a body: layer counts start from 0, and random numbers come from a separate key. */
const blockContext = (body: GraphBuilder, key: Value | undefined) => ({ counts: new Map<string, number>(), random: { ...newStream(key), from: body.scopeName ? body.scopeName.length + 1 : 0 } });

/** Runs the blocks as a loop over stacked parameters. */
function scanned(l: Layer, n: number, f: (x: Value) => Value, checkpoint: boolean): Value {
  const { b, x } = l, { params, random } = probe(l, f);
  const stacked = params.map(({ name, type, initial, frozen }) => {
    const shape = type.shape as number[], rule = ruleOf(initial);
    if (initial !== undefined && !rule) l.fail('attr', `parameter ${name} begins with elements: in a loop it begins by a rule`);
    return b.param(name, type.dtype as DType, [n, ...shape], rule && stackedInitial(rule, shape), frozen);
  });
  const keys = random ? [drawKey(b, 'block').randomBits(undefined, { shape: [n], pairs: true })] : [];
  const block = (body: GraphBuilder, [input, ...slices]: readonly Value[]): [Value] => {
    body.slices = new Map(params.map(({ name }, i) => [name, slices[i]!]));
    return [duringBlock(body, blockContext(body, random ? slices.at(-1) : undefined), () => called(l, input!, f))];
  };
  const { carries } = b.scan({ carries: [x], xs: [...stacked, ...keys], length: n }, (body, _, carry, slices) =>
    ({ carries: checkpoint ? body.checkpoint([...carry, ...slices], block) : block(body, [...carry, ...slices]) }));
  return carries[0];
}

/**
 * Applies f to each block of x, [n, ...], whose element of `active`, bool[n], is true; the results of the others are 0, and are not
 * computed. f returns a value of the type of a block. All blocks have the same parameters, in the open scope; f declares no
 * states, and its value belongs to a separate builder.
 */
export function activeBlocks(x: Value, active: Value, f: (x: Value) => Value): Value {
  checkBuild(activeBlocks, f);
  return inside(activeBlocks, builderOf(activeBlocks, x), () => {
    const l = new Layer(x, 'active_blocks'), { b } = l, n = l.size(0);
    if (!isValue(active) || active.dtype !== 'bool' || `${active.shape}` !== `${n}`) l.fail('shape', `active is ${active?.dtype}[${active?.shape}]: it must be bool[${n}]`);
    if (n === 0) return x;
    const shape = x.shape.slice(1), first = part(x, 0, 0, 1).reshape(shape), { random } = probe(new Layer(first, l.kind), f);
    const when = (body: GraphBuilder, on: Value, operands: readonly Value[]): Value => body.cond(on, operands,
      (inner, [input, key]) => [duringBlock(inner, blockContext(inner, key), () => called(new Layer(first, l.kind), input!, f))],
      (inner, [input]) => [inner.full(input!.dtype as DType, shape, 0)])[0]!;
    const key = random ? [drawKey(b, 'block')] : [];
    if (n === 1) return when(b, active.reshape([]), [first, ...key]).expandDims(0);
    const keys = key.map((one) => one.randomBits(undefined, { shape: [n], pairs: true }));
    return b.scan({ xs: [x, active, ...keys], length: n }, (body, _, carries, [input, on, ...rest]) => ({ carries, ys: [when(body, on!, [input!, ...rest])] })).ys[0]!;
  });
}

/** The parameters that a block declares, and whether it draws random numbers, found by building it in a separate graph. */
function probe(l: Layer, f: (x: Value) => Value): { params: readonly DeclaredPort[]; random: boolean } {
  const scratch: GraphBuilder = l.b.scratch(), { dtype, shape } = l.x;
  try {
    const random = newStream(scratch.input('key', 'u32', [2])), { past, ...cache } = contextOf(l.b).cache ?? { length: 0 };
    const { stored } = contextOf(l.b), scope = l.b.scopeName, within = stored && { stored: (name: string) => stored(`${scope}/${name}`) };
    const change = { ...contextOf(l.b), ...within, counts: new Map<string, number>(), random, ...cache.length && { cache } };
    duringBlock(scratch, change, () => called(l, scratch.input('x', dtype as DType, shape), f));
    const ports = scratch.declarations.filter(({ kind }) => kind !== 'input'), state = ports.find(({ kind }) => kind === 'state');
    if (state) l.fail('graph', `the block declares state ${state.name}: a loop carries values that change; unroll the blocks, without scan`);
    return { params: ports, random: random.drawn.size > 1 };
  } finally {
    scratch.drop();
  }
}

/** The rule of weights of a shape along a new first axis, each drawn by a rule. */
export function stackedInitial(initial: Initial, shape: readonly number[]): InitialRule {
  const { rule, args } = ruleOf(initial)!;
  return rule === 'orthogonal' ? { rule, args: [args[0] ?? 1, (args[1] ?? 0) + 1] } : resolved({ rule, args }, shape);
}
