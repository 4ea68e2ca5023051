// Counts calls of WebGPU, to check the calls of a training step.
//
//   const counter = countGPU();                       in Node, after openDawn
//   await page.addInitScript(countGPU);               in a page, before it is opened:
//   await page.evaluate(() => gpuCounter.take());     the counter is a global there

/**
 * Puts counters before the methods of WebGPU's classes in this realm, once. It closes over
 * nothing, so that it can be sent to a page.
 * @returns {{take(): Record<string, number>, liveBuffers(): number, writes(): {bytes: number}[], dispatches(): number[][]}}
 *   take gives the calls since the last take by name, such as {'queue.submit': 1}; buffers mapped
 *   at their creation count as 'device.createBuffer(mapped)'. liveBuffers is buffers created minus
 *   buffers destroyed since counting began; writes lists the sizes of the writeBuffer calls since the
 *   last take, dispatches the workgroups of those whose grid the host has.
 */
export function countGPU() {
  if (globalThis.gpuCounter) return globalThis.gpuCounter;
  const methods = {
    device: [globalThis.GPUDevice, ['createBuffer', 'createTexture', 'createSampler', 'createBindGroupLayout', 'createPipelineLayout',
      'createBindGroup', 'createShaderModule', 'createComputePipeline', 'createComputePipelineAsync', 'createCommandEncoder',
      'createQuerySet', 'pushErrorScope', 'popErrorScope']],
    queue: [globalThis.GPUQueue, ['submit', 'writeBuffer', 'onSubmittedWorkDone']],
    encoder: [globalThis.GPUCommandEncoder, ['beginComputePass', 'copyBufferToBuffer', 'clearBuffer', 'finish']],
    pass: [globalThis.GPUComputePassEncoder, ['setPipeline', 'setBindGroup', 'dispatchWorkgroups', 'dispatchWorkgroupsIndirect']],
    buffer: [globalThis.GPUBuffer, ['mapAsync', 'getMappedRange', 'unmap', 'destroy']],
  };
  let counts = {}, writes = [], grids = [], live = 0;
  const destroyed = new WeakSet();
  const count = (name) => { counts[name] = (counts[name] ?? 0) + 1; };
  const observers = {
    'device.createBuffer': ([descriptor]) => {
      live++;
      return descriptor.mappedAtCreation ? 'device.createBuffer(mapped)' : undefined;
    },
    'queue.writeBuffer': ([, , data, from = 0, size = (data.length ?? data.byteLength) - from]) => {
      writes.push({ bytes: size * (data.BYTES_PER_ELEMENT ?? 1) });
    },
    'pass.dispatchWorkgroups': ([x, y = 1, z = 1]) => { grids.push([x, y, z]); },
    'buffer.destroy': (_, buffer) => {
      if (!destroyed.has(buffer)) live--;
      destroyed.add(buffer);
    },
  };
  for (const [group, [type, names]] of Object.entries(methods)) {
    for (const method of names) {
      const original = type.prototype[method], name = `${group}.${method}`, observe = observers[name];
      type.prototype[method] = function (...args) {
        count(observe?.(args, this) ?? name);
        return original.apply(this, args);
      };
    }
  }
  globalThis.gpuCounter = {
    take() {
      const taken = counts;
      counts = {};
      writes = [];
      grids = [];
      return taken;
    },
    liveBuffers: () => live,
    writes: () => writes,
    dispatches: () => grids,
  };
  return globalThis.gpuCounter;
}
