// Source with its kinds of words marked: shaders, the TypeScript and JavaScript of examples, Go, and graphs as text.

const words = {
  wgsl: 'fn|var|let|const|if|else|for|loop|while|break|continue|continuing|return|struct|switch|case|default|true|false',
  js: 'import|from|export|const|let|for|of|if|else|while|async|await|function|return|new|throw|try|catch|type|interface|as|satisfies|instanceof',
  go: 'package|import|func|var|const|type|struct|interface|map|chan|go|defer|return|if|else|for|range|switch|case|default|nil|true|false',
  graph: 'graph|input|param|state|output|constant|init|frozen',
};
const classes = ['comment', 'text', 'keyword', 'attribute', 'number'];
const texts = { wgsl: '"[^"\n]*"', js: '\'[^\'\n]*\'|`[^`]*`', go: '"(?:[^"\\\\\n]|\\\\.)*"|`[^`]*`', graph: '"(?:[^"\\\\\n]|\\\\.)*"' };
const tokens = Object.fromEntries(Object.entries(words).map(([language, list]) => [
  language, new RegExp(`(\\/\\/.*)|(${texts[language]})|(?<![.\\w])(${list})\\b|(@\\w+)|\\b(\\d[\\w.]*)\\b`, 'g'),
]));

/**
 * The parts of source, in order; those of a kind have its class.
 * @param {string} source
 * @param {'wgsl' | 'js' | 'go' | 'graph'} language
 * @returns {{text: string, kind?: string}[]}
 */
export function colored(source, language) {
  const parts = [];
  let at = 0;
  for (const match of source.matchAll(tokens[language])) {
    parts.push({ text: source.slice(at, match.index) }, { text: match[0], kind: classes[match.slice(1).findIndex((group) => group !== undefined)] });
    at = match.index + match[0].length;
  }
  return [...parts, { text: source.slice(at) }].filter(({ text }) => text);
}

/** Puts source into an element. Its text stays as it is. */
export function highlight(element, source, language) {
  element.replaceChildren(...colored(source, language).map(({ text, kind }) => {
    if (!kind) return text;
    const span = document.createElement('span');
    span.className = kind;
    span.textContent = text;
    return span;
  }));
}
