// Runs compute shaders in Dawn, each as one dispatch, for tests that compare what they
// compute with something else.
//
//   node internal/codegen/wgsl/check/run.mjs [--backend=lavapipe|swiftshader|default] <REQUESTS >RESULTS
//
// REQUESTS is a JSON array of {source, groups: [x, y, z], arrays: [{data, write}],
// scalars, counters}: data and scalars are base64, counters are numbers. RESULTS is a JSON
// array with, for each request, the contents of its arrays after the run, in base64. The
// bindings are those of package wgsl, with uniforms at a dynamic offset.

import { openDawn } from '../../../../js/test/rig/dawn.mjs';

const uniformRow = 256; // the default alignment of dynamic offsets

const bytes = (base64) => new Uint8Array(Buffer.from(base64, 'base64'));

function bufferWith(device, data, usage) {
  const size = Math.ceil(data.length / 4) * 4;
  const buffer = device.createBuffer({ size, usage: usage | GPUBufferUsage.COPY_SRC, mappedAtCreation: true });
  new Uint8Array(buffer.getMappedRange()).set(data);
  buffer.unmap();
  return buffer;
}

// uniformGroup binds the scalars and the counters, each in its second row.
function uniformGroup(device, { scalars, counters }) {
  const blocks = [[0, scalars && bytes(scalars)], ...counters.map((count, d) => [1 + d, new Uint8Array(Uint32Array.of(count).buffer)])]
    .filter(([, block]) => block);
  const layout = device.createBindGroupLayout({
    entries: blocks.map(([binding]) => ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type: 'uniform', hasDynamicOffset: true } })),
  });
  const entries = blocks.map(([binding, block]) => {
    const rows = new Uint8Array(2 * uniformRow);
    rows.set(block, uniformRow);
    return { binding, resource: { buffer: bufferWith(device, rows, GPUBufferUsage.UNIFORM), size: block.length } };
  });
  return { layout, group: device.createBindGroup({ layout, entries }), offsets: blocks.map(() => uniformRow) };
}

function storageGroup(device, arrays) {
  const layout = device.createBindGroupLayout({
    entries: arrays.map(({ write }, binding) => ({
      binding, visibility: GPUShaderStage.COMPUTE, buffer: { type: write ? 'storage' : 'read-only-storage' },
    })),
  });
  const buffers = arrays.map(({ data }) => bufferWith(device, bytes(data), GPUBufferUsage.STORAGE));
  const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }));
  return { layout, buffers, group: device.createBindGroup({ layout, entries }) };
}

async function read(device, buffer) {
  const copy = device.createBuffer({ size: buffer.size, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, 0, copy, 0, buffer.size);
  device.queue.submit([encoder.finish()]);
  await copy.mapAsync(GPUMapMode.READ);
  return Buffer.from(copy.getMappedRange()).toString('base64');
}

async function run(device, request) {
  const storage = storageGroup(device, request.arrays);
  const uniforms = uniformGroup(device, request);
  const layout = device.createPipelineLayout({ bindGroupLayouts: [storage.layout, uniforms.layout] });
  const module = device.createShaderModule({ code: request.source });
  const pipeline = device.createComputePipeline({ layout, compute: { module, entryPoint: 'main' } });
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, storage.group);
  pass.setBindGroup(1, uniforms.group, uniforms.offsets);
  pass.dispatchWorkgroups(...request.groups);
  pass.end();
  device.queue.submit([encoder.finish()]);
  return Promise.all(storage.buffers.map((buffer) => read(device, buffer)));
}

async function main(args) {
  const backend = args.find((arg) => arg.startsWith('--backend='))?.slice('--backend='.length) ?? 'lavapipe';
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  const requests = JSON.parse(Buffer.concat(chunks).toString());
  const features = requests.some(({ source }) => source.includes('enable subgroups;')) ? ['subgroups'] : [];
  if (requests.some(({ source }) => source.includes('enable subgroup_size_control;'))) features.push('subgroup-size-control');
  if (requests.some(({ source }) => source.includes('enable f16;'))) features.push('shader-f16');
  const { device } = await openDawn({ backend, features });
  const results = [];
  for (const request of requests) results.push(await run(device, request));
  await new Promise((done) => process.stdout.write(JSON.stringify(results), done));
}

await main(process.argv.slice(2));
process.exit(0); // Dawn's threads keep the process alive
