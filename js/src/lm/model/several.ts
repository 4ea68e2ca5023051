// Opens a model that generates several texts at once, or verifies proposed tokens. It is loaded when one of these is asked for.

import { checkCount } from '../../values/errors.js';
import type { ModelFile } from '../gguf.js';
import { draftChunks, Drafter, lookup } from './drafter.js';
import { Engine } from './engine.js';
import { LanguageModel, type ModelOptions, openEntries, shapeOf, templateOf } from './model.js';
import { draftGraphs, type SlotShape, slotGraphs } from './slots.js';

/** The maximum number of slots. */
const maxSlots = 64;

/** See open.ts. */
export async function openSeveral(file: ModelFile, options: ModelOptions): Promise<LanguageModel> {
  const { slots = 1, draftModel, draft = draftModel ? 4 : 0, ...rest } = options;
  checkCount('slots', slots, 1, maxSlots);
  const shape = { ...await shapeOf(file, rest), slots, draft }, { context, chunk, config: { vocabulary } } = shape;
  checkCount('draft', draft, draftModel ? 1 : 0, context - 1);
  const drafter = draftModel && await openDrafter(draftModel, shape, rest);
  try {
    const program = await openEntries({ ...shape, graphs: slotGraphs(shape) }, undefined, rest), model = new LanguageModel(shape, program, templateOf(file));
    model.engine = new Engine(program, { slots, draft, context, chunk, vocabulary }, drafter ? (...of) => drafter.propose(...of) : (_, tokens, n) => lookup(tokens, n), drafter);
    return model;
  } catch (reason) {
    drafter?.close();
    throw reason;
  }
}

/** Opens the model that proposes. */
async function openDrafter(file: ModelFile, { slots, context: most, chunk: given }: SlotShape, { context: _, onProgress: __, ...rest }: ModelOptions): Promise<Drafter> {
  const base = await shapeOf(file, { ...rest, chunk: given }), context = Math.min(most, base.config.context), shape = { ...base, context, chunk: Math.min(given, context), slots, draft: 0 };
  const chunks = draftChunks(shape.chunk), program = await openEntries({ ...shape, graphs: draftGraphs(shape, chunks) }, undefined, rest);
  return new Drafter(program, { vocabulary: shape.config.vocabulary, context, chunks });
}
