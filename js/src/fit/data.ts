// Batches of data for a training.

import type { Input, Inputs } from '../program/types.js';
import { batches, type Rows } from '../runtime/batches.js';
import { checkCount, need } from '../values/errors.js';
import type { HostTensor } from '../values/tensor.js';
import type { Data, Epoch } from './loop.js';

type Columns = Readonly<Record<string, HostTensor>>;

/**
 * Batches for {@link Loop.data}: `size` rows of each tensor, along its first axis, in an order
 * that depends on the seed and the epoch. The last rows that fill no batch are dropped; they
 * differ from epoch to epoch. The arrays of a batch are reused for the next one. Throws an {@link
 * RlxError}: `shape` if the tensors have different numbers of rows or fewer than `size`, `limit`
 * for a seed that is no count, `dtype`.
 */
export function shuffled<const D extends Columns>(data: D, size: number, seed: number): Data<Rows<D>> {
  checkCount('shuffled: seed', seed, 0, 2 ** 32 - 1);
  return cut(data, size, (epoch) => Math.imul(seed, 0x9e3779b9) ^ Math.imul(epoch + 1, 0x85ebca6b));
}

/** Batches for `data` of an evaluation, and of a training: `size` rows of each tensor in order. Otherwise as {@link shuffled}. */
export function inOrder<const D extends Columns>(data: D, size: number): Data<Rows<D>> & (() => Epoch<Rows<D>>) { return cut(data, size); }

/**
 * {@link inOrder} with the rows that are left over, too: every row of an evaluation counts. The last batch has those rows alone,
 * as a program of `openSizes` takes it. Given the name of an input `mask`, f32[size], it is filled up with zeros for an entry of one size, and the
 * mask is 1 for rows of the data and 0 for others: outputs are then means over the rows of the data, such as
 * `losses.mul(mask).sum().div(mask.sum())`, and `weight` of {@link Evaluation} is an output `mask.sum()`.
 */
export function allInOrder<const D extends Columns, const M extends string = never>(data: D, size: number, mask?: M): () => Epoch<Rows<D> & { readonly [N in M]: Float32Array }> {
  need(mask === undefined || mask as unknown && typeof mask === 'string', 'attr', 'allInOrder: mask', 'the name of an input', mask);
  const read = () => batches(data, { size, last: mask ? { mask } : { entry: 'last' }, epochs: 1 });
  read(); // which checks the data
  return function* () {
    for (const { inputs } of read()) yield inputs as Rows<D> & { readonly [N in M]: Float32Array };
  };
}

function cut<D extends Columns>(data: D, size: number, seedOf?: (epoch: number) => number): Data<Rows<D>> & (() => Epoch<Rows<D>>) {
  const read = (epoch: number) => batches(data, { size, last: 'drop', epochs: 1, ...seedOf && { shuffle: seedOf(epoch) } });
  read(0); // which checks the data
  const rows = Object.values(data)[0]!.shape[0]!;
  const from = function* (epoch: number, skip: number) {
    let i = 0;
    for (const { inputs } of read(epoch)) if (i++ >= skip) yield inputs as Rows<D>;
  };
  return Object.assign((epoch = 0) => from(epoch, 0), { epochSteps: Math.floor(rows / size), from });
}

/**
 * The same batches, asked for before they are needed: up to `ahead` of them wait while the device computes, and no more. They are
 * copied, so that the source may use its arrays again, as {@link shuffled} does. For batches that are read or made asynchronously.
 */
export function prefetch<I = Inputs>(data: Data<I>, ahead: number): Data<I> {
  need(typeof data === 'function', 'missing', 'prefetch: data', 'a function of the epoch', data);
  checkCount('prefetch: ahead', ahead, 1);
  const { from, epochSteps } = data;
  return Object.assign((epoch: number) => early(data(epoch), ahead), {
    ...epochSteps !== undefined && { epochSteps },
    ...from && { from: (epoch: number, skip: number) => early(from(epoch, skip), ahead) },
  });
}

async function* early<I>(source: Epoch<I>, ahead: number): AsyncGenerator<I, void, void> {
  const iterator = iteratorOf(source), waiting: Promise<IteratorResult<I>>[] = [];
  let last: Promise<unknown> = Promise.resolve();
  const ask = () => {
    const next = last.then(async () => copied(await iterator.next())); // a source that goes on would change the arrays of the batch before
    last = next.catch(() => {}); // it is thrown when its turn comes
    waiting.push(next);
  };
  try {
    while (waiting.length <= ahead) ask();
    for (;;) {
      const { done, value } = await waiting.shift()!;
      if (done) return;
      ask();
      yield value;
    }
  } finally {
    await iterator.return?.();
  }
}

/** A batch with arrays of its own. */
function copied<I>(result: IteratorResult<I>): IteratorResult<I> {
  const { done, value: batch } = result;
  if (done || Object(batch) !== batch) return result;
  const copy = (x: Input) => ArrayBuffer.isView(x) ? x.slice() : ArrayBuffer.isView(Object(x).data) ? { ...x as object, data: Object(x).data.slice() } : x;
  return { done: false, value: Object.fromEntries(Object.entries(batch as Inputs).map(([name, x]) => [name, copy(x)])) as I };
}

/** The iterator of an iterable of either kind. Throws an {@link RlxError} of kind `missing` for anything else. */
export function iteratorOf<I>(source: Epoch<I>): Iterator<I, unknown> | AsyncIterator<I, unknown> {
  const begin = (source as Iterable<I>)?.[Symbol.iterator] ?? (source as AsyncIterable<I>)?.[Symbol.asyncIterator];
  need(begin, 'missing', 'fit: what data returns', 'an iterable of batches', source);
  return begin.call(source) as Iterator<I, unknown> | AsyncIterator<I, unknown>;
}
