// Breaks minified code into lines. Node prints the line on which an error was thrown: one line of
// 40,000 characters hides the error.

import { parseAst } from 'rolldown/parseAst';

/** A line is broken at the next member of a class or an object, element of an array or exported name, from this length on. */
const long = 700;

function* nodesIn(value) {
  if (Object(value) !== value) return;
  if (typeof value.type === 'string') yield value;
  for (const part of Object.values(value)) yield* nodesIn(part);
}

// endsEmpty reports whether the last semicolon of a statement is an empty statement, as in
// `while(f());`.
function endsEmpty(statement) {
  const last = statement.type === 'IfStatement' ? statement.alternate ?? statement.consequent
    : /^(For|While|Labeled)/.test(statement.type) ? statement.body : undefined;
  return last ? endsEmpty(last) : statement.type === 'EmptyStatement';
}

// breaksOf finds possible line ends: semicolons that a line break can replace, since a word
// follows, and starts of members of classes and objects, of elements of arrays and of exported names.
function breaksOf(code) {
  const semicolons = [], members = [];
  for (const { type, body, consequent, elements, properties, specifiers } of nodesIn(parseAst(code))) {
    if (type === 'ClassBody') members.push(...body.slice(1).map(({ start }) => start));
    if (type === 'ArrayExpression') members.push(...elements.slice(1).flatMap((one) => one ? [one.start] : []));
    if (type === 'ObjectExpression') members.push(...properties.slice(1).map(({ start }) => start));
    if (type === 'ExportNamedDeclaration') members.push(...specifiers.slice(1).map(({ start }) => start));
    const list = /^(Program|BlockStatement|StaticBlock)$/.test(type) ? body : type === 'SwitchCase' ? consequent : [];
    list.slice(1).forEach(({ start }, i) => {
      if (code[start - 1] === ';' && /[\w$]/.test(code[start]) && !endsEmpty(list[i])) semicolons.push(start - 1);
    });
  }
  return { semicolons: new Set(semicolons), members: new Set(members) };
}

const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Reads a segment of a source map's mappings: base 64 of variable length. */
function decode(segment) {
  const numbers = [];
  let n = 0, shift = 0;
  for (const c of segment) {
    const digit = digits.indexOf(c);
    n |= (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    numbers.push(n & 1 ? -(n >> 1) : n >> 1);
    n = shift = 0;
  }
  return numbers;
}

function encode(number) {
  let n = number < 0 ? -number << 1 | 1 : number << 1, text = '';
  do {
    text += digits[n & 31 | (n > 31 ? 32 : 0)];
    n >>= 5;
  } while (n > 0);
  return text;
}

/** The mappings of code whose characters are now in the lines and columns that `placeOf` gives. */
function moved(mappings, code, placeOf) {
  const made = [[]];
  let line = 0, begin = 0, before = 0;
  for (const segments of mappings.split(';')) {
    let column = 0;
    for (const segment of segments.split(',').filter(Boolean)) {
      const [step, ...rest] = decode(segment);
      column += step;
      const at = placeOf(begin + column);
      while (line < at.line) {
        made.push([]);
        line++;
        before = 0;
      }
      made[line].push([at.column - before, ...rest].map(encode).join(''));
      before = at.column;
    }
    begin = code.indexOf('\n', begin) + 1;
  }
  return made.map((segments) => segments.join(',')).join(';');
}

/** Breaks the lines of a module, and has its source map say so. */
export function breakLines(code, map) {
  const { semicolons, members } = breaksOf(code), places = [];
  let out = '', line = 0, column = 0;
  const end = () => {
    out += '\n';
    line++;
    column = 0;
  };
  for (let at = 0; at < code.length; at++) {
    if (members.has(at) && column > long) end();
    places.push({ line, column });
    if (semicolons.has(at) || code[at] === '\n') end();
    else {
      out += code[at];
      column++;
    }
  }
  places.push({ line, column });
  return { code: out, map: { ...map, mappings: moved(map.mappings, code, (at) => places[Math.min(at, code.length)]) } };
}
