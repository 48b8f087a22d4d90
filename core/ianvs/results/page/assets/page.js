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
    showTip([make("span", `${tests[j]}, ${where}: ${shown(number, unit)}`)], event.clientX + 12, event.clientY + 14);
  };
  image.addEventListener("pointermove", read);
  image.addEventListener("pointerdown", read);
  image.addEventListener("pointerleave", hideTip);
}

for (const button of all("button.copy")) {
  const source = document.getElementById(button.dataset.copy);
  button.addEventListener("click", () => copy(source.textContent, button.nextElementSibling, source));
}

// Links within the page scroll, and leave the selection in the address.
for (const link of all('a[href^="#"]')) {
  link.addEventListener("click", (event) => {
    const target = document.getElementById(link.getAttribute("href").slice(1));
    if (!target) return;
    event.preventDefault();
    target.setAttribute("tabindex", "-1");
    target.focus({ preventScroll: true });
    target.scrollIntoView();
  });
}
// A menu closes when something else is used.
addEventListener("click", (event) => {
  for (const menu of all("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});
addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.activeElement?.closest("details.menu[open]");
  if (menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

// On paper all rows of all exams stand, and all that is said; of pictures, those that are open.
let opened = [];
addEventListener("beforeprint", () => {
  opened = all(":is(#notes, #failures) details.card:not([open])");
  for (const details of opened) details.open = true;
  for (const board of boards) put(board, true);
});
addEventListener("afterprint", () => {
  for (const details of opened) details.open = false;
  for (const board of boards) put(board);
});

addEventListener("hashchange", () => {
  if (location.hash && !location.hash.includes("=")) return;
  readAddress();
  selected();
});
readAddress();
selected();
