/**
 * A compile service for Workers: the counterpart of the Go package wasm/edge, with this package's
 * compiler.
 *
 * ```js
 * import { edge } from '@rlx-go/rlx/edge';
 * import wasm from '@rlx-go/rlx/rlx.wasm';
 *
 * export default edge({ wasm });
 * ```
 *
 * @module
 */

export { edge, type EdgeOptions } from './compile/edge.js';
