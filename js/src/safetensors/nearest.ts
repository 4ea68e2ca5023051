// Names that are not there, each with the nearest one that is.

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
