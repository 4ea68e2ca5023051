/**
 * Functions of images over a builder, as those of the Go package image: images are [batch, spatial axes..., channels].
 *
 * @module
 */

export { affineGrid, type Beyond, fold, type GridOptions, gridSample, pad, type PatchOptions, resize, type ResizeOptions, unfold } from './functions/image.js';
