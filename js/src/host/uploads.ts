// Large inputs of a GPU program, whose code is loaded with the first. In Chromium, `queue.writeBuffer` makes new shared
// memory for each call: a step with 12.8 MB of inputs took 17.7 ms with it and 5.3 with buffers that are mapped again
// (SwiftShader, two cores).

/** GPUMapMode.WRITE, which is no global in Node. */
const mapWrite = 2;

/** The bytes of all buffers together: what does not fit is written by the queue. */
const maxBytes = 128 << 20;

/**
 * Returns a function that copies bytes, a multiple of four, to a buffer that the next submission, before any other
 * task, is to copy from; or that returns undefined if the device reads all of its buffers. It makes them by `make`,
 * mapped at creation.
 */
export function uploads(make: (size: number) => GPUBuffer): (bytes: Uint8Array<ArrayBuffer>) => GPUBuffer | undefined {
  const buffers: GPUBuffer[] = [];
  let total = 0;

  /** A new buffer, if there is room for it and memory to map. */
  function another(size: number): GPUBuffer | undefined {
    if (total + size > maxBytes) return undefined;
    try {
      const buffer = make(size);
      buffers.push(buffer);
      total += size;
      return buffer;
    } catch {
      return undefined;
    }
  }

  return (bytes) => {
    const size = bytes.length, buffer = buffers.find((one) => one.mapState === 'mapped' && one.size >= size) ?? another(size);
    if (!buffer) return undefined;
    new Uint8Array(buffer.getMappedRange(0, size)).set(bytes);
    buffer.unmap();
    // After the submission: mapping waits until the device has read it. It may be destroyed by then, or the device lost.
    queueMicrotask(() => buffer.mapAsync(mapWrite).catch(() => {}));
    return buffer;
  };
}
