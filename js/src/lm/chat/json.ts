import { beyond, Dict, floatText, List, maxDepth, maxOutput, order, refuse, typeName, type Value } from './value.js';

/** How JSON is written: by Python's json.dumps. */
export interface JsonForm {
  /** The spaces of a level; undefined for one line. */
  indent: string | undefined;
  /** Between items, and between key and value. */
  item: string;
  key: string;
  sorted: boolean;
  /** Other characters than those of ASCII are escaped. */
  ascii: boolean;
}

const letters: Readonly<Record<string, string>> = { '"': '\\"', '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t', '\b': '\\b', '\f': '\\f' };
const unit = (c: string): string => letters[c] ?? `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** The JSON of a value. */
export function jsonOf(v: Value, form: JsonForm): string {
  let size = 0;
  const text = (s: string) => `"${s.replace(form.ascii ? /[\0-\x1f"\\]|[^\0-~]/g : /[\0-\x1f"\\]/g, unit)}"`;
  const group = (open: string, items: string[], close: string, depth: number) => {
    const line = (depth: number) => form.indent && items.length ? `\n${form.indent.repeat(depth)}` : '';
    return open + items.map((item, i) => (i ? form.item : '') + line(depth + 1) + item).join('') + line(depth) + close;
  };
  const write = (v: Value, depth: number): string => {
    if (depth > maxDepth || size > maxOutput) throw beyond('a value is too large or nested too deep for JSON');
    let out: string;
    if (v === null) out = 'null';
    else if (typeof v === 'boolean' || typeof v === 'bigint') out = String(v);
    else if (typeof v === 'number') out = floatText(v);
    else if (typeof v === 'string') out = text(v);
    else if (v instanceof List) return group('[', v.items.map((item) => write(item, depth + 1)), ']', depth);
    else if (v instanceof Dict && !v.opaque) {
      const keys = [...v.values.keys()];
      if (form.sorted) keys.sort(order);
      return group('{', keys.map((key) => text(String(key)) + form.key + write(v.values.get(key)!, depth + 1)), '}', depth);
    } else throw refuse(v instanceof Dict ? 'a namespace has no JSON' : `${typeName(v)} has no JSON`);
    size += out.length + (form.indent?.length ?? 0) * depth;
    return out;
  };
  return write(v, 0);
}
