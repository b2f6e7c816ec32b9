// SPDX-License-Identifier: Apache-2.0
'use strict';

// root is the URL of the start page. This script is next to it.
const root = new URL('.', document.currentScript.src);
const query = document.getElementById('query');
const found = document.getElementById('found');
const results = document.getElementById('results');
const count = document.getElementById('count');
const shown = 20;

let index; // promise of the sections of all pages
let selected = -1;

// loadIndex loads the index once. After an error, the next call tries again.
function loadIndex() {
  index ??= fetch(new URL(query.dataset.index, root)).then((response) => {
    if (!response.ok) throw new Error(`status ${response.status}`);
    return response.json();
  }).then((sections) => sections.map((s) => ({ ...s, heading: `${s.page} ${s.title}`.toLowerCase(), body: s.text.toLowerCase() })));
  index.catch(() => { index = undefined; });
  return index;
}

// rate returns how well a section matches all words, or 0 if a word is missing. Headings count more than text.
function rate(section, words) {
  let sum = 0;
  for (const word of words) {
    const title = section.title.toLowerCase();
    if (title === word) sum += 40;
    else if (title.split(/[^\p{L}\p{N}]+/u).some((part) => part.startsWith(word))) sum += 20;
    else if (section.heading.includes(word)) sum += 8;
    else if (section.body.includes(word)) sum += 1 + Math.min(section.body.split(word).length - 2, 4) / 2;
    else return 0;
  }
  if (section.title === section.page) sum += 10;
  if (section.group === 'Project' || section.group === 'Decisions') sum /= 3;
  return sum;
}

// mark appends a text to an element, with the words marked.
function mark(element, text, words) {
  const pattern = new RegExp(`(${words.map((w) => w.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')).join('|')})`, 'gi');
  text.split(pattern).forEach((part, i) => {
    element.append(i % 2 ? Object.assign(document.createElement('mark'), { textContent: part }) : part);
  });
}

// excerpt returns the text around the first word that the text contains.
function excerpt(section, words) {
  const positions = words.map((w) => section.body.indexOf(w)).filter((at) => at >= 0);
  const at = Math.max(0, (positions.length ? Math.min(...positions) : 0) - 50);
  const from = at ? section.text.indexOf(' ', at) + 1 : 0;
  const text = section.text.slice(from, from + 150);
  return (from ? '… ' : '') + (section.text.length > from + 150 ? `${text.slice(0, text.lastIndexOf(' '))} …` : text);
}

function option(section, i, words) {
  const li = document.createElement('li');
  Object.assign(li, { id: `result-${i}`, role: 'option' });
  li.setAttribute('aria-selected', 'false');
  li.dataset.url = new URL(section.url, root);
  const title = document.createElement('b');
  mark(title, section.title, words);
  li.append(title);
  if (section.title !== section.page) li.append(Object.assign(document.createElement('small'), { textContent: section.page }));
  const text = document.createElement('p');
  mark(text, excerpt(section, words), words);
  li.append(text);
  return li;
}

function close() {
  found.hidden = true;
  query.setAttribute('aria-expanded', 'false');
  select(-1);
}

function select(i) {
  selected = i;
  [...results.children].forEach((li, n) => li.setAttribute('aria-selected', String(n === i)));
  if (i < 0) return query.removeAttribute('aria-activedescendant');
  query.setAttribute('aria-activedescendant', results.children[i].id);
  results.children[i].scrollIntoView({ block: 'nearest' });
}

async function search() {
  const text = query.value;
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return close();
  let matches;
  try {
    matches = (await loadIndex()).map((section) => ({ section, value: rate(section, words) })).filter(({ value }) => value > 0);
  } catch (err) {
    results.replaceChildren();
    count.textContent = `The search index could not be loaded: ${err.message}`;
    found.hidden = false;
    return;
  }
  if (text !== query.value) return; // a later call shows its results
  matches.sort((a, b) => b.value - a.value);
  count.textContent = matches.length === 0 ? `No section contains “${text.trim()}”` : matches.length > shown ? `The best ${shown} of ${matches.length} sections` : `${matches.length} ${matches.length === 1 ? 'section' : 'sections'}`;
  results.replaceChildren(...matches.slice(0, shown).map(({ section }, i) => option(section, i, words)));
  found.hidden = false;
  query.setAttribute('aria-expanded', 'true');
  select(matches.length ? 0 : -1);
}

query.addEventListener('focus', () => loadIndex().catch(() => {}));
query.addEventListener('input', search);
query.addEventListener('keydown', (event) => {
  const last = results.children.length - 1;
  if (event.key === 'Escape') { query.value = ''; close(); query.blur(); }
  if (found.hidden || last < 0) return;
  if (event.key === 'ArrowDown') select(selected < last ? selected + 1 : 0);
  else if (event.key === 'ArrowUp') select(selected > 0 ? selected - 1 : last);
  else if (event.key === 'Enter') go(results.children[Math.max(selected, 0)]);
  else return;
  event.preventDefault();
});
results.addEventListener('click', (event) => go(event.target.closest('li')));

function go(li) {
  if (!li) return;
  close();
  location.href = li.dataset.url;
}

document.addEventListener('click', (event) => { if (!event.target.closest('.search')) close(); });
document.addEventListener('keydown', (event) => {
  if (event.key === '/' && !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.matches('input')) {
    event.preventDefault();
    query.focus();
  }
});

// On narrow screens, a button shows the navigation.
const menu = document.getElementById('menu');
menu.addEventListener('click', () => menu.setAttribute('aria-expanded', String(document.body.classList.toggle('menu-open'))));

// The current page is visible in the navigation.
const current = document.querySelector('#navigation [aria-current]');
if (current) {
  const box = document.getElementById('navigation');
  box.scrollTop = Math.max(0, current.offsetTop - box.clientHeight / 2);
}

// Code can be copied, if the browser allows it (https or loopback).
if (navigator.clipboard) {
  for (const block of document.querySelectorAll('.highlight')) {
    const button = Object.assign(document.createElement('button'), { type: 'button', className: 'copy', textContent: 'Copy' });
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(block.querySelector('code').textContent);
      button.textContent = 'Copied';
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    });
    block.append(button);
  }
}

// The table of contents shows which section is read.
const entries = new Map([...document.querySelectorAll('aside a')].map((a) => [decodeURIComponent(a.hash.slice(1)), a]));
if (entries.size) {
  const headings = [...document.querySelectorAll('article :is(h2, h3)')].filter((h) => entries.has(h.id));
  const follow = () => {
    const read = headings.findLast((h) => h.getBoundingClientRect().top < 120) ?? headings[0];
    for (const [id, a] of entries) a.classList.toggle('here', id === read?.id);
  };
  addEventListener('scroll', follow, { passive: true });
  follow();
}

// Diagrams have the colors of the page.
addEventListener('DOMContentLoaded', async () => {
  if (!window.mermaid) return;
  const probe = document.body.appendChild(document.createElement('span'));
  const color = (name) => { probe.style.color = `var(${name})`; return getComputedStyle(probe).color; };
  const [back, raised, text, muted] = ['--back', '--raised', '--text', '--muted'].map(color);
  probe.remove();
  const useMaxWidth = innerWidth > 860; // on narrow screens, diagrams keep their size and scroll
  mermaid.initialize({
    startOnLoad: false, securityLevel: 'strict', fontFamily: 'inherit', theme: 'base',
    flowchart: { useMaxWidth }, state: { useMaxWidth },
    themeVariables: { background: back, primaryColor: raised, primaryTextColor: text, primaryBorderColor: muted, lineColor: muted, textColor: text, edgeLabelBackground: back, clusterBkg: back, clusterBorder: muted, labelBackgroundColor: back },
  });
  await mermaid.run({ querySelector: 'pre.mermaid' });
});
