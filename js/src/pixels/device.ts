// Pictures that stay on the GPU: a source is copied to a texture, and kernels write the elements of an input.

import { inErrorScopes } from '../gpu/executable.js';
import { copyDst, copySrc, mapRead, renderAttachment, storage, storageBinding, textureBinding, textureCopyDst } from './flags.js';
import { wrong } from '../program/inputs.js';
import { fromDevice, type TensorData } from '../values/dtype.js';
import { jobWords, packKernel, rowsKernel, threads } from './kernels.js';
import type { Layout } from './layout.js';
import type { Axis } from './placing.js';
import type { Sized } from './source.js';
import { copyToTexture } from './texture.js';

interface Pipelines { rows: GPUComputePipeline; pack: GPUComputePipeline }

/** A texture of the size that the largest source so far had. */
class Picture {
  #texture: GPUTexture | undefined;
  readonly #gpu: GPUDevice;
  readonly #format: GPUTextureFormat;
  readonly #usage: GPUTextureUsageFlags;

  constructor(gpu: GPUDevice, format: GPUTextureFormat, usage: GPUTextureUsageFlags) {
    this.#gpu = gpu;
    this.#format = format;
    this.#usage = usage;
  }

  of(width: number, height: number): GPUTexture {
    const old = this.#texture;
    if (old && old.width >= width && old.height >= height) return old;
    const size = [Math.max(width, old?.width ?? 0), Math.max(height, old?.height ?? 0)];
    old?.destroy(); // what was submitted keeps it
    return this.#texture = this.#gpu.createTexture({ size, format: this.#format, usage: this.#usage });
  }

  destroy(): void { this.#texture?.destroy(); }
}

/** The elements of an input in a buffer of a device, from pictures. */
export class DevicePixels {
  readonly buffer: GPUBuffer;
  readonly #gpu: GPUDevice;
  readonly #layout: Layout;
  readonly #job: GPUBuffer;
  readonly #picture: Picture;
  readonly #rows: Picture;
  #pipelines: Promise<Pipelines> | undefined;
  /** Whether the first copy has passed WebGPU's checks. */
  #validated = false;

  constructor(gpu: GPUDevice, layout: Layout) {
    this.#gpu = gpu;
    this.#layout = layout;
    const { bytes } = layout.slot;
    this.buffer = gpu.createBuffer({ label: 'rlx pixels', size: Math.max(bytes, 4), usage: storage | copySrc });
    this.#job = gpu.createBuffer({ label: 'rlx pixels job', size: 4 * jobWords, usage: storage | copyDst });
    this.#picture = new Picture(gpu, 'rgba8unorm', textureCopyDst | textureBinding | renderAttachment);
    this.#rows = new Picture(gpu, 'rgba32float', storageBinding | textureBinding);
  }

  /** Compiles the kernels. */
  prepare(): Promise<Pipelines> {
    return this.#pipelines ??= inErrorScopes(this.#gpu, 'pixels', async () => {
      const [rows, pack] = await Promise.all([rowsKernel, packKernel(this.#layout)].map((code) => this.#gpu.createComputePipelineAsync({
        label: 'rlx pixels', layout: 'auto', compute: { module: this.#gpu.createShaderModule({ label: 'rlx pixels', code }), entryPoint: 'main' },
      })));
      return { rows: rows!, pack: pack! };
    });
  }

  /** Writes pictures one after the other. Throws an {@link RlxError} if one is over the device's limits, or cannot be read. */
  async write(sources: readonly Sized[], placed: readonly [Axis, Axis][]): Promise<void> {
    const pipelines = await this.prepare(), all = async () => sources.forEach((source, i) => this.#write(pipelines, source, placed[i]!, i));
    if (this.#validated) return all();
    await inErrorScopes(this.#gpu, 'pixels', all);
    this.#validated = true;
  }

  #write({ rows, pack }: Pipelines, given: Sized, axes: [Axis, Axis], i: number): void {
    const { op, slot, count, bytes } = this.#layout, { width, height } = given, { queue } = this.#gpu, [x, y] = axes;
    const max = this.#gpu.limits.maxTextureDimension2D;
    if (Math.max(width, height) > max) {
      throw wrong('limit', op, slot.name, `is a picture of ${width} × ${height} pixels: it must be of at most ${max} by ${max}`);
    }
    const picture = this.#picture.of(width, height), direct = x.scale === 1 && y.scale === 1 && !x.origin && !y.origin;
    copyToTexture(op, slot.name, given, this.#gpu, picture);
    const elements = slot.shape.reduce((n, d) => n * d, 1) / count;
    queue.writeBuffer(this.#job, 0, jobOf(axes, i * elements, direct));
    const encoder = this.#gpu.createCommandEncoder(), filtered = direct ? picture : this.#rows.of(x.to, height);
    const pass = encoder.beginComputePass();
    if (!direct) this.#dispatch(pass, rows, [{ buffer: this.#job }, picture.createView(), filtered.createView()], [Math.ceil(x.to / threads), height]);
    const groups = Math.ceil((elements * bytes / 4 + 1) / threads), wide = Math.min(groups, 65535);
    this.#dispatch(pass, pack, [{ buffer: this.#job }, filtered.createView(), { buffer: this.buffer }], [wide, Math.ceil(groups / wide)]);
    pass.end();
    queue.submit([encoder.finish()]);
  }

  #dispatch(pass: GPUComputePassEncoder, pipeline: GPUComputePipeline, resources: GPUBindingResource[], [x, y]: [number, number]): void {
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, this.#gpu.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries: resources.map((resource, binding) => ({ binding, resource })) }));
    pass.dispatchWorkgroups(x, y);
  }

  /** The elements. */
  async data(): Promise<TensorData> {
    const { slot: { dtype, shape, bytes } } = this.#layout;
    const staging = this.#gpu.createBuffer({ label: 'rlx pixels', size: this.buffer.size, usage: mapRead | copyDst });
    const encoder = this.#gpu.createCommandEncoder();
    encoder.copyBufferToBuffer(this.buffer, 0, staging, 0, staging.size);
    this.#gpu.queue.submit([encoder.finish()]);
    try {
      await staging.mapAsync(mapRead);
      return fromDevice(dtype, shape, staging.getMappedRange(0, bytes).slice(0));
    } finally {
      staging.destroy();
    }
  }

  destroy(): void {
    for (const one of [this.buffer, this.#job, this.#picture, this.#rows]) one.destroy();
  }
}

/** The words of a job. */
function jobOf(axes: readonly Axis[], first: number, direct: boolean): Uint32Array<ArrayBuffer> {
  const words = new Uint32Array(jobWords), numbers = new Float32Array(words.buffer);
  axes.forEach(({ from, origin, scale, start, to }, i) => {
    words.set([from, start, to], 5 * i);
    numbers.set([origin, scale], 5 * i + 3);
  });
  words.set([first, Number(direct)], 10);
  return words;
}
