// What it costs to give each step new inputs, in Chromium and over Dawn in Node: a program for pack.mjs, or by itself:
//
//   node js/bench/h200/upload.mjs
//
// A GPU of this machine is used where one is packed for ($CHROMIUM, $RLX_DAWN_BACKEND), else one in software.
// Prints, for the batches of the benchmark's jobs in f32, f16 and u8, the milliseconds of a step that writes one and
// submits a kernel which reads little of it: by queue.writeBuffer, by a ring of buffers that stay mapped while they
// are filled, by buffers mapped at creation, and of several batches in one submission. The best of four runs counts.

import { openGPU } from '../../test/rig/dawn.mjs';
import { scriptPage, serve } from '../../test/rig/serve.mjs';

/** Runs in the page, or here. */
async function measure({ sizes, ms }) {
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: 'high-performance' });
  const device = await adapter.requestDevice(), { queue } = device;
  const module = device.createShaderModule({ code: '@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n@compute @workgroup_size(64) fn main(@builtin(local_invocation_id) i: vec3<u32>) { x[i.x] += 1.0; }' });
  const pipeline = await device.createComputePipelineAsync({ layout: 'auto', compute: { module, entryPoint: 'main' } });
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST, mapped = GPUBufferUsage.MAP_WRITE | GPUBufferUsage.COPY_SRC;
  const inFlight = 6;

  function job(bytes) {
    const target = device.createBuffer({ size: bytes, usage });
    const group = device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries: [{ binding: 0, resource: { buffer: target } }] });
    const batches = Array.from({ length: 8 }, (_, i) => new Uint8Array(bytes).fill(i + 1));
    const step = (from) => {
      const encoder = device.createCommandEncoder();
      if (from) encoder.copyBufferToBuffer(from, 0, target, 0, bytes);
      const pass = encoder.beginComputePass();
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(1);
      pass.end();
      queue.submit([encoder.finish()]);
    };
    const ring = Array.from({ length: inFlight }, () => ({ buffer: device.createBuffer({ size: bytes, usage: mapped, mappedAtCreation: true }), ready: undefined }));
    const ways = {
      'nothing': () => step(),
      'writeBuffer': (i) => {
        queue.writeBuffer(target, 0, batches[i % 8]);
        step();
      },
      'mapped ring': async (i) => {
        const place = ring[i % inFlight];
        await place.ready;
        new Uint8Array(place.buffer.getMappedRange()).set(batches[i % 8]);
        place.buffer.unmap();
        step(place.buffer);
        place.ready = place.buffer.mapAsync(GPUMapMode.WRITE);
      },
      'mapped at creation': (i) => {
        const buffer = device.createBuffer({ size: bytes, usage: mapped, mappedAtCreation: true });
        new Uint8Array(buffer.getMappedRange()).set(batches[i % 8]);
        buffer.unmap();
        step(buffer);
        buffer.destroy();
      },
    };
    return { ways, end: () => [target, ...ring.map(({ buffer }) => buffer)].forEach((one) => one.destroy()) };
  }

  async function time(way) {
    const waiting = [];
    let steps = 0;
    const begin = performance.now();
    for (; performance.now() - begin < ms; steps++) {
      await way(steps);
      waiting.push(queue.onSubmittedWorkDone());
      if (waiting.length >= inFlight) await waiting.shift();
    }
    await queue.onSubmittedWorkDone();
    return (performance.now() - begin) / steps;
  }

  const rows = [];
  for (const [name, bytes] of sizes) {
    const { ways, end } = job(bytes);
    for (const [how, way] of Object.entries(ways)) {
      const times = [];
      for (let i = 0; i < 4; i++) times.push(await time(way));
      rows.push({ name, how, bytes, ms: Math.min(...times) });
    }
    end();
  }
  const source = new Uint8Array(12_845_056).fill(1), copy = new Uint8Array(source.length);
  const begin = performance.now();
  for (let i = 0; i < 20; i++) copy.set(source);
  rows.push({ name: 'a copy in the page', how: '', bytes: source.length, ms: (performance.now() - begin) / 20 });
  return { device: adapter.info.description || `${adapter.info.vendor} ${adapter.info.architecture}`, rows };
}

const sizes = [['128 rows, f32', 128 * 784 * 4], ['4,096 rows, u8', 4096 * 784], ['4,096 rows, f16', 4096 * 784 * 2], ['4,096 rows, f32', 4096 * 784 * 4]];
const given = { sizes, ms: 400 };

function print({ device, rows }) {
  console.log(device);
  for (const { name, how, bytes, ms } of rows) {
    console.log(`${name.padEnd(20)} ${how.padEnd(20)} ${ms.toFixed(3).padStart(9)} ms  ${(1e3 / ms).toFixed(0).padStart(6)} steps/s  ${how === 'nothing' ? '' : `${(bytes / ms / 1e6).toFixed(2)} GB/s`}`);
  }
}

async function inChromium() {
  const { openChromium } = await import('../../test/rig/chromium.mjs');
  const server = await serve({ '/bench.html': scriptPage, '/page.mjs': { body: '', type: 'text/javascript' } });
  const browser = await openChromium({ webgpu: process.env.CHROMIUM ? 'default' : 'swiftshader' });
  const page = await browser.open(`${server.origin}/bench.html`);
  print(await page.evaluate(measure, given));
  await browser.close();
}

const packed = process.env.RLX_DAWN_BACKEND === 'default';
Object.defineProperty(globalThis, 'navigator', { value: { gpu: openGPU() }, configurable: true });
console.log('Dawn in Node');
print(await measure(given));
if (!packed || process.env.CHROMIUM) {
  console.log('Chromium');
  await inChromium();
}
process.exit(0);
