// Runs the conformance suite, which webgpu/conformance/write compiles into a folder, on
// any WebGPU device, in Node or in a page.
//
// It needs no tests of a device's own: what a device may do otherwise is in the table
// `deviations`, with the reason, and every case of it is printed.

import { openSession } from '../dist/runtime.js';
import { deviations } from './deviations.mjs';

const arrays = { bool: Uint8Array, i32: Int32Array, u32: Uint32Array, f32: Float32Array };

/**
 * Runs all modules, or those that are selected.
 * @param {object} options
 * @param {GPUDevice} options.device
 * @param {(file: string) => Promise<ArrayBuffer>} options.load reads a file of the suite
 * @param {(module: object) => boolean} [options.select]
 * @param {(line: string) => void} [options.print]
 * @returns {Promise<{device: string, passed: number, failed: number, deviating: number, failures: string[]}>}
 *   counts of results, that is of outputs and states after a run
 */
export async function runConformance({ device, load, select = () => true, print = () => {} }) {
  const { modules } = JSON.parse(new TextDecoder().decode(await load('index.json')));
  const suite = { device, load, print, values: await load('values.bin'), known: [] };
  const total = { device: '', passed: 0, failed: 0, deviating: 0, failures: [] };
  for (const module of modules.filter(select)) {
    const { name, cases } = await runModule(suite, module);
    total.device = name ?? total.device;
    for (const { title, passed, notes, failures } of cases) {
      total.passed += passed;
      total.deviating += notes.length;
      total.failed += failures.length;
      total.failures.push(...failures);
      print(`${failures.length > 0 ? 'FAIL' : 'ok  '} ${title}: ${passed} of ${passed + notes.length + failures.length}`);
      for (const note of notes) print(`     deviates: ${note}`);
      for (const failure of failures) print(`     ${failure}`);
    }
  }
  print(`${total.device}: ${total.deviating} results deviate where WGSL lets them`);
  print(`${total.passed} passed, ${total.failed} failed`);
  return total;
}

// runModule opens a session for each case, as each begins with state of its own.
async function runModule(suite, module) {
  const plan = await suite.load(module.plan), cases = [];
  let name;
  for (const one of module.cases) {
    const outcome = { title: one.name, passed: 0, notes: [], failures: [] };
    cases.push(outcome);
    try {
      const session = await openSession(plan, { device: suite.device });
      name = session.deviceName;
      await runCase(suite, session, one, outcome);
      session.close();
    } catch (error) {
      outcome.failures.push(`${one.name}: ${error.message}`);
    }
  }
  return { name, cases };
}

async function runCase({ values }, session, { name, entry, state, runs }, outcome) {
  for (const [port, tensor] of Object.entries(state)) {
    // A plan has no slot for a state that nothing depends on.
    if (session.plan.slots.some((slot) => slot.name === port)) await session.write(port, inputOf(values, tensor));
  }
  const known = deviations.filter(({ device, cases }) => device.test(session.deviceName) && cases.includes(name));
  for (const { inputs, want } of runs) {
    const given = session.plan.entries.find((e) => e.name === entry);
    const slots = [...given.inputs, ...given.scalars].map((i) => session.plan.slots[i].name);
    await session.run(entry, Object.fromEntries(slots.map((slot) => [slot, inputOf(values, inputs[slot])])));
    const got = (await session.readAll(want.map(({ output }) => output))).values;
    for (const result of want) {
      const fault = compare(got[result.output], result, elements(values, result.tensor));
      if (!fault) outcome.passed++;
      else if (result.nonFinite || known.length > 0) outcome.notes.push(`${result.about}, ${result.output}: ${fault} (${known[0]?.reason ?? 'infinities and NaN need not be there'})`);
      else outcome.failures.push(`${name}: ${result.about}, ${result.output}: ${fault}`);
    }
  }
}

const sizeOf = (shape) => shape.reduce((n, d) => n * d, 1);

const elements = (values, { dtype, shape, at }) => new arrays[dtype](values, at, sizeOf(shape));

// inputOf gives a tensor without axes as a number: it may be a scalar of the entry.
function inputOf(values, tensor) {
  const data = elements(values, tensor);
  return tensor.shape.length === 0 ? data[0] : { data, shape: tensor.shape };
}

// compare describes the first elements that are not within the tolerance.
function compare(got, { abs, rel }, want) {
  if (got.length !== want.length || got.constructor !== want.constructor) return `is ${got.constructor.name}(${got.length}), not ${want.constructor.name}(${want.length})`;
  const faults = [];
  for (let i = 0; i < want.length; i++) {
    const near = Object.is(got[i], want[i]) || got[i] === want[i] || (Number.isFinite(want[i]) && Math.abs(got[i] - want[i]) <= abs + rel * Math.abs(want[i]));
    if (!near) faults.push(`element ${i} is ${got[i]}, not ${want[i]}`);
  }
  return faults.length > 0 && `${faults.length} of ${want.length} differ: ${faults.slice(0, 3).join('; ')}`;
}
