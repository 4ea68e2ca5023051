// Runs a program of the playground: a worker of its own for each run, so that it can be ended at any time.

import { lineHere, useProgram, withoutLabels } from './place.js';
import { placeOf, withAddresses } from './program.js';
import { report } from './report.js';
import { useCompiler } from './rlx.js';

/** What is printed of a value. */
function textOf(value) {
  if (typeof value === 'string') return value;
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) return `[${Array.from(value.subarray(0, 20), (n) => +n.toPrecision(5)).join(', ')}${value.length > 20 ? `, … ${value.length} in all` : ''}]`;
  if (value instanceof Error) return value.message;
  try {
    return Object(value) === value ? JSON.stringify(value) : String(value);
  } catch {
    return String(value);
  }
}

for (const level of ['log', 'info', 'warn', 'error']) {
  const print = console[level].bind(console);
  console[level] = (...values) => {
    print(...values);
    report({ type: 'log', level, line: lineHere(), text: values.map(textOf).join(' ') });
  };
}

async function run(source) {
  const address = URL.createObjectURL(new Blob([withAddresses(source, import.meta.url)], { type: 'text/javascript' }));
  useProgram(address);
  try {
    await import(address);
    report({ type: 'end' });
  } catch (reason) {
    const error = reason instanceof Error ? reason : new Error(textOf(reason));
    report({ type: 'failed', kind: error.kind ?? error.name, message: withoutLabels(error.message), place: placeOf(error.stack, address) });
  } finally {
    URL.revokeObjectURL(address);
  }
}

globalThis.onmessage = ({ data: { source, compiler } }) => {
  useCompiler(compiler);
  run(source);
};
