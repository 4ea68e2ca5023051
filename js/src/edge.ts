/**
 * A compile service for Workers: what the Go package wasm/edge is, by this package's compiler.
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
