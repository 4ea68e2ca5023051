// How fast a device is: what it reaches in a few programs, and by that how long a module takes.

import type { DeviceOptions } from '../gpu/device.js';
import type { GraphBuilder, Value } from '../graph/builder.js';
import { graph } from '../graph/graph.js';
import type { Inputs } from '../program/types.js';
import { need } from '../values/errors.js';
import { init, planCache, type Work } from './compiler.js';
import { checked, type DeviceInfo, type DeviceName, usable } from './device.js';
import { program } from './train.js';

/** What a device reached in {@link calibrate}. */
export interface Rates {
  /** Multiplications and additions per second in a product of f32 matrices. */
  operations: number;
  /** Bytes read and written per second by an elementwise op. */
  bytes: number;
  /** Bytes of inputs and outputs per second, between host and device. */
  transfer: number;
  /** The least milliseconds of a kernel that follows another one. */
  kernel: number;
  /** The least milliseconds of a run, from its start until the page has the outputs. */
  call: number;
}

/** Rates by device, as long as the page lives. */
const known = new Map<string, Rates>();

const keyOf = ({ name, description }: DeviceInfo): string => `${name}: ${description}, ${globalThis.navigator?.hardwareConcurrency ?? 1}`;

/** The rates of a device that {@link calibrate} kept, here or, with a store of plans, on an earlier visit; undefined if there are none. */
export async function ratesOf(device: DeviceInfo): Promise<Rates | undefined> {
  need(Object(device) === device, 'missing', 'the device', 'one of devices()', device);
  const name = keyOf(device), cache = planCache(), key = known.has(name) ? undefined : await cache?.key('rates', name);
  const kept = key === undefined ? undefined : await cache!.get(key);
  if (kept) known.set(name, JSON.parse(new TextDecoder().decode(kept)) as Rates);
  return known.get(name);
}

/**
 * Measures a device, which takes some seconds, and keeps the rates: {@link devicesFor} and {@link openFor} compare devices by them once all
 * have rates. Later visits have them where plans are kept. Rejects with an {@link RlxError}: `name` for an unknown device, `device` for one that is not
 * usable, and those of {@link program}.
 */
export async function calibrate(device: DeviceName, given?: DeviceOptions): Promise<Rates> {
  const options = checked('calibrate', given), { info } = await usable(device, options);
  await init();
  const rates = await measure((build, steps, inputs) => timeOf(info, options, build, steps, inputs));
  const name = keyOf(info), cache = planCache(), key = await cache?.key('rates', name);
  known.set(name, rates);
  if (key !== undefined) await cache!.set(key, new TextEncoder().encode(JSON.stringify(rates)));
  return rates;
}

type Build = (b: GraphBuilder) => Value;
/** The milliseconds of a step of a graph, in runs of up to several steps. */
type Timer = (build: Build, steps: number, inputs?: Inputs) => Promise<number>;

/** The most steps of a run that is to show the time of a step, not of a call. */
const manySteps = 64;
/** The milliseconds of a step that is long enough to say a rate. */
const enough = 2;

async function measure(time: Timer): Promise<Rates> {
  const rates: Rates = { operations: 0, bytes: 0, transfer: 0, kernel: 0, call: 0 };
  for (let n = 256; n <= 2048; n *= 2) {
    const took = await time((b) => products(b, n, 1), manySteps);
    rates.operations = 2 * n ** 3 / took * 1000;
    if (took > enough) break;
  }
  for (let n = 1 << 20; n <= 1 << 24; n *= 4) {
    const took = await time((b) => {
      const x = b.state('x', 'f32', [n]);
      b.setState('x', x.add(1));
      return x.slice({ start: [0], size: [1], stride: [1] });
    }, manySteps);
    rates.bytes = 8 * n / took * 1000;
    if (took > enough) break;
  }
  const short = 1, chain = 33, sent = 1 << 20;
  rates.call = await time((b) => products(b, 16, short), 1);
  rates.kernel = Math.max(await time((b) => products(b, 16, chain), 1) - rates.call, 0) / (chain - short);
  const took = await time((b) => b.input('x', 'f32', [sent]).neg(), 1, { x: new Float32Array(sent) });
  rates.transfer = 2 * 4 * sent / Math.max(took - rates.call, took / 10) * 1000;
  return rates;
}

/** Multiplies a state by itself, again and again; returns an element. */
function products(b: GraphBuilder, n: number, count: number): Value {
  const x = b.state('x', 'f32', [n, n]);
  let y = x;
  for (let i = 0; i < count; i++) y = y.matmul(x);
  b.setState('x', y);
  return y.slice({ start: [0, 0], size: [1, 1], stride: [1, 1] });
}

const windows = 3, windowMs = 25;

/** The least mean of some windows of time, in runs of as many steps as one has time for. */
async function timeOf({ on }: DeviceInfo, options: DeviceOptions, build: Build, most: number, inputs: Inputs = {}): Promise<number> {
  const entries = { run: graph('calibrate', (b) => b.output('y', build(b))) }, opened = await program({ name: 'calibrate', entries }, { ...options, on, drafts: false, maxSteps: most });
  const run = async (steps: number) => { await (await opened.run('run', inputs, { steps, read: ['y'] })).reading; };
  try {
    await run(1); // the first run of anything takes longer
    let begun = performance.now(), least = Infinity;
    await run(1);
    const steps = Math.min(Math.max(1, Math.floor(windowMs / (performance.now() - begun))), most); // a clock of a page may not move meanwhile
    for (let i = 0; i < windows; i++) {
      begun = performance.now();
      let runs = 0, took = 0;
      do {
        await run(steps);
        took = performance.now() - begun;
        runs++;
      } while (took < windowMs);
      least = Math.min(least, took / runs / steps);
    }
    return least;
  } finally {
    opened.close();
  }
}

/** The milliseconds that a run of each entry takes together: products and memory overlap, kernels follow each other. */
export const estimate = (rates: Rates, work: readonly Work[]): number =>
  work.reduce((ms, w) => ms + rates.call + 1000 * Math.max(w.operations / rates.operations, w.bytes / rates.bytes) + w.kernels * rates.kernel + 1000 * w.transfer / rates.transfer, 0);
