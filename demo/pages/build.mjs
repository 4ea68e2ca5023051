// Writes the pages of the site to demo/web: those of this folder, each within what all share.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pageOf } from './layout.mjs';

const here = import.meta.dirname, out = join(here, '../web');
for (const name of readdirSync(here).filter((one) => one.endsWith('.html'))) writeFileSync(join(out, name), pageOf(name, readFileSync(join(here, name), 'utf8')));
