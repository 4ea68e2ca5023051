// Writes PARITY.md: the exports of the Go packages that this package lacks, and why. The Go names
// are those of the golden files of the API, the TypeScript names those of the declarations in dist;
// parity.json has the rest.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const here = import.meta.dirname;

/** The exported functions, types and methods (`Type.Method`) of a Go package, from its golden file. */
export function goNames(text, receivers = /./) {
  const names = new Set();
  for (const [, receiver, method, name] of text.matchAll(/^(?:func \(\w+ \*?(\w+)\) ([A-Z]\w*)|(?:func|type) ([A-Z]\w*))/gm)) {
    if (name) names.add(name);
    else if (receivers.test(receiver)) names.add(`${receiver}.${method}`);
  }
  return [...names].sort();
}

/** The names of declarations: exported ones, and members as `Class.member`. */
export function typescriptNames(texts) {
  const names = new Set();
  for (const text of texts) {
    for (const [, list] of text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)) for (const one of list.split(',')) names.add(one.trim().split(' ').at(-1));
    for (const [, name] of text.matchAll(/^export (?:declare )?(?:abstract )?(?:async )?(?:function|const|class|interface|type) (\w+)/gm)) names.add(name);
    for (const [, name, body] of text.matchAll(/^export (?:declare )?(?:abstract )?(?:class|interface) (\w+)[^\n]*\{\n([^]*?)^\}/gm)) {
      for (const [, member] of body.matchAll(/^ {4}(?:(?:readonly|get|static|abstract|declare) )*(\w+)\??[(<:]/gm)) names.add(`${name}.${member}`);
    }
  }
  return names;
}

/** Packages of functions whose types are not compared: a value's ops are its methods. */
const functionsOnly = ['ir', 'ir_ops'];
const methodsOf = ['ValueOps', 'BuilderOps', 'Value', 'GraphBuilder'];

const lowerFirst = (name) => /^[A-Z]+$/.test(name) ? name.toLowerCase() : name[0].toLowerCase() + name.slice(1);
const matches = (pattern, name) => new RegExp(`^${pattern.replaceAll('.', '\\.').replaceAll('*', '.*')}$`).test(name);

/** The counterpart of a Go name: a TypeScript name, or the key of a reason; undefined if nothing says it. */
function counterpart(name, given, names) {
  const found = given[name] ?? Object.entries(given).sort(([a], [b]) => b.length - a.length).find(([pattern]) => pattern.includes('*') && matches(pattern, name))?.[1];
  const [type, method] = name.split('.');
  if (found && !found.endsWith('.*')) return found;
  if (found) return [`${found.slice(0, -1)}${lowerFirst(method)}`].find((one) => names.has(one));
  const own = method ? `${type}.${lowerFirst(method)}` : [lowerFirst(name), name].find((one) => names.has(one));
  return own && names.has(own) ? own : undefined;
}

/** The method that is the counterpart of a function of package ops, whatever its capitals. */
function methodOf(name, names) {
  return [...names].find((one) => methodsOf.includes(one.split('.')[0]) && one.split('.')[1]?.toLowerCase() === name.toLowerCase());
}

/** The text of PARITY.md. */
export function parity() {
  const { reasons, packages } = JSON.parse(readFileSync(join(here, 'parity.json'), 'utf8')), dist = join(here, 'dist');
  const names = typescriptNames(readdirSync(dist, { recursive: true }).filter((name) => name.endsWith('.d.ts')).map((name) => readFileSync(join(dist, name), 'utf8')));
  const lines = [
    '# What Go has and TypeScript has not', '',
    'Written by `node js/parity.mjs` from the exported names of both and from `js/parity.json`. Ops are the same in both: each op of',
    'OPS.md is a method of its first operand, a value, or of a builder if it has none or a list of them: `ops.MatMul(b, x, y)` is `x.matmul(y)`,',
    '`ops.Concatenate(b, axis, x, y)` is `b.concatenate([x, y], axis)`. `concat`, `sum` and `where` are short names of `concatenate`,',
    '`reduceSum` and `select`.', '',
  ];
  for (const [file, given] of Object.entries(packages)) {
    const text = readFileSync(join(here, `../internal/api/testdata/${file}.txt`), 'utf8'), missing = {}, other = [];
    for (const name of goNames(text, file === 'ir' ? /^(Builder|Graph|Module|Value)$/ : file === 'ir_ops' ? /^$/ : /./)) {
      if (functionsOnly.includes(file) && !name.includes('.') && !new RegExp(`^func ${name}\\(`, 'm').test(text)) continue; // types
      const found = counterpart(name, given, names) ?? (file === 'ir_ops' ? methodOf(name, names) : undefined);
      if (found === undefined) throw new Error(`parity.json: ${file}: ${name} has no name of the declarations and no reason`);
      if (Object.hasOwn(reasons, found)) (missing[found] ??= []).push(name);
      else if (!names.has(found)) throw new Error(`parity.json: ${file}: ${name} is ${found}, which is no name of the declarations and no reason`);
      else if (found.split('.').at(-1).toLowerCase() !== name.split('.').at(-1).toLowerCase()) other.push(`\`${name}\` is \`${found}\``);
    }
    lines.push(`## ${file.replaceAll('_', '/')}`, '', '| Go | why TypeScript has no such name |', '|---|---|');
    for (const [key, why] of Object.entries(reasons)) if (missing[key]) lines.push(`| ${missing[key].map((name) => `\`${name}\``).join(', ')} | ${why} |`);
    lines.push('');
    if (other.length) lines.push(`Under another name: ${other.join(', ')}.`, '');
  }
  return lines.join('\n');
}

if (process.argv[1] === import.meta.filename) writeFileSync(join(here, 'PARITY.md'), parity());
