// The language of the playground's programs: TypeScript's own service over one program, with the declarations of what it may import.

import { decode } from '../../js/node_modules/@jridgewell/sourcemap-codec/dist/sourcemap-codec.mjs';
import ts from '../../js/node_modules/typescript-js/lib/typescript.js';

/** The folders of the libraries of TypeScript and of the package, as the service sees them. */
export const places = { libraries: '/lib/', package: '/node_modules/@rlx-go/rlx/', draw: '/draw.d.ts' };
const program = '/program.ts';

/** A program is a module in a worker. */
export const options = {
  target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ES2022, moduleResolution: ts.ModuleResolutionKind.Bundler, moduleDetection: ts.ModuleDetectionKind.Force,
  lib: ['lib.es2023.d.ts', 'lib.webworker.d.ts', 'lib.esnext.disposable.d.ts'], types: [], strict: true, skipLibCheck: true,
};

/** Diagnostics of a type that is missing and cannot be inferred: a program may be JavaScript. */
const isImplicit = ({ code }) => code >= 7000 && code < 7100;

/** The names that are shown at once, the first letters without which no names are, and whether names are looked for in modules that are not imported. */
const most = 8, fewest = 3;

const textOf = (parts) => ts.displayPartsToString(parts ?? []);

/** The first sentence of a documentation, without its marks. */
const sentenceOf = (parts) => /^[^]*?\.(?=\s|$)/.exec(textOf(parts).trim())?.[0].replace(/\s+/g, ' ') ?? textOf(parts);

/** A signature in a line, without its kind and its type parameters. */
function signatureOf(text) {
  const line = text.replace(/\n(?:import|export) .*$/, '').replace(/^\((?:alias|method)\) /, '').replace(/^(?:function|const|class) /, '').replace(/\s+/g, ' '), open = /^[\w.]+</.exec(line)?.[0].length;
  if (!open) return line;
  let depth = 1, end = open;
  for (; end < line.length && depth > 0; end++) {
    if (line[end] === '<') depth++;
    else if (line[end] === '>' && line[end - 1] !== '=') depth--;
  }
  return line[end] === '(' ? line.slice(0, open - 1) + line.slice(end) : line;
}

export class Language {
  #files;
  #source = '';
  #version = 0;
  #service;

  /** @param {Record<string, string>} files the declarations, by their paths */
  constructor(files) {
    this.#files = files;
    const textAt = (path) => path === program ? this.#source : files[path];
    // The modules of the package that are not imported are here, too: their names can be completed.
    const modules = Object.values(JSON.parse(files[`${places.package}package.json`]).exports).map(({ types }) => places.package + types.slice(2));
    this.#service = ts.createLanguageService({
      getCompilationSettings: () => options,
      getScriptFileNames: () => [program, places.draw, ...modules],
      getScriptVersion: (path) => path === program ? `${this.#version}` : '0',
      getScriptSnapshot: (path) => textAt(path) === undefined ? undefined : ts.ScriptSnapshot.fromString(textAt(path)),
      getCurrentDirectory: () => '/',
      getDefaultLibFileName: () => `${places.libraries}lib.d.ts`,
      fileExists: (path) => textAt(path) !== undefined,
      readFile: textAt,
      directoryExists: (path) => Object.keys(files).some((file) => file.startsWith(path.endsWith('/') ? path : `${path}/`)),
      getDirectories: () => [],
      useCaseSensitiveFileNames: () => true,
    });
  }

  #take(source) {
    if (source === this.#source) return;
    this.#source = source;
    this.#version++;
  }

  /**
   * What is wrong with a program.
   * @param {string} source
   * @returns {{start: number, end: number, line: number, message: string}[]} in the order of the text
   */
  check(source) {
    this.#take(source);
    const syntactic = this.#service.getSyntacticDiagnostics(program), all = syntactic.length > 0 ? syntactic : this.#service.getSemanticDiagnostics(program);
    return all.filter((one) => one.start !== undefined && one.category === ts.DiagnosticCategory.Error && !isImplicit(one))
      .map((one) => ({ start: one.start, end: one.start + one.length, ...problemOf(one, source) })).sort((a, b) => a.start - b.start)
      .filter(({ line, message }, i, sorted) => line !== sorted[i - 1]?.line || message !== sorted[i - 1].message);
  }

  /**
   * What there is to say of a place in a program.
   * @param {string} source
   * @param {number} at
   * @param {boolean} typing whether names that may go on there are wanted, too
   * @returns {{signature?: string, active?: [number, number], text?: string, names?: {name: string, edits: {start: number, end: number, text: string}[]}[]}}
   *   active is the part of the signature that an argument at the place belongs to; edits make of the program one with the name
   */
  at(source, at, typing) {
    this.#take(source);
    const info = this.#infoAt(at);
    if (info) return info;
    const names = typing ? this.#namesAt(at) : [];
    return names.length > 0 ? { names } : this.#callAt(at) ?? {};
  }

  /** What a name at a place is, unless it is none that is known. */
  #infoAt(at) {
    if (!/[\w$]/.test(this.#source.slice(Math.max(at - 1, 0), at + 1))) return undefined;
    const info = this.#service.getQuickInfoAtPosition(program, at);
    return info && textOf(info.displayParts) !== 'any' ? { signature: signatureOf(textOf(info.displayParts)), text: sentenceOf(info.documentation) } : undefined;
  }

  /** The function whose arguments a place is among. */
  #callAt(at) {
    const help = this.#service.getSignatureHelpItems(program, at, {});
    if (!help) return undefined;
    const item = help.items[help.selectedItemIndex], names = item.parameters.map(({ displayParts }) => textOf(displayParts)), active = item.parameters[help.argumentIndex];
    const name = /^[\w.]+/.exec(textOf(item.prefixDisplayParts))?.[0] ?? '', before = names.slice(0, help.argumentIndex).map((one) => `${one}, `).join('').length + name.length + 1;
    return {
      signature: `${name}(${names.join(', ')}${textOf(item.suffixDisplayParts)}`, ...active && { active: [before, before + names[help.argumentIndex].length] },
      text: sentenceOf(active?.documentation) || sentenceOf(item.documentation),
    };
  }

  /** The names that the word at a place may become: those of what is before a point, or those in reach and in modules that can be imported. */
  #namesAt(at) {
    const [, point, word] = /(\.?)([A-Za-z_$][\w$]*|)$/.exec(this.#source.slice(0, at));
    if (/^[\w$]/.test(this.#source.slice(at)) || !point && word.length < fewest) return [];
    const preferences = { includeCompletionsForModuleExports: !point, includeCompletionsWithInsertText: false };
    const entries = this.#service.getCompletionsAtPosition(program, at, preferences)?.entries ?? [];
    const fitting = entries.filter(({ name, kind }) => name.startsWith(word) && name !== word && kind !== ts.ScriptElementKind.warning);
    const seen = new Set(), first = fitting.sort((a, b) => a.sortText < b.sortText ? -1 : a.sortText > b.sortText ? 1 : a.name < b.name ? -1 : 1)
      .filter(({ name }) => !seen.has(name) && seen.add(name)).slice(0, most);
    return first.map((entry) => ({ name: entry.name, edits: [{ start: at - word.length, end: at, text: entry.name }, ...this.#importOf(entry, at, preferences)] }));
  }

  /** The edits that import a name. */
  #importOf({ name, source, data }, at, preferences) {
    if (!source) return [];
    const details = this.#service.getCompletionEntryDetails(program, at, name, {}, source, preferences, data);
    const changes = details?.codeActions?.flatMap((action) => action.changes).flatMap(({ textChanges }) => textChanges) ?? [];
    return changes.map(({ span, newText }) => ({ start: span.start, end: span.start + span.length, text: newText }));
  }
}

/** The line of a diagnostic, and what it says. */
const problemOf = ({ start, messageText }, source) =>
  ({ line: source.slice(0, start).split('\n').length, message: ts.flattenDiagnosticMessageText(messageText, '\n') });

/**
 * The JavaScript of a program.
 * @param {string} source
 * @returns {{code: string, lines: number[][][], wrong?: {line: number, message: string}}} lines has, for each line of the code, its parts: the
 *   column, 0, and the line and the column in the program, all from 0; wrong is the first thing that cannot be read
 */
export function transpiled(source) {
  const compilerOptions = { ...options, lib: undefined, sourceMap: true };
  const { outputText, sourceMapText, diagnostics } = ts.transpileModule(source, { fileName: program, reportDiagnostics: true, compilerOptions });
  const wrong = diagnostics.find(({ category, start }) => category === ts.DiagnosticCategory.Error && start !== undefined);
  return { code: outputText.replace(/\/\/# sourceMappingURL=.*\s*$/, ''), lines: decode(JSON.parse(sourceMapText).mappings), ...wrong && { wrong: problemOf(wrong, source) } };
}
