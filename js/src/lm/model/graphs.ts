// The graphs of a model that generates: they share keys, values and the states of sampling.

import type { GraphBuilder, Value } from '../../graph/builder.js';
import { type Graph, graph, graphInParts, type Parts } from '../../graph/graph.js';
import { infer, train } from '../../nn/context.js';
import type { LoRAOptions } from '../../nn/layer.js';
import { adapted } from '../../nn/linear.js';
import { cache } from '../../nn/position.js';
import { stored } from '../../nn/storage.js';
import type { Config } from './config.js';
import { decoderInParts, lossInParts } from './decoder.js';
import { best, draw, penalized, samplingFields } from './sample.js';
import type { Weights } from './weights.js';

/** What the graphs of a model depend on. */
export interface Shape {
  config: Config;
  weights: Pick<Weights, 'storage'>;
  /** The positions of the caches, and the tokens of a prompt that one run takes. */
  context: number;
  chunk: number;
  /** Adds low-rank matrices to all linear layers but that of the logits. */
  adapter?: LoRAOptions;
}

// The states of sampling: which tokens are in the sequence, 1 for those of the prompt and 2 for each time that one was
// generated, what is added to logits, the last token, and the logits that it was chosen by.
const seenState = 'sampler/seen', tokenState = 'sampler/token', logitsState = 'sampler/logits';

/** @internal */
export const biasState = 'sampler/bias';

/** What builds a part of the model with its stored weights, and the matrices of the adapter. */
function model(b: GraphBuilder, { weights, adapter }: Shape): (build: () => Value) => Value {
  return (build) => {
    const all = () => stored(b, (name) => weights.storage(name), build);
    return adapter ? adapted(b, adapter, all) : all();
  };
}

/** Tokens, i32[1, n], as indices of a row over the vocabulary, and the options of a scatter there: it drops those outside. */
function inRow(tokens: Value) {
  const { builder: b } = tokens;
  return [b.stack([b.iota({ dtype: 'i32', axis: 0, shape: tokens.shape }), tokens], 2), { axes: [0, 1], outside: 'drop' }] as const;
}

/**
 * Processes a chunk of a prompt: the first `count` of `tokens`, the others are padding. `first`
 * resets the seen tokens. The token is the first of the result after the last chunk;
 * otherwise the host ignores it.
 */
export function prefillGraph(shape: Shape): Parts<Graph> {
  const { config: { vocabulary }, chunk, context } = shape;
  return graphInParts('prefill', function* (b) {
    infer(b);
    const tokens = b.input('tokens', 'i32', [1, chunk]), count = b.input('count', 'i32', [1]), first = b.input('first', 'i32');
    cache(b, context, { past: b.input('past', 'i32', [1]) });
    const logits = yield* decoderInParts(tokens, shape.config, { at: count.sub(1), context }, model(b, shape));
    const kept = b.state(seenState, 'i32', [1, vocabulary]).mul(b.value(1, 'i32').sub(first));
    const real = b.iota({ dtype: 'i32', axis: 1, shape: [1, chunk] }).lt(count);
    b.state(tokenState, 'i32', [1]);
    const [at, how] = inRow(real.select(tokens, vocabulary));
    choose(b, logits, kept.scatterMax(at, b.full('i32', [1, chunk], 1), how));
  });
}

/** Takes the last token that was chosen, and chooses the next one. */
export function decodeGraph(shape: Shape): Parts<Graph> {
  const { config: { vocabulary }, context } = shape;
  return graphInParts('decode', function* (b) {
    infer(b);
    const last = b.state(tokenState, 'i32', [1]);
    cache(b, context, { past: b.input('past', 'i32', [1]) });
    const logits = yield* decoderInParts(last.reshape([1, 1]), shape.config, { context }, model(b, shape));
    const [at, how] = inRow(last.reshape([1, 1]));
    choose(b, logits, b.state(seenState, 'i32', [1, vocabulary]).scatterAdd(at, b.full('i32', [1, 1], 2), how));
  });
}

/** Chooses the most likely token, and stores the states for the next run and for {@link drawGraph}. */
function choose(b: GraphBuilder, logits: Value, seen: Value): void {
  const shape = seen.shape as number[], bias = b.state(biasState, 'f32', shape);
  const x = penalized(logits.reshape(shape), b.input('by', 'f32', [1, samplingFields]), seen, seen.shiftRight(1)).add(bias), token = best(x);
  b.setState(biasState, bias);
  b.state(logitsState, 'f32', shape);
  b.setState(logitsState, x);
  b.setState(seenState, seen);
  b.setState(tokenState, token);
  b.output('token', token);
}

/** Replaces the token of the run before by one that is drawn. It is apart because a GPU does the work of both branches of a condition. */
export function* drawGraph({ config: { vocabulary } }: Shape): Parts<Graph> {
  return graph('draw', (b) => {
    const logits = b.state(logitsState, 'f32', [1, vocabulary]), token = draw(logits, b.input('by', 'f32', [1, samplingFields]), b.state(tokenState, 'i32', [1]));
    b.setState(logitsState, logits);
    b.setState(tokenState, token);
    b.output('token', token);
  });
}

/** The mean loss of the tokens that follow those of rows, and the gradient's checkpoints: each block is computed again. */
export function lossGraph(shape: Shape, rows: number, length: number): Parts<Graph> {
  return graphInParts('loss', function* (b) {
    train(b);
    const tokens = b.input('tokens', 'i32', [rows, length]), next = b.input('next', 'i32', [rows, length]);
    b.output('loss', yield* lossInParts(tokens, next, shape.config, { checkpoint: true, context: length }, model(b, shape)));
  });
}
