// Prints the table of a run: for each job and library the better of its runs.
//
//   node table.mjs RESULTS

import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const folder = process.argv[2];
const files = readdirSync(folder).filter((name) => name.endsWith('.json'));
const rows = files.flatMap((name) => {
  const text = readFileSync(join(folder, name), 'utf8');
  return text.trim() ? JSON.parse(text) : [];
});

const best = new Map();
for (const row of rows) {
  const key = `${row.job}|${row.peer}`;
  if (!best.has(key) || !(best.get(key).wall <= row.wall)) best.set(key, row);
}

console.log(`${'job'.padEnd(44)}${'library'.padEnd(18)}${'ms'.padStart(10)}${'host ms'.padStart(10)}  rate`);
for (const [, row] of [...best].sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }))) {
  const figures = row.error ? `  ${row.error}` : `${row.wall.toFixed(3).padStart(10)}${row.host.toFixed(3).padStart(10)}  ${row.rate}${row.loss === undefined ? '' : `  loss ${row.loss.toFixed(5)}`}`;
  console.log(`${row.job.padEnd(44)}${`${row.peer} ${row.version}`.padEnd(18)}${figures}`);
}
