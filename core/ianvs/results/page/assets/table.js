// The tables: rows are read once; only those of one screen-long page of them are in the document.
const MOST = 50;
const alphabet = new Intl.Collator(undefined, { numeric: true });

const readTable = (section) => {
  const table = section.querySelector("table.board");
  const heads = [...table.tHead.rows[0].cells];
  const titles = heads.map((head) => head.querySelector("button").textContent);
  const rows = [...table.tBodies[0].rows].map((row, place) => ({
    row, place, id: row.dataset.of, name: row.querySelector(".name").textContent, box: row.querySelector("input"),
  }));
  return { section, table, heads, titles, rows, exam: section.dataset.exam, keys: new Map(), page: 0, shown: rows, style: null };
};
const boards = all("section.ranking").map(readTable);

// What a column is sorted and compared by: numbers by size, texts by the reader's alphabet. Read when first asked for.
const keysOf = (board, place) => {
  if (!board.keys.has(place)) {
    board.keys.set(place, board.rows.map(({ row }) => {
      const cell = row.cells[place];
      if ("n" in cell.dataset) return Number(cell.dataset.n);
      const text = cell.textContent.trim();
      return text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
    }));
  }
  return board.keys.get(place);
};
// What a filter compares: of ranks, which sort by their place in the table, the number itself.
const valuesOf = (board, place) =>
  board.heads[place].classList.contains("rank")
    ? board.rows.map(({ row }) => Number.parseFloat(row.cells[place].textContent) || row.cells[place].textContent.trim())
    : keysOf(board, place);
const textOf = (one) => (one.text ??= [...one.row.cells].map((cell) => cell.textContent).join(" ").toLowerCase());

// A column by its title, or by how exactly one of them begins.
const columnNamed = (board, name) => {
  const titles = board.titles.map((title) => title.toLowerCase());
  const exact = titles.indexOf(name);
  if (exact >= 0) return exact;
  const near = titles.flatMap((title, place) => (title.startsWith(name) ? [place] : []));
  return near.length === 1 ? near[0] : -1;
};
const TESTS = {
  ">": (a, b) => a > b, "<": (a, b) => a < b, ">=": (a, b) => a >= b, "<=": (a, b) => a <= b, "=": (a, b) => a === b, "!=": (a, b) => a !== b,
};
// Words with blanks between them all have to hold. "a b" in quotes is one word, a|b either, -a not; title>0.5 compares.
const filterOf = (board, said, problems) => (said.toLowerCase().match(/(?:"[^"]*"|[^\s"])+/g) ?? []).map((word) => {
  const [, name, sign, wanted] = word.match(/^("[^"]+"|[^<>=!"]+)(>=|<=|!=|>|<|=)(.+)$/) ?? [];
  if (sign) {
    const place = columnNamed(board, name.replaceAll('"', ""));
    if (place < 0) {
      problems.add(`no column “${name.replaceAll('"', "")}”`);
      return () => true;
    }
    const keys = valuesOf(board, place);
    const value = wanted.replaceAll('"', "");
    const number = Number(value);
    return (one) => {
      const key = keys[one.place];
      if (key === "" || (typeof key === "number") === Number.isNaN(number)) return sign === "!=";
      return typeof key === "number" ? TESTS[sign](key, number) : TESTS[sign](String(key).toLowerCase(), value);
    };
  }
  const turned = word.length > 1 && word.startsWith("-");
  const either = (turned ? word.slice(1) : word).replaceAll('"', "").split("|").filter(Boolean);
  return (one) => either.some((part) => textOf(one).includes(part)) !== turned;
});

const sortOf = (board) => {
  const falling = selection.sort.startsWith("-");
  const place = selection.sort ? board.titles.indexOf(falling ? selection.sort.slice(1) : selection.sort) : 0;
  return place < 0 ? [0, false] : [place, falling];
};
const AT_FIRST = 10;
const found = document.getElementById("found");
const isTicked = (one) => (selection.on ? selection.on.has(one.name) : one.first);
let drawn = new Set();

const put = (board, whole = false) => {
  const pages = Math.max(1, Math.ceil(board.shown.length / MOST));
  board.page = Math.min(board.page, pages - 1);
  const some = whole ? board.shown : board.shown.slice(board.page * MOST, (board.page + 1) * MOST);
  board.table.tBodies[0].replaceChildren(...some.map((one) => one.row));
  const pager = board.section.querySelector(".pager");
  pager.hidden = pages < 2;
  if (pager.hidden) return;
  const turn = (label, by) => {
    const button = make("button", label, { type: "button" });
    button.disabled = board.page + by < 0 || board.page + by >= pages;
    button.addEventListener("click", () => { board.page += by; put(board); });
    return button;
  };
  const first = board.page * MOST;
  pager.replaceChildren(turn("← before", -1), ` rows ${first + 1} to ${first + some.length} of ${board.shown.length} `, turn("after →", 1));
};

followers.push(() => {
  const problems = new Set();
  drawn = new Set();
  let count = 0;
  let whole = 0;
  for (const board of boards) {
    const tests = filterOf(board, selection.q, problems);
    const left = board.rows.filter((one) => tests.every((test) => test(one)));
    // Before anything is ticked, the first ten that can be drawn are.
    for (const one of board.rows) one.first = false;
    for (const one of left.filter(({ box }) => box).slice(0, AT_FIRST)) one.first = true;
    for (const one of board.rows) if (one.box) one.box.checked = isTicked(one);
    for (const one of left) if (isTicked(one)) drawn.add(one.id);
    const [place, falling] = sortOf(board);
    const keys = keysOf(board, place);
    const sign = falling ? -1 : 1;
    board.shown = (selection.only ? left.filter(isTicked) : left).sort((a, b) => {
      const [x, y] = [keys[a.place], keys[b.place]];
      if (x === "" || y === "") return (x === "") - (y === "") || a.place - b.place; // what is missing stands last
      const order = typeof x === "number" && typeof y === "number" ? x - y : alphabet.compare(String(x), String(y));
      return sign * order || a.place - b.place;
    });
    board.heads.forEach((head, n) => {
      if (n === place) head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    board.page = 0;
    put(board);
    count += board.shown.length;
    whole += board.rows.length;
  }
  found.textContent = [...problems, ...(selection.q || selection.only ? [`${count} of ${whole} rows`] : [])].join(", ");
});

// Columns: rules for the style sheet are what costs the least, however many rows there are.
const sheet = document.styleSheets[0];
followers.push(() => {
  for (const board of boards) {
    const hidden = board.heads.flatMap((head, n) => ((selection.columns.get(board.titles[n]) ?? !("off" in head.dataset)) ? [] : [n + 1]));
    const rule = `#${board.table.id} :is(${hidden.map((n) => `tr>:nth-child(${n})`).join(",") || "none"}){display:none}`;
    if (rule === board.style) continue;
    if (board.rule !== undefined) sheet.deleteRule(board.rule);
    board.rule ??= sheet.cssRules.length;
    sheet.insertRule(rule, board.rule);
    board.style = rule;
  }
});
const chooser = document.getElementById("columns");
for (const title of new Set(boards.flatMap((board) => board.titles))) {
  const of = boards.flatMap((board) => board.heads.filter((_, n) => board.titles[n] === title));
  if (of.every((head) => head.classList.contains("n"))) continue;
  const box = make("input", undefined, { type: "checkbox" });
  const before = of.some((head) => !("off" in head.dataset));
  const line = make("label");
  line.append(box, ` ${title}`);
  chooser.append(line);
  box.addEventListener("change", () => {
    selection.columns.delete(title);
    if (box.checked !== before || of.some((head) => ("off" in head.dataset) === before)) selection.columns.set(title, box.checked);
    selected();
  });
  followers.push(() => { box.checked = selection.columns.get(title) ?? before; });
}

for (const board of boards) {
  board.heads.forEach((head, place) => {
    const button = head.querySelector("button");
    const title = board.titles[place];
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      const falling = now ? now === "ascending" : head.dataset.best === "high";
      selected({ sort: falling ? `-${title}` : place ? title : "" });
    });
    const about = document.getElementById(button.getAttribute("aria-describedby"));
    const open = () => {
      if (!about.childElementCount) return;
      const box = button.getBoundingClientRect();
      showTip([...about.children].map((line) => line.cloneNode(true)), box.left, box.bottom + 6);
    };
    for (const event of ["pointerenter", "focus", "click"]) button.addEventListener(event, open);
    for (const event of ["pointerleave", "blur"]) button.addEventListener(event, hideTip);
  });
  board.table.addEventListener("change", (event) => {
    const one = board.rows.find(({ box }) => box === event.target);
    if (!one) return;
    const on = new Set(selection.on ?? boards.flatMap((other) => other.rows.filter(({ first }) => first).map(({ name }) => name)));
    if (one.box.checked) on.add(one.name);
    else on.delete(one.name);
    selected({ on });
  });
}

const filter = document.getElementById("filter");
filter.addEventListener("input", () => selected({ q: filter.value }));
const ticked = document.getElementById("ticked");
ticked.addEventListener("change", () => selected({ only: ticked.checked }));
const exams = all("[data-show]");
for (const button of exams) button.addEventListener("click", () => selected({ exam: button.dataset.show }));
followers.push(() => {
  if (filter.value !== selection.q) filter.value = selection.q;
  ticked.checked = selection.only;
  for (const button of exams) button.setAttribute("aria-pressed", button.dataset.show === selection.exam);
  for (const part of all("[data-exam]")) part.hidden = selection.exam !== "" && part.dataset.exam !== "" && part.dataset.exam !== selection.exam;
});

// Copying: what the tables show, one below the other; a page from a file may have no clipboard, and then selects.
const cellsShown = (board) => {
  const shown = board.heads.flatMap((head, n) => ((selection.columns.get(board.titles[n]) ?? !("off" in head.dataset)) ? [n] : []));
  const plain = (cell) => (cell.querySelector(".name") ?? cell).textContent.trim();
  return [shown.map((n) => board.titles[n]), ...board.shown.map(({ row }) => shown.map((n) => plain(row.cells[n])))];
};
const LATEX = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "±": "$\\pm$" };
const escapeLatex = (text) => text.replace(/[\\{}$&#%_~^±]/g, (one) => LATEX[one] ?? `\\${one}`);
const WRITE = {
  tsv: (lines) => lines.map((line) => line.map((cell) => cell.replace(/\s+/g, " ")).join("\t")).join("\n"),
  csv: (lines) => lines.map((line) => line.map((cell) => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)).join(",")).join("\r\n"),
  markdown: ([head, ...lines]) => [head, head.map(() => "---"), ...lines].map((line) => `| ${line.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`).join("\n"),
  latex: ([head, ...lines]) =>
    [`\\begin{tabular}{${"l".repeat(head.length)}}`, "\\hline", ...[head, ...lines].map((line, n) => `${line.map(escapeLatex).join(" & ")} \\\\${n ? "" : " \\hline"}`), "\\hline", "\\end{tabular}"].join("\n"),
};
for (const button of all("[data-as]")) {
  button.addEventListener("click", () => {
    const as = button.dataset.as;
    const text = boards.filter((board) => !board.section.hidden).map((board) => WRITE[as](cellsShown(board))).join("\n\n");
    button.closest("details").open = false;
    if (as !== "csv") {
      copy(text, found);
      return;
    }
    const link = make("a", undefined, { href: URL.createObjectURL(new Blob([`${text}\n`], { type: "text/csv" })), download: "leaderboard.csv" });
    link.click();
    URL.revokeObjectURL(link.href);
  });
}
const copy = async (text, told, source) => {
  try {
    await navigator.clipboard.writeText(text);
    told.textContent = "Copied.";
  } catch {
    const area = source ?? make("textarea", undefined, { class: "to-copy", "aria-label": "Text to copy", rows: "6" });
    if (!source) {
      area.value = text;
      all(".to-copy").forEach((old) => old.remove());
      told.after(area);
      area.select();
    } else {
      getSelection().selectAllChildren(source);
      source.focus();
    }
    told.textContent = "Selected: press Ctrl+C (on a Mac ⌘C).";
  }
};
