// Names that are not there, each with the nearest one that is.

import { RlxError } from '../values/errors.js';

/** Throws unless nothing is left on either side: of names that a target has, and of a file's. The remedies are options that allow it. */
export function checkRest(what: string, target: string, missing: readonly string[], unused: readonly string[], remedies: readonly [ofMissing: string, ofUnused: string]): void {
  const parts = [...missing.length ? [`the file lacks ${listed(missing, unused)}`] : [], ...unused.length ? [`the ${target} lacks ${listed(unused, missing)}`] : []];
  if (!parts.length) return;
  const words = remedies.filter((_, i) => [missing, unused][i]!.length).join(' or ');
  throw new RlxError(missing.length ? 'missing' : 'name', `${what}: ${parts.join(', and ')}: rename, or ${words}`, { name: (missing[0] ?? unused[0])! });
}

/** The first few names, each with the nearest one of others. */
export function listed(names: readonly string[], others: readonly string[]): string {
  const most = 5, parts = names.slice(0, most).map((name) => {
    const near = nearest(name, others);
    return near ? `${name} (the nearest is ${near})` : name;
  });
  return [...parts, ...names.length > most ? [`${names.length - most} more`] : []].join(', ');
}

/** The name that shares most with another: the longest common start and end. */
function nearest(name: string, others: readonly string[]): string {
  const dotted = name.replaceAll('/', '.');
  let best = '', most = 0;
  for (const other of others.slice(0, 1000)) {
    const o = other.replaceAll('/', '.'), length = Math.min(o.length, dotted.length);
    let start = 0, end = 0;
    while (start < length && o[start] === dotted[start]) start++;
    while (end < length - start && o.at(-1 - end) === dotted.at(-1 - end)) end++;
    if (start + end > most) [best, most] = [other, start + end];
  }
  return best;
}
