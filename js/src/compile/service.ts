// A compile service in place of the compiler.

import { type ErrorKind, RlxError } from '../values/errors.js';
import type { Job } from './compiler.js';
import { hashOf } from './hash.js';

/** The kinds of problems that are those of errors here. */
const kinds: readonly string[] = ['shape', 'dtype', 'name', 'index', 'attr', 'graph', 'symbol', 'syntax', 'rule', 'unsupported', 'limit', 'internal'] satisfies ErrorKind[];

/**
 * The plan file of a job from a service. Rejects with the error of its compiler, of kind `wasm`
 * for an invalid answer, and of kind `plan` if the file does not have the hash that names it.
 */
export async function compileThere(service: string | URL, { name, entries, symbols, limits, targets }: Job): Promise<Uint8Array<ArrayBuffer>> {
  const url = new URL(`${service}`.replace(/\/?$/, '/v1/plans'), globalThis.location?.href), unanswered = (why: string, cause?: unknown) => new RlxError('wasm', `${url} does not compile: ${why}`, { cause });
  let response: Response;
  try {
    response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ name, entries, symbols, limits, targets }) });
  } catch (cause) {
    throw unanswered((cause as Error).message, cause);
  }
  if (!response.ok) {
    const { kind, detail, op, operands } = await response.json().catch(() => ({})) as { kind?: string; detail?: string; op?: string; operands?: string[] };
    if (!kind || !kinds.includes(kind)) throw unanswered(`${response.status} ${detail ?? response.statusText}`);
    throw new RlxError(kind as ErrorKind, detail ?? '', { ...op && { op }, ...operands && { operands } });
  }
  const file = new Uint8Array(await response.arrayBuffer()), tag = response.headers.get('etag');
  if (tag && globalThis.crypto?.subtle && !tag.includes(await hashOf(file))) throw new RlxError('plan', `${url}: the plan is not the one that its tag ${tag} names`);
  return file;
}
