// The playground: an editor, a worker that runs what is in it, and views of what comes of it.

import { find, notify, on, say, sentence, wordsOf } from './page.js';
import { Checker } from './playground/checker.js';
import { Editor } from './playground/editor.js';
import { examples, sourceOf } from './playground/examples.js';
import { Figures } from './playground/figures.js';
import { Inspector } from './playground/inspector.js';
import { Links, linked } from './playground/links.js';
import { lineOf, linkLog, print } from './playground/log.js';
import { Runner } from './playground/runner.js';
import { pack, unpack } from './playground/share.js';
import { Types } from './playground/types.js';

const links = new Links(), figures = new Figures(find('figures'), links), inspector = new Inspector(links);
linkLog(find('log'), links);
const tabs = ['result', 'graph', 'kernel'];
/** What the visitor wrote last, which the first choice of the examples brings back. */
let own;

const editor = new Editor(find('editor'), {
  onInput() {
    find('example').value = '';
    own = editor.source;
    links.clear();
    checker.begin();
    checker.changed(true);
  },
  onRun: () => run(),
  onPlace(at, kept) {
    links[kept ? 'pin' : 'over'](at === undefined ? undefined : linkAt(at));
    if (at !== undefined) checker.hint(at, kept).catch((error) => notify(wordsOf(error)));
  },
  onNext: () => checker.next(),
  complete: (at) => checker.complete(at),
  onLanguage: (language) => { find('language').textContent = language === 'graph' ? 'Graph text' : 'TypeScript'; },
});

const types = new Types(), checker = new Checker(types, editor);

/** The program that runs or ran last: lines of another one say nothing of what is shown. */
let shown = '';

/** What the line at a place of the program belongs to: itself, and the tensors that it names. */
function linkAt(at) {
  if (editor.source !== shown) return undefined;
  const line = shown.slice(0, at).split('\n').length;
  if (lineLink.lines[0] !== line) lineLink = { lines: [line], names: namesIn(shown.split('\n')[line - 1]) };
  return lineLink;
}

let lineLink = { lines: [] };
const namesIn = (text) => Array.from(text.matchAll(/'([^'\n]+)'|"([^"\n]+)"/g), ([, single, double]) => single ?? double);

/** Marks the lines of the program that a part comes from, or else those that name its tensors, and the tabs behind which something belongs to it. */
links.add((link) => {
  const named = shown.split('\n').flatMap((text, i) => linked(link, { names: namesIn(text) }) ? [i + 1] : []);
  editor.light(editor.source !== shown ? [] : link?.lines?.length ? link.lines : named);
  for (const name of tabs) find(`${name}-tab`).classList.toggle('has', find(`${name}-panel`).querySelector('.lit, .linked, .column') !== null);
});

/** The losses of a training, as a chart of a point a report. */
const losses = new Map();

/** What the messages of a program do. */
const handlers = {
  log: ({ level, text, line }) => print(find('log'), text, level, line),
  figure: (message) => figures.show(message),
  graph: (message) => inspector.addGraph(message),
  plan: (message) => inspector.addPlan(message),
  losses({ name, line, names, step, losses: fresh }) {
    if (!losses.has(name)) losses.set(name, { x: [], y: [] });
    const { x, y } = losses.get(name);
    x.push(step);
    y.push(fresh.reduce((sum, loss) => sum + loss, 0) / fresh.length);
    const series = [...losses].map(([of, curve]) => ({ name: of, x: curve.x, y: curve.y, dots: false }));
    figures.show({ kind: 'plot', title: 'Loss', line, names, series, log: y.every((loss) => loss > 0), ranges: {} });
  },
  types() { find('state').textContent = 'Loading TypeScript …'; },
  end: () => finish('Ended'),
  failed({ kind, message, place }) {
    find('failure').textContent = `${lineOf(place)}${sentence(message)}${kind === 'Error' ? '' : ` (${kind})`}`;
    find('failure').hidden = false;
    editor.mark(place?.line);
    finish('Failed');
  },
};

const runner = new Runner(handlers, types);

/** Runs what is in the editor; what runs already ends. */
function run() {
  figures.clear();
  inspector.clear();
  losses.clear();
  links.clear();
  find('log').replaceChildren();
  find('failure').hidden = true;
  editor.mark(undefined);
  select('result');
  find('run').textContent = 'Stop';
  find('state').textContent = 'Running …';
  say('Running');
  shown = editor.source;
  lineLink = { lines: [] };
  return runner.run(shown);
}

function finish(how) {
  const seconds = runner.stop();
  find('run').textContent = 'Run';
  find('state').textContent = `${how} after ${seconds.toFixed(1)} s.`;
  say(find('state').textContent);
  if (!navigator.connection?.saveData) checker.begin(); // not before: the first program has the processor and the network for itself
}

function select(name) {
  for (const one of tabs) {
    const tab = find(`${one}-tab`);
    tab.setAttribute('aria-selected', one === name);
    tab.tabIndex = one === name ? 0 : -1;
    find(`${one}-panel`).hidden = one !== name;
  }
  const listing = find('graph-text'), lit = listing.querySelector('.lit');
  if (lit && name === 'graph') listing.scrollTop += lit.getBoundingClientRect().top - listing.getBoundingClientRect().top - listing.clientHeight / 3;
}

for (const [i, name] of tabs.entries()) {
  on(`${name}-tab`, 'click', () => select(name));
  on(`${name}-tab`, 'keydown', (event) => {
    const to = tabs[{ ArrowRight: i + 1, ArrowLeft: i + tabs.length - 1, Home: 0, End: tabs.length - 1 }[event.key] % tabs.length];
    if (!to) return;
    event.preventDefault(); // Home and End would scroll
    select(to);
    find(`${to}-tab`).focus();
  });
}

document.addEventListener('keydown', ({ key }) => { if (key === 'Escape') links.clear(); });
on('run', 'click', () => runner.running ? finish('Stopped') : run());
on('share', 'click', async () => {
  history.replaceState(null, '', `#code=${await pack(editor.source)}`);
  await navigator.clipboard.writeText(location.href);
  say('The link is copied.');
  find('share').textContent = 'Copied';
  setTimeout(() => { find('share').textContent = 'Copy link'; }, 2000);
});
/** Puts another program into the editor. */
function put(source) {
  editor.source = source;
  checker.changed();
}

on('example', 'change', async () => {
  const name = find('example').value;
  if (!name) {
    put(own ?? editor.source);
    return;
  }
  put(await sourceOf(name));
  history.replaceState(null, '', `#${name}`);
  await run();
});

/** Opens what the address says: the program in it, an example, or else the first one, which runs by itself. */
async function open() {
  const [, packed] = /^#code=(.+)/.exec(location.hash) ?? [], shared = packed && await unpack(packed);
  find('example').replaceChildren(new Option('Your program', '', false, false), ...examples.map(({ name, title }) => new Option(title, name)));
  if (packed && shared === undefined) notify('The link has no program that can be read: here is an example instead.');
  if (shared !== undefined) {
    find('example').value = '';
    put(shared);
    checker.begin();
    find('state').textContent = 'A program from a link: read it before you run it.';
    return;
  }
  const named = location.hash.slice(1), { name } = examples.find((one) => one.name === named) ?? examples[0];
  find('example').value = name;
  put(await sourceOf(name));
  await run();
}

on('source', 'focus', () => checker.begin());
const begin = () => open().catch((error) => notify(wordsOf(error)));
window.addEventListener('hashchange', begin);
await begin();
document.documentElement.dataset.ready = 'true';
