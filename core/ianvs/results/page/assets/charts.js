// Charts draw the rows of the selection; a line under the pointer stands out and tells its numbers.
const swatches = new Map(boards.flatMap(({ rows }) => rows.map((one) => [one.id, one])));
const figures = all("figure.card").map((figure) => ({
  figure, series: all("[data-row]", figure), legend: figure.querySelector("ul.legend"), joins: all(".joins", figure), svg: figure.querySelector("svg[data-step]"),
}));
const light = (figure, id) => {
  for (const one of figure.series) {
    one.classList.toggle("dim", id !== null && one.dataset.row !== id);
    one.classList.toggle("lit", one.dataset.row === id);
  }
};

const parts = all("[data-row]");
let before = null;
followers.push(() => {
  const now = [...drawn].sort().join();
  if (now === before) return;
  before = now;
  for (const one of parts) one.classList.toggle("off", !drawn.has(one.dataset.row));
  for (const figure of figures) {
    const ids = [...new Set(figure.series.map((one) => one.dataset.row))];
    const some = ids.filter((id) => drawn.has(id));
    // Lines that join rows say nothing where some of these are missing.
    for (const one of figure.joins) one.classList.toggle("off", some.length < ids.length);
    if (figure.svg) closeUp(figure.svg, figure.series);
    figure.legend?.replaceChildren(...some.map((id) => {
      const line = make("li");
      const sample = swatches.get(id)?.row.querySelector("svg.sample");
      if (sample) line.append(sample.cloneNode(true));
      line.append(swatches.get(id)?.name ?? id);
      line.addEventListener("pointerenter", () => light(figure, id));
      line.addEventListener("pointerleave", () => light(figure, null));
      return line;
    }));
  }
});
// A chart with a row below the other loses the height of those that are not drawn.
const closeUp = (svg, series) => {
  const step = Number(svg.dataset.step);
  let gone = 0;
  for (const one of series) {
    if (one.classList.contains("off")) gone += step;
    else one.setAttribute("transform", `translate(0 ${-gone})`);
  }
  svg.dataset.tall ??= svg.getAttribute("height");
  const tall = Number(svg.dataset.tall) - gone;
  svg.setAttribute("height", tall);
  svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${tall}`);
};

for (const figure of figures) {
  for (const one of figure.series) {
    one.addEventListener("pointerenter", () => light(figure, one.dataset.row));
    one.addEventListener("pointerleave", () => light(figure, null));
  }
}
// Of a line, the value at the place that is nearest to the pointer.
const nearest = (mark, event) => {
  const line = mark.querySelector(".line");
  const places = (line?.getAttribute("d").match(/[ML][-\d.]+/g) ?? []).map((step) => Number(step.slice(1)));
  const matrix = line?.getScreenCTM();
  const name = swatches.get(mark.dataset.row)?.name;
  if (!matrix || !mark.dataset.values) return name ? `${name}: ${mark.dataset.tip}` : mark.dataset.tip;
  const at = (event.clientX - matrix.e) / matrix.a;
  const k = places.reduce((best, x, n) => (Math.abs(x - at) < Math.abs(places[best] - at) ? n : best), 0);
  const across = line.ownerSVGElement.dataset.across;
  return `${name}, ${across} ${mark.dataset.values.split("|")[k]}`;
};
for (const mark of all("[data-tip]")) {
  const open = (event) => showTip([make("span", nearest(mark, event))], event.clientX + 12, event.clientY + 14);
  mark.addEventListener("pointermove", open);
  mark.addEventListener("pointerdown", open);
  mark.addEventListener("pointerleave", hideTip);
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
