// Opens a language model; what serves several texts at once is loaded with the first that asks for it.

import { checkOptions } from '../../values/errors.js';
import type { ModelFile } from '../gguf.js';
import { LanguageModel, modelOptions, type ModelOptions, openEntries, shapeOf, templateOf } from './model.js';

/**
 * Compiles a model and reads its weights to a device. The file must stay open until then. Errors are those of {@link configOf};
 * of kind `missing`, `name` and `shape` for a file that does not fit, and those of `program`.
 */
export async function openModel(file: ModelFile, options?: ModelOptions): Promise<LanguageModel> {
  checkOptions('openModel', options, `${modelOptions} slots draft draftModel`);
  if (options && (options.slots ?? options.draft ?? options.draftModel) !== undefined) return (await import('./several.js')).openSeveral(file, options);
  const shape = await shapeOf(file, options ?? {});
  const program = await openEntries(shape, undefined, options ?? {});
  return new LanguageModel(shape, program, templateOf(file));
}
