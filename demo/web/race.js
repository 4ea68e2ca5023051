// GPU against CPU: the same steps on both, one after the other.

import { Engine, open } from './engine.js';

const steps = 100, mostSeconds = 8;

/**
 * Trains anew on one device, and tells how far it has come.
 * @param {{model: string, where: 'gpu' | 'cpu', digits: object, rate: number, onProgress: (p: Lap) => void}} options
 * @typedef {{steps: number, perSecond: number, loss: number, device: string}} Lap
 * @returns {Promise<Lap & {losses: number[]}>}
 */
async function lap({ model, where, digits, rate, onProgress }) {
  const { session } = await open(model, where), engine = new Engine(session, model, digits), losses = [];
  try {
    engine.rate = rate;
    await engine.reset(1);
    await engine.train({ steps: 2, onLosses: (_, some) => losses.push(...some) }); // warm-up
    const begun = performance.now();
    const now = () => ({ steps: losses.length, perSecond: (losses.length - 2) / (performance.now() - begun) * 1000, loss: losses.at(-1), device: session.deviceName });
    await engine.train({
      steps: steps - 2,
      onLosses(_, some) {
        losses.push(...some);
        onProgress(now());
        if (performance.now() - begun > mostSeconds * 1000) engine.pause();
      },
    });
    return { ...now(), losses };
  } finally {
    engine.close();
  }
}

/**
 * Runs both. What cannot be run is told in its place.
 * @param {{model: string, digits: object, rate: number, onProgress: (where: 'gpu' | 'cpu', p: Lap) => void, onError: (where: 'gpu' | 'cpu', error: Error) => void}} options
 * @returns {Promise<string>} the result in a sentence
 */
export async function race({ onProgress, onError, ...options }) {
  const laps = {};
  for (const where of ['gpu', 'cpu']) {
    try {
      laps[where] = await lap({ ...options, where, onProgress: (progress) => onProgress(where, progress) });
      onProgress(where, laps[where]);
    } catch (error) {
      onError(where, error);
    }
  }
  const { gpu, cpu } = laps;
  if (!gpu || !cpu) return 'One of the two cannot run here.';
  const both = Math.min(gpu.losses.length, cpu.losses.length);
  const apart = Math.max(...gpu.losses.slice(0, Math.min(both, 50)).map((loss, i) => Math.abs(loss - cpu.losses[i])));
  const ratio = gpu.perSecond / cpu.perSecond;
  const faster = ratio >= 1 ? `the GPU is ${ratio.toFixed(1)} times as fast` : `the CPU is ${(1 / ratio).toFixed(1)} times as fast`;
  return `Here ${faster}. Over ${Math.min(both, 50)} steps the losses differ by at most ${apart.toExponential(0)}.`;
}
