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

/** The inputs of a graph, with their element types, and the names of its readable values. */
export interface GraphTypes {
  inputs: Readonly<Record<string, string>>;
  values: string;
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

/** The inputs of a graph; those that are bound need not be given. */
export type InputsOf<T extends GraphTypes> = string extends keyof T['inputs'] ? Inputs : { readonly [N in keyof T['inputs']]?: InputOf<T['inputs'][N]> };

/** The readable values of a program. */
export type ValuesOf<E extends EntryTypes> = E[keyof E]['values'];

/** A literal name has to be a known one; a computed one may be any. */
export type Name<N extends string, Known extends string> = string extends N ? N : N extends Known ? N : Known;

/** The types of a training step of a graph. */
export interface StepTypes<T extends GraphTypes> {
  inputs: string extends keyof T['inputs'] ? T['inputs'] : T['inputs'] & { readonly lr: 'f32' };
  values: T['values'] | `optim/${string}` | `history/${string}`;
}

/** The graphs of a module, or their texts, and their types. */
export type TypesOfGraphs<G> = { readonly [N in keyof G]: G[N] extends { readonly types?: infer T } ? Extract<T, GraphTypes> extends infer U extends GraphTypes ? U : GraphTypes : GraphTypes };

/** The inputs of an entry, if a program has it. */
export type EntryInputs<E extends EntryTypes, N extends string> = N extends keyof E ? InputsOf<E[N]> : Inputs;
