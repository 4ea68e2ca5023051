// Inputs that are pictures of the page.

import { wrong } from '../program/inputs.js';
import type { Program } from '../program/program.js';
import type { EntryTypes } from '../program/types.js';
import { checkOptions, checkWord, need, RlxError, unknownName } from '../values/errors.js';
import { type HostTensor, Tensor } from '../values/tensor.js';
import { DevicePixels } from './device.js';
import { hostPixels } from './host.js';
import { type Channels, type Layout, layoutOf } from './layout.js';
import { type Fit, placing } from './placing.js';
import { type ImageSource, sized, type Sized } from './source.js';

export type { Fit } from './placing.js';

export interface ImageInputOptions {
  /**
   * How pictures of another size are resized: by `cover` until they cover the input, whose centre they keep; by `contain`
   * until they are in it, with zeros around them; by `stretch` without keeping proportions. Averages are weighted by a triangle, as by
   * Pillow's `BILINEAR`, in all pixels that a result covers. If not given, other sizes are refused.
   */
  fit?: Fit;
  /** Whether the channels are the last axis of a picture, or the first, as in models of PyTorch. `last` if not given. */
  channels?: Channels;
}

/**
 * Makes pictures of the page an input of an entry, `u8`, `f16` or `f32`: a `u8` element is a pixel's byte, a float one is that
 * byte by 255. The input has the shape `[height, width, channels]`, `[batch, height, width, channels]` or, in one
 * channel, `[height, width]`. Four channels are red, green, blue and alpha, as in `ImageData`; three are without alpha, over
 * black; one is their luma (Rec. 601, as Pillow's `L`).
 *
 * On a GPU the pixels stay there: kernels write them from a texture, and no script reads them. A program on the CPU, in a worker or with open sizes
 * gets them by a 2D canvas.
 *
 * Throws an {@link RlxError}: `missing`, `name`, `dtype`, `shape`.
 *
 * ```ts
 * const camera = imageInput(model, 'classify', 'x', { fit: 'cover' });
 * const { reading } = await model.run('classify', { x: await camera.copy(video) }, { read: ['y'] });
 * ```
 */
export function imageInput<E extends EntryTypes, N extends keyof E & string>(program: Program<E>, entry: N, name: keyof E[N]['inputs'] & string, options: ImageInputOptions = {}): ImageInput {
  need(program?.plan, 'missing', 'imageInput: the program', 'a Program', program);
  checkOptions('imageInput', options, 'fit channels');
  const { fit, channels = 'last' } = options ?? {};
  if (fit !== undefined) checkWord('imageInput: fit', fit, 'cover contain stretch');
  checkWord('imageInput: channels', channels, 'last first');
  const { entries, slots } = program.plan, found = entries.find((one) => one.name === entry);
  if (!found) throw unknownName('imageInput: the plan has no entry', entry, entries.map((one) => one.name));
  const inputs = found.inputs.map((i) => slots[i]!), slot = inputs.find((one) => one.name === name);
  if (!slot) throw unknownName(`imageInput: ${entry} has no input`, name, inputs.map((one) => one.name));
  return new ImageInput(program, layoutOf(entry, slot, channels), fit);
}

/** An input that pictures of the page are copied to. Made by {@link imageInput}. */
export class ImageInput {
  readonly #program: Program;
  readonly #layout: Layout;
  readonly #fit: Fit | undefined;
  readonly #pixels: DevicePixels | undefined;
  #tensor: Tensor | undefined;
  #closed = false;

  /** @internal */
  constructor(program: Program<any>, layout: Layout, fit: Fit | undefined) {
    this.#program = program;
    this.#layout = layout;
    this.#fit = fit;
    const { gpu } = program as { gpu?: GPUDevice };
    if (gpu) this.#pixels = new DevicePixels(gpu, layout);
  }

  /**
   * Copies pictures, as many as the input's batch has, and returns the tensor to run the entry with. It has them until the
   * next copy, also in runs that were made with it; its memory is this object's.
   *
   * Rejects with an {@link RlxError}: `shape` for another number or size, with both; `dtype` for what is no picture; `closed` for a bitmap or a
   * frame that was closed; `missing` for a video without a frame; `attr` for pixels of another origin, which a page may not read;
   * `limit` for a picture larger than the device's textures; and the errors of a program.
   */
  async copy(sources: ImageSource | readonly ImageSource[]): Promise<Tensor> {
    if (this.#closed) throw new RlxError('closed', 'the image input was closed');
    const { op, slot: { name, dtype, shape }, count, height, width } = this.#layout;
    const all = (Array.isArray(sources) ? sources : [sources]).map((source) => sized(op, name, source as ImageSource));
    if (all.length !== count) throw wrong('shape', op, name, `has ${all.length} pictures: it must be ${dtype}[${shape}] of ${count}`, { shape: [all.length], expected: [count] });
    const placed = all.map((one) => placing([one.width, one.height], [width, height], this.#fitOf(one)));
    if (!this.#pixels) return this.#upload({ dtype, shape, data: hostPixels(this.#layout, all, placed) });
    await this.#pixels.prepare();
    await this.#program.bind(op, {}); // submits runs that read the pictures before
    await this.#pixels.write(all, placed);
    return this.#tensor ??= this.#onDevice(this.#pixels);
  }

  /** How a picture is resized. One of the input's size is stretched by 1. */
  #fitOf({ width: w, height: h }: Sized): Fit {
    const { op, slot: { name }, width, height } = this.#layout;
    if (this.#fit || w === width && h === height) return this.#fit ?? 'stretch';
    throw wrong('shape', op, name, `is a picture of ${w} × ${h} pixels: it must be ${width} × ${height}, or the option fit given`, { shape: [h, w], expected: [height, width] });
  }

  async #upload(tensor: HostTensor): Promise<Tensor> {
    const old = this.#tensor;
    this.#tensor = await this.#program.upload(tensor);
    old?.dispose();
    return this.#tensor;
  }

  #onDevice(pixels: DevicePixels): Tensor {
    const { dtype, shape } = this.#layout.slot;
    return new Tensor({ dtype, shape, owner: this.#program, handle: pixels.buffer, data: () => pixels.data(), free: () => {} });
  }

  /** Frees the memory. Runs that were made with the tensor see the last pictures. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#tensor?.dispose();
    const end = () => this.#pixels?.destroy();
    this.#program.bind(this.#layout.op, {}).then(end, end); // submits runs that read them
  }
}
