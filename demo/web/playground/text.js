// Runs graphs that are given as text: shows each and its derivative, and runs them with inputs that their types allow.

import { labelled } from './language.js';
import { report } from './report.js';
import { init, parseModule, program } from './rlx.js';

/** The size that stands for every symbol. */
const size = 8;

const arrays = { f32: Float32Array, i32: Int32Array, u32: Uint32Array, f16: Uint16Array, bf16: Uint16Array, u16: Uint16Array, i16: Int16Array, i8: Int8Array };

const isFloat = ({ dtype }) => /^b?f\d/.test(dtype);

/** A value of a type: numbers in [-1, 1) of f32, the same in each run, and zeros of others, which are valid indices. */
function valueOf({ dtype, shape }) {
  const data = new (arrays[dtype] ?? Uint8Array)(shape.reduce((product, n) => product * n, 1));
  if (dtype === 'f32') for (let i = 0; i < data.length; i++) data[i] = (i + 1) * 0.6180339887 % 1 * 2 - 1;
  return { data, shape };
}

/** The gradient of the first output that is a number, by the parameters, or by the inputs if there are none; undefined where there is no such output. */
function gradientOf(graph) {
  const loss = graph.outputs.find(({ state, shape, ...type }) => !state && !shape.length && isFloat(type));
  const floats = graph.ports.filter(isFloat), params = floats.filter(({ kind }) => kind === 'param');
  const by = (params.length ? params : floats.filter(({ kind }) => kind === 'input')).map(({ name }) => name);
  return loss && by.length ? graph.gradWith({ output: loss.name, by, missing: 'zero', dropOutputs: true }) : undefined;
}

/** @param {string} source the graphs of a module */
export async function runText(source) {
  await init();
  const given = parseModule(labelled(source)), entries = {};
  for (const [name, graph] of Object.entries(given)) {
    report({ type: 'graph', name, text: graph.text(), entry: false });
    const bound = graph.symbols.length ? graph.bind(Object.fromEntries(graph.symbols.map((symbol) => [symbol, size]))) : graph;
    if (graph.symbols.length) console.info(`${name}: ${graph.symbols.join(' and ')} stand${graph.symbols.length > 1 ? '' : 's'} for ${size} here`);
    entries[name] = bound;
    const gradient = gradientOf(bound), of = `grad_${name}`;
    if (!gradient || given[of]) continue;
    entries[of] = gradient;
    report({ type: 'graph', name: of, text: gradient.text(), entry: false });
  }
  const made = await program({ entries });
  try {
    for (const [name, graph] of Object.entries(entries)) {
      const inputs = Object.fromEntries(graph.ports.filter(({ kind }) => kind === 'input').map((port) => [port.name, valueOf(port)]));
      const read = graph.outputs.filter(({ state }) => !state).map((output) => output.name);
      const { reading } = await made.run(name, inputs, { read }), { values } = read.length ? await reading : {};
      for (const output of read) console.log(`${name}: ${output} =`, values[output]);
    }
  } finally {
    made.close();
  }
}
