// Scopes under other names.

/** A path whose beginning, whole parts of it, the first rule that fits replaces. An empty new name leaves the parts out. */
export function renamed(path: string, rules: Readonly<Record<string, string>> = {}): string {
  for (const [from, to] of Object.entries(rules)) {
    if (path === from || path.startsWith(`${from}/`)) return to ? to + path.slice(from.length) : path.slice(from.length + 1);
  }
  return path;
}

/** The end of the name of a count that PyTorch's batch norms have, and nothing here needs. */
export const needless = /(^|[./])num_batches_tracked$/;
