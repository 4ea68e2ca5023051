// What the playground's editor says of functions and methods, from the package's declarations: the signature of each and
// a sentence.

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The entry points, and the name that a program imports each as; it names what is in the first one by itself. */
const entryPoints = { index: '', nn: 'nn', losses: 'losses', stats: 'stats', cmplx: 'cmplx', special: 'special', dist: 'dist', signal: 'signal', image: 'image', pixels: '', fit: '', sizes: '', safetensors: '' };

/** What values of a class are called in the examples; of others its name, with a small letter. */
const receivers = { GraphBuilder: 'b', Value: 'x' };

/** The names that a file exports, and where each is declared. */
function exportsOf(path, found = new Map()) {
  const text = readFileSync(path, 'utf8'), at = (name) => join(dirname(path), name.replace(/\.js$/, '.d.ts'));
  for (const [, names, from] of text.matchAll(/^export (?:type )?\{([^}]*)\} from '([^']+)'/gm)) {
    for (const name of names.split(',')) found.set(name.replace(/^\s*type /, '').replace(/^.* as /, '').trim(), at(from));
  }
  for (const [, from] of text.matchAll(/^export \* from '([^']+)'/gm)) exportsOf(at(from), found);
  for (const [, name] of text.matchAll(/^export declare (?:function|const|class) (\w+)|^export interface (\w+)/gm)) if (name) found.set(name, path);
  return found;
}

/** The text up to the semicolon that ends a declaration, which may hold others in brackets. */
function declarationAt(text, from) {
  let depth = 0;
  for (let i = from; i < text.length; i++) {
    if ('([{'.includes(text[i])) depth++;
    else if (')]}'.includes(text[i])) depth--;
    else if (text[i] === ';' && depth === 0) return text.slice(from, i);
  }
  return text.slice(from);
}

/** The first sentence of the comment that ends before a place. */
function sentenceBefore(text, at) {
  const [, comment = ''] = /\/\*\*((?:[^*]|\*(?!\/))*)\*\/\s*$/.exec(text.slice(Math.max(0, at - 4000), at)) ?? [];
  const plain = comment.replace(/^\s*\* ?/gm, ' ').replace(/\{@link ([\w.]+)\}/g, '$1').replace(/\s+/g, ' ').replaceAll('`', '').trim();
  return /@internal/.test(comment) ? undefined : /^.*?\.(?= |$)/.exec(plain)?.[0] ?? plain.replace(/ @.*/, '');
}

/** A signature in a line, without its type parameters. */
function signatureOf(declaration) {
  let text = declaration.replace(/\/\*[^]*?\*\//g, '').replace(/\s+/g, ' ').trim(), depth = 0;
  const open = /^[\w.]+</.exec(text)?.[0].length;
  if (!open) return text;
  for (let i = open - 1; i < text.length; i++) {
    if (text[i] === '<') depth++;
    else if (text[i] === '>' && text[i - 1] !== '=' && --depth === 0) {
      text = text.slice(0, open - 1) + text.slice(i + 1);
      break;
    }
  }
  return text;
}

/** The methods of a class or an interface, those of the classes and interfaces that it extends left out. */
function* membersOf(text, name) {
  const [head] = new RegExp(`^export (?:declare (?:abstract )?class|interface) ${name}\\b[^]*?\\{\n`, 'm').exec(text) ?? [];
  if (!head) return;
  const from = text.indexOf(head) + head.length, body = text.slice(from, text.indexOf('\n}', from));
  for (const { 0: start, 1: member, index } of body.matchAll(/^ {4}(?:readonly |get )?(\w+)(?=[?<(:])/gm)) {
    if (member === 'constructor') continue;
    yield { declaration: declarationAt(body, index + start.length - member.length), sentence: sentenceBefore(body, index) };
  }
}

/**
 * The hints of a built package.
 * @param {string} dist its folder
 * @returns {[signature: string, sentence: string][]}
 */
export function hintsOf(dist) {
  const found = new Map();
  const add = (prefix, declaration, sentence) => {
    const signature = prefix + signatureOf(declaration);
    if (sentence !== undefined && !found.has(signature)) found.set(signature, sentence);
  };
  for (const [entry, prefix] of Object.entries(entryPoints)) {
    for (const [name, path] of exportsOf(join(dist, `${entry}.d.ts`))) {
      if (!existsSync(path)) continue;
      const text = readFileSync(path, 'utf8');
      for (const { 0: start, index } of text.matchAll(new RegExp(`^export declare (?:function|const) (?=${name}\\b)`, 'gm'))) {
        add(prefix && `${prefix}.`, declarationAt(text, index + start.length), sentenceBefore(text, index));
      }
      const receiver = receivers[name] ?? name[0].toLowerCase() + name.slice(1);
      for (const { declaration, sentence } of membersOf(text, name)) if (/^\w+[<(]/.test(declaration)) add(`${receiver}.`, declaration, sentence);
    }
  }
  return [...found];
}
