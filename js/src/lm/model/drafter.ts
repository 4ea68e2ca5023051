// What proposes tokens that a model verifies several at a time: speculative decoding.

import type { Program } from '../../program/program.js';
import type { Inputs } from '../../program/types.js';

/** Proposes at most n tokens that continue those of a slot. */
export type Propose = (slot: number, tokens: readonly number[], n: number) => number[] | Promise<number[]>;

// The lengths of the ends of a sequence that lookup searches for.
const maxLookup = 3, minLookup = 1;

/**
 * The tokens that followed an earlier occurrence of the end of a sequence: the latest occurrence of the longest end that is
 * found (Saxena, Prompt Lookup Decoding).
 */
export function lookup(tokens: readonly number[], n: number): number[] {
  for (let size = maxLookup; size >= minLookup; size--) {
    const end = tokens.length - size;
    for (let at = end - 1; at >= 0; at--) {
      let same = 0;
      while (same < size && tokens[at + same] === tokens[end + same]) same++;
      if (same === size) return tokens.slice(at + size, at + size + n);
    }
  }
  return [];
}

/** The chunk of a text that has one proposal or two tokens that the model has not seen, as after a verification. */
const shortChunk = 2;

/** The chunks for which a model that proposes has entries. */
export const draftChunks = (chunk: number): number[] => chunk > shortChunk ? [shortChunk, chunk] : [shortChunk];

/**
 * Proposes by a small model (Leviathan et al., Fast Inference from Transformers via Speculative Decoding). Its proposals are
 * the most likely tokens, so that a verification needs no probabilities of it.
 */
export class Drafter {
  readonly #program: Program;
  readonly #vocabulary: number;
  readonly #context: number;
  readonly #chunks: readonly number[];
  /** By slot, the tokens whose keys and values are in its states. */
  readonly #fed: number[][] = [];

  constructor(program: Program, { vocabulary, context, chunks }: { vocabulary: number; context: number; chunks: readonly number[] }) {
    this.#program = program;
    this.#vocabulary = vocabulary;
    this.#context = context;
    this.#chunks = chunks;
  }

  close(): void { this.#program.close(); }

  /** Fewer than n tokens at the end of the context, or where the model does not know one. */
  async propose(slot: number, tokens: readonly number[], most: number): Promise<number[]> {
    const fed = this.#fed[slot] ??= [], n = Math.min(most, this.#context - tokens.length + 1);
    let past = 0;
    while (past < fed.length && past < tokens.length - 1 && fed[past] === tokens[past]) past++;
    if (n <= 0 || tokens.slice(past).some((id) => id >= this.#vocabulary)) return [];
    this.#fed[slot] = []; // until the runs have ended
    const readings: Promise<{ values: Readonly<Record<string, ArrayLike<number>>> }>[] = [], row = Int32Array.of(slot);
    const run = async (entry: string, inputs: Inputs, count: number) => {
      const proposes = past + count >= tokens.length, { reading } = await this.#program.run(entry, { ...inputs, row, past: Int32Array.of(past) }, proposes ? { read: ['token'] } : {});
      if (proposes) {
        reading!.catch(() => {});
        readings.push(reading!);
      }
      past += count;
    };
    while (past < tokens.length) {
      const rest = tokens.slice(past), chunk = rest.length > shortChunk ? this.#chunks.at(-1)! : shortChunk, part = rest.slice(0, chunk), padded = new Int32Array(chunk);
      padded.set(part);
      await run(`extend ${chunk}`, { tokens: padded, count: Int32Array.of(part.length) }, part.length);
    }
    while (readings.length < n) await run('next', {}, 1);
    const draft = (await Promise.all(readings)).map(({ values }) => values.token![0]!);
    this.#fed[slot] = [...tokens, ...draft.slice(0, -1)];
    return draft;
  }
}
