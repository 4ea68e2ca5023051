// transformers.js: models of its own architectures, from files that are written here. It runs them by onnxruntime-web,
// whose tensors on the device it takes and gives.

import { AutoModelForImageClassification, AutoModelForSequenceClassification, Tensor, env } from '@huggingface/transformers';
import { networkFile } from './onnx.mjs';
import { prepare, repeated } from './ort.mjs';

/** The networks that are one of its architectures, all with `logits` as their result. */
const architectures = {
  resnet: { model: AutoModelForImageClassification, type: 'resnet', input: 'pixel_values' },
  vit: { model: AutoModelForImageClassification, type: 'vit', input: 'pixel_values' },
  bert: { model: AutoModelForSequenceClassification, type: 'bert', input: 'input_ids' },
};

/** A network's forward pass, through the model that from_pretrained gives. */
async function network(options) {
  const architecture = architectures[options.name];
  if (!architecture) throw new Error(`transformers.js has no ${options.name}`);
  const { model: auto, type, input } = architecture, { bytes, input: values } = networkFile(options, input, 'logits');
  const files = { 'config.json': JSON.stringify({ model_type: type }), 'model.onnx': bytes };
  env.customCache = { match: async (path) => new Response(files[path.split('/').at(-1)]), put: async () => {} };
  const model = await auto.from_pretrained(options.name, {
    device: 'webgpu', dtype: 'fp32', local_files_only: true, session_options: { preferredOutputLocation: { logits: 'gpu-buffer' } },
  });
  return repeated({
    run: async (feeds) => (await model({ [input]: new Tensor(feeds[input]) })).logits.ort_tensor,
    release: () => model.dispose(),
  }, { [input]: values });
}

/** Opens transformers.js; `wasm` is the address of onnxruntime's module. */
export async function open({ wasm }) {
  prepare(wasm);
  Object.assign(env, { allowRemoteModels: false, allowLocalModels: true, useBrowserCache: false, useWasmCache: false, useCustomCache: true });
  return { name: 'transformers.js', version: env.version, network };
}
