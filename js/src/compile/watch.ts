// A loss whose steps remember the first value that was not finite.

import { Graph, parseGraph } from '../graph/graph.js';
import type { Program } from '../program/program.js';
import { need, RlxError } from '../values/errors.js';

/** The state of a watched loss, as in Go: 1 + the index of the first value that was not finite; 0 until there is one. */
const watchState = 'watch/first';

/** A loss that looks for values that are not finite: see {@link watch}. */
export interface Watched {
  /** The graph of the loss with one more state. */
  readonly loss: Graph;
  /** The first value that was not finite in any step of a program of the loss: `param "w"`, `layer "h/0" (linear)`, `exp f32[4]`; undefined if all were. */
  first(program: Pick<Program, 'read'>): Promise<string | undefined>;
}

/**
 * Returns the loss with a state in which each step notes the first value that is NaN or infinite: a parameter or an input, or
 * the result of a layer or of a node without a scope, outside of loops. `stopOnNaN` of `fit` names it. It costs a reduction of each of these values.
 *
 * ```ts
 * const watched = watch(graph('loss', build)), model = await train(watched.loss, { on: 'webgpu' });
 * await fit(model, { data, steps: 1000, stopOnNaN: watched });
 * ```
 */
export function watch(loss: Graph): Watched {
  need(loss instanceof Graph, 'graph', 'watch: the loss', 'a graph', loss);
  const { text, names } = watchedText(loss.text());
  return {
    loss: parseGraph(text),
    async first(program) {
      need(typeof program?.read === 'function', 'missing', 'first: the program', 'one of the loss', program);
      const [first] = await program.read(watchState);
      return names[Number(first) - 1];
    },
  };
}

/** A line of the text form: its values, their op, their types, and what follows. */
const nodeLine = /^ {2}(%\d+(?:, %\d+)*) = (.+?)(?:\(.*)? : (\((?:\w+\[[^\]]*\](?:, )?)+\)|\w+\[[^\]]*\])(?: init .*| #"(.*)"| .*)?$/;

interface Watching {
  name: string;
  value: string;
  type: string;
  axes: number;
}

/** The float values of a graph, in order: of those with a label the last. The lines of subgraphs are longer indented. */
function valuesOf(lines: readonly string[]): Watching[] {
  const found: (Watching & { label: string })[] = [], last = new Map<string, number>();
  lines.forEach((line, at) => {
    const [, values, op, types, label = ''] = nodeLine.exec(line) ?? [];
    if (!values || !op || !types || /^constant\b/.test(op)) return;
    last.set(label, at);
    const all = [...types.matchAll(/(\w+)\[([^\]]*)\]/g)];
    values.split(', ').forEach((value, i) => {
      const [type = '', dtype = '', dims = ''] = all[i] ?? [];
      if (!/^b?f\d/.test(dtype)) return;
      const name = label ? `layer "${label}" (${op})` : /^(?:param|input|state) /.test(op) ? op : `${op} ${type}`;
      found.push({ name, value, type, axes: dims ? dims.replace(/\([^()]*\)/g, '').split(',').length : 0, label: label && `${label}\n${at}` });
    });
  });
  return found.filter(({ label }) => !label || last.get(label.split('\n')[0]!) === Number(label.split('\n')[1]));
}

/** The text of a loss with the state, and the names of the watched values. */
function watchedText(text: string): { text: string; names: string[] } {
  const lines = text.trimEnd().split('\n'), values = valuesOf(lines), end = lines.findIndex((line) => /^ {2}(?:output|state) "/.test(line));
  if (end < 0) throw new RlxError('graph', 'watch: the graph has no outputs');
  let next = 1 + lines.reduce((most, line) => Math.max(most, Number(/^ {2}(?:%\d+, )*%(\d+) = /.exec(line)?.[1] ?? -1)), -1);
  const added: string[] = [];
  const add = (what: string): string => { added.push(`  %${next} = ${what}`); return `%${next++}`; };
  const finite = values.map(({ value, type, axes }) => {
    const of = type.replace(/^\w+/, 'bool'), ok = add(`is_finite(${add(`stop_gradient(${value}) : ${type}`)}) : ${of}`);
    return axes ? add(`all(${ok}) {axes=[${[...Array(axes).keys()]}]} : bool[]`) : ok;
  });
  const zero = add('constant 0 : i32[]'), old = add(`state "${watchState}" : i32[]`);
  const first = finite.reduceRight((found, ok, i) => add(`select(${ok}, ${found}, ${add(`constant ${i + 1} : i32[]`)}) : i32[]`), zero);
  const kept = add(`select(${add(`eq(${old}, ${zero}) : bool[]`)}, ${first}, ${old}) : i32[]`);
  return { text: [...lines.slice(0, end), ...added, `  state "${watchState}" = ${kept}`, ...lines.slice(end), ''].join('\n'), names: values.map(({ name }) => name) };
}
