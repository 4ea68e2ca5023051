// Where in the program a call comes from, and how ops carry that through the compiler.

import { placeOf } from './program.js';

let address, lines;

/** Has {@link placeIn} look for a program. A call may be many functions deep: in a layer of a layer. */
export function useProgram(given, linesOf) {
  address = given;
  lines = linesOf;
  Error.stackTraceLimit = 50;
}

/** Where in the program that is being run a stack was, or undefined outside of one. */
export const placeIn = (stack) => address && placeOf(stack, address, lines);

/** The line of the program that is being run, or undefined outside of one. */
export const lineHere = () => placeIn(new Error().stack)?.line;

/** The builders whose label the program has set itself. */
const labelled = new WeakSet();
let traced = false;

/**
 * Labels the ops of all graphs by their line. The compiler gives a label to derivatives of an op too, and to the kernels that compute it.
 * @param {object} builder the first one; all share its methods
 */
export function labelByLine(builder) {
  if (traced) return;
  traced = true;
  const methods = Object.getPrototypeOf(builder), { label } = methods;
  methods.label = function (text) {
    if (text) labelled.add(this); else labelled.delete(this);
    return label.call(this, text);
  };
  for (const name of ['apply', 'callFunction']) {
    const method = methods[name];
    methods[name] = function (op, ...given) {
      const line = labelled.has(this) ? undefined : lineHere();
      if (line) label.call(this, `${op}, line ${line}`);
      return method.call(this, op, ...given);
    };
  }
}

/** The line in a label, that is the last in the text of a graph's line; undefined if it has none. */
export function lineOfLabel(text) {
  const [, line] = /#"(?:[^"\\]|\\.)*, line (\d+)"\s*$/.exec(text) ?? [];
  return line && Number(line);
}

/** The message of an error without such labels: its place is named in it already. */
export const withoutLabels = (message) => message.replace(/ "(?:[^"\\]|\\.)*, line \d+"/g, '');
