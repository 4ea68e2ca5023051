// The files that the package's README shows: a fence of JavaScript whose first line is a name.

import { readFileSync } from 'node:fs';

const text = readFileSync(new URL('../README.md', import.meta.url), 'utf8');

/** @type {Record<string, string>} */
export const files = Object.fromEntries([...text.matchAll(/```js\n\/\/ (\S+\.m?js)[^]*?```/g)].map(([fence, name]) => [name, fence.slice(6, -3)]));
