/** A peer that runs onnxruntime's module, which the page's server has at /ort.wasm. */
const onnx = (load) => async () => {
  const { open } = await load();
  return { open: () => open({ wasm: new URL('/ort.wasm', location.href).href }) };
};

// The peers by the names that the programs take; each is loaded only when needed.
export const peers = {
  rlx: () => import('./rlx.mjs'),
  jax: () => import('./jax.mjs'),
  tfjs: () => import('./tfjs.mjs'),
  // As a page uses it, which compiles its graphs: the page's server has the package at /rlx.
  built: async () => {
    const { open } = await import('./built.mjs'), at = '/rlx/index.js';
    return { open: async () => open({ rlx: await import(at) }) };
  },
  ort: onnx(() => import('./ort.mjs')),
  transformers: onnx(() => import('./transformers.mjs')),
};
