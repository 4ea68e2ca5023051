// Weights in files: what is saved, and what a file must hold before anything is changed by it.

import { decodeSafetensors, encodeSafetensors } from './rlx/safetensors.js';

/** Counters count steps; more than this no page makes. */
const mostSteps = 2 ** 30;

const bad = (reason) => { throw new Error(reason); };

/** The state of one moment as a file. The characters that a network of text learned are in it, unless they are Shakespeare's. */
export const encodeWeights = (name, tensors, characters) => encodeSafetensors(tensors, { model: name, ...characters && { characters } });

/**
 * Reads a file and checks all of it against a plan: parameters must be there, what is unknown must
 * not, and every number must be one to train on from. Other missing tensors are initialised.
 * @param {ArrayBuffer} file
 * @param {string} name the model
 * @param {Record<string, {title: string}>} models all that there are
 * @param {import('@rlx-go/rlx/runtime').Plan} plan
 * @param {string} [characters] those of the text that is learned from
 * @returns {Record<string, import('@rlx-go/rlx/runtime').HostTensor>}
 */
export function decodeWeights(file, name, models, plan, characters) {
  const { tensors, metadata } = readWeights(file), wanted = models[metadata.model];
  if (wanted && metadata.model !== name) bad(`it has the weights of a ${wanted.title}, and this is the ${models[name].title}`);
  if (metadata.characters !== characters) bad(metadata.characters ? 'it learned from another text, which must be given first' : 'it learned from Shakespeare, and this is another text');
  checkWeights(tensors, models[name].title, plan);
  return tensors;
}

function readWeights(file) {
  try {
    return decodeSafetensors(file);
  } catch ({ message }) {
    return bad(`it is not a file of weights, or it is damaged: choose one that “Save weights” made (${message})`);
  }
}

/**
 * Checks tensors against a plan, and throws an error that says what is wrong.
 * @param {Record<string, import('@rlx-go/rlx/runtime').HostTensor>} tensors
 * @param {string} title the model's
 * @param {import('@rlx-go/rlx/runtime').Plan} plan
 */
export function checkWeights(tensors, title, plan) {
  const slots = new Map(plan.slots.filter(({ role }) => role === 'param' || role === 'state').map((slot) => [slot.name, slot]));
  for (const [key, tensor] of Object.entries(tensors)) check(key, tensor, slots.get(key) ?? bad(`the ${title} has no ${key}`));
  for (const { name: key, role } of slots.values()) if (role === 'param' && !Object.hasOwn(tensors, key)) bad(`${key} is missing`);
}

function check(key, { dtype, shape, data }, slot) {
  if (dtype !== slot.dtype || shape.join() !== slot.shape.join()) bad(`${key} is ${dtype}[${shape}], not ${slot.dtype}[${slot.shape}]`);
  if (dtype === 'f32' && !data.every(Number.isFinite)) bad(`${key} has elements that are no numbers`);
  if (dtype === 'i32' && !data.every((n) => n >= 0 && n <= mostSteps)) bad(`${key} is ${data[0]}, which is no number of steps`);
}
