// SPDX-License-Identifier: Apache-2.0
// The state of the page: the rows from the server, and what the user has selected, which is in the address.
import { age, byId, h, icon, refreshAges, setServerTime, states, update, now } from './dom.js';
import { Detail, read, sectionNames } from './detail.js';
import { flatten, kindOf, nameOf, shortType, Tree } from './tree.js';

const recentPeriod = 10 * 60 * 1000;
const maxRecent = 5; // lines
const maxInAddress = 20;

const rows = new Map();
const objects = new Map(); // the objects of opened items, by ID of the item
const view = { select: '', text: '', state: '', type: '', run: '', section: '', open: new Set(), closed: new Set(), canPlan: false, timeline: false, childrenOf: (id) => [...rows.values()].filter((row) => row.parent === id) };
let incoming = null; // IDs of the rows since the last reset; null after all rows have arrived
let status = null;
let list = [];
let wantedSection = ''; // the section in the address, until the page has scrolled to it

const tree = new Tree({ select: (entry) => selectEntry(entry), toggle, enter: () => byId('detail').focus() });
const detail = new Detail(byId('detail'), { select: (id) => select(id), pick: (began) => { view.run = began; writeAddress(); drawDetail(); }, loaded: scrollToWanted });

// The address.

function readAddress() {
  const query = new URLSearchParams(location.search);
  for (const name of ['select', 'text', 'state', 'type', 'run', 'section']) view[name] = query.get(name) || '';
  view.open = new Set(query.getAll('open').slice(0, maxInAddress));
  view.closed = new Set(query.getAll('closed').slice(0, maxInAddress));
  byId('text').value = view.text;
  wantedSection = view.section;
}

function scrollToWanted() {
  if (!sectionNames.includes(wantedSection)) return;
  byId(`section-${wantedSection}`)?.scrollIntoView({ block: 'start' });
  wantedSection = '';
}

function writeAddress(replace) {
  const query = new URLSearchParams();
  for (const name of ['select', 'text', 'state', 'type', 'run', 'section']) if (view[name]) query.set(name, view[name]);
  for (const name of ['open', 'closed']) [...view[name]].slice(0, maxInAddress).forEach((id) => query.append(name, id));
  const url = `/${query.size ? '?' : ''}${query.toString().replaceAll('%2F', '/')}`;
  if (url === location.pathname + location.search) return;
  if (replace) history.replaceState(null, '', url);
  else history.pushState(null, '', url);
}

// Selecting.

/** Returns the ID of the row whose details belong to a row: for an object, its item. */
const ownerOf = (id) => {
  const match = /^(?:Object|Note)\/(DeployItem\/[^/]+\/[^/]+)/.exec(id);
  return match ? match[1] : id;
};

function selectEntry({ row }) { select(row.id, true); }

function select(id, replace) {
  if (ownerOf(id) !== ownerOf(view.select)) view.run = view.section = '';
  view.select = id;
  writeAddress(replace && kindOf(id) !== 'DeployItem');
  if (!list.some(({ row }) => row.id === id)) revealParents(id);
  draw();
}

/** Opens the parents of a row. */
function revealParents(id) {
  const seen = new Set();
  for (let row = rows.get(id); row && !seen.has(row.id); row = rows.get(row.parent)) {
    seen.add(row.id);
    view.closed.delete(row.parent);
  }
}

function toggle({ row, kind }, open) {
  const set = kind === 'DeployItem' ? view.open : view.closed;
  if (open === (kind === 'DeployItem')) set.add(row.id);
  else set.delete(row.id);
  writeAddress(true);
  draw();
}

/** Reads the objects of the opened items that have changed. */
function readObjects() {
  for (const id of view.open) {
    const row = rows.get(id);
    const known = objects.get(id);
    if (!row || known?.version === row.version || known?.reading) continue;
    objects.set(id, { ...known, reading: true });
    read('objects', id).then((answer) => ({ roots: answer.roots?.[0]?.children || [] }), (error) => ({ error: error.message }))
      .then((result) => { objects.set(id, { ...result, version: row.version }); schedule(); });
  }
}

// Drawing.

let scheduled = false;

function schedule() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(draw);
}

function draw() {
  scheduled = false;
  readObjects();
  const loaded = new Map([...objects].filter(([, value]) => value.roots || value.error));
  const flat = flatten(rows, { ...view, objects: loaded });
  list = flat.list;
  tree.set(list, view.select);
  drawSummary();
  drawFilters();
  drawEmpty(flat.items);
  drawDetail();
}

function drawDetail() {
  Object.assign(view, { canPlan: status?.canPlan, timeline: status?.timeline });
  const id = ownerOf(view.select);
  const row = rows.get(id);
  if (!row && id && (!status?.synced || incoming)) return; // the row may still arrive
  detail.set(row, { ...view, select: id, object: view.select === id ? '' : view.select, unreadable: Boolean(status?.problems?.[kindOf(id)]) });
}

const items = () => [...rows.values()].filter(({ id }) => kindOf(id) === 'DeployItem');

function drawSummary() {
  const all = items();
  const counts = Object.fromEntries(states.map((state) => [state, all.filter((row) => row.state === state).length]));
  const unknown = !all.length && (!status?.synced || Boolean(status.problems?.DeployItem));
  update(byId('counts'), [counts, view.state, unknown], () => [['', all.length], ...Object.entries(counts)].map(([state, count]) => h('button', { type: 'button', class: `count ${state} ${count ? '' : 'zero'}`, 'aria-pressed': String(view.state === state), onclick: () => setFilter('state', view.state === state ? '' : state) },
    h('span', { class: 'big' }, unknown ? '–' : count.toLocaleString('en')), h('span', {}, state ? [icon(state), state] : 'all'))));
  const recent = [...rows.values()].filter((row) => row.changed > now() - recentPeriod && kindOf(row.id) !== 'Execution').sort((a, b) => b.changed - a.changed);
  const shown = recent.slice(0, recent.length > maxRecent ? maxRecent - 1 : maxRecent);
  update(byId('recent'), [shown.map(({ id, state, phase, changed }) => [id, state, phase, changed]), recent.length], () => [
    shown.map((row) => h('li', {}, h('button', { type: 'button', class: 'link', onclick: () => select(row.id) }, icon(row.state, row.phase || row.state), row.label || nameOf(row.id)), age(row.changed))),
    recent.length > shown.length ? h('li', { class: 'muted' }, `and ${(recent.length - shown.length).toLocaleString('en')} more`) : '',
    recent.length ? '' : h('li', { class: 'muted' }, 'Nothing has changed.')]);
  drawDeployers(all);
}

function drawDeployers(all) {
  if (!status) return;
  const queues = new Map();
  for (const row of all) {
    const queue = queues.get(row.type) || { waiting: 0, running: 0 };
    if (row.state in queue) queue[row.state]++;
    queues.set(row.type, queue);
  }
  const known = new Set(status.deployers.map(({ type }) => type));
  const others = [...queues.keys()].filter((type) => type && !known.has(type)).sort();
  const queueText = (type) => { const q = queues.get(type) || { waiting: 0, running: 0 }; return `${q.waiting.toLocaleString('en')} waiting, ${q.running.toLocaleString('en')} running`; };
  update(byId('deployers'), [status.deployers.map(({ renewed, ...rest }) => rest), status.problem, others.map((type) => [type, queueText(type)]), [...queues].map(([, q]) => q)], () => [
    status.problem ? h('p', { class: 'muted' }, status.problem) : '',
    status.deployers.length || others.length ? h('table', {}, h('thead', {}, h('tr', {}, ['Deployer', 'Type', 'Version', 'Lease holder', 'Queue'].map((text) => h('th', { scope: 'col' }, text)))), h('tbody', {},
      status.deployers.map((d) => h('tr', {}, h('td', { title: d.name }, icon(d.working ? 'succeeded' : 'failed', d.working ? 'working' : 'not active'), d.name), h('td', { title: d.type }, shortType(d.type)), h('td', {}, d.version || ''), h('td', { title: d.holder ? `${d.holder} holds ${d.lease}` : `no replica holds ${d.lease}` }, d.holder || 'no leader', d.working || !d.renewed ? '' : [' (expired ', age(d.renewed), ')']), h('td', { class: 'nowrap' }, queueText(d.type)))),
      others.map((type) => h('tr', { class: 'muted' }, h('td', {}, icon('idle', 'not registered'), 'not registered'), h('td', { title: type }, shortType(type)), h('td', {}), h('td', {}), h('td', { class: 'nowrap' }, queueText(type)))))) : status.problem ? '' : h('p', { class: 'muted' }, 'No deployer has registered itself.')]);
}

function drawFilters() {
  const types = [...new Set(items().map(({ type }) => type).filter(Boolean))].sort();
  const options = (all, values, current) => [h('option', { value: '' }, all), values.map((value) => h('option', { value, selected: value === current }, value))];
  update(byId('state'), view.state, () => options('All states', states, view.state));
  if (view.type && !types.includes(view.type)) types.push(view.type);
  update(byId('type'), [types, view.type], () => options('All types', types, view.type));
}

function drawEmpty(count) {
  const filtered = view.text || view.state || view.type;
  const total = items().length;
  const empty = byId('empty');
  const where = status?.namespace ? `in namespace ${status.namespace}` : 'in the cluster';
  empty.hidden = list.length > 0;
  empty.textContent = !status?.synced ? 'Reading the cluster …' : status.problems && !total ? 'The page shows nothing, because it cannot read the cluster.' : filtered ? 'Nothing matches the filter. Esc clears it.' : `There are no Installations and no deploy items ${where}. They appear here as soon as they are created.`;
  byId('tree').hidden = list.length === 0;
  if (list.length && document.activeElement === document.body) byId('tree').focus({ preventScroll: true }); // a hidden tree has no focus
  byId('shown').textContent = total ? `${filtered ? `${count.toLocaleString('en')} of ` : ''}${total.toLocaleString('en')} deploy items` : '';
  const failed = items().filter(({ state }) => state === 'failed').length;
  document.title = failed ? `(${failed}) DeployerKit` : 'DeployerKit';
}

function setFilter(name, value) {
  view[name] = value;
  if (name === 'text') byId('text').value = value;
  writeAddress(name === 'text');
  draw();
}

function clearFilters() {
  Object.assign(view, { text: '', state: '', type: '' });
  byId('text').value = '';
  writeAddress();
  draw();
}

// The stream of changes.

function connect() {
  const source = new EventSource('/api/stream');
  source.addEventListener('reset', () => { incoming = new Set(); });
  source.addEventListener('rows', (event) => {
    const { set = [], remove = [] } = JSON.parse(event.data);
    for (const row of set) {
      rows.set(row.id, row);
      incoming?.add(row.id);
    }
    for (const id of remove) rows.delete(id);
    schedule();
  });
  source.addEventListener('status', (event) => {
    status = JSON.parse(event.data);
    setServerTime(status.now);
    if (incoming) {
      for (const id of rows.keys()) if (!incoming.has(id)) rows.delete(id);
      incoming = null;
    }
    byId('cluster').textContent = status.namespace ? `${status.cluster}, namespace ${status.namespace}` : status.cluster;
    showLive('Live', 'ok');
    showProblems(Object.entries(status.problems || {}).map(([kind, text]) => `The page cannot read ${kind}s: ${text}`));
    schedule();
  });
  source.onerror = () => {
    showLive(source.readyState === EventSource.CLOSED ? 'Disconnected' : 'Connecting …', 'lost');
    showProblems(['The page is not connected to deployerkit ui, and shows the last known state. It connects again by itself.']);
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 3000);
  };
}

function showLive(text, state) {
  const live = byId('live');
  if (live.textContent !== text) live.textContent = text;
  live.className = `live ${state}`;
}

function showProblems(texts) {
  const box = byId('problems');
  box.hidden = texts.length === 0;
  update(box, texts, () => texts.map((text) => h('p', {}, text)));
}

// Keys and controls.

function goTo(section) {
  const element = byId(`section-${section}`);
  if (!element) return;
  view.section = section;
  wantedSection = '';
  writeAddress(true);
  element.scrollIntoView({ block: 'start' });
  element.focus({ preventScroll: true });
}

/** Selects the failed item after the selected one, also if its parents are closed. */
function selectNextFailed() {
  const all = flatten(rows, { ...view, text: '', state: '', type: '', closed: new Set(), open: new Set(), objects: new Map() }).list;
  const failed = all.filter(({ row, kind }) => kind === 'DeployItem' && row.state === 'failed');
  if (!failed.length) return;
  const at = failed.findIndex(({ row }) => row.id === ownerOf(view.select));
  Object.assign(view, { text: '', state: '', type: '' });
  byId('text').value = '';
  select(failed[(at + 1) % failed.length].row.id);
  byId('tree').focus({ preventScroll: true });
}

document.addEventListener('keydown', (event) => {
  const typing = event.target.closest('input, select, textarea');
  if (event.ctrlKey || event.altKey || event.metaKey || byId('keys').open) return;
  if (event.key === 'Escape') {
    if (view.text || view.state || view.type) clearFilters();
    byId('tree').focus({ preventScroll: true });
  } else if (typing) {
    if (typing.id === 'text' && ['ArrowDown', 'Enter'].includes(event.key)) {
      byId('tree').focus({ preventScroll: true });
      if (list.length && !list.some(({ row }) => row.id === view.select)) selectEntry(list.find(({ kind }) => kind === 'DeployItem') || list[0]);
    } else return;
  } else if (event.key === '/') byId('text').focus();
  else if (event.key === '?') byId('keys').showModal();
  else if (event.key === 'n') selectNextFailed();
  else if (event.key === 'p') detail.readPlan().then(() => goTo('objects'));
  else if (sectionNames[event.key - 1]) goTo(sectionNames[event.key - 1]);
  else return;
  event.preventDefault();
});

const themes = ['system', 'light', 'dark'];

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId('theme').textContent = `Theme: ${theme}`;
  try { localStorage.setItem('theme', theme); } catch { /* a browser without storage forgets the theme */ }
}

byId('theme').addEventListener('click', () => setTheme(themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % themes.length]));
byId('help').addEventListener('click', () => byId('keys').showModal());
byId('filter').addEventListener('submit', (event) => event.preventDefault());
byId('text').addEventListener('input', (event) => setFilter('text', event.target.value));
for (const name of ['state', 'type']) byId(name).addEventListener('change', (event) => setFilter(name, event.target.value));
window.addEventListener('popstate', () => { readAddress(); draw(); scrollToWanted(); });
setInterval(() => { refreshAges(); drawSummary(); }, 5000);

let stored = null;
try { stored = localStorage.getItem('theme'); } catch { /* see setTheme */ }
setTheme(themes.includes(stored) ? stored : 'system');
readAddress();
draw();
connect();
