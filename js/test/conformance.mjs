// Runs the conformance suite, which internal/conformance/write compiles into a folder, on
// any WebGPU device or on the CPU, in Node or in a page.
//
// WGSL lets a device assume that there is no infinity and no NaN: if an operand or a result has
// one, a different result is not a failure. It is listed, with the device's name.

import { openProgram } from '../dist/runtime.js';

const arrays = {
  bool: Uint8Array, u8: Uint8Array, f8e4m3fn: Uint8Array, f8e5m2: Uint8Array, i8: Int8Array, u16: Uint16Array, f16: Uint16Array,
  bf16: Uint16Array, i16: Int16Array, i32: Int32Array, u32: Uint32Array, f32: Float32Array, c64: Uint8Array,
};

// The bits of an exponent and of a significand of the floats that come as their bits.
const layouts = { f8e4m3fn: [4, 3], f8e5m2: [5, 2], f16: [5, 10], bf16: [8, 7] };

/**
 * Runs all modules, or those that are selected. Counts are of results, that is of outputs
 * and states after a run.
 * @param {object} options
 * @param {GPUDevice} [options.device] the CPU if not given
 * @param {(file: string) => Promise<ArrayBuffer>} options.load reads a file of the suite
 * @param {(module: {name: string, bytes: number}) => boolean} [options.select] bytes is the
 *   size of the module's plan
 * @param {(line: string) => void} [options.print]
 * @returns {Promise<{device: string, passed: number, failed: number, deviating: number, bySubgroups: number, failures: string[], skipped: string[]}>}
 *   bySubgroups counts the cases whose kernels make use of the device's subgroups; skipped are modules for
 *   features that the device lacks
 */
export async function runConformance({ device, load, select = () => true, print = () => {} }) {
  const { modules } = JSON.parse(new TextDecoder().decode(await load('index.json')));
  const suite = { device, load, values: await load('values.bin') };
  const total = { device: '', passed: 0, failed: 0, deviating: 0, bySubgroups: 0, failures: [], skipped: [] };
  for (const module of modules.filter(select)) {
    if (device && !module.features.every((feature) => device.features.has(feature))) {
      total.skipped.push(module.name);
      continue;
    }
    for (const outcome of await runModule(suite, module)) {
      total.device = outcome.device || total.device;
      total.bySubgroups += outcome.bySubgroups;
      total.passed += outcome.passed;
      total.deviating += outcome.deviations.length;
      total.failed += outcome.failures.length;
      total.failures.push(...outcome.failures);
      describe(outcome).forEach(print);
    }
  }
  if (total.skipped.length > 0) print(`${total.skipped.length} modules skipped, whose features the device lacks`);
  print(`${total.device}: ${total.deviating} results with infinities or NaN deviate`);
  print(`${total.passed} passed, ${total.failed} failed`);
  return total;
}

function describe({ name, passed, deviations, failures, milliseconds }) {
  const verdict = failures.length > 0 ? 'FAIL' : 'ok  ';
  return [
    `${verdict} ${name}: ${passed} of ${passed + deviations.length + failures.length} in ${milliseconds} ms`,
    ...deviations.map((text) => `     deviates: ${text}`),
    ...failures.map((text) => `     ${text}`),
  ];
}

// runModule opens one program for the cases of a module, so that each kernel is compiled once, unless the
// program has states: a case starts from fresh ones.
async function runModule(suite, { plan, code, cases }) {
  const file = await suite.load(suite.device ? plan : code), outcomes = [];
  const open = () => openProgram(file, { drafts: false, ...suite.device && { device: suite.device } });
  let program;
  for (const one of cases) {
    const outcome = { name: one.name, device: '', bySubgroups: 0, passed: 0, deviations: [], failures: [] }, start = performance.now();
    outcomes.push(outcome);
    try {
      program ??= await open();
      outcome.device = program.device.description;
      outcome.bySubgroups = Number(program.plan.requires.subgroup[1] > 0);
      await runCase(suite.values, program, one, outcome);
    } catch (error) {
      outcome.failures.push(`${one.name}: ${error.message}`);
    }
    if (outcome.failures.length > 0 || program?.plan.slots.some(({ role }) => role === 'state')) {
      program?.close();
      program = undefined;
    }
    outcome.milliseconds = Math.round(performance.now() - start);
  }
  program?.close();
  return outcomes;
}

async function runCase(values, program, { name, entry, state, runs }, outcome) {
  const { slots, entries } = program.plan;
  for (const [port, tensor] of Object.entries(state)) {
    // A plan has no slot for a state that nothing depends on.
    if (slots.some((slot) => slot.name === port)) await program.write(port, inputOf(values, tensor));
  }
  const target = entries.find((candidate) => candidate.name === entry);
  const names = [...target.inputs, ...target.scalars].map((i) => slots[i].name);
  for (const { inputs, want } of runs) {
    await program.run(entry, Object.fromEntries(names.map((slot) => [slot, inputOf(values, inputs[slot])])));
    const got = (await program.readAll(want.map(({ output }) => output))).values;
    for (const result of want) {
      const { dtype } = result.tensor;
      const fault = compare(numbers(dtype, got[result.output]), result, numbers(dtype, elements(values, result.tensor)));
      const place = `${name}: ${result.about}, ${result.output}: ${fault}`;
      if (!fault) outcome.passed++;
      else (result.nonFinite ? outcome.deviations : outcome.failures).push(place);
    }
  }
}

const sizeOf = (shape) => shape.reduce((n, d) => n * d, 1);

// numbers are the elements of a program's result, the parts of complex ones.
function numbers(dtype, data) {
  if (dtype === 'c64') return new Float32Array(data.slice().buffer);
  return layouts[dtype] ? Float64Array.from(data, (bits) => narrowFloat(bits, ...layouts[dtype])) : data;
}

// The largest exponent is that of infinity and NaN; of e4m3fn that of NaN, with all ones.
function narrowFloat(bits, wide, places) {
  const one = 2 ** places, top = 2 ** wide - 1, bias = top >> 1;
  const sign = bits >> (wide + places) ? -1 : 1, exponent = (bits >> places) & top, fraction = bits % one;
  if (exponent === top && (wide !== 4 || fraction === one - 1)) return fraction ? NaN : sign * Infinity;
  return sign * (exponent === 0 ? fraction * 2 ** (1 - bias) : (one + fraction) * 2 ** (exponent - bias)) / one;
}

const elements = (values, { dtype, shape, at }) => new arrays[dtype](values, at, sizeOf(shape) * (dtype === 'c64' ? 8 : 1));

// inputOf returns a 32-bit tensor without axes as a number: it may be a scalar of the entry.
function inputOf(values, tensor) {
  const data = elements(values, tensor);
  return tensor.shape.length === 0 && !['f16', 'c64'].includes(tensor.dtype) ? data[0] : { data, shape: tensor.shape };
}

const near = (got, want, abs, rel) =>
  got === want || Object.is(got, want) || (Number.isFinite(want) && Math.abs(got - want) <= abs + rel * Math.abs(want));

// compare describes the first elements that are not within the tolerance; '' if all are.
function compare(got, { abs, rel }, want) {
  if (got.length !== want.length || got.constructor !== want.constructor) {
    return `is ${got.constructor.name}(${got.length}), not ${want.constructor.name}(${want.length})`;
  }
  const faults = [];
  for (let i = 0; i < want.length; i++) {
    if (!near(got[i], want[i], abs, rel)) faults.push(`element ${i} is ${got[i]}, not ${want[i]}`);
  }
  return faults.length > 0 ? `${faults.length} of ${want.length} differ: ${faults.slice(0, 3).join('; ')}` : '';
}
