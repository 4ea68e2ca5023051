// Pictures in textures. Declarations of the package reach source.ts, which names no texture: older TypeScript has none.

import { drawn, hasBytes, reading, type Sized } from './source.js';

/** Copies a picture to a texture, by a canvas where a device cannot copy a frame of a video, as those of software cannot. */
export function copyToTexture(op: string, name: string, given: Sized, { queue }: GPUDevice, texture: GPUTexture): void {
  const { source, what, width, height } = given, size = [width, height];
  if (hasBytes(source)) return queue.writeTexture({ texture }, source.data, { bytesPerRow: 4 * width }, size);
  const copy = (from: GPUCopyExternalImageSource) => queue.copyExternalImageToTexture({ source: from }, { texture }, size);
  reading(op, name, given, () => {
    try {
      copy(source as GPUCopyExternalImageSource);
    } catch (reason) {
      if (!/Video/.test(what) || (reason as Error).name === 'SecurityError') throw reason;
      copy(drawn(op, name, given, false).canvas);
    }
  });
}
