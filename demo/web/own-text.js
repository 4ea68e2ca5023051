// A text of the visitor: what of it a model can learn from.

import { count } from './page.js';
import { Text } from './text.js';

/** Characters at a time that are looked at before the page may do something else: a few milliseconds. */
const slice = 1 << 15;

/** More of a file than this is not read, in bytes. */
export const mostBytes = 4e6;

/** Rarer characters may be left out if they are no more than this share of the text. */
const mostLeftOut = 0.02;

/** A model soon knows a text of fewer characters by heart. */
const short = 50_000;

/** The characters of a string, some at a time: composed, with lines that end as Unix's do. */
async function* charactersOf(string) {
  for (let at = 0; at < string.length;) {
    let end = Math.min(string.length, at + slice);
    if (/[\ud800-\udbff\r]/.test(string[end - 1]) && end < string.length) end++; // what belongs together
    yield [...string.slice(at, end).normalize('NFC').replace(/\r\n?|[\u2028\u2029]/g, '\n').replaceAll('\ufeff', '')];
    at = end;
    await new Promise((resolve) => { setTimeout(resolve); });
  }
}

/**
 * Reads a text of the visitor, of which the most frequent characters are numbered.
 * @param {string} string
 * @param {number} most how many characters a model can tell apart
 * @param {number} least how many characters the text must have
 * @returns {Promise<{text: Text, about: string}>} about says how large it is, and what was left out
 */
export async function readOwn(string, most, least) {
  const counts = new Map(), known = [];
  let total = 0;
  for await (const characters of charactersOf(string)) {
    total += characters.length;
    for (const character of characters) counts.set(character, (counts.get(character) ?? 0) + 1);
  }
  if (counts.has('\0')) throw new Error('This is not plain text. Save it as plain text (.txt) first.');
  const byCount = [...counts].sort(([, a], [, b]) => b - a), kept = byCount.slice(0, most).map(([character]) => character).sort();
  const left = byCount.slice(most).reduce((sum, [, n]) => sum + n, 0);
  if (left > mostLeftOut * total) {
    throw new Error(`The text has ${count(counts.size)} different characters, and these models tell ${most} apart: ${Math.round(100 * left / total)} % of it would be lost. Try a text in an alphabet, such as Latin, Greek or Cyrillic.`);
  }
  if (total - left < least) throw new Error(`The text has ${count(total - left)} characters, and this model needs ${count(least)} or more. Add to it, or choose a smaller model.`);
  const numbers = new Map(kept.map((character, i) => [character, i]));
  for await (const characters of charactersOf(string)) {
    known.push(Uint8Array.from(characters.filter((character) => numbers.has(character)), (character) => numbers.get(character)));
  }
  const all = new Uint8Array(total - left);
  known.reduce((at, some) => (all.set(some, at), at + some.length), 0);
  return { text: new Text(kept, all, 'Your text does not have'), about: aboutOf(all.length, kept.length, byCount.slice(most).map(([character]) => character), left) };
}

function aboutOf(length, kinds, dropped, left) {
  const said = [`${count(length)} characters, ${kinds} different ones; one tenth is held out.`];
  if (left > 0) said.push(`${count(left)} rare ones were left out: ${dropped.slice(0, 8).join(' ')}${dropped.length > 8 ? ' …' : ''}`);
  if (length < short) said.push('It is short: the model will soon know it by heart, and the held-out loss will rise again.');
  return said.join(' ');
}
