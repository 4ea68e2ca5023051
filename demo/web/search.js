// The search of the documentation: over titles, names and words of an index made when the site is built.

/** What a name of another library begins with there, which is not a part of it. */
const prefix = /^(torch|tf|jnp|jax|np|nn|f|functional|optim|autograd|func|linalg|tensor|utils|self|x|lax)$/;

/** Words that say nothing of what is looked for, unless there is no other. */
const idle = new Set('a an and can do does for from how i in is it my not of on or the to use using what with'.split(' '));

/** The words of a query: the parts of names, without the arguments of calls. */
export function wordsOf(query) {
  const parts = query.toLowerCase().replace(/\([^)]*\)?/g, '').split(/\s+/).flatMap((name) => {
    const all = name.split('.').filter(Boolean);
    return all.filter((part, i) => i === all.length - 1 || !prefix.test(part));
  });
  const words = parts.map((part) => part.replace(/^\W+|\W+$/g, '')).filter(Boolean), telling = words.filter((word) => !idle.has(word));
  return telling.length ? telling : words;
}

const bareOf = (name) => name.replace(/[_\s]+/g, '');

/** How well a word of a query fits an entry: 0 for not at all. */
function scoreOf(word, { title, also, text }) {
  const name = title.toLowerCase(), bare = bareOf(word), other = also.toLowerCase(), parts = name.split(/[^a-z0-9_]+/);
  if (name === word || bareOf(name) === bare || other === bare) return 100;
  if (parts.some((part) => bareOf(part) === bare || bareOf(part) === `${bare}_`)) return 80;
  if (name.startsWith(word) || other.startsWith(bare)) return 60;
  if (parts.some((part) => part.startsWith(word) || bareOf(part).startsWith(bare)) || name.includes(`_${word}`)) return 40;
  if (bareOf(name).includes(bare) || other.includes(bare)) return 25;
  return new RegExp(`(^|[^a-z0-9])${word.replace(/[^\w]/g, '.')}`, 'i').test(text) ? 10 : 0;
}

/** {@link scoreOf} a word, or of a form of it without an ending. */
const bestScoreOf = (word, entry) => scoreOf(word, entry) || (/[^s](s|ing|ed|[123]d)$/.test(word) && word.length > 4 ? scoreOf(word.replace(/(s|ing|ed|[123]d)$/, ''), entry) / 2 : 0);

/** The index as it is searched, from the file. */
export const entriesOf = ({ pages, entries }) => entries.map(([title, also, at, anchor, text]) => ({
  title, also, text, where: pages[at].title, shown: pages[at].shown && anchor !== '', href: `${pages[at].name}.html${anchor ? `#${anchor}` : ''}`,
}));

/**
 * The entries that have all words of a query, the best first; if none has, those that have half of them or more.
 * @param {object[]} entries of {@link entriesOf}
 * @param {string} query
 */
export function search(entries, query, most = 12) {
  const words = wordsOf(query);
  if (!words.length) return [];
  const scored = entries.map((entry) => {
    const scores = words.map((word) => bestScoreOf(word, entry));
    return { entry, missing: scores.filter((score) => score === 0).length, score: scores.reduce((sum, score) => sum + score) };
  });
  const whole = scored.filter(({ missing }) => missing === 0), found = whole.length ? whole : scored.filter(({ missing }) => 2 * missing <= words.length);
  found.sort((a, b) => a.missing - b.missing || b.score - a.score || a.entry.title.length - b.entry.title.length);
  return found.slice(0, most).map(({ entry }) => entry);
}
