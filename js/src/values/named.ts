// Things that have names.

import { unknownName } from './errors.js';

/** What a name stands for. `what` begins the message where it stands for nothing. */
export function named<T>(what: string, name: string, known: ReadonlyMap<string, T>): T {
  const found = known.get(name);
  if (found === undefined) throw unknownName(what, name, known.keys());
  return found;
}

/** An object of what is made of some items, by their names. */
export const byName = <T extends { name: string }, V>(items: readonly T[], make: (item: T) => V): Record<string, V> =>
  Object.fromEntries(items.map((item) => [item.name, make(item)]));
