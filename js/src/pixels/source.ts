// The pictures that a page has, and their pixels.

import { wrong } from '../program/inputs.js';
import { classOf, RlxError } from '../values/errors.js';

/** A picture of the page. An object with the properties of an `ImageData` is one, too. */
export type ImageSource =
  | ImageBitmap | VideoFrame | HTMLVideoElement | HTMLImageElement | HTMLCanvasElement | OffscreenCanvas
  | { readonly data: Uint8ClampedArray | Uint8Array; readonly width: number; readonly height: number };

/** A source, with the class that its errors name and the size of its picture in pixels. */
export interface Sized { source: ImageSource; what: string; width: number; height: number }

/** The size of a picture by the class of its source: the page's own sizes of videos and images may be other ones. */
const sizes: Readonly<Record<string, (of: any) => [width: number, height: number]>> = {
  ImageBitmap: ({ width, height }) => [width, height],
  VideoFrame: ({ displayWidth, displayHeight }) => [displayWidth, displayHeight],
  HTMLVideoElement: ({ readyState, videoWidth, videoHeight }) => readyState < 2 ? [0, 0] : [videoWidth, videoHeight],
  HTMLImageElement: ({ complete, naturalWidth, naturalHeight }) => complete ? [naturalWidth, naturalHeight] : [0, 0],
  HTMLCanvasElement: ({ width, height }) => [width, height],
  OffscreenCanvas: ({ width, height }) => [width, height],
};

/** Whether a source has its bytes in memory, four to a pixel. */
export const hasBytes = (source: ImageSource): source is ImageData => ArrayBuffer.isView((source as Partial<ImageData>).data);

/** Checks a source. Throws an {@link RlxError} that names the input: `dtype`, `shape`, `closed`, `missing`. */
export function sized(op: string, name: string, source: ImageSource): Sized {
  const what = classOf(source);
  if (source && hasBytes(source)) {
    const { data, width, height } = source;
    if (data.byteLength === 4 * width * height && width > 0) return { source, what, width, height };
    throw wrong('shape', op, name, `is given ${data.byteLength} bytes: a picture of ${width} × ${height} pixels has ${4 * width * height}`);
  }
  if (!Object.hasOwn(sizes, what)) {
    throw wrong('dtype', op, name, `is ${what}: it must be ImageBitmap, VideoFrame, ImageData, HTMLVideoElement, HTMLImageElement, HTMLCanvasElement or OffscreenCanvas`);
  }
  const [width, height] = sizes[what]!(source);
  if (width && height) return { source, what, width, height };
  if (what === 'ImageBitmap' || what === 'VideoFrame') throw wrong('closed', op, name, `is ${what} that was closed: it must be open`);
  throw wrong('missing', op, name, `is ${what} without a picture: it must be loaded, and of at least one pixel`);
}

/** Makes a call that reads a source, and gives its exceptions a kind: a picture of another origin may be shown, but not read. */
export function reading<T>(op: string, name: string, { what }: Sized, call: () => T): T {
  try {
    return call();
  } catch (cause) {
    if (cause instanceof RlxError) throw cause;
    const { name: error, message } = cause as Error;
    if (error === 'SecurityError') throw wrong('attr', op, name, `is ${what} with pixels of another origin: it must be of this one, or loaded with crossOrigin`, { cause });
    throw wrong('attr', op, name, `is ${what} that cannot be read: ${message}`, { cause });
  }
}

/** A 2D canvas that shows a source. */
export function drawn(op: string, name: string, given: Sized, willReadFrequently: boolean): OffscreenCanvasRenderingContext2D {
  const { source, what, width, height } = given;
  if (typeof OffscreenCanvas === 'undefined') throw wrong('unsupported', op, name, `is ${what}: without OffscreenCanvas it must be ImageData`);
  const context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently })!;
  context.drawImage(source as CanvasImageSource, 0, 0, width, height);
  return context;
}

/** The bytes of a picture in memory: red, green, blue and alpha of each pixel, not multiplied by alpha. */
export function bytesOf(op: string, name: string, given: Sized): Uint8ClampedArray | Uint8Array {
  const { source, width, height } = given;
  return hasBytes(source) ? source.data : reading(op, name, given, () => drawn(op, name, given, true).getImageData(0, 0, width, height).data);
}
