// The package's types: what strict TypeScript refuses of models built in it.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

const here = import.meta.dirname, dist = join(here, '../dist');

test('names and element types that a model does not have are refused, and its own are taken', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'rlx-types-')), config = join(folder, 'tsconfig.json');
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(config, JSON.stringify({
    compilerOptions: {
      target: 'es2022', module: 'esnext', moduleResolution: 'bundler', lib: ['es2023', 'dom', 'dom.iterable', 'esnext.disposable'], types: [], strict: true,
      exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, noEmit: true,
      paths: { '@rlx-go/rlx': [join(dist, 'index.d.ts')], '@rlx-go/rlx/*': [join(dist, '*.d.ts')] },
    },
    files: [join(here, 'types/models.ts')],
  }));
  const { status, stdout } = spawnSync(process.execPath, [join(here, '../node_modules/typescript/lib/tsc.js'), '-p', config], { encoding: 'utf8' });
  assert.equal(status, 0, stdout);
});
