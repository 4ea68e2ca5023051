// The graphs of a model that generates several texts at once, each in a slot: they share keys, values and the states of
// sampling. `row` lists the slots of a run; one that is their number is padding, whose past of -1 prevents reads and writes.

import type { GraphBuilder, Value } from '../../graph/builder.js';
import { type Graph, graph, graphInParts, type Parts } from '../../graph/graph.js';
import { infer } from '../../nn/context.js';
import { cache } from '../../nn/position.js';
import { stored } from '../../nn/storage.js';
import { decoderInParts } from './decoder.js';
import type { Shape } from './graphs.js';
import { best, draw, penalized, samplingFields } from './sample.js';

/** What the graphs depend on: the slots, and the tokens that a run proposes at most. */
export interface SlotShape extends Shape { slots: number; draft: number }

const seenState = 'sampler/seen', biasState = 'sampler/bias', tokenState = 'sampler/token', logitsState = 'sampler/logits';

/**
 * The numbers of rows for which there is an entry: powers of four, and all slots. A run takes the fewest that hold its own, as
 * its cost may grow with them; each is compiled, in 1.2 s of a processor for 135 million parameters.
 */
export function rowsOf(slots: number): number[] {
  const rows = [];
  for (let n = 1; n < slots; n *= 4) rows.push(n);
  return [...rows, slots];
}

/** The entries by name. */
export function slotGraphs(shape: SlotShape): Record<string, () => Parts<Graph>> {
  const { slots, draft } = shape, rows = rowsOf(slots), out: Record<string, () => Parts<Graph>> = { prefill: () => prefillGraph(shape), bias: () => biasGraph(shape) };
  for (const n of rows) out[`decode ${n}`] = () => decodeGraph(shape, n);
  if (draft) out.verify = () => verifyGraph(shape);
  for (const n of new Set([...rows, ...draft ? [draft + 1] : []])) out[`draw ${n}`] = () => drawGraph(shape, n);
  return out;
}

/** What builds a part of the model with its stored weights. */
const within = (b: GraphBuilder, { weights }: Shape) => (build: () => Value): Value => stored(b, (name) => weights.storage(name), build);

/** The options of a scatter to rows, or to elements of rows: rows of padding are dropped. */
const dropped = { outside: 'drop', unique: true } as const;

/** The sequences of a run, which continue those of slots. */
function sequences(b: GraphBuilder, { slots, context }: SlotShape, n: number): { row: Value; of: (state: Value) => Value } {
  const row = b.input('row', 'i32', [n]), within = row.min(slots - 1);
  cache(b, context, { past: b.input('past', 'i32', [n]), rows: slots, row: within });
  return { row, of: (state) => state.take(within, 0, 'clip') };
}

/**
 * Chooses the most likely tokens of rows, and stores them among the last ones of the slots `row`, if it is given; the logits,
 * too, for {@link drawGraph}, which is next if tokens are drawn.
 */
function choose(b: GraphBuilder, { slots, draft, config: { vocabulary } }: SlotShape, x: Value, row?: Value, last?: Value): void {
  const n = x.shape[0] as number, most = Math.max(slots, draft + 1), token = best(x), logits = b.state(logitsState, 'f32', [most, vocabulary]);
  b.setState(logitsState, n === most ? x : logits.dynamicUpdateSlice(x, b.stack([b.full('i32', [], 0), b.full('i32', [], 0)], 0)));
  if (row) b.setState(tokenState, last!.scatter(row.expandDims(1), token, { axes: [0], ...dropped }));
  b.output('token', token);
}

/**
 * Processes a chunk of the prompt of a slot: the first `count` of `tokens`. `first` begins a request. The token is the first of
 * the result after the last chunk.
 */
function prefillGraph(shape: SlotShape): Parts<Graph> {
  const { config: { vocabulary }, chunk, context, slots } = shape;
  return graphInParts('prefill', function* (b) {
    infer(b);
    const tokens = b.input('tokens', 'i32', [1, chunk]), count = b.input('count', 'i32', [1]), first = b.input('first', 'i32');
    const { row, of } = sequences(b, shape, 1), logits = yield* decoderInParts(tokens, shape.config, { at: count.sub(1), context }, within(b, shape));
    const all = b.state(seenState, 'i32', [slots, vocabulary]), bias = b.state(biasState, 'f32', [slots, vocabulary]);
    const place = b.iota({ dtype: 'i32', axis: 1, shape: [1, chunk] }), at = b.stack([b.iota({ dtype: 'i32', axis: 0, shape: [1, chunk] }), place.lt(count).select(tokens, vocabulary)], 2);
    const seen = of(all).mul(b.value(1, 'i32').sub(first)).scatterMax(at, b.full('i32', [1, chunk], 1), { axes: [0, 1], outside: 'drop' });
    b.setState(seenState, all.scatter(row.expandDims(1), seen, { axes: [0], ...dropped }));
    b.setState(biasState, bias);
    choose(b, shape, penalized(logits.reshape([1, vocabulary]), b.input('by', 'f32', [1, samplingFields]), seen, seen.shiftRight(1)).add(of(bias)), row, b.state(tokenState, 'i32', [slots]));
  });
}

/** Takes the last token of each slot of a run, or the given one if that is not negative, and chooses the next one. */
function decodeGraph(shape: SlotShape, n: number): Parts<Graph> {
  const { config: { vocabulary }, context, slots } = shape;
  return graphInParts('decode', function* (b) {
    infer(b);
    const given = b.input('given', 'i32', [n]), { row, of } = sequences(b, shape, n), last = b.state(tokenState, 'i32', [slots]), tokens = given.lt(0).select(of(last), given);
    const logits = yield* decoderInParts(tokens.reshape([n, 1]), shape.config, { context }, within(b, shape));
    const bias = b.state(biasState, 'f32', [slots, vocabulary]), all = b.state(seenState, 'i32', [slots, vocabulary]).scatterAdd(b.stack([row, tokens], 1), b.full('i32', [n], 2), { axes: [0, 1], ...dropped }), seen = of(all);
    b.setState(seenState, all);
    b.setState(biasState, bias);
    choose(b, shape, penalized(logits.reshape([n, vocabulary]), b.input('by', 'f32', [n, samplingFields]), seen, seen.shiftRight(1)).add(of(bias)), row, last);
  });
}

/**
 * Processes a token of a slot and the tokens that are proposed after it, and chooses the token after each: for requests without
 * penalties.
 */
function verifyGraph(shape: SlotShape): Parts<Graph> {
  const { config: { vocabulary }, context, draft, slots } = shape, n = draft + 1;
  return graphInParts('verify', function* (b) {
    infer(b);
    const tokens = b.input('tokens', 'i32', [1, n]), { of } = sequences(b, shape, 1), logits = yield* decoderInParts(tokens, shape.config, { context }, within(b, shape));
    const bias = b.state(biasState, 'f32', [slots, vocabulary]), x = logits.reshape([n, vocabulary]);
    b.setState(biasState, bias);
    choose(b, shape, (x.dtype === 'f32' ? x : x.convert('f32')).add(of(bias)));
  });
}

/** Replaces the tokens of the run before by ones that are drawn. */
function* drawGraph({ config: { vocabulary }, slots, draft }: SlotShape, n: number): Parts<Graph> {
  return graph('draw', (b) => {
    const logits = b.state(logitsState, 'f32', [Math.max(slots, draft + 1), vocabulary]), last = b.state(tokenState, 'i32', [slots]), row = b.input('row', 'i32', [n]);
    const x = logits.slice({ start: [0, 0], size: [n, vocabulary], stride: [1, 1] }), token = draw(x, b.input('by', 'f32', [n, samplingFields]), best(x));
    b.setState(logitsState, logits);
    b.setState(tokenState, last.scatter(row.expandDims(1), token, { axes: [0], ...dropped }));
    b.output('token', token);
  });
}

/** Sets what is added to the logits of a slot. */
function* biasGraph({ config: { vocabulary }, slots }: SlotShape): Parts<Graph> {
  return graph('bias', (b) => {
    const all = b.state(biasState, 'f32', [slots, vocabulary]), row = b.input('row', 'i32', [1]);
    b.setState(biasState, all.scatter(row.expandDims(1), b.input('bias', 'f32', [1, vocabulary]), { axes: [0], ...dropped }));
  });
}

/**
 * The entries of a model that proposes tokens: `extend` continues a slot by the first `count` of some tokens, `next` by the
 * token of the run before.
 */
export function draftGraphs(shape: SlotShape, chunks: readonly number[]): Record<string, () => Parts<Graph>> {
  const out: Record<string, () => Parts<Graph>> = { next: () => draftGraph(shape, 0) };
  for (const n of chunks) out[`extend ${n}`] = () => draftGraph(shape, n);
  return out;
}

function draftGraph(shape: SlotShape, chunk: number): Parts<Graph> {
  const { context } = shape;
  return graphInParts('draft', function* (b) {
    infer(b);
    const last = b.state(tokenState, 'i32', [1]), at = chunk ? { at: b.input('count', 'i32', [1]).sub(1) } : {}, tokens = chunk ? b.input('tokens', 'i32', [1, chunk]) : last.reshape([1, 1]);
    sequences(b, shape, 1);
    const logits = yield* decoderInParts(tokens, shape.config, { ...at, context }, within(b, shape)), token = best(logits.reshape([1, shape.config.vocabulary]));
    b.setState(tokenState, token);
    b.output('token', token);
  });
}
