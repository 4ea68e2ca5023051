/**
 * Runs plans that were compiled ahead of time, without the compiler.
 *
 * @module
 */

export { type Batch, type BatchOptions, batches, type LastBatch } from './runtime/batches.js';
export type { DeviceOptions } from './gpu/device.js';
export { type DType, type StoredData, type TensorData } from './values/dtype.js';
export { type ErrorKind, type ErrorPlace, RlxError } from './values/errors.js';
export { openProgram, type Place, type ProgramOptions } from './runtime/open.js';
export type { Recovered, RecoverOptions } from './runtime/recover.js';
export { decodePlan } from './plan/decode.js';
export type { Entry, Kernel, Plan, Slot } from './plan/plan.js';
export { startWorker } from './worker/start.js';
export type { Device, LoadOptions, Program, Reading, Run, RunOptions } from './program/program.js';
export type { EntryTypes, GraphTypes, Input, Inputs, InputsOf, PlanFile } from './program/types.js';
export { type HostTensor, liveTensors, scope, type StoredTensor, Tensor, type TensorScope } from './values/tensor.js';
export { type BatchSource, type EvaluateOptions, type Progress, type Summary, Trainer, type TrainerOptions, type TrainOptions } from './runtime/trainer.js';
