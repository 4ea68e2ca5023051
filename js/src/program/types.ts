// The types of graphs and programs: names and element types. Graphs that were read from files, and plans,
// have none, and any name is accepted.

import type { TensorData } from '../values/dtype.js';
import type { Tensor } from '../values/tensor.js';

/**
 * A value for an input: its elements (with their shape, to have it checked), a tensor on the
 * device, or a number for an input of rank 0. In a run of several steps a scalar may be a list with
 * one number for each.
 */
export type Input = number | boolean | TensorData | { data: TensorData; shape: readonly number[] } | Tensor | readonly number[];

/** Values for an entry's inputs and scalars, by name. */
export type Inputs = Readonly<Record<string, Input>>;

/** The names and element types of a graph. `string` means an unknown element type. */
export interface GraphTypes {
  /** Its inputs. */
  inputs: Readonly<Record<string, string>>;
  /** What can be read after a run: outputs, parameters and states. */
  values: Readonly<Record<string, string>>;
  /** Its outputs; all of `values` if not given. */
  outputs?: Readonly<Record<string, string>>;
  /** The symbols among the sizes of its ports; any if not given. */
  symbols?: string;
}

/** The graphs of a program, by entry. */
export type EntryTypes = Readonly<Record<string, GraphTypes>>;

/** The class of typed array that holds the elements of a type. */
export type ArrayOf<D> =
  D extends 'f32' ? Float32Array : D extends 'i32' ? Int32Array : D extends 'u32' ? Uint32Array :
  D extends 'f16' | 'bf16' | 'u16' ? Uint16Array : D extends 'i16' ? Int16Array : D extends 'i8' ? Int8Array :
  D extends 'bool' | 'u8' | 'f8e4m3fn' | 'f8e5m2' ? Uint8Array : TensorData;

/** The accepted values of an input with an element type. */
export type InputOf<D> = number | boolean | readonly number[] | Tensor | ArrayOf<D> | { data: ArrayOf<D>; shape: readonly number[]; dtype?: D | (string & {}) };

/** The inputs of a graph; bound ones may be omitted. */
export type InputsOf<T extends GraphTypes> = string extends keyof T['inputs'] ? Inputs : { readonly [N in keyof T['inputs']]?: InputOf<T['inputs'][N]> };

type IsAny<T> = 0 extends 1 & T ? true : false;

/** The names of the readable values of a program. */
export type ValuesOf<E extends EntryTypes> = IsAny<E> extends true ? string : { [K in keyof E]: keyof E[K]['values'] & string }[keyof E];

/** The element type of what is in scopes, which declarations do not list: unknown, and that of another entry that has it by name. */
export type InScope = 'in scope';

/** The element type of a readable value of a program. */
type TypeOf<E extends EntryTypes, N extends string> = Named<{ [K in keyof E]: N extends keyof E[K]['values'] ? E[K]['values'][N] : never }[keyof E]>;
type Named<D> = [Exclude<D, InScope>] extends [never] ? D : Exclude<D, InScope>;

/** The elements of a readable value of a program. */
export type DataOf<E extends EntryTypes, N extends string> = IsAny<E> extends true ? TensorData : string extends N ? TensorData : ArrayOf<TypeOf<E, N>>;

/** The elements of values by their names. */
export type DataByName<E extends EntryTypes, V extends string> = { readonly [N in V]: DataOf<E, N> };

/** A literal name has to be a known one; a computed one may be any. */
export type Name<N extends string, Known extends string> = string extends N ? N : N extends Known ? N : Known;

/** The element type of a port or of another value of a graph. */
type TypeIn<T extends GraphTypes, N> = N extends keyof T['inputs'] ? T['inputs'][N] : N extends keyof T['values'] ? T['values'][N] : string;

/** Names with a prefix, of the element types of values of a graph. */
type Prefixed<Prefix extends string, T extends GraphTypes, B extends string> = { readonly [N in B as `${Prefix}/${N}`]: TypeIn<T, N> };

/** The names of the outputs of a graph. */
export type OutputNames<T extends GraphTypes> = keyof OutputsOf<T> & string;

/** The gradients by parameters of scopes, which a declaration does not list. */
type ScopedGradients<T extends GraphTypes> = string extends keyof T['values'] ? Readonly<Record<string, string>> : { readonly [N in `grad/${string}/${string}`]: InScope };

/** The types of derivatives of a graph by the ports B. */
export interface GradTypes<T extends GraphTypes, B extends string> { inputs: T['inputs']; values: Prefixed<'grad', T, B> & ScopedGradients<T> }
export interface ValueAndGradTypes<T extends GraphTypes, B extends string> { inputs: T['inputs']; values: T['values'] & Prefixed<'grad', T, B> }
export interface VJPTypes<T extends GraphTypes, B extends string> { inputs: T['inputs'] & Prefixed<'cotangent', T, OutputNames<T>>; values: T['values'] & Prefixed<'grad', T, B> }
export interface JVPTypes<T extends GraphTypes, B extends string> { inputs: T['inputs'] & Prefixed<'tangent', T, B>; values: T['values'] & Prefixed<'tangent', T, OutputNames<T>> }
export interface HVPTypes<T extends GraphTypes, B extends string> { inputs: T['inputs'] & Prefixed<'tangent', T, B>; values: T['values'] & Prefixed<'hvp', T, B> }
export interface JacobianTypes<T extends GraphTypes, V extends string, B extends string> { inputs: T['inputs']; values: T['values'] & Prefixed<`jacobian/${V}`, T, B> }
export interface HessianTypes<T extends GraphTypes, B extends string> { inputs: T['inputs']; values: T['values'] & { readonly [N in B as `hessian/${N}/${B}`]: TypeIn<T, B> } }
export interface JetTypes<T extends GraphTypes, B extends string> { inputs: T['inputs'] & Prefixed<`series/${number}`, T, B>; values: T['values'] & { readonly [N in `series/${number}/${OutputNames<T>}`]: InScope } }
export interface NthTypes<T extends GraphTypes, V extends string> { inputs: T['inputs']; values: T['values'] & { readonly [N in `d${number}/${V}`]: InScope } }

/** The names of the ports of a graph. Its outputs are among them, as `values` has both. */
export type PortNames<T extends GraphTypes> = (keyof T['inputs'] | keyof T['values']) & string;

/** The names of the readable values of a graph. */
export type ValueNames<T extends GraphTypes> = keyof T['values'] & string;

/** Refuses the properties of G that K does not list. */
export type Exactly<G, K> = [Exclude<keyof G, K>] extends [never] ? G : G & { readonly [N in Exclude<keyof G, K>]: never };

/** The values that the optimizer and the history of losses keep. */
type StepStates = { readonly [N in `optim/${string}` | `history/${string}`]: string };

/** The types of a training step of a graph. */
export interface StepTypes<T extends GraphTypes> {
  inputs: string extends keyof T['inputs'] ? T['inputs'] : T['inputs'] & { readonly lr: 'f32' };
  values: T['values'] & StepStates;
  outputs: OutputsOf<T>;
}

/** A plan file, with the types of its entries where it was just compiled. */
export type PlanFile<E extends EntryTypes = any> = Uint8Array<ArrayBuffer> & { readonly types?: E };

/** The outputs of a graph. */
export type OutputsOf<T extends GraphTypes> = T extends { outputs: infer O extends Readonly<Record<string, string>> } ? O : T['values'];

/** The symbols of a graph. */
export type SymbolsOf<T extends GraphTypes> = T extends { symbols: infer S extends string } ? S : string;

/** Values for some of these names; for any where the names are not known. */
export type Some<N extends string, V> = string extends N ? Readonly<Record<string, V>> : { readonly [K in N]?: V };

/** Values for some of the symbols of graphs, by entry. */
export type BySymbol<E extends EntryTypes, V> = Some<{ [N in keyof E]: SymbolsOf<E[N]> }[keyof E], V>;

/** The graphs of a module, or their texts, and their types. */
export type TypesOfGraphs<G> = { readonly [N in keyof G]: G[N] extends { readonly types?: infer T } ? IsAny<T> extends true ? GraphTypes : Extract<T, GraphTypes> extends infer U extends GraphTypes ? U : GraphTypes : GraphTypes };

/** The inputs of an entry, if a program has it. */
export type EntryInputs<E extends EntryTypes, N extends string> = N extends keyof E ? InputsOf<E[N]> : Inputs;

/** The results of {@link Trainer.evaluate} for an entry. */
export type ResultsOf<E extends EntryTypes, N extends string> = IsAny<E> extends true ? Record<string, number | TensorData> :
  N extends keyof E ? { readonly [O in keyof OutputsOf<E[N]>]: number | ArrayOf<OutputsOf<E[N]>[O]> } : Record<string, number | TensorData>;
