// Several texts at once by one model, and texts of which several tokens are verified at a time: the loop of the Go package
// native/lm/generate.

import type { Program } from '../../program/program.js';
import type { Inputs } from '../../program/types.js';
import { RlxError } from '../../values/errors.js';
import type { Drafter, Propose } from './drafter.js';
import { samplingFields, samplingRow, type Sampling } from './sample.js';
import { rowsOf } from './slots.js';

/** The maximum number of runs whose results were not read, and of tokens of a result that nobody has taken. */
const maxFlights = 3, maxAhead = 16;

/** A part of a result. */
export interface Piece {
  /** What the token adds to the text: empty where a character is not whole yet, or a stop text may have begun. */
  text: string;
  token: number;
}

/** What a token of a result becomes: what the iteration yields, and, for the last one, why it is that. */
export interface Taken { piece: Piece; finish: 'stop' | 'length' | undefined }

/** What an engine does for a request. */
export interface Job {
  readonly prompt: readonly number[];
  readonly limit: number;
  readonly sampling: Sampling;
  readonly signal: AbortSignal | undefined;
  /** The tokens that follow depend on those before them: one by one. */
  readonly masked: boolean;
  /** What is added to the logits of the next token; undefined for nothing. */
  bias(): Float32Array | undefined;
  /** The next random number. */
  random(): number;
  /** Is called when the request gets a slot, with the number of tokens of the prompt that are there. */
  begin(reused: number): void;
  /** Takes a token of the result. */
  take(token: number): Taken;
  /** Is called with the numbers of tokens that were proposed and taken. */
  drafted(proposed: number, accepted: number): void;
}

/** A request in the engine. */
class Ticket {
  readonly pieces: Taken[] = [];
  readonly result: number[] = [];
  readonly #numbers: number[] = [];
  /** Tokens of the result whose runs have begun, and runs that were not read. */
  issued = 0;
  flying = 0;
  ended = false;
  gone = false;
  error: unknown;
  wake: () => void = () => {};

  constructor(readonly job: Job) {}

  /** The random number of a token of the result: always the same, however often the token is computed. */
  number(index: number): number {
    while (this.#numbers.length <= index) this.#numbers.push(this.job.random());
    return this.#numbers[index]!;
  }

  /** Whether several tokens may be verified at a time: a choice depends on the logits alone. */
  get drafts(): boolean {
    const { masked, sampling: { repetition = 1, presence = 0, frequency = 0 } } = this.job;
    return !masked && repetition === 1 && presence === 0 && frequency === 0;
  }

  /** Takes a token, and reports whether it is the last one. */
  push(token: number): boolean {
    this.result.push(token);
    try {
      const taken = this.job.take(token);
      this.pieces.push(taken);
      this.ended = !!taken.finish;
      this.wake();
    } catch (reason) { // of the tokenizer
      this.fail(reason);
    }
    return this.ended;
  }

  /** Ends it with an error, unless all of it was taken. */
  abort(): void {
    if (this.ended && this.pieces.length === 0) return;
    this.pieces.length = 0;
    this.ended = false;
    this.fail(new RlxError('abort', 'the generation was aborted', { cause: this.job.signal!.reason }));
  }

  fail(error: unknown): void {
    if (this.ended) return;
    this.ended = true;
    this.error = error;
    this.wake();
  }
}

/** One sequence. */
interface Slot {
  number: number;
  ticket: Ticket | undefined;
  /** The positions whose runs have begun; those of the prompt first. */
  past: number;
  reused: number;
  /** The tokens of the first positions, of a request that ended, and when it did. */
  cached: readonly number[];
  used: number;
  /** Whether something is added to logits. */
  biased: boolean;
}

/** A run whose results were not read, the requests that it is for, and what was proposed to one. */
interface Flight { tokens: Promise<ArrayLike<number>> | undefined; slots: Slot[]; tickets: Ticket[]; draft?: readonly number[] }

/** What an engine runs. */
export interface EngineShape { slots: number; draft: number; context: number; chunk: number; vocabulary: number }

/** Serves requests in slots; further ones wait. */
export class Engine {
  readonly #program: Program;
  readonly #shape: EngineShape;
  readonly #propose: Propose;
  readonly #drafter: Drafter | undefined;
  readonly #rows: number[];
  readonly #slots: Slot[];
  #waiting: Ticket[] = [];
  #flights: Flight[] = [];
  #running = false;
  /** Whether something changed since the last step began. */
  #woken = false;
  #clock = 0;
  /** Whether the last run was of a prompt. */
  #fills = false;

  constructor(program: Program, shape: EngineShape, propose: Propose, drafter?: Drafter) {
    this.#program = program;
    this.#shape = shape;
    this.#propose = propose;
    this.#drafter = drafter;
    this.#rows = rowsOf(shape.slots);
    this.#slots = Array.from({ length: shape.slots }, (_, number) => ({ number, ticket: undefined, past: 0, reused: 0, cached: [], used: 0, biased: false }));
  }

  close(): void { this.#drafter?.close(); }

  /** The pieces of a request as they come. Breaking off frees its slot. */
  async *pieces(job: Job): AsyncGenerator<Taken, void, void> {
    const ticket = new Ticket(job), abort = () => {
      ticket.abort();
      this.#start();
    };
    job.signal?.addEventListener('abort', abort);
    if (job.signal?.aborted) abort();
    else this.#waiting.push(ticket);
    try {
      for (;;) {
        const piece = ticket.pieces.shift();
        if (piece) yield piece;
        else if (ticket.ended) break;
        else {
          const woken = new Promise<void>((wake) => { ticket.wake = wake; });
          this.#start();
          await woken;
        }
      }
      if (ticket.error !== undefined) throw ticket.error;
    } finally {
      job.signal?.removeEventListener('abort', abort);
      ticket.gone = true;
      this.#start();
    }
  }

  /** Runs the loop while there is something to do. */
  #start(): void {
    this.#woken = true;
    if (this.#running) return;
    this.#running = true;
    void this.#loop();
  }

  async #loop(): Promise<void> {
    try {
      while (await this.#step());
    } catch (reason) {
      for (const { ticket } of this.#slots) ticket?.fail(reason);
      for (const ticket of this.#waiting.splice(0)) ticket.fail(reason);
      const flights = this.#flights.splice(0);
      for (const slot of this.#slots) Object.assign(slot, { ticket: undefined, cached: [], past: 0, biased: true });
      await Promise.allSettled(flights.map(({ tokens }) => tokens));
    }
    this.#running = false;
    if (this.#woken) this.#start();
  }

  /** Begins a run, or reads the results of the oldest one; false if there is neither. */
  async #step(): Promise<boolean> {
    this.#woken = false;
    this.#admit();
    if (this.#flights.length < maxFlights) {
      const flight = await this.#next();
      if (flight) {
        this.#flights.push(flight);
        return true;
      }
    }
    const oldest = this.#flights.shift();
    if (oldest) await this.#read(oldest);
    return !!oldest || this.#woken;
  }

  /** Frees the slots of requests that ended, and gives slots to those that wait. */
  #admit(): void {
    for (const slot of this.#slots) if (slot.ticket?.gone || slot.ticket?.ended) this.#free(slot);
    this.#waiting = this.#waiting.filter(({ gone, ended }) => !gone && !ended);
    while (this.#waiting.length > 0) {
      const ticket = this.#waiting[0]!, slot = this.#slotFor(ticket);
      if (!slot) break;
      this.#waiting.shift();
      const reused = common(slot, ticket);
      Object.assign(slot, { ticket, past: reused, reused, cached: [] });
      try {
        ticket.job.begin(reused);
      } catch (reason) { // of the tokenizer
        ticket.fail(reason);
        this.#free(slot);
      }
    }
  }

  /** The free slot that has the most tokens of a prompt, among equal ones that which is free for longest. */
  #slotFor(ticket: Ticket): Slot | undefined {
    const free = this.#slots.filter((slot) => !slot.ticket).sort((a, b) => a.used - b.used);
    return free.sort((a, b) => common(b, ticket) - common(a, ticket))[0];
  }

  #free(slot: Slot): void {
    const { job, result } = slot.ticket!;
    Object.assign(slot, { ticket: undefined, cached: [...job.prompt, ...result].slice(0, slot.past), used: ++this.#clock });
  }

  /** Begins the next run, of prompts and results in turns if there are both. */
  async #next(): Promise<Flight | undefined> {
    const filling = this.#slots.find(({ ticket, past }) => ticket && past < ticket.job.prompt.length), ready = this.#slots.filter((slot) => this.#canDecode(slot));
    if (filling && (!this.#fills || ready.length === 0)) {
      this.#fills = true;
      return this.#prefill(filling);
    }
    this.#fills = false;
    for (const slot of ready) {
      const draft = await this.#draft(slot);
      if (draft.length > 0) return this.#verify(slot, draft);
    }
    return ready.length > 0 ? this.#decode(ready) : undefined;
  }

  /** Whether the next token of a slot can be computed: where it depends on the last one, that must be read. */
  #canDecode({ ticket, past }: Slot): boolean {
    if (!ticket || past < ticket.job.prompt.length || ticket.issued === ticket.job.limit || past >= this.#shape.context) return false;
    return ticket.flying === 0 ? ticket.pieces.length < maxAhead : !ticket.job.masked && !this.#drafts(ticket) && ticket.pieces.length + ticket.flying < maxAhead;
  }

  #drafts(ticket: Ticket): boolean { return this.#shape.draft > 0 && ticket.drafts; }

  /** Tokens that may follow those of a slot. */
  async #draft({ number, ticket, past }: Slot): Promise<readonly number[]> {
    const { job, result } = ticket!, { draft, context, vocabulary } = this.#shape, n = Math.min(draft, job.limit - result.length - 1, context - past - 1);
    if (!this.#drafts(ticket!) || n <= 0) return [];
    const found = await this.#propose(number, [...job.prompt, ...result], n), unknown = found.findIndex((id) => id >= vocabulary);
    return unknown < 0 ? found : found.slice(0, unknown);
  }

  /** Begins a run of an entry, after which tokens are drawn if one of its rows has a temperature. */
  async #run(entry: string, inputs: Inputs, flight: Flight, by: Float32Array, reads: boolean): Promise<Flight> {
    const draws = reads && by.some((x, i) => i % samplingFields === 0 && x > 0), read = { read: ['token'] };
    let { reading } = await this.#program.run(entry, { ...inputs, ...entry !== 'verify' && { by } }, reads && !draws ? read : {});
    if (draws) {
      const rows = by.length / samplingFields, row = entry === 'verify' ? new Int32Array(rows).fill(this.#shape.slots) : inputs.row!;
      ({ reading } = await this.#program.run(`draw ${rows}`, { row, by }, read));
    }
    flight.tokens = reading?.then(({ values }) => values.token!);
    flight.tokens?.catch(() => {});
    for (const ticket of flight.tickets) ticket.flying++;
    return flight;
  }

  /** Sets what is added to the logits of a slot. */
  async #setBias(slot: Slot): Promise<void> {
    const bias = slot.ticket!.job.bias();
    if (!bias && !slot.biased) return;
    await this.#program.run('bias', { row: Int32Array.of(slot.number), bias: bias ?? new Float32Array(this.#shape.vocabulary) });
    slot.biased = !!bias;
  }

  async #prefill(slot: Slot): Promise<Flight | undefined> {
    const { past, reused, number } = slot, ticket = slot.ticket!, { prompt, sampling } = ticket.job, { chunk } = this.#shape;
    const tokens = new Int32Array(chunk), part = prompt.slice(past, past + chunk), last = past + part.length === prompt.length;
    tokens.set(part);
    if (past === reused && !await this.#tried(ticket, () => this.#setBias(slot))) return undefined;
    slot.past += part.length;
    if (last) ticket.issued++;
    const first = Number(past === reused), by = samplingRow(last ? sampling : {}, last && sampling.temperature ? ticket.number(0) : 0);
    const inputs = { tokens, count: Int32Array.of(part.length), past: Int32Array.of(past), row: Int32Array.of(number), first };
    return this.#run('prefill', inputs, { tokens: undefined, slots: [slot], tickets: [ticket] }, by, last);
  }

  /** Whether what a request's own function does succeeds: an error is that of the request alone. */
  async #tried(ticket: Ticket, run: () => Promise<void>): Promise<boolean> {
    try {
      await run();
      return true;
    } catch (reason) {
      if (reason instanceof RlxError && /^(closed|lost)$/.test(reason.kind)) throw reason;
      ticket.fail(reason);
      this.#woken = true; // its slot is free
      return false;
    }
  }

  /** Begins the run of the next token of some slots. */
  async #decode(ready: readonly Slot[]): Promise<Flight | undefined> {
    const slots: Slot[] = [];
    for (const slot of ready) if (!slot.ticket!.job.masked || await this.#tried(slot.ticket!, () => this.#setBias(slot))) slots.push(slot);
    if (slots.length === 0) return undefined;
    const n = this.#rows.find((rows) => rows >= slots.length)!, row = new Int32Array(n).fill(this.#shape.slots), past = new Int32Array(n).fill(-1), given = new Int32Array(n).fill(-1);
    const by = new Float32Array(n * samplingFields), none = samplingRow({}, 0), tickets = slots.map(({ ticket }) => ticket!);
    for (let i = 0; i < n; i++) {
      const slot = slots[i], ticket = tickets[i];
      by.set(ticket ? samplingRow(ticket.job.sampling, ticket.job.sampling.temperature ? ticket.number(ticket.issued) : 0) : none, i * samplingFields);
      if (!slot || !ticket) continue;
      [row[i], past[i]] = [slot.number, slot.past++];
      if (this.#drafts(ticket)) given[i] = ticket.result.at(-1)!;
      ticket.issued++;
    }
    return this.#run(`decode ${n}`, { row, past, given }, { tokens: undefined, slots, tickets }, by, true);
  }

  /** Begins a run that compares proposed tokens with those of the model. */
  async #verify(slot: Slot, draft: readonly number[]): Promise<Flight> {
    const n = this.#shape.draft + 1, ticket = slot.ticket!, { sampling } = ticket.job, tokens = Int32Array.of(ticket.result.at(-1)!, ...draft, ...new Array<number>(n - 1 - draft.length).fill(0));
    const by = new Float32Array(n * samplingFields);
    for (let i = 0; i < n; i++) by.set(samplingRow(sampling, sampling.temperature ? ticket.number(ticket.issued + i) : 0), i * samplingFields);
    return this.#run('verify', { tokens, past: Int32Array.of(slot.past), row: Int32Array.of(slot.number) }, { tokens: undefined, slots: [slot], tickets: [ticket], draft }, by, true);
  }

  /** Waits for a run, and passes its tokens on. */
  async #read({ tokens, slots, tickets, draft }: Flight): Promise<void> {
    const found = await tokens;
    slots.forEach((slot, i) => {
      const ticket = tickets[i]!;
      ticket.flying--;
      if (!found || slot.ticket !== ticket || ticket.ended) return;
      if (draft) this.#accept(slot, draft, found);
      else ticket.push(found[i]!);
    });
  }

  /** Takes the tokens of a verification: those that were proposed rightly, and the one after them. */
  #accept(slot: Slot, draft: readonly number[], found: ArrayLike<number>): void {
    const ticket = slot.ticket!;
    ticket.job.drafted(draft.length, 0);
    for (let i = 0; i <= draft.length && slot.past < this.#shape.context; i++) {
      slot.past++;
      ticket.issued++;
      if (i > 0) ticket.job.drafted(0, 1);
      if (ticket.push(found[i]!) || draft[i] !== found[i]) return;
    }
  }
}

/**
 * The tokens of a prompt whose keys and values are in a slot. The last one is computed, for its logits, and all are for a
 * penalty of tokens of the prompt.
 */
function common({ cached }: Slot, { job: { prompt, sampling: { repetition = 1 } } }: Ticket): number {
  let n = 0;
  if (repetition === 1) while (n < cached.length && n < prompt.length - 1 && cached[n] === prompt[n]) n++;
  return n;
}
