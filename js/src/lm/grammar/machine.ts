// Reads bytes by a grammar: the machine of the Go package native/lm/generate.

/**
 * A part of a grammar: a byte of a set, or other symbols in sequence, one of them, or any number of the first, which is not
 * empty.
 */
export interface Rule {
  kind: 'byte' | 'sequence' | 'choice' | 'repeated';
  /** For a byte: 1 at those of the set. */
  bytes: Uint8Array;
  parts: Rule[];
  /** A byte of free text, where a token without a text may stand. */
  free: boolean;
}

/** The symbols that must follow, the next one first; undefined is the end. Equal stacks of a machine are one. */
interface Stack { id: number; top: Rule; rest: Stack | undefined; round: number }

/** A set of stacks, one for each way to read the bytes so far. */
export interface State {
  stacks: Stack[];
  /** One way is complete, one is free text. */
  ends: boolean;
  free: boolean;
  /** By byte: the state after it, undefined where it is not known, and null for none. */
  next: (State | null | undefined)[];
  /** The bits of the tokens that may follow, once they are needed. */
  mask: Uint32Array | undefined;
}

/** Computes states and their successors when they are needed. */
export class Machine {
  readonly first: State | null;
  readonly #stacks = new Map<Rule, Map<Stack | undefined, Stack>>();
  readonly #states = new Map<string, State>();
  #count = 0;
  /** Counts the calls of #next. */
  #round = 0;

  constructor(root: Rule) { this.first = this.#next([this.#push(root, undefined)]); }

  /** The number of states that it holds. */
  get size(): number { return this.#states.size; }

  /** The state after a byte, null if it cannot follow. */
  step(s: State, byte: number): State | null {
    const known = s.next[byte];
    if (known !== undefined) return known;
    return s.next[byte] = this.#next(s.stacks.filter(({ top }) => top.bytes[byte]).map(({ rest }) => rest));
  }

  #push(top: Rule, rest: Stack | undefined): Stack {
    let byRest = this.#stacks.get(top);
    if (!byRest) this.#stacks.set(top, byRest = new Map());
    let s = byRest.get(rest);
    if (!s) byRest.set(rest, s = { id: this.#count++, top, rest, round: 0 });
    return s;
  }

  /** The state that one of some stacks must match, null if none can. */
  #next(stacks: readonly (Stack | undefined)[]): State | null {
    const found: Stack[] = [];
    let ends = false;
    this.#round++;
    for (const s of stacks) ends = this.#expand(s, found) || ends;
    return this.#stateOf(found, ends);
  }

  /**
   * Adds the stacks that s may become whose first symbol is a byte, and returns whether it may be empty. A stack is expanded
   * once in a round, so that a choice may contain itself.
   */
  #expand(s: Stack | undefined, found: Stack[]): boolean {
    if (!s) return true;
    if (s.round === this.#round) return false;
    s.round = this.#round;
    const { top: { kind, parts }, rest } = s;
    switch (kind) {
      case 'byte':
        found.push(s);
        return false;
      case 'sequence': return this.#expand(parts.reduceRight<Stack | undefined>((after, part) => this.#push(part, after), rest), found);
      case 'choice': return parts.reduce((ends, part) => this.#expand(this.#push(part, rest), found) || ends, false);
      case 'repeated': {
        const ends = this.#expand(this.#push(parts[0]!, s), found);
        return this.#expand(rest, found) || ends;
      }
    }
  }

  /** The state of a set of stacks. */
  #stateOf(stacks: Stack[], ends: boolean): State | null {
    if (stacks.length === 0 && !ends) return null;
    stacks.sort((a, b) => a.id - b.id);
    const key = `${ends}${stacks.map(({ id }) => id)}`;
    let s = this.#states.get(key);
    if (!s) this.#states.set(key, s = { stacks, ends, free: stacks.some(({ top }) => top.free), next: [], mask: undefined });
    return s;
  }
}
