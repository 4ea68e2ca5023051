// A training step: its options, and the compiler's call that derives it from a graph with a loss.

import { checkOptions, checkWord, classOf, RlxError } from '../values/errors.js';
import { Request } from '../wasm/wire.js';
import { snake } from './types.js';

/** The decay rates and the epsilon of Adam and its variants. */
export interface Moments {
  /** 0.9 if not given. */
  beta1?: number;
  /** 0.999 if not given. */
  beta2?: number;
  /** 1e-8 if not given. */
  epsilon?: number;
}

/**
 * How a parameter is updated, with the hyper-parameters of each kind. `weightDecay` is 0 if not given, of `adamw` 0.01 and of `muon` 0.1;
 * `momentum` 0, of `muon` 0.95, of `lars` and `kron` 0.9. `beta2` of `rmsprop` and `adadelta` is the share of old squares, `dampening` the part of a
 * gradient that momentum leaves out. With `decoupled` weight decay is that of `adamw`; `gamma` of `sophia` is 0.01, of `mars` 0.025 if not given. `every`,
 * 10 if not given, is the number of steps between two changes of the basis of `soap` or of the factors of `kron`, which are diagonal with `diagonal`:
 * that takes less memory and time. `pairs`, 10 if not given, is the number of moves and changes of the gradient that `lbfgs` keeps, and `warm` the number
 * of steps over which the slow average of `ademamix` gains weight, none if not given.
 */
export type UpdateRule = { weightDecay?: number } & (
  | { kind: 'sgd'; momentum?: number; nesterov?: boolean; dampening?: number }
  | { kind: 'muon' | 'lars' | 'stiefel'; momentum?: number }
  | { kind: 'kron'; momentum?: number; every?: number; diagonal?: boolean }
  | { kind: 'rmsprop'; momentum?: number; centered?: boolean; beta2?: number; epsilon?: number }
  | { kind: 'adadelta'; beta2?: number; epsilon?: number }
  | { kind: 'adagrad'; epsilon?: number }
  | { kind: 'lion'; beta1?: number; beta2?: number }
  | { kind: 'lbfgs'; pairs?: number }
  | { kind: 'adafactor' }
  | Moments & (
    | { kind: 'adam' | 'adamw' | 'lamb' | 'schedule-free' | 'adamax' | 'adabelief' | 'qhadamw' | 'adan' | 'prodigy' }
    | { kind: 'nadam' | 'radam' | 'amsgrad'; decoupled?: boolean }
    | { kind: 'sophia' | 'mars'; gamma?: number }
    | { kind: 'soap'; every?: number }
    | { kind: 'ademamix'; warm?: number }));

/** The options of an optimizer that hold for all parameters of a step. */
export interface UpdateOptions {
  /** Keeps weight decay from parameters of fewer than two axes: biases, and the scales of norms. */
  decayMatrices?: boolean;
  /** Scales gradients down so that their norm, over all parameters, is at most this. */
  clipNorm?: number;
  /** Limits each element of the gradients to this size. */
  clipValue?: number;
  /** The number of steps of one update, by the mean of their gradients. 1 if not given. */
  accumulate?: number;
  /** Keeps a running mean of each parameter `w`, with this share of the old one, as the state `optim/average/w`. */
  average?: number;
}

/** An update rule, with options of the whole step. */
export type Optimizer = UpdateRule & UpdateOptions;

/**
 * A learning rate as a function of the step, from `rate` to `finalRate`, 0 if not given, over `steps`, after a linear
 * warm-up of `warmUp` steps. `steps` multiplies it by `factor` after every `steps` steps, `exponential` after each;
 * `polynomial` uses the power `exponent`; `cosine-restarts` restarts with periods that grow by the factor
 * `growth`; `one-cycle` rises to `rate` and falls.
 */
export type Schedule = { rate: number; warmUp?: number } & (
  | { kind: 'constant' }
  | { kind: 'linear' | 'cosine'; steps: number; finalRate?: number }
  | { kind: 'steps'; steps: number; factor: number }
  | { kind: 'exponential'; factor: number }
  | { kind: 'polynomial'; steps: number; exponent: number; finalRate?: number }
  | { kind: 'cosine-restarts'; steps: number; growth?: number; finalRate?: number }
  | { kind: 'one-cycle'; steps: number });

/** The fields of each kind of schedule, besides those of all. */
const scheduleFields: Record<Schedule['kind'], string> = {
  constant: '', linear: ' steps finalRate', cosine: ' steps finalRate', steps: ' steps factor', exponential: ' factor',
  polynomial: ' steps exponent finalRate', 'cosine-restarts': ' steps growth finalRate', 'one-cycle': ' steps',
};

/**
 * What reverse mode saves for the backward pass, which recomputes the rest: nothing, the results
 * of products, the set of least memory, the results of ops or of nodes whose labels match a
 * pattern, or as much as fits a number of bytes.
 */
export type Policy = 'nothing' | 'products' | 'min-cut'
  | { readonly ops: readonly string[]; labels?: never; within?: never }
  | { readonly labels: readonly string[]; ops?: never; within?: never }
  | { readonly within: number; ops?: never; labels?: never };

/** Parameters with an optimizer or a rate of their own. A parameter belongs to the first group that matches it. */
export interface ParamGroup {
  /** Names and patterns, as of {@link StepOptions.frozen}. */
  params: readonly string[];
  /** That of the other parameters if not given. Clipping, accumulation and averages are those of the step. */
  optimizer?: UpdateRule;
  /** Multiplies the learning rate. 1 if not given. */
  rate?: number;
}

export interface StepOptions<L extends string = string> {
  optimizer: Optimizer;
  /** The output to minimise. `loss` if not given. */
  loss?: L;
  /** The learning rate. Without a schedule it is the f32 input `lr`. */
  schedule?: Schedule;
  /** Parameters that are not trained, by name or by a pattern in which `*` matches any text between
   * slashes. The name of a scope matches all parameters in it. */
  frozen?: readonly string[];
  groups?: readonly ParamGroup[];
  /** What the backward pass keeps. All that it needs if not given. */
  policy?: Policy;
  /** Separates the states of this optimizer from those of others in one module, as of a GAN's: `optim/name:m/w`. */
  name?: string;
  /** Lets random ops draw the same numbers in every step, as fixed random features do. A key that depends on no input and on no state that changes is refused if not given. */
  constantKeys?: boolean;
  /** Treats missing gradients of parameters that the loss does not depend on as zeros. By default they are an error; `frozen` excludes parameters. */
  allowUnreached?: boolean;
  /** Adds the norm of all gradients, before clipping, as the metric `gradient norm`, which `fit` reports. */
  measureNorm?: boolean;
  /** The number of losses to keep on the device. 0 if not given to `step`. */
  history?: number;
  /**
   * Computes products in half precision, see {@link Graph.mixed}. With `f16` the loss is scaled by a
   * power of two that adapts, and a step whose gradients are not finite changes no parameter.
   */
  precision?: 'bf16' | 'f16';
}

/** The call that derives the step of a graph, by its handle, but for `precision`. Errors are those of {@link Graph.step}. @internal */
export function stepRequest(graph: number, options: StepOptions): Request {
  checkOptions('step', options, 'optimizer loss schedule frozen groups policy name constantKeys allowUnreached measureNorm history precision');
  const { optimizer, loss = 'loss', schedule, frozen = [], groups = [], policy, name = '', constantKeys, allowUnreached, measureNorm, history = 0, precision } = options ?? {};
  if (schedule) {
    checkWord('the kind of a schedule', schedule.kind, Object.keys(scheduleFields).join(' '));
    checkOptions(`a schedule of kind ${schedule.kind}`, schedule, `kind rate warmUp${scheduleFields[schedule.kind]}`);
  }
  if (precision !== undefined) checkWord('step: precision', precision, 'bf16 f16');
  const hyper = hyperOf(optimizer), { kind: shape = '', ...rates } = schedule ?? {};
  return new Request('step').u32(graph).text(loss, 'loss').text(optimizer.kind, 'kind of the optimizer').numbers(reals({ ...hyper, constantKeys, allowUnreached, measureNorm, ...precision === 'f16' && { lossScale: 65536 } }), 'f64').text(shape, 'kind of the schedule').numbers(reals(rates), 'f64').texts(frozen, 'frozen').u32(history, 'history')
    .list(groups, (r, { params, optimizer: own, rate = 0 }) => r.texts(params, 'params of a group').text(own?.kind ?? '').numbers(own ? hyperOf(own, '') : {}, 'f64').f64(rate, 'rate of a group'), 'groups')
    .texts(wordsOf(policy)).text(name, 'name');
}

/** The names of {@link UpdateOptions}. */
const wholeStep = ' decayMatrices clipNorm clipValue accumulate average';

/** The hyper-parameters of an optimizer. `more` are the options that it may have besides those of a group. */
export function hyperOf(optimizer: Optimizer, more = wholeStep): Record<string, number> {
  if (!optimizer?.kind) throw new RlxError('missing', `the optimizer is ${classOf(optimizer)}: it must be { kind: 'sgd' | 'adam' | 'adamw', ... }`, { name: 'optimizer' });
  checkOptions(more ? 'an optimizer' : 'the optimizer of a group', optimizer, `kind momentum nesterov dampening decoupled beta1 beta2 epsilon gamma every diagonal pairs warm weightDecay centered${more}`);
  const { kind, ...hyper } = optimizer as UpdateOptions & { readonly kind: string };
  checkWord('the kind of an optimizer', kind, 'sgd adam adamw nadam radam lamb lion adagrad rmsprop adadelta adafactor muon schedule-free soap sophia mars amsgrad adamax adabelief qhadamw adan ademamix lars kron lbfgs prodigy stiefel');
  for (const name in hyper) {
    const { of, not } = belongs[name] ?? {}, fits = of?.split(' ').includes(kind) ?? !not?.split(' ').includes(kind);
    if (!fits && hyper[name as keyof typeof hyper]) throw new RlxError('name', `the optimizer ${kind} has no ${name}${of ? `, which is of ${of.replaceAll(' ', ', ')}` : ''}`, { name });
  }
  return reals(hyper);
}

/** The optimizers that have a hyper-parameter, or those that lack it; all have the others. */
const belongs: Readonly<Record<string, { of?: string; not?: string }>> = {
  momentum: { of: 'sgd rmsprop muon lars kron stiefel' }, nesterov: { of: 'sgd' }, dampening: { of: 'sgd' }, centered: { of: 'rmsprop' }, decoupled: { of: 'nadam radam amsgrad' },
  gamma: { of: 'sophia mars' }, every: { of: 'soap kron' }, diagonal: { of: 'kron' }, pairs: { of: 'lbfgs' }, warm: { of: 'ademamix' },
  beta1: { not: 'sgd adagrad rmsprop adadelta adafactor muon lars kron lbfgs stiefel' }, beta2: { not: 'sgd adagrad adafactor muon lars kron lbfgs stiefel' }, epsilon: { not: 'sgd lion adafactor muon lars kron lbfgs stiefel' },
};

/** A policy as the compiler reads it. */
export function wordsOf(policy: Policy | undefined): readonly (string | number)[] {
  if (policy === undefined) return [];
  if (typeof policy === 'string') {
    checkWord('policy', policy, 'nothing products min-cut');
    return [policy];
  }
  checkOptions('policy', policy, 'ops labels within');
  const [[kind, given] = ['', []], ...more] = Object.entries(policy ?? {}) as [string, number | readonly string[]][];
  if (!kind || more.length) throw new RlxError('attr', `policy has ${Object.keys(policy ?? {}).join(' and ') || 'nothing'}: it must be a word, or have one of ops, labels and within`, { name: 'policy' });
  return [kind, ...Array.isArray(given) ? given as string[] : [given as number]];
}

/** Options under the compiler's names, without undefined ones. */
function reals(options: object): Record<string, number> {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => {
    if (typeof value !== 'number' && typeof value !== 'boolean') throw new RlxError('attr', `step: ${name} is ${classOf(value)}: it must be a number or a boolean`, { op: 'step', name });
    return [snake(name), Number(value)];
  }));
}
