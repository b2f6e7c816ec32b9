// SPDX-License-Identifier: Apache-2.0
// The tree on the left: a list of rows of which only the visible ones exist as elements.
import { byId, h, icon, states } from './dom.js';

const rowHeight = 30;
const margin = 8; // rows that exist above and below the visible ones

const kindOf = (id) => id.slice(0, id.indexOf('/'));
const nameOf = (id) => id.slice(id.lastIndexOf('/') + 1);
const namespaceOf = (id) => id.slice(id.indexOf('/') + 1, id.lastIndexOf('/'));
export { kindOf, nameOf, namespaceOf };

const rank = (state) => states.indexOf(state);

/** Compares rows: problems first, then names. */
function compare(a, b) {
  return a.rank - b.rank || a.order - b.order || a.title.localeCompare(b.title, 'en', { numeric: true }) || (a.row.id < b.row.id ? -1 : 1);
}

/** Returns the rows of a tree in the order in which they are shown, as objects with the fields row, depth, open and title. */
export function flatten(rows, { text, state, type, open, closed, objects }) {
  const nodes = new Map();
  for (const row of rows.values()) {
    const kind = kindOf(row.id);
    nodes.set(row.id, { row, kind, title: row.label || nameOf(row.id), order: kind === 'DeployItem' ? 2 : kind === 'Execution' ? 1 : 0, children: [], rank: rank(row.state), shown: false });
  }
  const roots = [];
  for (const node of nodes.values()) {
    const parent = nodes.get(node.row.parent);
    if (parent && parent !== node) parent.children.push(node);
    else roots.push(node);
  }
  const filtered = Boolean(text || state || type);
  const wanted = text.toLowerCase();
  const matches = ({ row, kind, title }) => (!state || row.state === state) && (!type || row.type === type) && (!(state || type) || kind === 'DeployItem') &&
    (!wanted || title.toLowerCase().includes(wanted) || row.id.toLowerCase().includes(wanted) || (row.message || '').toLowerCase().includes(wanted));
  const out = [];
  const seen = new Set();
  // A cycle of labels must not end in an endless loop: each node is visited once.
  const measure = (node) => {
    if (seen.has(node)) return;
    seen.add(node);
    node.shown = !filtered || matches(node);
    for (const child of node.children) {
      measure(child);
      node.rank = Math.min(node.rank, child.rank);
      node.shown = node.shown || child.shown;
    }
    node.children.sort(compare);
  };
  roots.forEach(measure);
  for (const node of nodes.values()) { // rows in a cycle have no root
    if (!seen.has(node)) {
      roots.push(node);
      measure(node);
    }
  }
  roots.sort(compare);
  let items = 0;
  const done = new Set();
  const emit = (node, depth) => {
    if (!node.shown || done.has(node)) return;
    done.add(node);
    const isItem = node.kind === 'DeployItem';
    if (isItem) items++;
    const isOpen = isItem ? open.has(node.row.id) : filtered || !closed.has(node.row.id);
    out.push({ row: node.row, kind: node.kind, title: node.title, depth, worst: states[node.rank], open: isItem || node.children.length ? isOpen : undefined });
    if (!isOpen) return;
    node.children.forEach((child) => emit(child, depth + 1));
    if (isItem) emitObjects(out, node.row.id, objects.get(node.row.id), depth + 1);
  };
  roots.forEach((node) => emit(node, 0));
  return { list: out, items };
}

/** Adds the rows of the objects of an item. */
function emitObjects(out, parent, loaded, depth) {
  const note = (title) => out.push({ row: { id: `Note/${parent}`, parent, state: 'idle' }, kind: 'Note', title, depth });
  if (!loaded) return note('Reading the objects …');
  if (loaded.error) return note(loaded.error);
  const emit = (node, path, level) => {
    const id = formatObjectID(path, node);
    out.push({ row: { id, parent, state: objectState(node), message: node.message, phase: node.phase }, kind: node.kind, title: node.name, depth: level });
    (node.children || []).forEach((child) => emit(child, id, level + 1));
  };
  const roots = loaded.roots || [];
  if (!roots.length) note('The status of the item lists no objects.');
  roots.forEach((node) => emit(node, `Object/${parent}`, depth));
}

/** Returns the ID of the row of an object. The path is the ID of the row above it, or begins with "Object/". */
export const formatObjectID = (path, node) => `${path}/${node.kind}:${node.namespace || ''}:${node.name}`;

/** Returns the state of an object, from its readiness or from the status of its item. */
export function objectState(node) {
  if (node.failed) return 'failed';
  if (['Ready', 'applied', 'listed', 'Finished', 'Current'].includes(node.phase)) return 'succeeded';
  return ['Unknown', 'Missing', 'not written', 'former', 'may remain'].includes(node.phase) ? 'idle' : 'running';
}

/** Tree draws the rows and reacts to keys and clicks. */
export class Tree {
  constructor(on) {
    this.on = on; // select(id), toggle(id, open), enter()
    this.list = [];
    this.selected = '';
    this.box = byId('tree');
    this.rows = byId('rows');
    this.box.addEventListener('scroll', () => this.draw(), { passive: true });
    this.box.addEventListener('keydown', (event) => this.handleKey(event));
    this.rows.addEventListener('click', (event) => this.handleClick(event));
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  set(list, selected) {
    const moved = selected !== this.selected;
    const had = this.index() >= 0;
    this.list = list;
    this.selected = selected;
    this.rows.style.height = `${list.length * rowHeight}px`;
    if (moved || !had) this.reveal();
    this.draw(true);
  }

  index() { return this.list.findIndex((entry) => entry.row.id === this.selected); }

  /** Scrolls so that the selected row is visible. */
  reveal() {
    const top = this.index() * rowHeight;
    if (top < 0) return;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + rowHeight > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = top + rowHeight - this.box.clientHeight;
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / rowHeight) - margin);
    const last = Math.min(this.list.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / rowHeight) + margin);
    const elements = [];
    for (let i = first; i < last; i++) elements.push(this.build(this.list[i], i));
    this.rows.replaceChildren(...elements);
    const active = this.index();
    if (active >= first && active < last) this.box.setAttribute('aria-activedescendant', `row-${active}`);
    else this.box.removeAttribute('aria-activedescendant');
  }

  build(entry, i) {
    const { row, kind, title, depth, open } = entry;
    const isSelected = row.id === this.selected;
    const element = h('div', {
      id: `row-${i}`, class: `row${isSelected ? ' selected' : ''}${kind === 'Note' ? ' note' : ''}`, role: 'treeitem', 'data-id': row.id,
      'aria-level': depth + 1, 'aria-setsize': this.list.length, 'aria-posinset': i + 1, 'aria-selected': String(isSelected),
      'aria-expanded': open === undefined ? undefined : String(open), title: row.message || undefined,
    },
    h('span', { class: 'twist', 'aria-hidden': 'true' }, open === undefined ? '' : open ? '▾' : '▸'),
    kind === 'Note' ? '' : icon(row.state, row.phase || row.state),
    h('span', { class: 'name' }, title),
    h('span', { class: 'kind' }, kind === 'Note' ? '' : kind === 'DeployItem' ? shortType(row.type) : kind));
    element.style.transform = `translateY(${i * rowHeight}px)`;
    element.style.setProperty('--depth', Math.min(depth, 12));
    return element;
  }

  handleClick(event) {
    const element = event.target.closest('[data-id]');
    if (!element) return;
    const entry = this.list.find(({ row }) => row.id === element.dataset.id);
    if (!entry) return;
    if (event.target.closest('.twist') && entry.open !== undefined) this.on.toggle(entry, !entry.open);
    else this.on.select(entry);
    this.box.focus({ preventScroll: true });
  }

  handleKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const at = this.index();
    const page = Math.max(1, Math.floor(this.box.clientHeight / rowHeight) - 1);
    const steps = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: this.list.length - 1, PageDown: at + page, PageUp: at - page };
    const entry = this.list[at];
    if (event.key in steps) {
      const to = this.list[Math.min(Math.max(steps[event.key], 0), this.list.length - 1)];
      if (to) this.on.select(to);
    } else if (event.key === 'ArrowRight' && entry) {
      if (entry.open === false) this.on.toggle(entry, true);
      else if (entry.open && this.list[at + 1]) this.on.select(this.list[at + 1]);
    } else if (event.key === 'ArrowLeft' && entry) {
      const parent = this.list.slice(0, at).findLast(({ depth }) => depth < entry.depth);
      if (entry.open) this.on.toggle(entry, false);
      else if (parent) this.on.select(parent);
    } else if (event.key === 'Enter' && entry) this.on.enter();
    else return;
    event.preventDefault();
  }
}

/** Shortens a type such as landscaper.gardener.cloud/mock to its last part. */
export const shortType = (type) => (type ? type.slice(type.lastIndexOf('/') + 1) : 'DeployItem');
