// The chart of false-positive rates against bits per key.

import { type Sizing, sizing } from "../src/index.js";
import { byId, make, onWidth, set, svg } from "./dom.js";
import { percent, plain, rounded } from "./numbers.js";
import { type Rate, rocksdb, standard } from "./rates.js";

type Name = "standard" | "rocksdb" | "bloomline";

/** The chart has two ranges, the wider one only for a point that is not in the other. */
const RANGES = [
  { bits: 32, decades: 7, tick: 4, left: 76 },
  { bits: 64, decades: 9, tick: 8, left: 90 },
] as const;

const MARGIN = { right: 14, top: 26, bottom: 42 };
/** Many keys, for which rounding to whole blocks changes nothing. */
const MANY = 10_000_000;
/** Rows of the table. */
const TABLE = [2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32];

/** bloomline's rate by the exact model, which takes up to a millisecond: each is computed once. */
const computed = new Map<number, Rate>();

function bloomline(bits: number): Rate {
  let rate = computed.get(bits);
  if (!rate) {
    rate = rateOf(sizing({ expectedKeys: MANY, bitsPerKey: bits }));
    computed.set(bits, rate);
  }
  return rate;
}

const RATES: Record<Name, (bits: number) => Rate> = { standard, rocksdb, bloomline };

/** With the probes of all modules. */
export function rateOf({ nModules, k, fpr }: Sizing): Rate {
  return { k: nModules * k, fpr: fpr ?? NaN };
}

/** The point to mark: a filter of `bits` per key. */
export interface Point extends Rate {
  bits: number;
}

export class Chart {
  #element = byId<SVGSVGElement>("chart");
  #width = 0;
  #point: Point | undefined;

  /** `dragged` gets the bits per key under the pointer. */
  constructor(dragged: (bits: number) => void) {
    onWidth(this.#element, (width) => {
      this.#width = width;
      this.#draw();
    });
    this.#drags(dragged);
  }

  /** Without a point, only the curves. */
  mark(point: Point | undefined): void {
    this.#point = point;
    this.#draw();
    this.#describe();
  }

  get #range() {
    const bits = this.#point?.bits ?? 0;
    return bits > RANGES[0].bits && bits <= RANGES[1].bits ? RANGES[1] : RANGES[0];
  }

  #scales() {
    const { bits, decades, left } = this.#range;
    const height = Math.round(Math.min(380, Math.max(250, this.#width * 0.62)));
    const right = this.#width - MARGIN.right;
    const bottom = height - MARGIN.bottom;
    const x = (value: number) => left + (value / bits) * (right - left);
    const y = (rate: number) => {
      const below = Math.min(Math.max(-Math.log10(rate), 0), decades + 1);
      return MARGIN.top + (below / decades) * (bottom - MARGIN.top);
    };
    return { x, y, left, right, bottom, height };
  }

  #draw(): void {
    if (this.#width <= 0) return;
    const { x, y, left, right, bottom, height } = this.#scales();
    const range = this.#range;
    const grid = svg("g", { class: "grid" });
    const labels = svg("g", { class: "labels" });
    for (let decade = 0; decade <= range.decades; decade++) {
      const at = y(10 ** -decade);
      grid.append(svg("path", { d: `M${left} ${at}H${right}` }));
      const text = `${plain(100 * 10 ** -decade)}%`;
      labels.append(svg("text", { x: left - 7, y: at + 4, "text-anchor": "end" }, text));
    }
    for (let bits = 0; bits <= range.bits; bits += range.tick) {
      grid.append(svg("path", { d: `M${x(bits)} ${MARGIN.top}V${bottom}` }));
      labels.append(svg("text", { x: x(bits), y: bottom + 17, "text-anchor": "middle" }, String(bits)));
    }
    labels.append(
      svg("text", { x: 0, y: 12, class: "axis" }, "false-positive rate"),
      svg("text", { x: right, y: bottom + 36, class: "axis", "text-anchor": "end" }, "bits per key"),
    );
    const plot = svg("g", { "clip-path": "url(#plot)" });
    for (const name of ["standard", "rocksdb", "bloomline"] as const) {
      const points = [`M${x(0)} ${y(1)}`];
      for (let bits = 0.5; bits <= range.bits; bits += 0.5) {
        points.push(`L${x(bits).toFixed(1)} ${y(RATES[name](bits).fpr).toFixed(1)}`);
      }
      plot.append(svg("path", { class: `curve ${name}`, d: points.join("") }));
    }
    const area = { x: left, y: MARGIN.top - 4, width: right - left, height: bottom - MARGIN.top + 4 };
    const clip = svg("clipPath", { id: "plot" }, svg("rect", area));
    set(this.#element, { width: this.#width, height, viewBox: `0 0 ${this.#width} ${height}` });
    this.#element.replaceChildren(clip, grid, labels, plot, ...this.#marker());
  }

  #marker(): Element[] {
    const point = this.#point;
    if (!point || point.bits > this.#range.bits) return [];
    const { x, y, left, bottom } = this.#scales();
    const [cx, cy] = [x(point.bits), y(point.fpr)];
    return [
      svg("path", { class: "guide", d: `M${left} ${cy}H${cx}V${bottom}` }),
      svg("circle", { class: "marker", cx, cy, r: 6 }),
    ];
  }

  /** The legend's numbers, at the marked point. */
  #describe(): void {
    const point = this.#point;
    const at = point && `At ${rounded(point.bits)} bits per key`;
    byId("legend-caption").textContent = point && point.bits > this.#range.bits ? `${at}, off the chart` : at ?? "";
    for (const row of document.querySelectorAll<HTMLTableRowElement>("#chart-legend tbody tr")) {
      const name = row.dataset["curve"] as Name;
      // The formulas are for what can be requested, up to 64 bits per key.
      const rate = name === "bloomline" ? point : point && point.bits <= 64 ? RATES[name](point.bits) : undefined;
      const [k, fpr] = row.querySelectorAll("td");
      if (k) k.textContent = rate ? String(rate.k) : "–";
      if (fpr) fpr.textContent = rate ? percent(rate.fpr) : "–";
    }
  }

  #drags(dragged: (bits: number) => void): void {
    let held = false;
    const move = (event: PointerEvent) => {
      if (!held) return;
      const { left, right } = this.#scales();
      const part = (event.clientX - this.#element.getBoundingClientRect().left - left) / (right - left);
      // Dragging stays in the narrower range, for which the controls have their sliders.
      dragged(Math.min(Math.max(part, 0) * this.#range.bits, RANGES[0].bits));
    };
    this.#element.addEventListener("pointerdown", (event) => {
      held = event.isPrimary && event.button === 0;
      if (held) this.#element.setPointerCapture(event.pointerId);
      move(event);
    });
    this.#element.addEventListener("pointermove", move);
    for (const end of ["pointerup", "pointercancel"]) this.#element.addEventListener(end, () => (held = false));
  }
}

/** Fills the table below the chart. */
export function fillTable(): void {
  byId("chart-table").querySelector("tbody")?.replaceChildren(...TABLE.map((bits) => {
    const rates = [bloomline(bits), standard(bits), rocksdb(bits)];
    const cells = rates.map(({ fpr }) => make("td", {}, percent(fpr).replace("%", "")));
    return make("tr", {}, make("th", { scope: "row" }, String(bits)), ...cells);
  }));
}

/** bloomline's rate at these bits per key, for many keys. */
export function rateAt(bits: number): number {
  return bloomline(bits).fpr;
}
