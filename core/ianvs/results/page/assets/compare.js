// Beside an earlier page, which the reader picks: which rows and scores, settings and versions differ. Nothing is run of it.
const compared = document.getElementById("compared");
// Times are never the same twice.
const UNCOMPARED = /_(seconds|mb)$/i;
const leading = (text) => (/^[-−+]?\d/.test(text) ? Number.parseFloat(text.replace("−", "-")) : NaN);
const textsOf = (row) => [...row.cells].map((cell) => (cell.querySelector(".name") ?? cell).textContent.trim());

// Lines of yaml by where they stand, as "testenvs.1.dataset.name"; elements of a list have numbers.
const settingsOf = (root) => {
  const settings = new Map();
  const above = [];
  for (const line of root.getElementById("configuration")?.textContent.split("\n") ?? []) {
    const [, blanks, dashes, key, value] = line.match(/^( *)((?:- )*)([^:]*)(?::\s?(.*))?$/) ?? [];
    if (key === undefined || !(key || dashes)) continue;
    const depth = blanks.length;
    // An element of a list may stand as far left as the name of the list.
    while (above.length && (above.at(-1).depth > depth || (above.at(-1).depth === depth && !(dashes && !above.at(-1).item)))) above.pop();
    const parent = above.at(-1);
    if (dashes) {
      const number = (parent ? (parent.count = (parent.count ?? 0) + 1) : 1);
      above.push({ depth, name: String(number), item: true });
    }
    const names = above.map(({ name }) => name);
    if (value === undefined) {  // of a plain list, which is one setting
      const list = names.slice(0, -1).join(".");
      settings.set(list, settings.has(list) ? `${settings.get(list)}, ${key}` : key);
    } else if (value) settings.set([...names, key].join("."), value);
    if (value === "") above.push({ depth: depth + dashes.length, name: key });
  }
  return settings;
};
const factsOf = (root) => new Map([...root.querySelectorAll("#origin .facts > dt")].map((one) => [one.textContent, one.nextElementSibling?.textContent ?? ""]));

const tableOf = (heads, lines, label) => {
  const scroll = make("div", undefined, { class: "scroll", tabindex: "0", role: "group", "aria-label": label });
  const table = make("table", undefined, { class: "plain" });
  table.createTHead().insertRow().append(...heads.map((head) => make("th", head, { scope: "col" })));
  const body = table.createTBody();
  for (const [first, ...rest] of lines) body.insertRow().append(make("th", first, { scope: "row" }), ...rest.map((cell) => make("td", cell)));
  scroll.append(table);
  return scroll;
};

// Of two maps what is not the same in both: [name, before, now]. A file is the same wherever its folder lies.
const ending = (text) => (text?.startsWith("/") ? text.split("/").slice(-2).join("/") : text);
const differing = (before, now) =>
  [...new Set([...before.keys(), ...now.keys()])]
    .filter((name) => ending(before.get(name)) !== ending(now.get(name)))
    .map((name) => [name, before.get(name) ?? "-", now.get(name) ?? "-"]);

const differencesOf = (board, section) => {
  const titles = all("table.board thead button", section).map((one) => one.textContent);
  // A row is the same by the page of its cases, which is named by all its settings, or else by its name.
  const earlier = new Map(all("table.board tbody tr", section).map((row) => [row.querySelector(".name")?.textContent, textsOf(row)]));
  const names = new Map(all("table.board tbody a.name", section).map((link) => [link.getAttribute("href"), link.textContent]));
  const columns = board.heads.flatMap((head, n) => (head.dataset.best && !("off" in head.dataset) && titles.includes(board.titles[n]) && !UNCOMPARED.test(board.titles[n]) ? [n] : []));
  const rank = board.titles.indexOf("Rank");
  const lines = [];
  for (const { row, name } of board.rows) {
    const now = textsOf(row);
    const called = names.get(row.querySelector("a.name")?.getAttribute("href")) ?? name;
    const before = earlier.get(called);
    earlier.delete(called);
    const cells = [rank, ...columns].map((n) => {
      const was = before?.[titles.indexOf(board.titles[n])] ?? "";
      if (!before || was === now[n]) return now[n];
      const by = leading(now[n]) - leading(was);
      return n === rank || Number.isNaN(by) ? `${was || "-"} → ${now[n] || "-"}` : `${was} → ${now[n]} (${by < 0 ? "" : "+"}${by.toFixed(3)})`;
    });
    if (!before) lines.push([`${name} (new)`, ...cells]);
    else if (cells.some((cell) => cell.includes("→"))) lines.push([name, ...cells]);
  }
  for (const [name, was] of earlier) lines.push([`${name} (gone)`, ...[rank, ...columns].map((n) => was[titles.indexOf(board.titles[n])] ?? "")]);
  return [["Row", "Rank", ...columns.map((n) => board.titles[n])], lines];
};

const compareWith = (root, name) => {
  const sections = all("section.ranking", root);
  const shut = make("button", "Close", { type: "button" });
  shut.addEventListener("click", () => { compared.hidden = true; });
  compared.replaceChildren(make("h2", `What differs from ${name}`), shut);
  compared.hidden = false;
  if (!sections.length) compared.append(make("p", "This file has no leaderboard of ianvs."));
  for (const board of sections.length ? boards : []) {
    const section = sections.find((one) => one.dataset.exam === board.exam);
    if (board.exam) compared.append(make("h3", board.exam));
    const [heads, lines] = section ? differencesOf(board, section) : [[], []];
    if (lines.length) compared.append(tableOf(heads, lines, `Rows that differ ${board.exam}`));
    else compared.append(make("p", section ? "No row differs." : "The earlier page has no such exam.", { class: "note" }));
  }
  if (sections.length) {
    for (const [title, read] of [["Settings", settingsOf], ["Provenance", factsOf]]) {
      const lines = differing(read(root), read(document));
      compared.append(make("h3", title));
      compared.append(lines.length ? tableOf([title, "before", "now"], lines, `${title} that differ`) : make("p", "No difference.", { class: "note" }));
    }
  }
  compared.scrollIntoView({ block: "nearest" });
};
document.getElementById("earlier").addEventListener("change", async ({ target }) => {
  const [file] = target.files;
  if (!file) return;
  const text = (await file.text()).replace(/<style>[^]*?<\/style>/g, "");  // this page's policy knows no other's
  compareWith(new DOMParser().parseFromString(text, "text/html"), file.name);
  target.value = "";
});
