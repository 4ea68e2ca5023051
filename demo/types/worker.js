// The worker of the language: it answers calls, one at a time.

import { Language, transpiled } from './language.js';

const language = fetch(new URL('types.json', import.meta.url)).then(async (response) => {
  if (!response.ok) throw new Error(`types.json cannot be loaded: the server answers ${response.status}`);
  return new Language(await response.json());
});
language.catch(() => {}); // a call says so

const calls = {
  check: async (source) => (await language).check(source),
  at: async (...given) => (await language).at(...given),
  transpile: async (source) => transpiled(source),
};

globalThis.onmessage = async ({ data: { id, call, given } }) => {
  try {
    postMessage({ id, result: await calls[call](...given) });
  } catch ({ message }) {
    postMessage({ id, error: message });
  }
};
