/**
 * Runs plans that were compiled ahead of time, without the compiler.
 *
 * @module
 */

export { type Batch, type BatchOptions, batches, type LastBatch } from './session/batches.js';
export { type Device, type DeviceOptions } from './gpu/device.js';
export { type DType, type StoredData, type TensorData } from './values/dtype.js';
export { type ErrorKind, type ErrorPlace, RlxError } from './values/errors.js';
export { openSession, type Place, type SessionOptions } from './session/open.js';
export { decodePlan } from './plan/decode.js';
export type { Entry, Kernel, Plan, Slot } from './plan/plan.js';
export { startWorker } from './worker/remote.js';
export { type HostTensor, type Input, type Inputs, type LoadOptions, type Reading, type Run, type RunOptions, type Session, type StoredTensor } from './session/session.js';
export type { EntryTypes, GraphTypes, InputsOf } from './session/types.js';
export { liveTensors, scope, Tensor, type TensorScope } from './values/tensor.js';
export { type BatchSource, type EvaluateOptions, type Progress, type Summary, Trainer, type TrainerOptions, type TrainOptions } from './session/trainer.js';
