// SPDX-License-Identifier: Apache-2.0
// Functions that build elements. All texts become text nodes: nothing is ever parsed as HTML.

const svgNamespace = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false || child === '') continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** Creates an HTML element. Attributes whose name begins with "on" are event listeners. */
export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

/** Creates an SVG element. */
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(svgNamespace, tag), attributes, children);

export const byId = (id) => document.getElementById(id);

const built = new WeakMap();

/** Replaces the children of an element, but only if the data from which they are built has changed. */
export function update(element, data, build) {
  const key = JSON.stringify(data);
  if (built.get(element) === key) return false;
  built.set(element, key);
  element.replaceChildren(...[build()].flat(Infinity).filter(Boolean));
  return true;
}

/** Formats a duration in milliseconds with at most two units. */
export function formatDuration(ms) {
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  const s = Math.floor(ms / 1000);
  if (s < 10) return `${(ms / 1000).toFixed(1)} s`;
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 172800) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} days`;
}

let offset = 0; // the clock of the server minus that of the browser

export const setServerTime = (ms) => { offset = ms - Date.now(); };
export const now = () => Date.now() + offset;

/** Formats a time relative to now, in steps that do not change every second. */
export function formatAge(ms) {
  const s = Math.round((now() - ms) / 1000);
  const text = (n) => (n < 60 ? `${n} s` : n < 3600 ? `${Math.floor(n / 60)} min` : n < 172800 ? `${Math.floor(n / 3600)} h` : `${Math.floor(n / 86400)} days`);
  if (Math.abs(s) < 5) return 'just now';
  return s < 0 ? `in ${text(-s)}` : `${text(s)} ago`;
}

/** Returns an element with the age of a time. refreshAges keeps it up to date. */
export function age(time) {
  const ms = typeof time === 'number' ? time : Date.parse(time);
  return h('time', { datetime: new Date(ms).toISOString(), title: new Date(ms).toISOString().replace('T', ' ').replace(/\.\d+Z/, ' UTC') }, formatAge(ms));
}

export function refreshAges() {
  for (const element of document.querySelectorAll('time[datetime]')) {
    const text = formatAge(Date.parse(element.getAttribute('datetime')));
    if (element.textContent !== text) element.textContent = text;
  }
}

/** The states of rows, in the order in which the tree shows them. */
export const states = ['failed', 'waiting', 'running', 'idle', 'succeeded'];
const icons = { failed: '✕', waiting: '◷', running: '◐', idle: '○', succeeded: '✓' };

export const icon = (state, label) => h('span', { class: `icon ${state}`, role: label ? 'img' : undefined, 'aria-label': label, 'aria-hidden': label ? undefined : 'true' }, icons[state] || '○');
