// SPDX-License-Identifier: Apache-2.0
// The last reconciles of an item, and one of them as a Gantt chart.
import { age, formatDuration, h, svg } from './dom.js';

const classes = { done: 'succeeded', failed: 'failed', error: 'failed', waiting: 'running', abandoned: 'failed', nothing: 'idle' };
const ms = (micros) => micros / 1000;

/** Draws the list of reconciles. The function `pick` is called with the time of the reconcile that the user selects. */
export function drawTimeline(reconciles, picked, pick) {
  const list = reconciles.toReversed();
  const longest = Math.max(...list.map(({ micros }) => micros), 1);
  const current = list.find(({ began }) => began === picked) || list[0];
  return [
    h('div', { class: 'reconciles', role: 'group', 'aria-label': 'Reconciles' }, list.map((r) => {
      const calls = (r.calls || []).reduce((sum, { count }) => sum + count, 0);
      const bar = h('span', { class: `bar-fill ${classes[r.result] || 'idle'}` });
      bar.style.width = `${Math.max(1, (100 * r.micros) / longest)}%`;
      return h('button', { type: 'button', class: 'reconcile', 'aria-pressed': String(r === current), onclick: () => pick(r.began) },
        h('span', { class: 'when' }, age(r.began)),
        h('span', { class: 'what' }, `${r.action || r.reason || 'look'}: ${r.result}`),
        h('span', { class: 'by' }, `by ${r.trigger}, ${calls} ${calls === 1 ? 'call' : 'calls'}`),
        h('span', { class: 'bar-track', 'aria-hidden': 'true' }, bar),
        h('span', { class: 'number' }, formatDuration(ms(r.micros))));
    })),
    drawReconcile(current),
  ];
}

/** Draws one reconcile as a Gantt chart: its phases, the hooks and the requests to API servers, in the order in which they began. */
function drawReconcile(r) {
  const count = (c) => `${c.count} × ${c.verb} ${c.resource}`;
  const rows = [
    ...(r.phases || []).map((p) => ({ kind: 'phase', label: p.name, note: p.verdict, ...p })),
    ...(r.hooks || []).map((k) => ({ kind: 'hook', label: `hook ${k.name}`, note: [k.type, k.effect].filter(Boolean).join(', '), ...k })),
    ...(r.calls || []).map((c) => ({ kind: 'call', label: count(c), note: c.cluster === 'target' ? 'in the target' : '', ...c })),
  ].map((row) => ({ ...row, start: Math.max(0, row.start || 0), micros: Math.max(0, row.micros || 0) }));
  rows.sort((a, b) => a.start - b.start || b.micros - a.micros);
  const total = Math.max(r.micros, ...rows.map(({ start, micros }) => start + micros), 1);
  return h('div', { class: 'reconcile-detail' },
    h('p', {}, `Reconcile of ${new Date(r.began).toISOString().replace('T', ' ').replace(/\.\d+Z/, ' UTC')}: ${r.reason || 'no reason'}, ${r.result}`,
      r.codes ? ` (${r.codes.join(', ')})` : '', r.next ? ['; next reconcile ', age(r.next.at)] : '', '.'),
    rows.length ? h('table', { class: 'gantt' },
      h('caption', { class: 'hidden' }, 'Phases, hooks and requests'),
      h('colgroup', {}, h('col', { class: 'step' }), h('col', {}), h('col', { class: 'took' })),
      h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Phase, hook or request'),
        h('th', { scope: 'col' }, h('span', { class: 'scale' }, h('span', {}, '0'), h('span', {}, formatDuration(ms(total))))),
        h('th', { scope: 'col', class: 'number' }, 'Duration'))),
      h('tbody', {}, rows.map((row) => h('tr', { class: row.kind },
        h('th', { scope: 'row' }, row.label, ' ', h('span', { class: 'muted' }, row.note)),
        h('td', { class: 'course' }, svg('svg', { viewBox: '0 0 1000 12', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
          svg('rect', { class: `gantt-bar ${row.kind}${row.failed ? ' failed' : ''}`, x: Math.min(997, (1000 * row.start) / total), y: 2, width: Math.max(3, (1000 * row.micros) / total), height: 8, rx: 1 }))),
        h('td', { class: 'number' }, formatDuration(ms(row.micros))))))) : '',
    r.omitted ? h('p', { class: 'muted' }, `${r.omitted} more phases, hooks or requests are not recorded.`) : '');
}
