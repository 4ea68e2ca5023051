// A compile service: POST /v1/plans compiles graphs given as text to a plan, GET /v1/plans/HASH
// returns that plan again.

import { Graph, parseGraph, type StepOptions } from '../graph/graph.js';
import { classOf, need, RlxError } from '../values/errors.js';
import { compiler } from '../wasm/compiler.js';
import type { WasmSource } from '../wasm/module.js';
import { closeCompiler, init, type Limits, type Target } from './compiler.js';
import { hashOf } from './hash.js';
import type { PlanStore } from './plan-store.js';
import { compile } from './train.js';
import { within } from './within.js';

/** Options of a service. What a request may take is bounded. */
export interface EdgeOptions {
  /** The compiler's module. */
  wasm: WasmSource;
  /** The largest body in bytes: 1 MiB if not given, as weights are no part of a graph. */
  maxBody?: number;
  /** The maximum size of the bodies of all requests under way in bytes: 16 MiB if not given. Further ones are refused with status 503. */
  maxBodies?: number;
  /** The maximum time that a body takes to arrive, in milliseconds: 10,000 if not given. A slower one is refused with status 408. */
  bodyTime?: number;
  /** The maximum number of nodes of all graphs together, derivatives included: 12,000 if not given. */
  maxNodes?: number;
  /** The maximum number of entries of a module: 16 if not given. */
  maxEntries?: number;
  /** The largest plan in bytes: 8 MiB if not given. */
  maxPlan?: number;
  /** The maximum number of requests that wait for the compilation of another: 16 if not given. Further ones are refused with status 503. */
  maxWaiting?: number;
  /** The memory limit of the compiler in bytes: 80 MiB if not given. Above four fifths of it the compiler is restarted. */
  memory?: number;
  /** Keeps plans; by default some 16 MiB of them, for as long as the isolate lives. */
  store?: PlanStore;
}

/** A request, with the names of the Go package wasm/edge. */
interface PlanRequest {
  name?: string;
  entries: { name: string; text: string; step?: StepOptions }[];
  symbols?: Record<string, number>;
  targets?: Target[];
  limits?: Limits;
}

/** The error of a request that is refused. */
class Problem extends Error {
  readonly status: number;
  readonly kind: string;

  constructor(status: number, kind: string, detail: string) {
    super(detail);
    this.status = status;
    this.kind = kind;
  }
}

const noRequest = (reason: string): Problem => new Problem(400, 'syntax', `the body is no request: ${reason}`);

/** Refuses values of other types, and unknown fields: the compiler checks what is in them. */
function checked(asked: unknown): PlanRequest {
  const object = (what: string, value: unknown, fields?: string): any => {
    if (typeof value !== 'object' || !value || Array.isArray(value)) throw noRequest(`${what} is ${classOf(value)}: it must be an object`);
    for (const name of Object.keys(value)) if (fields && !fields.split(' ').includes(name)) throw noRequest(`unknown field ${JSON.stringify(name)}`);
    return value;
  };
  const { entries, symbols = {}, limits = {} } = object('it', asked, 'name entries symbols targets limits');
  object('symbols', symbols);
  object('limits', limits);
  if (!Array.isArray(entries) || !entries.length) throw new Problem(422, 'attr', 'the module has no entries');
  for (const entry of entries) object('an entry', entry, 'name text step');
  return asked as PlanRequest;
}

/**
 * The text of a body, of which no more is read than `most` bytes, for no longer than `time` milliseconds. `hold` is called with the
 * bytes of each part, and may refuse them.
 */
async function textOf(request: Request, most: number, time: number, hold: (bytes: number) => void): Promise<string> {
  const large = new Problem(413, 'limit', `the body has more than ${most} bytes`);
  if (Number(request.headers.get('content-length')) > most) throw large;
  const reader = request.body?.getReader(), decoder = new TextDecoder();
  const all = async () => {
    let text = '', bytes = 0;
    for (let part = await reader?.read(); part?.value; part = await reader!.read()) {
      if ((bytes += part.value.length) > most) throw large;
      hold(part.value.length);
      text += decoder.decode(part.value, { stream: true });
    }
    return text + decoder.decode();
  };
  try {
    return await within(time, new Problem(408, 'timeout', `the body was not here after ${time} ms`), all());
  } catch (reason) {
    reader?.cancel().catch(() => {}); // a sender may not end it, or has failed
    throw reason instanceof Problem ? reason : new Problem(400, 'syntax', `the body ends too soon: ${(reason as Error)?.message ?? reason}`);
  }
}

/** The number of lines of a text, which is printed with a node in each. */
const linesIn = (text: unknown): number => String(text).split('\n').length;

/** The size of the constants in a printed text that attributes describe, at four bytes an element. */
function constantsIn(text: string): number {
  let bytes = 0;
  for (const [, sizes] of text.matchAll(/ = (?:window|mel_filterbank)\(\).*: \w+\[([\d,]*)\]/g)) bytes += sizes!.split(',').reduce((n, size) => n * Number(size), 4);
  return bytes;
}

const open = { 'access-control-allow-origin': '*', 'access-control-expose-headers': 'Location, ETag', 'x-content-type-options': 'nosniff' };
const maxKept = 16 << 20;
const packed = new Problem(415, 'syntax', 'the body has a content coding; it must be sent as it is');

/** The service, as the default export of a Worker. */
export function edge(options: EdgeOptions): { fetch(request: Request): Promise<Response> } {
  need(Object(options) === options, 'missing', 'the options of edge', '{ wasm, ... }', options);
  const { maxBody = 1 << 20, maxBodies = 16 << 20, bodyTime = 10_000, maxNodes = 12_000, maxEntries = 16, maxPlan = 8 << 20, maxWaiting = 16, memory = 80 << 20, store = bounded(maxKept) } = options;
  let turn: Promise<unknown> = Promise.resolve(), waiting = 0, bodies = 0;
  const limit = (text: string) => new Problem(413, 'limit', text), busy = (what: string) => new Problem(503, 'busy', `the service ${what} as much as it may: ask again later`);

  async function read(request: Request, hold: (bytes: number) => void): Promise<PlanRequest> {
    const type = request.headers.get('content-type') ?? '';
    if (!/^application\/json\b/.test(type)) throw new Problem(415, 'syntax', `the body is '${type}'; it must be application/json`);
    if (!/^(identity)?$/.test(request.headers.get('content-encoding') ?? '')) throw packed;
    const body = await textOf(request, maxBody, bodyTime, hold);
    let asked: unknown;
    try {
      asked = JSON.parse(body);
    } catch (reason) {
      throw noRequest((reason as Error).message);
    }
    return checked(asked);
  }

  async function compiled({ name = 'main', entries, symbols = {}, targets = ['webgpu'], limits = {} }: PlanRequest): Promise<Uint8Array<ArrayBuffer>> {
    await init({ wasm: options.wasm, compileWorker: false, worker: false, cache: false, compilerMemory: memory });
    const graphs: Graph[] = [];
    try {
      let nodes = 0, constants = 0;
      const given = entries.reduce((sum, { text }) => sum + linesIn(text), 0);
      if (given > maxNodes) throw limit(`the graphs have ${given} lines; up to ${maxNodes} nodes are compiled`);
      const texts = entries.map(({ name: entry, text, step }): [string, string] => {
        const keep = (graph: Graph) => graphs[graphs.push(graph) - 1]!, given = keep(parseGraph(text));
        const bound = Object.keys(symbols).length > 0 ? keep(given.bind(symbols)) : given, derived = step ? keep(bound.step(step)).text() : bound.text();
        if ((nodes += linesIn(derived)) > maxNodes) throw limit(`the graphs have ${nodes} nodes or more; up to ${maxNodes} are compiled`);
        if ((constants += constantsIn(derived)) > maxPlan) throw limit(`the constants of windows and filters take ${constants} bytes or more; plans have up to ${maxPlan}`);
        return [entry, derived];
      });
      return await compile({ name, entries: Object.fromEntries(texts), symbols, targets, limits: levelOf(limits) });
    } finally {
      for (const graph of graphs) graph.free();
      if (!isSmall(memory)) closeCompiler(); // its memory never shrinks
    }
  }

  /** Compiles after those that were here before, one at a time. */
  async function inTurn<T>(make: () => Promise<T>): Promise<T> {
    if (waiting > maxWaiting) throw busy('compiles');
    waiting++;
    const mine = turn.then(make).finally(() => { waiting--; });
    turn = mine.catch(() => {});
    return mine;
  }

  /** The plan of a request that was compiled before, and its hash. */
  async function kept(key: string): Promise<{ hash: string; file: Uint8Array } | undefined> {
    const known = await store.get(key), hash = known && new TextDecoder().decode(known), file = hash && await store.get(`plan-${hash}`);
    return file ? { hash: hash!, file } : undefined;
  }

  async function post(request: Request): Promise<Response> {
    let held = 0;
    const hold = (bytes: number) => {
      if (bodies + bytes > maxBodies) throw busy('receives');
      bodies += bytes;
      held += bytes;
    };
    try {
      return await answer(await read(request, hold));
    } finally {
      bodies -= held;
    }
  }

  async function answer(asked: PlanRequest): Promise<Response> {
    const count = asked.entries.length;
    if (count > maxEntries) throw limit(`the module has ${count} entries; up to ${maxEntries} are compiled`);
    if (new Set(asked.targets).size !== (asked.targets?.length ?? 0)) throw new Problem(422, 'name', 'a target is given twice');
    const key = `request-${await hashOf(new TextEncoder().encode(JSON.stringify([asked, levelOf(asked.limits ?? {})])))}`;
    const { hash, file } = await kept(key) ?? await inTurn(async () => await kept(key) ?? make(key, asked)); // the same request may be before this one
    return planResponse(hash, file, { location: `/v1/plans/${hash}` });
  }

  /** Compiles a request, and keeps its plan. */
  async function make(key: string, asked: PlanRequest): Promise<{ hash: string; file: Uint8Array }> {
    const file = await compiled(asked);
    if (file.length > maxPlan) throw limit(`the plan has ${file.length} bytes; up to ${maxPlan} are returned`);
    const hash = await hashOf(file);
    await store.set(`plan-${hash}`, file);
    await store.set(key, new TextEncoder().encode(hash));
    return { hash, file };
  }

  async function get(request: Request, hash: string): Promise<Response> {
    const file = /^[0-9a-f]{64}$/.test(hash) ? await store.get(`plan-${hash}`) : undefined, forever = { 'cache-control': 'public, max-age=31536000, immutable' };
    if (!file) throw new Problem(404, 'missing', `there is no plan ${hash} here: POST its graphs to /v1/plans`);
    const known = request.headers.get('if-none-match');
    if (known === '*' || known?.includes(`"${hash}"`)) return new Response(null, { status: 304, headers: { ...open, ...forever, etag: `"${hash}"` } });
    return planResponse(hash, file, forever);
  }

  return {
    async fetch(request) {
      const { pathname } = new URL(request.url), hash = /^\/v1\/plans\/([^/]+)$/.exec(pathname)?.[1];
      try {
        if (request.method === 'OPTIONS') return new Response(null, { status: 204, headers: { ...open, allow: methodsOf(hash), 'access-control-allow-methods': methodsOf(hash), 'access-control-allow-headers': 'Content-Type, If-None-Match', 'access-control-max-age': '86400' } });
        if (!hash && pathname !== '/v1/plans') throw new Problem(404, 'path', `there is no ${pathname}: plans are at /v1/plans`);
        if (hash && /^(GET|HEAD)$/.test(request.method)) return await get(request, hash);
        if (!hash && request.method === 'POST') return await post(request);
        throw new Problem(405, 'method', `${request.method} is not a method of ${pathname}`);
      } catch (reason) {
        return refusal(reason, methodsOf(hash));
      }
    },
  };
}

/** Whether the compiler runs in less than four fifths of its memory: one that has ended does not. */
function isSmall(memory: number): boolean {
  try {
    return compiler().bytes <= 0.8 * memory;
  } catch {
    return false;
  }
}

const planResponse = (hash: string, file: Uint8Array, headers: Record<string, string>): Response =>
  new Response(file as Uint8Array<ArrayBuffer>, { headers: { ...open, ...headers, etag: `"${hash}"`, 'content-type': 'application/octet-stream' } });

const methodsOf = (hash: string | undefined): string => hash ? 'GET, HEAD, OPTIONS' : 'POST, OPTIONS';

/** An error as RFC 9457 has it. */
function refusal(reason: unknown, allow: string): Response {
  const { kind, status } = reason instanceof Problem ? reason : { kind: reason instanceof RlxError ? reason.kind : 'internal', status: statusOf(reason) };
  const { op, operands } = reason instanceof RlxError ? reason.place : {};
  const body = { type: `urn:rlx:${kind}`, title: titles[status], status, detail: reason instanceof Error ? reason.message : classOf(reason), kind, ...op && { op }, ...operands && { operands } };
  return new Response(JSON.stringify(body), { status, headers: { ...open, 'content-type': 'application/problem+json', 'cache-control': 'no-store', ...status === 405 && { allow }, ...status === 503 && { 'retry-after': '1' }, ...reason === packed && { 'accept-encoding': 'identity' } } });
}

const titles: Record<number, string> = {
  400: 'Bad Request', 404: 'Not Found', 405: 'Method Not Allowed', 408: 'Request Timeout', 413: 'Request Entity Too Large', 415: 'Unsupported Media Type', 422: 'Unprocessable Entity', 500: 'Internal Server Error', 503: 'Service Unavailable',
};

function statusOf(reason: unknown): number {
  if (!(reason instanceof RlxError) || reason.kind === 'internal' || reason.kind === 'wasm') return 500;
  return reason.kind === 'syntax' ? 400 : 422;
}

/** Limits of the level: numbers are rounded down to the default of WebGPU times a power of two, so that many devices share a plan. */
function levelOf(limits: Limits): Limits {
  const common: Limits = {
    maxStorageBuffersPerShaderStage: 8, maxStorageBufferBindingSize: 128 << 20, maxBufferSize: 256 << 20, maxComputeWorkgroupStorageSize: 16 << 10, maxComputeInvocationsPerWorkgroup: 256,
  };
  return Object.fromEntries(Object.entries(limits).flatMap(([name, given]) => {
    const least = common[name as keyof Limits];
    if (typeof least !== 'number' || typeof given !== 'number') return [[name, given]];
    return given < 2 * least ? [] : [[name, least * 2 ** Math.floor(Math.log2(given / least))]];
  }));
}

/** A store of bounded size in memory, which drops the least recently used value. */
function bounded(most: number): PlanStore {
  const kept = new Map<string, Uint8Array>();
  let bytes = 0;
  const remove = (key: string) => {
    bytes -= kept.get(key)?.length ?? 0;
    kept.delete(key);
  };
  return {
    get(key) {
      const found = kept.get(key);
      if (found) kept.delete(key), kept.set(key, found); // the last used is the last
      return found;
    },
    set(key, value) {
      remove(key);
      kept.set(key, value);
      bytes += value.length;
      for (const old of kept.keys()) {
        if (bytes <= most) break;
        remove(old);
      }
    },
    clear() {
      kept.clear();
      bytes = 0;
    },
  };
}
