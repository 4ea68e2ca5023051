// The languages of the playground: programs in TypeScript, of which JavaScript is a part, and graphs as text.

const begin = /^\s*(?:\/\/[^\n]*\n\s*)*graph\s*"/;

/** The language of what is in the editor: its first word is enough. @returns {'graph' | 'program'} */
export const languageOf = (source) => begin.test(source) ? 'graph' : 'program';

/** The line and column that an error of the parser of graphs begins with, and the rest of it; undefined for any other message. */
export function placeInText(message) {
  const [, line, column, rest] = /^(\d+):(\d+): (.*)$/s.exec(message) ?? [];
  return line && { line: Number(line), column: Number(column), message: rest };
}

/** A line that computes: names, the op, its operands, attributes and types, and no label. */
const computes = /^\s*%\w+(?:\s*,\s*%\w+)*\s*=\s*(?!(?:input|param|state|constant)\b)([\w.]+)\s*\((?:[^"/#]|"(?:[^"\\]|\\.)*"|\/(?!\/))*?\](?:\s*\))?(?=\s*(?:\/\/.*)?$)/;

/** Labels the ops of graphs by their lines, as those of a program are, where they have no label. Lines stay where they are. */
export const labelled = (source) => source.split('\n').map((line, i) =>
  line.replace(computes, (whole, op) => `${whole} #"${op}, line ${i + 1}"`)).join('\n');
