// Times the kernels of a plan on a device, each alone and all of an entry one after another.

const shortest = 15; // ms that a timed pass should take; the better of two counts

/** All dispatches of some steps, and how often each runs. */
export function* dispatches(steps, times = 1) {
  for (const step of steps) {
    if (step.kind === 'dispatch') yield { ...step, times };
    if (step.kind === 'repeat') yield* dispatches(step.steps, times * step.count);
  }
}

/** The kernels of a plan and buffers of zeros for them on a device. */
export class KernelTimer {
  #device;
  #plan;
  #buffers;
  #uniforms;

  constructor(device, plan) {
    const storage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
    this.#device = device;
    this.#plan = plan;
    this.#buffers = plan.buffers.map(({ bytes }) => device.createBuffer({ size: Math.max(4, bytes), usage: storage }));
    for (const { buffer, offset, data } of plan.constants) device.queue.writeBuffer(this.#buffers[buffer], offset, data);
    this.#uniforms = device.createBuffer({ size: 4096, usage: GPUBufferUsage.UNIFORM });
  }

  /** The pipeline of some source, and the milliseconds that it took to make. */
  async compile(code) {
    const start = performance.now(), module = this.#device.createShaderModule({ code });
    const pipeline = await this.#device.createComputePipelineAsync({ layout: 'auto', compute: { module, entryPoint: 'main' } });
    return { pipeline, ms: performance.now() - start };
  }

  /** What a dispatch with a pipeline binds. */
  #bind(pipeline, { kernel, bindings }) {
    const { scalarBytes, counters } = this.#plan.kernels[kernel];
    const bound = bindings.map(({ buffer, offset, bytes }, binding) => ({ binding, resource: { buffer: this.#buffers[buffer], offset, size: bytes } }));
    const sets = [this.#device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries: bound })];
    const rows = [...scalarBytes ? [scalarBytes] : [], ...Array(counters).fill(16)];
    if (rows.length > 0) {
      const entries = rows.map((size, binding) => ({ binding, resource: { buffer: this.#uniforms, size } }));
      sets.push(this.#device.createBindGroup({ layout: pipeline.getBindGroupLayout(1), entries }));
    }
    return sets;
  }

  /** The milliseconds of one dispatch, which runs repeatedly in one pass. */
  async time(pipeline, step) {
    const sets = this.#bind(pipeline, step);
    return this.#repeated((pass, times) => {
      pass.setPipeline(pipeline);
      sets.forEach((set, i) => pass.setBindGroup(i, set));
      for (let i = 0; i < times; i++) pass.dispatchWorkgroups(...step.groups);
    });
  }

  /** The milliseconds of all steps in turn, with the pipeline of each. */
  async timeAll(steps, pipelines) {
    const bound = steps.map((step) => ({ ...step, pipeline: pipelines[step.kernel], sets: this.#bind(pipelines[step.kernel], step) }));
    return this.#repeated((pass, times) => {
      for (let i = 0; i < times; i++) {
        for (const { pipeline, sets, groups, times: each } of bound) {
          pass.setPipeline(pipeline);
          sets.forEach((set, g) => pass.setBindGroup(g, set));
          for (let j = 0; j < each; j++) pass.dispatchWorkgroups(...groups);
        }
      }
    });
  }

  /** The milliseconds of the commands that record puts into a pass, repeated until their time can be trusted. */
  async #repeated(record) {
    const run = async (times) => {
      const encoder = this.#device.createCommandEncoder(), pass = encoder.beginComputePass();
      record(pass, times);
      pass.end();
      const start = performance.now();
      this.#device.queue.submit([encoder.finish()]);
      await this.#device.queue.onSubmittedWorkDone();
      return performance.now() - start;
    };
    await run(1);
    const times = Math.ceil(Math.max(1, shortest / Math.min(await run(1), await run(1))));
    return Math.min(await run(times), await run(times)) / times;
  }
}
