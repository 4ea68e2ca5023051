// Runs a program of the playground: a worker of its own for each run, so that it can be ended at any time.

import { erased } from './erase.js';
import { languageOf, placeInText } from './language.js';
import { lineHere, useProgram, withoutLabels } from './place.js';
import { placeOf, withAddresses } from './program.js';
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

/** A program without its types; one that cannot be read is as it was, and what is wrong with it is returned, too. */
function withoutTypes(source) {
  try {
    return { code: erased(source) };
  } catch (wrong) {
    return { code: source, wrong };
  }
}

/** Runs a program in TypeScript as a module. */
async function runProgram(source) {
  const { code, wrong } = withoutTypes(source);
  const address = URL.createObjectURL(new Blob([withAddresses(code, import.meta.url)], { type: 'text/javascript' }));
  useProgram(address);
  try {
    await import(address);
  } catch (reason) {
    const error = reason instanceof Error ? reason : new Error(textOf(reason));
    if (wrong && error instanceof SyntaxError) throw Object.assign(wrong, { at: wrong.place });
    throw Object.assign(error, { at: placeOf(error.stack, address) });
  } finally {
    URL.revokeObjectURL(address);
  }
}

async function run(source) {
  try {
    await (languageOf(source) === 'graph' ? runText(source) : runProgram(source));
    report({ type: 'end' });
  } catch (error) {
    const { message, ...place } = placeInText(error.message) ?? { message: error.message };
    report({ type: 'failed', kind: error.kind ?? error.name, message: withoutLabels(message), place: error.at ?? (place.line && place) });
  }
}

globalThis.onmessage = ({ data: { source, compiler } }) => {
  useCompiler(compiler);
  run(source);
};
