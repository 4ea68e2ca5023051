// The demo in Firefox and in WebKit: it trains to 94 %, on the CPU and, in Firefox, on WebGPU.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { missing, visit } from '../../../js/test/rig/browsers.mjs';
import { strictCSP } from '../../../js/test/rig/serve.mjs';
import { demoMounts } from '../../../js/serve.mjs';

const { '/': demo, '/rlx': dist } = demoMounts;

/** Trains in a frame, as a visitor would. */
const module = `
export default async () => {
  const frame = document.body.appendChild(Object.assign(document.createElement('iframe'), { src: '/demo/', width: 1200, height: 800 }));
  const find = (id) => frame.contentDocument.getElementById(id), text = (id) => find(id).textContent;
  const until = async (done) => { while (!done()) await new Promise((resolve) => setTimeout(resolve, 100)); };
  await until(() => frame.contentDocument?.documentElement.dataset.ready && !find('train').disabled);
  find('train').click();
  let accuracy = 0; // the best: it goes up and down
  await until(() => (accuracy = Math.max(accuracy, parseFloat(text('accuracy')))) >= 94 || !find('problem').hidden);
  find('train').click();
  await until(() => text('train') === 'Train');
  await new Promise((resolve) => frame.contentWindow.requestAnimationFrame(() => setTimeout(resolve))); // curves are drawn with the screen
  return {
    accuracy, kind: text('device-kind'), reason: text('device-reason'),
    verdict: text('verdict'), curve: find('loss-chart').getAttribute('aria-label'), problem: find('problem').hidden ? '' : text('problem'),
  };
};
`;

for (const [name, webgpu] of [['firefox', false], ['firefox', true], ['webkit', false]]) {
  test(`${name} trains the demo's network to 94 %${webgpu ? ' on WebGPU' : ''}`, { skip: missing(name) }, async (t) => {
    const csp = strictCSP.replace("frame-ancestors 'none'", "frame-ancestors 'self'; frame-src 'self'");
    const { value, problems } = await visit(t, name, { module, mounts: { '/demo': demo, '/rlx': dist }, csp, webgpu, seconds: 240 });
    assert.equal(value.problem, '');
    assert.equal(value.kind, webgpu ? 'WebGPU' : 'CPU');
    assert.match(value.reason, webgpu ? /^$/ : /navigator\.gpu is missing/);
    assert.ok(value.accuracy >= 94, `${value.accuracy} %`);
    assert.match(value.verdict, /^It reads \d\. It is \d\./);
    assert.match(value.curve, /^Loss by step: 0\.\d+ at step \d+$/);
    assert.deepEqual(problems, []);
  });
}
