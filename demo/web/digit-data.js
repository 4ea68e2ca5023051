// The data: 1,797 handwritten digits as 8×8 counts from 0 to 16. The last 360 are for testing.

import { fetchOK } from './page.js';

export const total = 1797, testCount = 360, trainCount = total - testCount, pixels = 64, batchSize = 128;

/** Loads digits.bin: all labels, then all pictures, one byte a number. */
export async function loadDigits() {
  const response = await fetchOK('assets/digits.bin');
  return new Digits(new Uint8Array(await response.arrayBuffer()));
}

export class Digits {
  /** @param {Uint8Array} bytes what digits.bin holds */
  constructor(bytes) {
    this.labels = Int32Array.from(bytes.subarray(0, total));
    this.images = Float32Array.from(bytes.subarray(total));
  }

  /**
   * Batch k holds the rows from k·128 on, and after the last row comes the first: the order is
   * the same everywhere. The arrays are used again for the next batch.
   */
  batches() {
    const images = new Float32Array(batchSize * pixels), labels = new Int32Array(batchSize);
    return (k) => {
      for (let i = 0; i < batchSize; i++) {
        const row = (k * batchSize + i) % trainCount;
        labels[i] = this.labels[row];
        images.set(this.images.subarray(row * pixels, (row + 1) * pixels), i * pixels);
      }
      return { images, labels };
    };
  }

  /** The digits to test with. */
  get test() { return { images: this.images.slice(trainCount * pixels), labels: this.labels.slice(trainCount) }; }

  /** Which test digit is the first with a label. */
  firstOf(label) { return this.labels.indexOf(label, trainCount) - trainCount; }

  /** The counts of digit i of those to learn from. */
  trainDigit(i) { return this.images.subarray(i * pixels, (i + 1) * pixels); }

  /** Test digit i. */
  testDigit(i) {
    const row = trainCount + i;
    return { image: this.images.subarray(row * pixels, (row + 1) * pixels), label: this.labels[row] };
  }
}
