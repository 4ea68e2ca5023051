// Runs a program of the playground: a worker of its own for each run, so that it can be ended at any time.

import { languageOf, placeInText } from './language.js';
import { lineHere, placeIn, useProgram, withoutLabels } from './place.js';
import { asItIs, withAddresses } from './program.js';
import { report } from './report.js';
import { useCompiler } from './rlx.js';
import { runText } from './text.js';

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

/** Runs a module. Returns why it could not be read, if it could not, and nothing was done. */
async function runModule(code, lines) {
  const address = URL.createObjectURL(new Blob([withAddresses(code, import.meta.url)], { type: 'text/javascript' }));
  useProgram(address, lines);
  try {
    await import(address);
    return undefined;
  } catch (reason) {
    const error = reason instanceof Error ? reason : new Error(textOf(reason));
    if (!lines && error instanceof SyntaxError && !globalThis.programBegun) return error.message;
    throw Object.assign(error, { at: placeIn(error.stack) });
  } finally {
    URL.revokeObjectURL(address);
  }
}

async function run(source, { code = asItIs(source), lines } = {}) {
  try {
    const unread = await (languageOf(source) === 'graph' ? runText(source) : runModule(code, lines));
    report(unread ? { type: 'unread', message: unread } : { type: 'end' });
  } catch (error) {
    const { message, ...place } = placeInText(error.message) ?? { message: error.message };
    report({ type: 'failed', kind: error.kind ?? error.name, message: withoutLabels(message), place: error.at ?? (place.line && place) });
  }
}

globalThis.onmessage = ({ data: { source, script, compiler } }) => {
  useCompiler(compiler);
  run(source, script);
};
