// The search of the documentation: over titles, names and words of an index made when the site is built.

/** How well a word of a query fits an entry: 0 for not at all. */
function scoreOf(word, { title, also, text }) {
  const name = title.toLowerCase(), bare = word.replaceAll('_', ''), other = also.toLowerCase();
  if (name === word || name.replaceAll('_', '') === bare || other === word) return 100;
  if (name.startsWith(word) || other.startsWith(word)) return 60;
  if (name.split(/[\s_]+/).some((part) => part.startsWith(word))) return 40;
  if (name.includes(word) || other.includes(word)) return 25;
  return new RegExp(`(^|[^a-z0-9])${word.replace(/[^\w]/g, '.')}`, 'i').test(text) ? 10 : 0;
}

/** The index as it is searched, from the file. */
export const entriesOf = ({ pages, entries }) => entries.map(([title, also, at, anchor, text]) => ({
  title, also, text, where: pages[at].title, isOp: pages[at].group === 'Ops', href: `${pages[at].name}.html${anchor ? `#${anchor}` : ''}`,
}));

/**
 * The entries that have all words of a query, the best first.
 * @param {object[]} entries of {@link entriesOf}
 * @param {string} query
 */
export function search(entries, query, most = 12) {
  const words = query.toLowerCase().trim().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const scored = entries.map((entry) => {
    const scores = words.map((word) => scoreOf(word, entry));
    return { entry, score: scores.includes(0) ? 0 : scores.reduce((sum, score) => sum + score) };
  });
  const found = scored.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score || a.entry.title.length - b.entry.title.length);
  return found.slice(0, most).map(({ entry }) => entry);
}
