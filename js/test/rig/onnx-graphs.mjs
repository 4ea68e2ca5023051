// What a page makes of ONNX models, for Go tests: of each line of the input, a model's file and the options of its import,
// a line of the output has the text of the graph and the hashes of its weights, or the kind of the error. Of a line with
// inputs it has the outputs of a run on the CPU.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { init } from '../../dist/index.js';
import { openONNX } from '../../dist/onnx.js';

const arrays = { f32: Float32Array, f64: Float64Array, i64: BigInt64Array, u64: BigUint64Array, i32: Int32Array, u32: Uint32Array, i16: Int16Array, u16: Uint16Array, f16: Uint16Array, bf16: Uint16Array, i8: Int8Array };

/** A value of an input, whose elements are in base64. */
function valueOf({ dtype, shape, data }) {
  const { buffer } = Uint8Array.from(Buffer.from(data, 'base64'));
  return { dtype, shape, data: new (arrays[dtype] ?? Uint8Array)(buffer) };
}

const valuesOf = (values) => Object.fromEntries(Object.entries(values).map(([name, value]) => [name, valueOf(value)]));

async function outputsOf({ file, inputs }) {
  const model = await openONNX(readFileSync(file), { maxSteps: 64, program: { on: 'cpu' } }), outputs = {};
  try {
    for (const [name, { dtype, shape, data }] of Object.entries(await model.run(valuesOf(inputs)))) {
      outputs[name] = { dtype, shape, data: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64') };
    }
    return { outputs };
  } finally {
    model.close();
  }
}

async function madeOf({ file, symbols, values }) {
  const model = await openONNX(readFileSync(file), { symbols, values: valuesOf(values), maxSteps: 64 });
  try {
    const text = (await model.graph()).text(), weights = {};
    for (const { name } of await model.weights()) {
      const { buffer, byteOffset, byteLength } = (await model.read(name)).data;
      weights[name] = createHash('sha256').update(new Uint8Array(buffer, byteOffset, byteLength)).digest('hex');
    }
    return { text, weights };
  } finally {
    model.close();
  }
}

await init({ cache: false, compileWorker: false });
for await (const line of createInterface({ input: process.stdin })) {
  const ask = JSON.parse(line), made = await (ask.inputs ? outputsOf(ask) : madeOf(ask)).catch((reason) => ({ kind: reason.kind ?? 'none', message: `${reason.stack}` }));
  await new Promise((resolve) => process.stdout.write(`${JSON.stringify(made)}\n`, resolve));
}
process.exit(); // Node 20 may wait at its end for V8's compilation of WebAssembly, and has done so for ever
