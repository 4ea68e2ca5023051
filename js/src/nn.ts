/**
 * Layers of neural networks: functions of a value that add ops and declare their parameters in a scope of their own. There
 * is no object that holds them.
 *
 * Sizes come from the input: `linear(x, 64)` takes only the number of outputs. Parameters are
 * named scope/weight, scope/bias and so on, as in PyTorch and the Go package nn; the scope is the
 * option `name`, or the kind of layer and its count in the open scope. Each declares its
 * initialisation, by default PyTorch's. {@link train} and {@link infer} set the mode of {@link
 * dropout} and {@link batchNorm}: call a model function once for the training step and once for
 * each other entry.
 *
 * @module
 */

export { attend, attention, type AttentionOptions } from './nn/attention.js';
export { dropout, frozen, infer, isTraining, key, residual, shared, tie, train } from './nn/context.js';
export { conv1d, conv2d, conv3d, type ConvOptions, convTranspose1d, convTranspose2d, convTranspose3d } from './nn/conv.js';
export { constant, glorotNormal, glorotUniform, heNormal, heUniform, lecunNormal, lecunUniform, normal, orthogonal, truncatedNormal, uniform } from './nn/initial.js';
export { here, type LoRAOptions, type NameOption, type Padding, randomState, type Storage } from './nn/layer.js';
export { dotInteraction } from './nn/interaction.js';
export { embedding, embeddingBag, type EmbeddingBagOptions, type EmbeddingOptions, linear, type LinearOptions, lora } from './nn/linear.js';
export { mamba, type MambaOptions } from './nn/mamba.js';
export { accuracy, auc, aucBins, calibration, calibrationBins, confusion, metric, perplexity, regression, topKAccuracy } from './nn/metric.js';
export { chosenExperts, groupedLinear, type GroupedLinearOptions, moe, type MoEOptions } from './nn/moe.js';
export { batchNorm, type BatchNormOptions, groupNorm, instanceNorm, layerNorm, type NormOptions, rmsNorm } from './nn/norm.js';
export { avgPool, globalAvgPool, globalMaxPool, maxPool, type PoolOptions } from './nn/pool.js';
export { cache, type CacheOptions, cacheState, positionalEmbedding, type PositionalEmbeddingOptions, positions, type RopeOptions, sinusoidalEncoding } from './nn/position.js';
export { gru, lstm, type RecurrentOptions, rnn } from './nn/recurrent.js';
export { activeBlocks, stack, type StackOptions } from './nn/stack.js';
export { storageOf, stored } from './nn/storage.js';
export { type Activation, mlp, type MLPOptions, transformerBlock, type TransformerOptions } from './nn/transformer.js';
export { linearCrossEntropy, type LinearCrossEntropyOptions, softcap } from './nn/vocabulary.js';
