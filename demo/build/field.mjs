// Trains the network of the home page on its first picture, and writes the parameters to web/field.bin:
//
//   node demo/build/field.mjs [STEPS]
//
// The file has the parameters of the plan in order, each f32 cut to its upper 16 bits. It takes a minute in Chromium.

import { writeFileSync } from 'node:fs';
import { openChromium } from '../../js/test/rig/chromium.mjs';
import { serve } from '../../js/test/rig/serve.mjs';
import { demoMounts, demoOptions } from '../../js/serve.mjs';

const steps = Number(process.argv[2] ?? 6000);
const server = await serve(demoMounts, demoOptions), browser = await openChromium({ webgpu: 'no adapter' });
const page = await browser.open(`${server.origin}/small.html`);
const { words, loss } = await page.evaluate(async (count) => {
  const [{ openProgram, Trainer }, { planFile }, { Target }] = await Promise.all(['/rlx/runtime.js', '/engine.js', '/target.js'].map((path) => import(path)));
  const canvas = Object.assign(document.createElement('canvas'), { width: 256, height: 256 });
  const target = new Target(canvas), program = await openProgram(await planFile('field-relaxed'), { on: 'cpu' }), trainer = new Trainer(program);
  await program.run('init', { seed: 1 });
  const { losses } = await trainer.run({ steps: count, batches: target.batch, inputs: (step) => ({ lr: 1e-2 * (1 - step / count) + 1e-4 }) });
  const all = [];
  for (const { name, role } of program.plan.slots) {
    if (role === 'param') all.push(...new Uint32Array(new Float32Array(await program.read(name)).buffer).map((bits) => (bits + 0x8000) >>> 16));
  }
  return { words: all, loss: losses?.at(-1) ?? (await program.read('loss'))[0] };
}, steps);
writeFileSync(new URL('../web/field.bin', import.meta.url), Uint16Array.from(words));
console.log(`loss ${loss} after ${steps} steps: ${words.length} parameters`);
await browser.close();
await server.close();
