// The benchmark: libraries beside each other on the visitor's own device.

import { markdownOf, runContest } from './benchmark/contest.js';
import { openPeer } from './benchmark/peer.js';
import { adapterName, fetchOK, find, isSoftware, milliseconds, notify, on, say, wordsOf } from './page.js';

const megabytes = (bytes) => bytes < 1e5 ? `${Math.round(bytes / 1e3)} KB` : `${(bytes / 1e6).toFixed(1)} MB`;

/** The browser by its brand, or by the last word of its own name. */
function browserName() {
  const brand = navigator.userAgentData?.brands.find(({ brand: name }) => !/not.?a.?brand|^Chromium$/i.test(name)) ?? navigator.userAgentData?.brands.at(-1);
  const [, name = 'an unknown browser', version = ''] = /(Firefox|Version|Chrome)\/([\d.]+)/.exec(navigator.userAgent) ?? [];
  return brand ? `${brand.brand} ${brand.version}` : `${name === 'Version' ? 'Safari' : name} ${version}`;
}

const findAdapter = () => navigator.gpu?.requestAdapter({ powerPreference: 'high-performance' });

/** Waits until the page is shown; whether it was hidden since the last time. */
let hidden = false;
document.addEventListener('visibilitychange', () => { hidden ||= document.hidden; });
async function shown() {
  const was = hidden || document.hidden;
  while (document.hidden) {
    find('state').textContent = 'Paused: the page is hidden.';
    await new Promise((resolve) => document.addEventListener('visibilitychange', resolve, { once: true }));
  }
  hidden = false;
  return was;
}

let peers, siteJobs, stop, contest;

/** An element with a text. */
function made(tag, text, attributes = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** Makes the table: a group of rows for each job, a row for each library. */
function layOut({ jobs, peers: taking }) {
  const columns = document.createElement('colgroup'); // the first row has one cell, which gives no widths
  columns.append(made('col', '', { class: 'names' }), made('col', ''), made('col', '', { class: 'times' }));
  find('table').replaceChildren(columns, ...jobs.map((job) => {
    const body = document.createElement('tbody'), head = document.createElement('tr');
    head.append(made('th', job.name, { colspan: 3, scope: 'rowgroup' }));
    body.append(head, ...taking.map(({ name, title }) => {
      const row = document.createElement('tr'), rate = document.createElement('td');
      rate.append(made('span', '', { class: 'words' }), made('i', ''));
      row.dataset.cell = `${job.name} ${name}`;
      row.append(made('th', title, { scope: 'row' }), rate, made('td', ''));
      return row;
    }));
    return body;
  }));
}

/** Shows what is known of a job: the longest bar is the fastest library. */
function showJob(name) {
  const rows = contest.peers.map((peer) => ({ row: document.querySelector(`[data-cell="${CSS.escape(`${name} ${peer.name}`)}"]`), state: contest.results.get(`${name} ${peer.name}`) }));
  const best = Math.min(...rows.map(({ state }) => state?.ms ?? Infinity));
  for (const { row, state } of rows) {
    const [words, bar] = row.children[1].children;
    words.textContent = typeof state === 'string' ? `${state} …` : state?.error ?? state?.rate ?? '';
    row.dataset.kind = typeof state === 'string' || !state ? 'waiting' : state.error ? 'failed' : state.ms === best ? 'best' : 'done';
    bar.style.setProperty('--part', state?.ms ? best / state.ms : 0);
    if (state?.loss !== undefined) words.append(made('small', ` loss ${state.loss.toPrecision(5)}`));
    row.children[2].textContent = state?.ms ? milliseconds(state.ms) : '';
  }
}

async function run() {
  const chosen = peers.filter(({ name }) => find(`peer-${name}`).checked);
  if (!chosen.length) return notify('Choose a library first.');
  contest = { jobs: siteJobs[find('size').value], peers: chosen, results: new Map(), machine: find('machine').textContent, browser: browserName() };
  layOut(contest);
  stop = new AbortController();
  hidden = document.hidden;
  find('results').hidden = false;
  find('run').textContent = 'Stop';
  find('copy').disabled = true;
  try {
    await runContest({
      ...contest, open: (peer) => openPeer(peer, stop.signal), shown, signal: stop.signal, ...contest.jobs === siteJobs.tiny && { rounds: 2, turn: 30 },
      report({ job, peer, state }) {
        const { title } = peers.find(({ name }) => name === peer);
        if (typeof state === 'string') find('state').textContent = `${title}${job ? `, ${job}` : ''}: ${state} …`;
        if (!job) return;
        contest.results.set(`${job} ${peer}`, state);
        showJob(job);
      },
    });
    find('state').textContent = 'Done.';
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    find('state').textContent = 'Stopped.';
  } finally {
    find('run').textContent = 'Run';
    find('copy').disabled = false;
    say(find('state').textContent);
  }
}

/** Lists the libraries, with what each loads. */
function offer() {
  find('peers').append(...peers.map(({ name, title, gzip }) => {
    const label = document.createElement('label'), box = document.createElement('input');
    Object.assign(box, { type: 'checkbox', id: `peer-${name}`, checked: gzip !== undefined, disabled: gzip === undefined });
    label.append(box, ` ${title} `, made('small', gzip === undefined ? 'not in this build' : megabytes(gzip)));
    return label;
  }));
}

async function begin() {
  const [list, jobs, adapter] = await Promise.all([
    fetchOK(new URL('bench/peers.json', import.meta.url)).then((response) => response.json()), import('./bench/jobs.js'), findAdapter(),
  ]);
  peers = list;
  siteJobs = jobs.siteJobs;
  const asked = new URLSearchParams(location.search).get('jobs');
  if (siteJobs[asked]) {
    if (asked === 'tiny') find('size').append(new Option('Tiny', 'tiny'));
    find('size').value = asked;
  }
  offer();
  find('machine').textContent = adapter ? adapterName(adapter) || 'a GPU without a name' : 'No WebGPU here';
  find('browser').textContent = browserName();
  find('software').hidden = !adapter || !isSoftware(adapter);
  find('run').disabled = !adapter;
  if (!adapter) find('state').textContent = 'This browser gives pages no GPU, so there is nothing to compare. Chrome and Edge have WebGPU on most machines, Safari from version 26, Firefox on Windows and macOS.';
}

on('run', 'click', () => find('run').textContent === 'Stop' ? stop.abort() : run());
on('copy', 'click', async () => {
  await navigator.clipboard.writeText(markdownOf(contest));
  find('copy').textContent = 'Copied';
  setTimeout(() => { find('copy').textContent = 'Copy as Markdown'; }, 2000);
});
await begin().catch((error) => notify(wordsOf(error)));
document.documentElement.dataset.ready = 'true';
