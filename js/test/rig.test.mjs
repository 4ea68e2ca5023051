// The Dawn rig itself: each software GPU computes, with no more than the default limits.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countGPU } from './rig/counter.mjs';
import { openDawn } from './rig/dawn.mjs';

const doubling = `
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&x)) { x[id.x] = 2.0 * x[id.x]; }
}`;

async function runDoubling(device) {
  const { STORAGE, COPY_SRC, COPY_DST, MAP_READ } = GPUBufferUsage;
  const buffer = device.createBuffer({ size: 400, usage: STORAGE | COPY_SRC | COPY_DST });
  const staging = device.createBuffer({ size: 400, usage: MAP_READ | COPY_DST });
  device.queue.writeBuffer(buffer, 0, Float32Array.from({ length: 100 }, (_, i) => i));
  const module = device.createShaderModule({ code: doubling });
  const pipeline = await device.createComputePipelineAsync({ layout: 'auto', compute: { module } });
  const group = device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries: [{ binding: 0, resource: { buffer } }] });
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, group);
  pass.dispatchWorkgroups(2);
  pass.end();
  encoder.copyBufferToBuffer(buffer, 0, staging, 0, 400);
  device.queue.submit([encoder.finish()]);
  await staging.mapAsync(GPUMapMode.READ);
  return new Float32Array(staging.getMappedRange()).slice();
}

for (const backend of ['lavapipe', 'swiftshader']) {
  test(`${backend} computes at the default limits`, async () => {
    const { device, close } = await openDawn({ backend });
    assert.deepEqual(await runDoubling(device), Float32Array.from({ length: 100 }, (_, i) => 2 * i));
    assert.equal(device.limits.maxStorageBuffersPerShaderStage, 8);
    assert.equal(device.limits.maxStorageBufferBindingSize, 128 << 20);
    assert.equal(device.limits.maxComputeInvocationsPerWorkgroup, 256);
    assert.equal(device.limits.maxComputeWorkgroupStorageSize, 16 << 10);
    close();
  });
}

test('an uncaught WebGPU error is reported', async () => {
  const errors = [];
  const { device, close } = await openDawn({ backend: 'null', onError: (error) => errors.push(error.message) });
  device.createBuffer({ size: 4, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.STORAGE });
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.match(errors.join(), /usage/);
  close();
});

test('an unknown backend and a missing feature are named', async () => {
  await assert.rejects(openDawn({ backend: 'voodoo' }), /unknown backend voodoo/);
  await assert.rejects(openDawn({ backend: 'swiftshader', features: ['shader-f16'] }), /lacks shader-f16/);
});

test('the counter sees every call once', async () => {
  const { device, close } = await openDawn({ backend: 'null' });
  const counter = countGPU();
  counter.take();
  const before = counter.liveBuffers();
  const kept = device.createBuffer({ size: 16, usage: GPUBufferUsage.COPY_DST });
  const mapped = device.createBuffer({ size: 16, usage: GPUBufferUsage.COPY_SRC, mappedAtCreation: true });
  mapped.unmap();
  device.queue.writeBuffer(kept, 0, new Float32Array(4));
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(mapped, 0, kept, 0, 16);
  encoder.beginComputePass().end();
  device.queue.submit([encoder.finish()]);
  mapped.destroy();
  mapped.destroy();
  assert.deepEqual(counter.writes(), [{ bytes: 16 }]);
  assert.deepEqual(counter.take(), {
    'device.createBuffer': 1, 'device.createBuffer(mapped)': 1, 'buffer.unmap': 1, 'queue.writeBuffer': 1, 'device.createCommandEncoder': 1,
    'encoder.copyBufferToBuffer': 1, 'encoder.beginComputePass': 1, 'encoder.finish': 1, 'queue.submit': 1, 'buffer.destroy': 2,
  });
  assert.equal(counter.liveBuffers() - before, 1);
  assert.deepEqual(counter.take(), {});
  close();
});
