// SPDX-License-Identifier: Apache-2.0
// The details of the selected row.
import { age, h, icon, now, update, formatDuration } from './dom.js';
import { classOf, drawGraph } from './graph.js';
import { drawTimeline } from './timeline.js';
import { formatObjectID, kindOf, nameOf, namespaceOf, objectState, shortType } from './tree.js';

const manifestType = 'landscaper.gardener.cloud/kubernetes-manifest';
const sections = [['explanation', 'Explanation'], ['timeline', 'Timeline'], ['graph', 'State graph'], ['objects', 'Objects'], ['events', 'Events']];
export const sectionNames = sections.map(([name]) => name);

/** Reads JSON from the server. The error of a rejected read is a sentence. */
export async function read(path, id, options) {
  let response;
  try {
    response = await fetch(`/api/${path}/${encodeURIComponent(namespaceOf(id))}/${encodeURIComponent(nameOf(id))}`, options);
  } catch {
    throw new Error('The page cannot reach deployerkit ui. Is it still running?');
  }
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(body.error || `The server answered with status ${response.status}.`);
  return body;
}

/** Detail shows one row, and reads the details of a deploy item again when the item changes. */
export class Detail {
  constructor(box, on) {
    this.box = box;
    this.on = on; // select(id), pick(began), loaded()
    this.shown = '';
    this.clear();
  }

  clear() {
    Object.assign(this, { id: '', version: '', item: null, objects: null, plan: null, planning: false, object: '', error: '', reading: false });
  }

  /** Shows a row. The parameter `view` contains the current state of the page. */
  set(row, view) {
    this.view = view;
    const id = row ? row.id : view.select;
    if (id !== this.id) {
      clearTimeout(this.timer);
      this.clear();
      this.id = id;
      this.box.scrollTop = 0;
    }
    this.row = row;
    this.draw();
    if (row && kindOf(id) === 'DeployItem' && row.version !== this.version) this.schedule(this.version ? 250 : 0);
  }

  schedule(delay) {
    this.version = this.row.version;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.readItem(), delay);
  }

  async readItem() {
    const { id } = this;
    if (this.reading) return this.schedule(200);
    this.reading = true;
    const keep = (field) => (value) => {
      if (this.id !== id) return;
      this[field] = value;
      this.error = '';
      this.draw();
    };
    const fail = (error) => {
      if (this.id !== id) return;
      this.error = error.message;
      this.draw();
    };
    await Promise.all([
      read('item', id).then(keep('item'), fail),
      read('objects', id).then(keep('objects'), (error) => keep('objects')({ error: error.message })),
    ]);
    if (this.id === id) {
      this.reading = false;
      this.on.loaded();
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.id === id && this.readItem(), 20000); // events and times change without the item
    }
  }

  async readPlan() {
    const { id } = this;
    if (this.planning || kindOf(id) !== 'DeployItem') return;
    this.planning = true;
    this.draw();
    const plan = await read('plan', id, { method: 'POST' }).catch((error) => ({ changes: [], problem: error.message, failed: true }));
    if (this.id !== id) return;
    this.planning = false;
    this.plan = { ...plan, at: now() };
    this.draw();
  }

  draw() {
    const kind = kindOf(this.id);
    const shape = !this.id ? 'none' : !this.row ? (this.view.unreadable ? 'unreadable' : 'missing') : kind === 'DeployItem' ? 'item' : 'other';
    if (this.shown !== `${shape} ${this.id}`) {
      this.shown = `${shape} ${this.id}`;
      this.build(shape);
    }
    if (shape === 'item') this.drawItem();
    if (shape === 'other') this.drawOther(kind);
  }

  build(shape) {
    const kind = kindOf(this.id);
    if (shape === 'none') return this.box.replaceChildren(h('div', { class: 'empty' }, h('p', {}, 'Select a row to see why it is in its state, and what happens next.'), h('p', { class: 'muted' }, 'Press ', h('kbd', {}, 'n'), ' for the next failed item, ', h('kbd', {}, '?'), ' for all keys.')));
    if (shape === 'unreadable') return this.box.replaceChildren(h('div', { class: 'empty' }, h('h2', {}, nameOf(this.id)), h('p', {}, `The page cannot read ${kind}s, so it does not know whether ${namespaceOf(this.id)}/${nameOf(this.id)} exists.`)));
    if (shape === 'missing') return this.box.replaceChildren(h('div', { class: 'empty' }, h('h2', {}, nameOf(this.id)), h('p', {}, `${kind} ${namespaceOf(this.id)}/${nameOf(this.id)} does not exist, or no longer exists.`)));
    this.head = h('header', { class: 'head' });
    this.parts = {};
    const list = shape === 'item' ? sections : [['explanation', 'State'], ['children', 'Contents']];
    this.box.replaceChildren(this.head, ...list.map(([name, title], i) => {
      this.parts[name] = h('div', { class: 'part' });
      return h('section', { class: 'card', id: `section-${name}`, 'aria-labelledby': `title-${name}`, tabindex: '-1' },
        h('h3', { id: `title-${name}` }, title, shape === 'item' ? h('kbd', { 'aria-hidden': 'true' }, i + 1) : ''), this.parts[name]);
    }));
  }

  drawHead(kind) {
    const { row } = this;
    update(this.head, [row, this.item?.time && ''], () => [
      h('p', { class: 'crumb' }, `${kind} in ${namespaceOf(row.id)}`, row.type ? ` · ${row.type}` : ''),
      h('h2', {}, row.label || nameOf(row.id)),
      row.label ? h('p', { class: 'muted small' }, nameOf(row.id)) : '',
      h('p', { class: 'badges' }, h('span', { class: `badge ${row.state}` }, icon(row.state), describeState(row)),
        row.deleted ? h('span', { class: 'badge waiting' }, 'being deleted') : '', h('span', { class: 'muted' }, 'changed ', age(row.changed)))]);
  }

  drawOther(kind) {
    this.drawHead(kind);
    const { row } = this;
    update(this.parts.explanation, row, () => [h('p', {}, describe(kind, row)), row.message ? h('p', { class: `message ${row.state}` }, row.message) : '']);
    const children = this.view.childrenOf(row.id);
    update(this.parts.children, children, () => (children.length ? h('ul', { class: 'links' }, children.map((child) => h('li', {}, h('button', { type: 'button', class: 'link', onclick: () => this.on.select(child.id) }, icon(child.state, child.phase || child.state), child.label || nameOf(child.id)), h('span', { class: 'muted' }, child.type ? shortType(child.type) : kindOf(child.id))))) : h('p', { class: 'muted' }, 'Nothing belongs to it yet.')));
  }

  drawItem() {
    const { item, parts, error } = this;
    this.drawHead('DeployItem');
    for (const name of ['timeline', 'objects', 'events']) parts[name].parentElement.hidden = !item;
    parts.graph.parentElement.hidden = !item?.graph;
    if (error || !item) {
      update(parts.explanation, [error, Boolean(item)], () => [error ? h('p', { class: 'message failed' }, error) : h('p', { class: 'muted' }, 'Reading …')]);
      if (!item) return;
    }
    if (!error) update(parts.explanation, { ...item, time: '', history: '', events: '' }, () => explain(item));
    const history = item.history || [];
    update(parts.timeline, [history, this.view.run, this.view.timeline, item.unknown], () => (history.length
      ? drawTimeline(history, this.view.run, (began) => this.on.pick(began))
      : h('p', { class: 'muted' }, this.view.timeline ? unknownText(item, 'history') || 'The deployer has not reconciled the item since it started.' : 'Start deployerkit ui with --history-pod NAMESPACE/POD to see the last reconciles of the deployer.')));
    update(parts.graph, item.graph || null, () => (item.graph ? [drawGraph(item.graph), componentList(item.graph)] : ''));
    this.drawObjects();
    update(parts.events, item.events || null, () => (item.events ? h('table', {}, h('thead', {}, h('tr', {}, ['Time', 'Reason', 'Message'].map((text) => h('th', { scope: 'col' }, text)))),
      h('tbody', {}, item.events.toReversed().map((e) => h('tr', {}, h('td', { class: 'nowrap' }, age(e.at)), h('td', { class: 'nowrap' }, e.reason), h('td', { class: 'wrap' }, e.message)))))
      : h('p', { class: 'muted' }, unknownText(item, 'events') || 'There are no events about the item.')));
  }

  drawObjects() {
    const { item, objects, plan, planning, parts } = this;
    const changed = update(parts.objects, [item.objects || null, objects, plan, planning, this.view.object], () => [
      listObjects(item, objects, this.view.object, `Object/${this.id}`),
      item.objects?.drift ? [h('h4', {}, 'Drift'), h('ul', { class: 'plain' }, item.objects.drift.map((text) => h('li', {}, text)))] : '',
      this.view.canPlan ? this.buildPlan(item) : '',
    ]);
    const selected = changed && this.object !== this.view.object && parts.objects.querySelector('tr.selected');
    if (!selected) return;
    this.object = this.view.object;
    selected.scrollIntoView({ block: 'nearest' });
  }

  buildPlan(item) {
    if (item.item.type !== manifestType) return h('p', { class: 'muted note' }, 'The planned changes of this type are shown by the command plan of its deployer.');
    const { plan, planning } = this;
    return [
      h('h4', {}, 'Planned changes'),
      h('p', {}, h('button', { type: 'button', class: 'plan', disabled: planning, onclick: () => this.readPlan() }, planning ? 'Comparing …' : plan ? 'Compare again' : 'Compare with the target'), h('span', { class: 'muted' }, plan ? [' compared ', age(plan.at)] : ' as a dry run, which changes nothing')),
      plan?.problem ? h('p', { class: 'message failed' }, plan.problem) : '',
      plan && !plan.failed && !plan.problem && !plan.changes.length ? h('p', {}, `Nothing would change; ${plan.unchanged} ${plan.unchanged === 1 ? 'object matches' : 'objects match'} the item.`) : '',
      plan?.changes.map((change) => h('div', { class: 'change' },
        h('p', {}, h('strong', {}, change.action), ' ', change.object),
        change.fields ? h('table', { class: 'diff' }, h('thead', { class: 'hidden' }, h('tr', {}, ['Field', 'Now', 'Planned'].map((text) => h('th', { scope: 'col' }, text)))),
          h('tbody', {}, change.fields.map((f) => h('tr', {}, h('th', { scope: 'row' }, f.path), h('td', {}, f.old ? h('del', {}, f.old) : h('span', { class: 'muted' }, 'absent')), h('td', {}, f.new ? h('ins', {}, f.new) : h('span', { class: 'muted' }, 'absent')))))) : '')),
      plan?.moves?.map((text) => h('p', {}, `leave ${text}`)),
      plan?.omitted ? h('p', { class: 'muted' }, `${plan.omitted} more changes are not shown.`) : '',
    ];
  }
}

const unknownText = (item, part) => item.unknown?.find((u) => u.part === part)?.why;

/** Returns the phase of a row, and whether a new run is due. */
const describeState = ({ phase, state }) => (state !== 'waiting' ? phase || 'No phase yet' : phase ? `${phase}, a run is due` : 'A run is due');

/** Describes an Installation, an Execution or an object in a sentence. */
function describe(kind, row) {
  const phase = row.phase || 'no phase yet';
  if (row.deleted) return `The ${kind} is being deleted; its phase is ${phase}.`;
  return { failed: `The ${kind} has failed.`, succeeded: `The ${kind} has succeeded.`, idle: `Landscaper has not started the ${kind} yet.` }[row.state] || `The ${kind} is in progress; its phase is ${phase}.`;
}

/** Builds the sentences of an explanation: first what is the case, then what happens next. */
function explain(e) {
  const entries = [];
  const add = (label, text, state) => text && entries.push({ label, text, state });
  const since = (t) => (t ? [', for ', formatDuration(Math.max(0, Date.parse(e.time) - Date.parse(t)))] : '');
  const last = e.outcome.lastError;
  const first = e.outcome.firstError;
  if (first && first.message !== last?.message) add('First error', first.message, 'failed');
  add(e.decision.due ? 'A run is due' : 'No run is due', e.decision.why);
  (e.decision.details || []).forEach((text) => add('', text));
  (e.waits || []).forEach((w) => add('Waiting for', [w.for, since(w.since)], 'waiting'));
  add('Responsible', e.responsible.summary);
  if (e.responsible.target && e.responsible.target.state !== 'found') add('Target', `${e.responsible.target.name}: ${e.responsible.target.state}`, 'failed');
  (e.responsible.registrations || []).filter((r) => r.responsible !== 'no').forEach((r) => add('', [`${r.name} (${r.source})`, r.why ? `: ${r.why}` : '', r.working ? '' : ' is not active']));
  (e.hooks || []).forEach((hook) => add('Hook', `${hook.hook}: ${hook.effect}`, hook.effect.startsWith('failed') ? 'failed' : undefined));
  if (e.outcome.started) add('Started', [age(e.outcome.started), e.outcome.finished ? [', finished ', age(e.outcome.finished)] : '']);
  if (e.times.deadline) add('Deadline', age(e.times.deadline));
  if (e.times.nextReconcile) add('Next reconcile', age(e.times.nextReconcile));
  if (e.times.nextContinuousReconcile) add('Continuous', age(e.times.nextContinuousReconcile));
  (e.times.notes || []).forEach((text) => add('', text));
  add('Next', e.nextJob);
  add('Contract', `${e.revision.name}: ${e.revision.why || ''}`);
  (e.unknown || []).forEach((u) => add('Unknown', `${u.part}: ${u.why}`, 'waiting'));
  const advice = e.advice || [];
  const idle = advice.every(({ symptom }) => symptom === 'nothing to do');
  const symptoms = [...new Set(advice.map(({ symptom }) => symptom))];
  return [
    last ? h('p', { class: 'message failed' }, last.message, last.codes ? h('span', { class: 'codes' }, last.codes.join(', ')) : '') : '',
    idle ? advice.map(({ text }) => h('p', { class: 'advice' }, text)) : h('div', { class: 'advice' }, h('h4', {}, 'What to do'), h('ul', {}, advice.map((a) => h('li', {}, a.text))),
      h('p', { class: 'muted small' }, `The troubleshooting guide has more under ${symptoms.map((text) => `“${text}”`).join(' and ')}.`)),
    h('dl', { class: 'sentences' }, entries.map(({ label, text, state }) => h('div', { class: state }, h('dt', {}, label), h('dd', {}, text)))),
  ];
}

/** Lists the components that are not ready, with the reason. */
function componentList({ nodes, omitted }) {
  const order = ['failed', 'running', 'waiting']; // causes before the components that wait for them
  const open = nodes.filter(({ state }) => state !== 'Ready').toSorted((a, b) => order.indexOf(classOf(a.state)) - order.indexOf(classOf(b.state)));
  return [
    open.length ? h('ul', { class: 'plain components' }, open.map((n) => h('li', {}, icon(classOf(n.state)), h('strong', {}, n.name), ` ${n.state}`, n.reason ? `: ${n.reason}` : '', n.blockedBy ? `, waiting for ${n.blockedBy.join(', ')}` : ''))) : h('p', { class: 'muted components' }, `All ${nodes.length} components are ready.`),
    omitted ? h('p', { class: 'muted' }, `${omitted} more components are not shown.`) : '',
  ];
}

/** Lists the objects of an item: their state according to the item, and their readiness in the target. */
function listObjects(item, tree, selected, path) {
  const known = new Map((item.objects?.listed || []).map((o) => [`${o.kind}/${o.namespace || ''}/${o.name}`, o]));
  const rows = [];
  const collect = (node, depth, above) => {
    const id = formatObjectID(above, node);
    rows.push({ node, depth, id, stored: known.get(`${node.kind}/${node.namespace || ''}/${node.name}`) });
    (node.children || []).forEach((child) => collect(child, depth + 1, id));
  };
  const roots = tree?.roots?.[0]?.children || [];
  if (roots.length) roots.forEach((node) => collect(node, 0, path));
  else known.forEach((o) => rows.push({ node: { ...o, phase: o.state, message: o.reason }, depth: 0, stored: o }));
  const problems = [tree?.error, ...(tree?.unknown || []).map((u) => `${u.part}: ${u.why}`)].filter(Boolean);
  return [
    problems.map((text) => h('p', { class: 'message waiting' }, text)),
    rows.length ? h('table', {}, h('thead', {}, h('tr', {}, ['Object', 'Namespace', 'Readiness', 'In the item'].map((text) => h('th', { scope: 'col' }, text)))),
      h('tbody', {}, rows.map(({ node, depth, id, stored }) => {
        const name = h('td', { class: 'object' }, h('span', { class: 'muted' }, node.kind), ' ', node.name);
        name.style.setProperty('--depth', Math.min(depth, 6));
        return h('tr', { class: id === selected ? 'selected' : undefined }, name, h('td', {}, node.namespace || ''),
          h('td', { class: 'wrap' }, icon(objectState(node)), node.phase || '', node.message ? h('span', { class: 'muted' }, ` ${node.message}`) : ''),
          h('td', {}, stored ? stored.state : ''));
      }))) : h('p', { class: 'muted' }, 'The status of the item lists no objects.'),
    item.objects?.omitted ? h('p', { class: 'muted' }, `${item.objects.omitted} more objects are not shown.`) : '',
  ];
}
