// The package as programs of the playground get it: all of it, and the page sees what they build, compile and train.

import * as rlx from '../rlx/index.js';
import { labelByLine, lineHere } from './place.js';
import { report } from './report.js';

export * from '../rlx/index.js';

/** The compiler's module, compiled once for all runs of the page. */
let wasm;
export const useCompiler = (module) => { wasm = module; };

/** A program is in a worker already: all of the package runs there, and ends with it. */
const here = { worker: false };

export const init = (options) => rlx.init({ ...here, compileWorker: false, ...wasm && { wasm }, ...options });

export function graph(...given) {
  const made = rlx.graph(...given.map((one) => typeof one !== 'function' ? one : (b, ...ports) => {
    labelByLine(b);
    return one(b, ...ports);
  }));
  report({ type: 'graph', name: made.name, text: made.text(), entry: false });
  return made;
}

/** Shows the graphs of a module as they are compiled, and the kernels of its plan. */
async function showModule(module, { plan }) {
  for (const [name, entry] of Object.entries(module.entries)) {
    report({ type: 'graph', name, text: typeof entry === 'string' ? entry : entry.text(), entry: true });
  }
  const runs = plan.target === 'webgpu';
  report({ type: 'plan', name: module.name ?? 'main', runs, plan: runs ? plan : rlx.decodePlan(await rlx.compile({ ...module, target: 'webgpu' })) });
}

/** What a function builds that a program gives in place of graphs: here they are shown, which takes the compiler. */
async function builtBy(given) {
  if (typeof given !== 'function') return given;
  await init();
  return given();
}

export async function program(given, options) {
  const module = await builtBy(given), made = await rlx.program(module, { ...here, ...options });
  await showModule(module, made);
  return made;
}

export async function train(given, options) {
  const line = lineHere();
  const model = await builtBy(given), entries = await builtBy(options.entries ?? {});
  const trainer = await rlx.train(model, { ...here, ...options, entries });
  const { symbols, name = model.name, ...rest } = options;
  const bound = symbols ? model.bind(symbols) : model, step = bound.step(stepOptions(rest));
  await showModule({ name, symbols, entries: { step, ...entries } }, trainer.program);
  const run = trainer.run.bind(trainer);
  trainer.run = (given) => run({
    ...given,
    onProgress(progress) {
      report({ type: 'losses', name, line, names: [options.loss ?? 'loss'], step: progress.step, losses: progress.losses });
      return given.onProgress?.(progress);
    },
  });
  return trainer;
}

/** The options of a training that its step has, with as many losses kept as `train` keeps. */
function stepOptions(options) {
  const names = ['optimizer', 'loss', 'schedule', 'frozen', 'groups', 'policy', 'name', 'constantKeys', 'allowUnreached', 'measureNorm', 'history', 'precision'];
  return Object.fromEntries(Object.entries({ history: 64, ...options }).filter(([name, value]) => names.includes(name) && value !== undefined));
}
