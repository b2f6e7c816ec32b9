// SPDX-License-Identifier: Apache-2.0
// The state graph of an item, drawn as SVG with the layout of dagre.
import { Graph, layout } from './vendor/dagre.js';
import { h, svg } from './dom.js';

const width = 160;
const height = 46;

const classes = { Ready: 'succeeded', Failed: 'failed', Blocked: 'waiting', Progressing: 'running', Removing: 'running' };
export const classOf = (state) => classes[state] || 'idle';

const shorten = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

/** Returns the path of an arrow from the right side of a node to the left side of another, past the nodes between them. */
function drawEdge(from, points, to) {
  const all = [{ x: from.x + width / 2, y: from.y }, ...points.slice(2, -2), { x: to.x - width / 2, y: to.y }];
  const n = (value) => value.toFixed(1);
  return all.slice(1).reduce((path, { x, y }, i) => {
    const middle = (all[i].x + x) / 2;
    return `${path} C${n(middle)} ${n(all[i].y)} ${n(middle)} ${n(y)} ${n(x)} ${n(y)}`;
  }, `M${n(all[0].x)} ${n(all[0].y)}`);
}

/** Draws the components of a graph, with arrows from a component to those that require it. */
export function drawGraph({ nodes }) {
  const g = new Graph();
  g.setGraph({ rankdir: 'LR', nodesep: 18, ranksep: 40, marginx: 4, marginy: 4 });
  g.setDefaultEdgeLabel(() => ({}));
  // The layout uses the positions of the nodes as names, because a component may have any name, such as __proto__.
  const positions = new Map(nodes.map(({ name }, i) => [name, String(i)]));
  nodes.forEach((_, i) => g.setNode(String(i), { width, height }));
  nodes.forEach((node, i) => {
    for (const required of new Set(node.requires || node.blockedBy || [])) {
      const from = positions.get(required);
      if (from !== undefined && from !== String(i)) g.setEdge(from, String(i));
    }
  });
  layout(g);
  const size = g.graph();
  const edges = g.edges().map((edge) => svg('path', { class: 'edge', d: drawEdge(g.node(edge.v), g.edge(edge).points, g.node(edge.w)), 'marker-end': 'url(#arrow)' }));
  const boxes = nodes.map((node, i) => {
    const { x, y } = g.node(String(i));
    return svg('g', { class: `node ${classOf(node.state)}`, transform: `translate(${x - width / 2} ${y - height / 2})`, 'data-node': node.name, 'data-state': node.state },
      svg('title', {}, [node.name, node.state, node.reason].filter(Boolean).join(': ')),
      svg('rect', { width, height, rx: 6 }),
      svg('rect', { class: 'stripe', width: 4, height, rx: 2 }),
      svg('text', { class: 'title', x: 14, y: 19 }, shorten(node.name, 19)),
      svg('text', { class: 'sub', x: 14, y: 36 }, shorten(node.state, 22)));
  });
  const label = nodes.map(({ name, state }) => `${name}: ${state}`).join(', ');
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'State graph' },
    svg('svg', { class: 'graph', viewBox: `0 0 ${size.width} ${size.height}`, width: size.width, height: size.height, role: 'img', 'aria-label': label },
      svg('defs', {}, svg('marker', { id: 'arrow', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto-start-reverse' }, svg('path', { d: 'M0 0L8 4L0 8z' }))),
      edges, boxes));
}
