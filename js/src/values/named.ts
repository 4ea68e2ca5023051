// Things that have names.

import { unknownName } from './errors.js';

/** Looks up a name. `what` begins the message if it is unknown. */
export function named<T>(what: string, name: string, known: ReadonlyMap<string, T>): T {
  const found = known.get(name);
  if (found === undefined) throw unknownName(what, name, known.keys());
  return found;
}

/** Maps items to an object keyed by their names. */
export const byName = <T extends { name: string }, V>(items: readonly T[], make: (item: T) => V): Record<string, V> =>
  Object.fromEntries(items.map((item) => [item.name, make(item)]));
