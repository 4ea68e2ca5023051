// Graphs are built by calls of the compiler. The answers to the calls of a function that builds graphs are kept in a journal, and
// its next run is answered from there, as long as it makes the same calls: then no compiler is needed. The compiler is
// deterministic, and each call is compared, so that a function that has changed never gets the answers of an older one.

import { callBack } from '../graph/caller-stack.js';
import type { Parts } from '../graph/graph.js';
import { RlxError } from '../values/errors.js';
import { nextMessage } from '../values/task.js';
import { withCompiler } from '../wasm/compiler.js';
import type { Answerer } from '../wasm/module.js';
import { Request, Response } from '../wasm/wire.js';
import type { Cache } from './cache.js';

/** A call of the compiler and its answer. */
interface Call { request: Uint8Array; answer: Uint8Array }
type Journal = readonly Call[];

/** Maximum number of journals per function: a function may build different graphs depending on what it captures. */
const maxJournals = 8;
/** The bytes above which a journal is not kept: one with constants as large as weights. */
const maxJournalBytes = 8 << 20;

const equal = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, i) => byte === b[i]);

/** When objects are freed depends on the collector, and no answer on that. */
const freeing = new Request('free').bytes;
const frees = (request: Uint8Array): boolean => equal(request.subarray(0, freeing.length), freeing);
const freed = new Uint8Array(4);

/** Keeps the calls of a compiler that has no objects yet: handles count from one. */
class Recorder implements Answerer {
  readonly calls: Call[] = [];
  readonly #compiler: Answerer;

  constructor(compiler: Answerer) { this.#compiler = compiler; }

  get alive(): boolean { return this.#compiler.alive; }
  get objects(): number { return this.#compiler.objects; }
  get bytes(): number { return this.#compiler.bytes; }

  call(request: Uint8Array): Uint8Array {
    const answer = this.#compiler.call(request);
    if (!frees(request)) this.calls.push({ request: request.slice(), answer });
    return answer;
  }
}

/** Answers calls from journals, until none of them has the next call. */
class Replay implements Answerer {
  readonly objects = 0;
  readonly bytes = 0;
  #journals: readonly Journal[];
  #at = 0;

  constructor(journals: readonly Journal[]) { this.#journals = journals; }

  /** Whether all calls were answered. */
  get alive(): boolean { return this.#journals.length > 0; }

  call(request: Uint8Array): Uint8Array {
    if (frees(request)) return freed;
    this.#journals = this.#journals.filter((journal) => this.#at < journal.length && equal(journal[this.#at]!.request, request));
    const [journal] = this.#journals;
    if (!journal) throw new RlxError('internal', 'the function builds another graph than before: it is called again');
    return journal[this.#at++]!.answer;
  }
}

/**
 * The result of `use` for a value, or for the result of a function. A function's graphs are built
 * by a separate compiler, or without one if it makes the calls of an earlier run. A function may
 * be called twice. `use` must do all work on graphs.
 */
export async function built<S, T>(what: string, source: S | (() => S), cache: Cache | undefined, start: () => Promise<Answerer>, use: (made: S) => T): Promise<T> {
  if (typeof source !== 'function') return use(source);
  const whole = function* () { return sync(what, (source as () => S)()); };
  const [result] = await builtEach(what, String(source), [whole], cache, start, use);
  return result!;
}

/** The results of `use` for those of functions whose text is given, as {@link built} gives them: each of their parts is a task of its own. */
export async function builtEach<S, T>(what: string, text: string, sources: readonly (() => Parts<S>)[], cache: Cache | undefined, start: () => Promise<Answerer>, use: (made: S) => T): Promise<T[]> {
  const runAll = async (compiler: Answerer) => {
    const results: T[] = [];
    for (const source of sources) {
      if (results.length > 0) await nextMessage();
      const made = await inTasks(source(), (part) => withCompiler(compiler, () => callBack(part)));
      results.push(withCompiler(compiler, () => use(made)));
    }
    return results;
  };
  const key = await cache?.key('graphs', 1, what, text), known = key === undefined ? [] : read(await cache!.get(key));
  if (known.length > 0) {
    const replay = new Replay(known);
    try {
      const results = await runAll(replay);
      if (replay.alive) return results;
    } catch (reason) {
      if (replay.alive) throw reason; // a mistake of the function's
    }
  }
  const recorder = new Recorder(await start()), results = await runAll(recorder);
  if (key !== undefined) void cache!.set(key, write([recorder.calls, ...known].slice(0, maxJournals)));
  return results;
}

/** The result of work whose parts run one by one, each in another task than the last. */
async function inTasks<S>(parts: Parts<S>, run: (part: () => IteratorResult<void, S>) => IteratorResult<void, S>): Promise<S> {
  for (;;) {
    const { done, value } = run(() => parts.next());
    if (done) return value;
    await nextMessage();
  }
}

function sync<S>(what: string, made: S): S {
  if (!(made instanceof Promise)) return made;
  made.catch(() => {});
  throw new RlxError('graph', `${what} gets a function that returns a promise: await what it needs before`);
}

function write(journals: readonly Journal[]): Uint8Array {
  const bytes = (journal: Journal) => journal.reduce((sum, { request, answer }) => sum + request.length + answer.length, 0);
  const kept = journals.filter((journal) => bytes(journal) <= maxJournalBytes);
  return new Request('journals').list(kept, (r, journal) => r.list(journal, (r, { request, answer }) => r.data(request).data(answer))).bytes;
}

function read(bytes: Uint8Array | undefined): Journal[] {
  if (!bytes) return [];
  const r = new Response(bytes);
  r.text();
  return r.list(() => r.list(() => ({ request: r.data(), answer: r.data() })));
}
