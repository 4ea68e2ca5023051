/// <reference lib="esnext.disposable" preserve="true" />

import { type DType, sizeOf, type StoredData, type TensorData } from './dtype.js';
import { need, RlxError } from './errors.js';

// `using` calls the method of this symbol; engines without it have the other by convention of compilers.
const disposeSymbol: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for('Symbol.dispose');

/** A tensor in host memory. */
export interface HostTensor {
  /** Any string, so that `{ dtype: 'f32', ... }` needs no type annotation; a name that is no element type or packed format is refused. */
  dtype: DType | (string & {});
  shape: readonly number[];
  data: TensorData;
}

/**
 * A tensor as a file has it: of any element type. `as` makes a tensor of a parameter's type, or throws where
 * that would change a value; with `bytes`, elements of 64 bits and more are their bytes, as a program has them.
 */
export interface StoredTensor {
  dtype: string;
  shape: readonly number[];
  data: StoredData;
  as?(dtype: string, options?: { bytes?: boolean }): StoredTensor;
}

let live = 0;
const scopes: TensorScope[] = [];

/** The number of tensors not disposed of: if it grows, there is a leak. */
export const liveTensors = (): number => live;

/** The type of a tensor. */
export interface TensorType { dtype: string; shape: readonly number[] }

/** The parts of a tensor; `free` must not retain the tensor. */
export interface TensorSource extends TensorType {
  /** The program it belongs to. */
  owner: object;
  /** The owner's handle of it. */
  handle: unknown;
  data(): Promise<TensorData>;
  free(): void;
}

// The memory of tensors dropped without dispose is released some time later.
const dropped = new FinalizationRegistry<TensorSource>((source) => {
  live--;
  source.free();
});

/**
 * A tensor on the device. Using it as an input does not use it up. It lives until
 * `dispose()`, the end of its `using` block or of its {@link scope}.
 */
export class Tensor {
  #source: TensorSource | undefined;
  readonly dtype: string;
  readonly shape: readonly number[];

  /** @internal */
  constructor(source: TensorSource) {
    this.#source = source;
    this.dtype = source.dtype;
    this.shape = source.shape;
    live++;
    dropped.register(this, source, this);
    scopes.at(-1)?.add(this);
  }

  /** The number of elements. */
  get size(): number { return sizeOf(this.shape); }

  /** The elements. */
  async data(): Promise<TensorData> { return this.#live().data(); }

  /** Frees the memory. A second call does nothing. */
  dispose(): void {
    if (!this.#source) return;
    live--;
    dropped.unregister(this);
    this.#source.free();
    this.#source = undefined;
  }

  [disposeSymbol](): void { this.dispose(); }

  /** The handle of the tensor at `owner`. @internal */
  handleOf(owner: object): unknown {
    const source = this.#live();
    if (source.owner !== owner) throw new RlxError('name', 'the tensor belongs to another program');
    return source.handle;
  }

  #live(): TensorSource {
    if (!this.#source) throw new RlxError('closed', 'the tensor was disposed of');
    return this.#source;
  }
}

/** Owns the tensors made while it is the newest scope. Made by {@link scope}. */
export interface TensorScope {
  /** Takes a tensor over. */
  add(tensor: Tensor): void;
  /** Lets a tensor outlive the scope, and returns it. */
  release(tensor: Tensor): Tensor;
  /** Ends the scope and disposes of its tensors. */
  dispose(): void;
  [disposeSymbol](): void;
}

/** Begins a scope: `using s = scope()`, or `const s = scope()` and `s.dispose()`. */
export function scope(): TensorScope {
  const tensors = new Set<Tensor>();
  const made: TensorScope = {
    add(tensor) {
      need(tensor instanceof Tensor, 'attr', 'what a scope takes', 'a Tensor', tensor);
      tensors.add(tensor);
    },
    release(tensor) {
      tensors.delete(tensor);
      return tensor;
    },
    dispose() {
      const at = scopes.indexOf(made);
      if (at >= 0) scopes.splice(at, 1);
      for (const tensor of tensors) tensor.dispose();
      tensors.clear();
    },
    [disposeSymbol]() { made.dispose(); },
  };
  scopes.push(made);
  return made;
}
