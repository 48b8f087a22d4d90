"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (name, text, attributes = {}) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  document.documentElement.classList.add("scripted");

  // Sorting: numbers by size, texts by the reader's alphabet; what is missing stands last in both directions.
  const alphabet = new Intl.Collator(undefined, { numeric: true });
  const keyOf = (cell) => ("n" in cell.dataset ? Number(cell.dataset.n) : cell.textContent.trim());
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : alphabet.compare(String(a), String(b));
  const sortBy = (table, head) => {
    const place = [...head.parentNode.children].indexOf(head);
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [keyOf(row.cells[place]), row]);
    rows.sort(([a], [b]) => (a === "") - (b === "") || (up ? compare(a, b) : compare(b, a)));
    body.append(...rows.map(([, row]) => row));
  };
  for (const table of all("table.board")) {
    for (const head of table.tHead.rows[0].cells) head.querySelector("button").addEventListener("click", () => sortBy(table, head));
  }

  // Filtering: every word has to occur somewhere in a row.
  const filter = document.getElementById("filter");
  const found = document.getElementById("found");
  const rows = all("table.board tbody tr").map((row) => [row, [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase()]);
  filter?.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const [row, text] of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    found.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
  });

  for (const button of all("button.more")) {
    button.addEventListener("click", () => {
      const open = document.getElementById(button.getAttribute("aria-controls")).classList.toggle("whole");
      button.setAttribute("aria-expanded", open);
      button.textContent = open ? "Hide these columns" : "Show these columns";
    });
  }

  // One floating box for all explanations: of columns, lines and points.
  const tip = document.getElementById("tip");
  const show = (content, x, y) => {
    tip.replaceChildren(...content);
    tip.hidden = false;
    const wide = document.documentElement.clientWidth;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(x, wide - box.width - 8)) + window.scrollX}px`;
    tip.style.top = `${(y + box.height + 8 > window.innerHeight && y > box.height + 40 ? y - box.height - 36 : y) + window.scrollY}px`;
  };
  const hide = () => { tip.hidden = true; };
  for (const button of all("table.board thead button")) {
    const about = document.getElementById(button.getAttribute("aria-describedby"));
    const open = () => {
      if (!about.childElementCount) return;
      const box = button.getBoundingClientRect();
      show([...about.children].map((line) => line.cloneNode(true)), box.left, box.bottom + 6);
    };
    button.addEventListener("pointerenter", open);
    button.addEventListener("focus", open);
    button.addEventListener("click", open);
    button.addEventListener("pointerleave", hide);
    button.addEventListener("blur", hide);
  }
  for (const mark of all("[data-tip]")) {
    const open = (event) => show([make("span", mark.dataset.tip)], event.clientX + 12, event.clientY + 14);
    mark.addEventListener("pointermove", open);
    mark.addEventListener("pointerdown", open);
    mark.addEventListener("pointerleave", hide);
  }
  addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  addEventListener("scroll", hide, { passive: true });

  // Lines, bars and points are switched on and off by their legend; a line under the pointer stands out.
  for (const figure of all("figure.card")) {
    const series = all("[data-row]", figure);
    const boxes = all("[data-series]", figure);
    const apply = () => {
      const on = new Set(boxes.filter((box) => box.checked).map((box) => box.dataset.series));
      if (boxes.length) for (const one of series) one.classList.toggle("off", !on.has(one.dataset.row));
    };
    const light = (id) => {
      for (const one of series) {
        one.classList.toggle("dim", id !== null && one.dataset.row !== id);
        one.classList.toggle("lit", one.dataset.row === id);
      }
    };
    for (const box of boxes) {
      box.addEventListener("change", apply);
      box.parentNode.addEventListener("pointerenter", () => light(box.dataset.series));
      box.parentNode.addEventListener("pointerleave", () => light(null));
    }
    for (const one of series) {
      one.addEventListener("pointerenter", () => light(one.dataset.row));
      one.addEventListener("pointerleave", () => light(null));
    }
    for (const button of all("[data-all]", figure)) {
      button.addEventListener("click", () => {
        for (const box of boxes) box.checked = button.dataset.all === "on";
        apply();
      });
    }
    apply();
  }

  for (const maps of all(".maps")) {
    const buttons = all("[data-view]", maps);
    for (const button of buttons) {
      button.addEventListener("click", () => {
        maps.classList.toggle("differing", button.dataset.view === "difference");
        for (const other of buttons) other.setAttribute("aria-pressed", other === button);
      });
    }
  }

  // Tables of score matrices are made when somebody opens them; the numbers are in thousandths.
  let matrices = null;
  const numbersOf = (id) => {
    matrices ??= JSON.parse(document.getElementById("matrices").textContent);
    const [which, unit, numbers] = matrices.of[id];
    const [rounds, tests] = matrices.names[which];
    return { unit, numbers, rounds: ["untrained", ...rounds], tests };
  };
  const shown = (number, unit) => (number === null ? "–" : ((number * unit) / 1000).toFixed(unit === 1 ? 3 : 0));
  for (const details of all("[data-matrix]")) {
    details.addEventListener("toggle", () => {
      if (!details.open || details.querySelector("table")) return;
      const { unit, numbers, rounds, tests } = numbersOf(details.dataset.matrix);
      const table = make("table", undefined, { class: "plain" });
      const head = table.createTHead().insertRow();
      head.append(make("th", "After", { scope: "col" }), ...tests.map((test) => make("th", test, { scope: "col" })));
      const body = table.createTBody();
      rounds.forEach((name, k) => {
        const row = body.insertRow();
        row.append(make("th", k ? `${k}. ${name}` : name, { scope: "row" }));
        tests.forEach((_, j) => { row.insertCell().textContent = shown(numbers[k * tests.length + j], unit); });
      });
      const label = `Numbers of ${details.parentNode.querySelector("figcaption").textContent}`;
      const scroll = make("div", undefined, { class: "scroll", tabindex: "0", role: "group", "aria-label": label });
      scroll.append(table);
      details.append(scroll);
    });
  }

  // Cells of large heatmaps have no room for numbers: the pointer reads them.
  for (const image of all(".pixels")) {
    const id = image.closest("figure").querySelector("[data-matrix]")?.dataset.matrix;
    if (!id || image.closest(".of-difference")) continue;
    const read = (event) => {
      const { unit, numbers, rounds, tests } = numbersOf(id);
      const box = image.getBoundingClientRect();
      const j = Math.floor(((event.clientX - box.left) / box.width) * tests.length);
      const k = Math.floor(((event.clientY - box.top) / box.height) * rounds.length);
      const number = numbers[k * tests.length + j];
      if (number === undefined) return;
      const where = k ? `after round ${k} (${rounds[k]})` : "untrained";
      show([make("span", `${tests[j]}, ${where}: ${shown(number, unit)}`)], event.clientX + 12, event.clientY + 14);
    };
    image.addEventListener("pointermove", read);
    image.addEventListener("pointerdown", read);
    image.addEventListener("pointerleave", hide);
  }

  // Copying: a page from a file may have no clipboard; then the text is selected, for Ctrl+C.
  for (const button of all("button.copy")) {
    const source = document.getElementById(button.dataset.copy);
    const say = (text) => { button.nextElementSibling.textContent = text; };
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(source.textContent);
        say("Copied.");
      } catch {
        getSelection().selectAllChildren(source);
        source.focus();
        say("Selected: press Ctrl+C (on a Mac ⌘C).");
      }
    });
  }

  // What is closed would be lost on paper.
  const opened = [];
  addEventListener("beforeprint", () => {
    for (const details of all("details.card:not([open])")) { details.open = true; opened.push(details); }
  });
  addEventListener("afterprint", () => { while (opened.length) opened.pop().open = false; });
})();
