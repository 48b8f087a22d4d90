"use strict";
// What the page shows is one selection: words that rows have to hold, the exam, the sort, columns, and ticked rows.
// It stands in the address, and everything that is drawn follows it.
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const make = (name, text, attributes = {}) => {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};
document.documentElement.classList.add("scripted");

// q: the filter. exam: "" is all. sort: "-title" is falling. on: names of ticked rows, null before anything was ticked.
// only: rows that are not ticked are hidden. columns: by title, those that are not as at first.
const selection = { q: "", exam: "", sort: "", on: null, only: false, columns: new Map() };

const readAddress = () => {
  const said = location.hash.slice(1);
  const given = new URLSearchParams(said.includes("=") ? said : "");
  selection.q = given.get("q") ?? "";
  selection.exam = given.get("exam") ?? "";
  selection.sort = given.get("sort") ?? "";
  selection.on = given.has("rows") || given.has("row") ? new Set(given.getAll("row")) : null;
  selection.only = given.has("only");
  selection.columns = new Map([...given.getAll("show").map((one) => [one, true]), ...given.getAll("hide").map((one) => [one, false])]);
};

const writeAddress = () => {
  const said = new URLSearchParams();
  for (const key of ["q", "exam", "sort"]) if (selection[key]) said.set(key, selection[key]);
  for (const [title, on] of selection.columns) said.append(on ? "show" : "hide", title);
  if (selection.only) said.set("only", "1");
  if (selection.on) {
    if (!selection.on.size) said.set("rows", "none");
    for (const name of selection.on) said.append("row", name);
  }
  const hash = said.toString();
  if (hash !== location.hash.slice(1)) history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
};

// Who wants to hear of a new selection.
const followers = [];
const selected = (change = {}) => {
  Object.assign(selection, change);
  writeAddress();
  for (const follow of followers) follow();
};

// One floating box for all explanations: of columns, lines and points.
const tip = document.getElementById("tip");
const showTip = (content, x, y) => {
  tip.replaceChildren(...content);
  tip.hidden = false;
  const wide = document.documentElement.clientWidth;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(x, wide - box.width - 8)) + window.scrollX}px`;
  tip.style.top = `${(y + box.height + 8 > window.innerHeight && y > box.height + 40 ? y - box.height - 36 : y) + window.scrollY}px`;
};
const hideTip = () => { tip.hidden = true; };
addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
addEventListener("scroll", hideTip, { passive: true });
