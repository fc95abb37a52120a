// Charts over time: stacked bars, drawn by uPlot.

import { color } from "./dom.js";

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000, 31_536_000];

/** Equal parts of time over all positions, at most `most`; `start` and `step` in seconds. */
export function bins(events, found, most) {
  let [first, last] = [Infinity, -Infinity];
  for (const at of found) {
    const time = events.time[at];
    if (time < first) first = time;
    if (time > last) last = time;
  }
  if (first > last) return { start: 0, step: 1, count: 0 };
  const span = (last - first) / 1000;
  const step = STEPS.find((step) => span / step <= most - 2) ?? STEPS.at(-1);
  const start = Math.floor(first / 1000 / step) * step;
  return { start, step, count: Math.min(Math.floor((last / 1000 - start) / step) + 1, 10_000) };
}

export const bin = (bins, millis) => Math.floor((millis / 1000 - bins.start) / bins.step);

/** Stacked bars. `series`: `{ color }`, the lowest first. `chosen(from, to)` in milliseconds when a range is dragged. */
export class Bars {
  constructor(host, { height, series, chosen, hover }) {
    Object.assign(this, { host, height, chosen, hover });
    const axis = { stroke: () => color("muted"), font: "11px system-ui, sans-serif", ticks: { show: false }, border: { show: false } };
    const options = {
      width: this.width,
      height,
      legend: { show: false },
      padding: [8, 20, 0, 0],
      cursor: { y: false, points: { show: false }, drag: { x: Boolean(chosen), y: false, setScale: false } },
      scales: { x: { time: true, range: (_, low, high) => (low === null ? [0, 1] : [low, high + this.step]) }, y: { range: (_, __, high) => [0, Math.max(high ?? 1, 1)] } },
      axes: [
        { ...axis, grid: { show: false }, size: 20, gap: 4, space: 72, incrs: STEPS, values: (_, splits, __, ___, step) => splits.map((seconds) => label(seconds, step)) },
        { ...axis, grid: { stroke: () => color("line"), width: 1 }, size: 44, gap: 4, splits: (_, __, ___, high) => [0, high / 2, high].filter((value) => Number.isInteger(value)), values: (_, values) => values.map((value) => SHORT.format(value)) },
      ],
      series: [{}, ...series.toReversed().map((one) => ({ fill: () => color(one.color), stroke: () => color(one.color), width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.82, 60], align: 1 }) }))],
      hooks: { setSelect: [(chart) => this.select(chart)], setCursor: [(chart) => this.hover?.(chart.cursor.idx)] },
    };
    this.step = 1;
    this.chart = new uPlot(options, [[], ...series.map(() => [])], host);
    this.resize = new ResizeObserver(() => this.chart.setSize({ width: this.width, height }));
    this.resize.observe(host);
  }

  get width() {
    return Math.max(this.host.clientWidth, 120);
  }

  /** `values`: a list for each of the series, of the counts of each bin. */
  show(bins, values) {
    this.step = bins.step;
    const times = Array.from({ length: bins.count }, (_, at) => bins.start + at * bins.step);
    const stacked = [];
    for (const counts of values) {
      const below = stacked.at(-1);
      stacked.push(below ? counts.map((count, at) => count + below[at]) : counts);
    }
    this.bins = bins;
    this.chart.setData([times, ...stacked.toReversed()]);
  }

  select(chart) {
    const { left, width } = chart.select;
    if (width < 4 || !this.chosen) return;
    const [from, to] = [chart.posToVal(left, "x"), chart.posToVal(left + width, "x")];
    const snap = (seconds) => (this.bins.start + Math.floor((seconds - this.bins.start) / this.step) * this.step) * 1000;
    chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.chosen(snap(from), snap(to) + this.step * 1000);
  }

  /** Draws it in the colours of the theme. */
  redraw() {
    this.chart.redraw(false, false);
  }
}

const MINUTE = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const SECOND = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const DAY = new Intl.DateTimeFormat("en", { day: "numeric", month: "short" });

/** A time on the axis: the day at midnight and where steps are days, else the time of day. */
function label(seconds, step) {
  const at = new Date(seconds * 1000);
  if (step >= 86_400 || (at.getHours() === 0 && at.getMinutes() === 0 && at.getSeconds() === 0)) return DAY.format(at);
  return (step < 60 ? SECOND : MINUTE).format(at);
}

const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
