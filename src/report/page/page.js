"use strict";
// Draws what stands in the element #data: curves, and tables that can be sorted. All text is set as text.
const data = JSON.parse(document.getElementById("data").textContent);
const COLOURS = ["#2f6fde", "#d9730d", "#188a57", "#8f4bd1", "#c4314b", "#0f8a9d", "#8a6d1a", "#7a7f87"];
const ink = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const short = v => v == null ? "–" : Math.abs(v) >= 1e5 || (v !== 0 && Math.abs(v) < 1e-3) ? v.toExponential(2)
  : String(+v.toPrecision(5));

function make(tag, text, name) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  return element;
}

// A chart is {title, x: name, xs: [...], series: [{label, values}]}.
function draw(chart, target) {
  const panel = make("div", undefined, "panel"), place = make("div");
  panel.append(make("h3", chart.title), place);
  target.append(panel);
  const axis = { stroke: () => ink("--soft"), grid: { stroke: () => ink("--line"), width: 1 }, ticks: { show: false } };
  const whole = vs => vs.map(v => Number.isInteger(v) ? String(v) : "");
  const plot = new uPlot({
    width: Math.max(200, place.clientWidth), height: 230, scales: { x: { time: false } },
    axes: [{ ...axis, values: (u, vs) => whole(vs), incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5] },
           { ...axis, size: 62, values: (u, vs) => vs.map(short) }],
    series: [{ label: chart.x, value: (u, v) => v == null ? "–" : String(v) }, ...chart.series.map((s, i) => ({
      label: s.label, stroke: COLOURS[i % COLOURS.length], width: 2, spanGaps: true, value: (u, v) => short(v),
      points: { show: chart.xs.length < 40, size: 6 } }))],
  }, [chart.xs, ...chart.series.map(s => s.values)], place);
  let width = place.clientWidth;
  new ResizeObserver(() => requestAnimationFrame(() => {
    if (place.clientWidth === width) return;
    width = place.clientWidth;
    plot.setSize({ width: Math.max(200, width), height: 230 });
  })).observe(panel);
}

function sortable(table) {
  table.querySelectorAll("th").forEach((head, column) => {
    const button = make("button", head.textContent);
    button.type = "button";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      table.querySelectorAll("th").forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const order = (a, b) => head.classList.contains("n") ? Number(a) - Number(b) : a.localeCompare(b);
      const rows = [...table.tBodies[0].rows].sort((a, b) => order(key(a), key(b)) * (down ? -1 : 1));
      table.tBodies[0].append(...rows);
    });
  });
}

for (const [place, charts] of Object.entries(data.charts))
  for (const chart of charts) draw(chart, document.getElementById(place));
document.querySelectorAll("table.sortable").forEach(sortable);
document.body.dataset.drawn = "yes";
