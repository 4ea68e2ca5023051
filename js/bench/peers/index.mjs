// The peers by the names that the programs take; each is loaded only when needed.
export const peers = {
  rlx: () => import('./rlx.mjs'),
  jax: () => import('./jax.mjs'),
  tfjs: () => import('./tfjs.mjs'),
};
