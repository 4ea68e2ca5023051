// The checker must catch what a browser would refuse, and pass what it takes.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

const folder = mkdtempSync(join(tmpdir(), 'rlx-tint-'));
after(() => rmSync(folder, { recursive: true }));

const good = `struct Scalars { n: u32, scale: f32 }
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;
@group(1) @binding(0) var<uniform> s: Scalars;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < s.n) { x[id.x] = a[id.x] * s.scale; }
}
`;
const half = 'fn half(x: f16) -> f16 { return 0.5h * x; }\n';

const cases = [
  { name: 'a plain shader', code: good },
  { name: 'extensions that are enabled', code: `enable f16; enable subgroups;\n${good}${half}` },
  { name: 'an experiment that is enabled', code: `enable chromium_experimental_subgroup_matrix;\n${good}` },
  { name: 'an extension that is not', code: good + half, error: /:8:12: error: 'f16' type used without 'f16' extension/ },
  { name: 'an unknown name', code: good.replace('a[id.x]', 'b[id.x]'), error: /:6:31: error: unresolved value 'b'/ },
  { name: 'a barrier in divergent flow', code: good.replace('x[id.x] =', 'workgroupBarrier(); x[id.x] ='), error: /uniform control flow/ },
  { name: 'a workgroup over 256', code: good.replace('64', '512'), error: /exceeds the maximum allowed/ },
  { name: 'too much workgroup memory', code: good.replace('a[id.x]', 'w[id.x]') + 'var<workgroup> w: array<f32, 4097>;\n', error: /16384 bytes/ },
  { name: 'a ninth storage buffer',
    code: Array.from({ length: 9 }, (_, i) => `@group(0) @binding(${i}) var<storage, read_write> b${i}: array<f32>;\n`).join('') +
      '@compute @workgroup_size(1) fn main() { b0[0] = b8[0]; }\n', error: /storage buffers \(9\)/ },
  { name: 'no entry point', code: 'fn f() {}\n', error: /no compute entry point/ },
];

for (const { name, code, error } of cases) {
  test(error ? `${name} is refused` : `${name} passes`, () => {
    const file = join(folder, 'shader.wgsl');
    writeFileSync(file, code);
    const { status, stdout } = spawnSync(process.execPath, [join(import.meta.dirname, 'tint.mjs'), file], { encoding: 'utf8' });
    assert.equal(status, error ? 1 : 0, stdout);
    assert.match(stdout, error ?? /^tint: 1 shaders, 0 errors/m);
  });
}
