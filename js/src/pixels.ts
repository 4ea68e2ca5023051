/**
 * Pictures of the page as inputs of programs: bitmaps, video frames, videos, canvases.
 *
 * @module
 */

export { type Fit, ImageInput, imageInput, type ImageInputOptions } from './pixels/input.js';
export type { ImageSource } from './pixels/source.js';
