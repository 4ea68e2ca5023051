/**
 * What went wrong, as a word to branch on.
 *
 * - `shape`, `dtype`, `name`, `missing`, `index`: a value has another shape or element type
 *   than required, is unknown or missing, or holds an index outside its range
 * - `busy`: the trainer, or another one with the same history, is running
 * - `nan`: the loss or a parameter is NaN or infinite, and training was asked to stop there
 * - `attr`: an argument, an option or an attribute of an op is outside its domain
 * - `graph`, `symbol`, `syntax`, `rule`, `unsupported`: the compiler refuses a graph; `syntax` and `unsupported`, too: a file is damaged,
 *   or of a kind that is not known; `rule`: a chat template refuses a conversation
 * - `plan`, `version`: a plan file is damaged, or made for another version
 * - `limit`: more is needed than the device, or the call, allows
 * - `device`: there is no WebGPU here, no adapter, or the adapter gives no device
 * - `shader`: the browser refuses a kernel
 * - `memory`: a program takes more memory than it may have, or the device is out of it
 * - `gpu`: any other error of the device; the program has ended
 * - `lost`: the device is gone, or the worker, and all state on it
 * - `wasm`: a WebAssembly module, or the code that runs plans on the CPU, cannot be loaded, or failed:
 *   `init()` starts the compiler again
 * - `store`: results of tuning cannot be written or read
 * - `internal`: a bug in the compiler
 * - `closed`: the program, tensor or worker is closed
 * - `abort`: a signal aborted the call
 */
export type ErrorKind =
  | 'shape' | 'dtype' | 'name' | 'missing' | 'index' | 'busy' | 'nan'
  | 'attr' | 'graph' | 'symbol' | 'syntax' | 'rule' | 'unsupported'
  | 'plan' | 'version' | 'limit' | 'device' | 'shader' | 'memory' | 'gpu' | 'lost' | 'wasm' | 'store' | 'internal' | 'closed' | 'abort';

/** The origin of an error; unknown parts are absent. */
export interface ErrorPlace {
  /** The op, entry point or kernel. */
  op?: string;
  /** The types of the op's operands, as in `f32[2,3]`. */
  operands?: readonly string[];
  /** The node of the graph. */
  node?: string;
  /** The input, output, parameter or state. */
  name?: string;
  /** The shape that was given. */
  shape?: readonly number[];
  /** The shape that was expected. */
  expected?: readonly number[];
  /** For errors of memory: the bytes needed, and the limit. */
  needed?: number;
  allowed?: number;
  /** After a lost device: the steps run since the state was last saved. */
  steps?: number;
  cause?: unknown;
}

/** Every error this library makes. */
export class RlxError extends Error {
  static override readonly name = 'RlxError'; // that of the class changes when code is minified
  static { this.prototype.name = this.name; }
  readonly kind: ErrorKind;
  /** The origin of the error. */
  readonly place: ErrorPlace;

  constructor(kind: ErrorKind, message: string, place: ErrorPlace = {}) {
    super(message, place);
    this.kind = kind;
    this.place = place;
  }
}

/** The class of a value, for messages: `Float32Array`, `Null`. */
export const classOf = (value: unknown): string => ({}).toString.call(value).slice(8, -1);

/** A value for messages: itself, or the class of an object. */
export const shown = (value: unknown): string => Object(value) === value ? classOf(value) : String(value);

/** Throws unless a value meets a condition. */
export function need(ok: unknown, kind: ErrorKind, what: string, must: string, value: unknown): asserts ok {
  if (!ok) throw new RlxError(kind, `${what} is ${classOf(value)}: it must be ${must}`);
}

/** The error for an unknown name. `what` begins the message. */
export function unknownName(what: string, name: unknown, known: Iterable<string>, op?: string): RlxError {
  const text = shown(name), message = `${what} ${text}: there are ${[...known].join(', ') || 'none'}`;
  return new RlxError('name', message, op ? { op, name: text } : { name: text });
}

/** Refuses options that are no object, and names that are not in a list, separated by spaces: a misspelt option would have no effect. */
export function checkOptions(what: string, given: unknown, known: string): void {
  need(!given || typeof given === 'object', 'attr', `${what}: options`, 'an object', given);
  for (const name in given as object) {
    const names = known.split(' ');
    if (!names.includes(name)) throw unknownName(`${what} has no option`, name, names, what);
  }
}

/** Refuses an option that is not in a list of words, separated by spaces. */
export function checkWord(what: string, given: unknown, words: string): void {
  const known = words.split(' ');
  if (!known.includes(given as string)) throw unknownName(`${what} cannot be`, given, known);
}

/** Refuses an option that is not an integer from `min` to `max`. */
export function checkCount(name: string, n: number, min: number, max = Infinity): void {
  if (typeof n === 'number' && n >= min && n <= max && !(n % 1)) return;
  throw new RlxError('limit', `${name} is ${shown(n)}, not a whole number from ${min} to ${max}`, { name });
}

/** Converts anything thrown to an RlxError; excessive allocations throw a RangeError. */
export function asError(reason: unknown, kind: ErrorKind = 'gpu'): RlxError {
  return reason instanceof RlxError ? reason : new RlxError(reason instanceof RangeError ? 'memory' : kind, (reason as Error)?.message ?? String(reason), { cause: reason });
}
