// The drawing of one lookup, after docs/lookup.svg: key → hash → block → lanes and bits.

import { byId, onWidth, set, svg } from "./dom.js";
import { isSet, type Mask, type Probe } from "./mask.js";
import { count } from "./numbers.js";

/** In one module: what is probed, and the block's lanes. */
export interface Probed extends Mask {
  lanes: bigint[];
}

export interface Lookup {
  /** As shown, with quotation marks around text. */
  key: string;
  /** Number of blocks of each module. */
  blocks: number;
  modules: Probed[];
}

/** From this width on, the lanes are in one row. */
const WIDE = 640;
const GAP = 6;
const BOX = 46;
/** Between two modules. */
const BETWEEN = 24;

interface Layout {
  wide: boolean;
  left: number;
  width: number;
  right: number;
  /** Pixels from one bit to the next, and lanes in a row. */
  pitch: number;
  perRow: number;
}

const element = (): SVGSVGElement => byId("drawing");

export class Drawing {
  #lookup: Lookup | undefined;
  #width = 0;
  #modules: Module[] = [];

  constructor() {
    onWidth(element(), (width) => {
      this.#width = width;
      this.#draw(true);
    });
  }

  show(lookup: Lookup): void {
    const relayout = lookup.modules.length !== this.#modules.length;
    if (relayout) {
      this.#modules = lookup.modules.map(() => new Module());
      element().replaceChildren(...this.#modules.map((module) => module.group));
    }
    this.#lookup = lookup;
    this.#draw(relayout);
  }

  #draw(relayout: boolean): void {
    const lookup = this.#lookup;
    if (!lookup || this.#width <= 0) return;
    const layout = layoutOf(this.#width);
    let height = -BETWEEN;
    this.#modules.forEach((module, i) => {
      set(module.group, { transform: `translate(0 ${height + BETWEEN})` });
      height += BETWEEN + module.show(lookup, i, layout, relayout);
    });
    if (relayout) set(element(), { width: this.#width, height, viewBox: `0 0 ${this.#width} ${height}` });
    byId("drawing-name").textContent = describe(lookup);
  }
}

/** The rows of one module, one below the other. */
class Module {
  readonly group = svg("g", { class: "module" });
  /** Rows 1 and 2, drawn anew each time. */
  #above = svg("g");
  #lanes = Array.from({ length: 8 }, () => new Lane());

  constructor() {
    this.group.append(this.#above, ...this.#lanes.map((lane) => lane.group));
  }

  /** Returns its height. */
  show(lookup: Lookup, index: number, layout: Layout, relayout: boolean): number {
    const { y, parts } = above(lookup, index, layout);
    this.#above.replaceChildren(...parts);
    const side = 8 * layout.pitch + 3;
    const step = (layout.width - side) / (layout.perRow - 1);
    const rowHeight = side + 48;
    this.#lanes.forEach((lane, i) => {
      if (relayout) {
        const [column, row] = [i % layout.perRow, Math.floor(i / layout.perRow)];
        lane.place(Math.round(layout.left + column * step), y + row * rowHeight, layout.pitch);
      }
      lane.show(i, lookup.modules[index]!);
    });
    return y + (8 / layout.perRow) * rowHeight - 8;
  }
}

function layoutOf(total: number): Layout {
  const wide = total >= WIDE;
  const left = wide ? 30 : 0;
  const width = total - left;
  const perRow = wide ? 8 : 4;
  const pitch = Math.floor(((width - (perRow - 1) * GAP) / perRow - 3) / 8);
  return { wide, left, width, right: total, pitch, perRow };
}

/** One of the eight lanes: a frame, 64 bits and two lines below. */
class Lane {
  readonly group = svg("g", { class: "lane" });
  #frame = svg("rect", { class: "frame" });
  #bits = Array.from({ length: 64 }, (_, bit) => svg("rect", { class: "bit", "data-bit": bit }));
  #name = svg("text", { class: "small", "text-anchor": "middle" });
  #probed = svg("text", { class: "small", "text-anchor": "middle" });

  constructor() {
    this.group.append(this.#frame, ...this.#bits, this.#name, this.#probed);
  }

  place(x: number, y: number, pitch: number): void {
    const side = 8 * pitch + 3;
    set(this.group, { transform: `translate(${x} ${y})` });
    set(this.#frame, { x: 0.5, y: 0.5, width: side - 1, height: side - 1 });
    this.#bits.forEach((rect, bit) => {
      const [column, row] = [bit % 8, Math.floor(bit / 8)];
      set(rect, { x: 2 + column * pitch, y: 2 + row * pitch, width: pitch - 1, height: pitch - 1 });
    });
    set(this.#name, { x: side / 2, y: side + 16 });
    set(this.#probed, { x: side / 2, y: side + 32 });
  }

  show(index: number, { lanes, probes }: Probed): void {
    const probed = probes.filter(({ lane }) => lane === index).map(({ bit }) => bit);
    this.group.setAttribute("data-lane", String(index));
    this.#bits.forEach((rect, bit) => {
      rect.classList.toggle("set", isSet(lanes, { lane: index, bit }));
      rect.classList.toggle("probed", probed.includes(bit));
    });
    this.#name.textContent = `lane ${index}`;
    const [first, second] = probed;
    this.#probed.textContent = first === undefined ? "not probed"
      : second === undefined ? `bit ${first}` : first === second ? `bit ${first} twice` : `bits ${first}, ${second}`;
    this.#probed.classList.toggle("probed", first !== undefined);
  }
}

/** Rows 1 and 2 of a module, and the line above its lanes. `y` is where the lanes start. */
function above({ key, blocks, modules }: Lookup, index: number, layout: Layout): { y: number; parts: Element[] } {
  const { wide, left, width, right } = layout;
  const { hash, block, probes } = modules[index]!;
  const parts: Element[] = [];
  const numeral = (text: string, y: number) => {
    if (wide) parts.push(svg("text", { x: 0, y, class: "numeral" }, text));
  };

  // 1: the key and its hash in this module.
  const hashWidth = wide ? 230 : 164;
  const arrow = wide ? 60 : 24;
  const keyWidth = wide ? 230 : width - hashWidth - arrow;
  const hashLeft = left + keyWidth + arrow;
  numeral("1", 29);
  const [name, below] = index === 0 ? [fitted(key, (keyWidth - 14) / 8.2), "the key"]
    : [`module ${index}`, "if all above are set"];
  parts.push(...box(left, keyWidth, name, below));
  parts.push(...arrowTo(`M${left + keyWidth} ${BOX / 2}H${hashLeft}`, hashLeft, BOX / 2, "0 0 -8 -4 -8 4"));
  parts.push(...box(hashLeft, hashWidth, hex(hash), "hash: 64 bits"));

  // 2: the block among the module's blocks.
  const top = wide ? 118 : 124;
  const cells = Math.min(blocks, wide ? 24 : 14);
  const cell = width / cells;
  const picked = Math.floor((block / blocks) * cells);
  const pickedLeft = left + picked * cell;
  const x = pickedLeft + cell / 2;
  numeral("2", top + 21);
  for (let i = 0; i < cells; i++) {
    if (i !== picked) parts.push(cellOf(left + i * cell, top, cell, ""));
  }
  parts.push(cellOf(pickedLeft, top, cell, "picked"));
  const path = `M${hashLeft + hashWidth / 2} ${BOX}V66H${x}V${top - 2}`;
  parts.push(...arrowTo(path, x, top - 2, "0 0 -4 -8 4 -8", "blue"));
  const after = x < left + width / 2;
  const label = { x: after ? x + 12 : x - 12, "text-anchor": after ? "start" : "end" };
  const selects = `selects block ${count(block)}`;
  const of = `of ${count(blocks)}${blocks === 1 ? " block" : " blocks"}`;
  const where = modules.length === 1 ? ": the only cache line read" : ` of module ${index}`;
  if (wide) {
    parts.push(svg("text", { ...label, y: 96 }, `${selects} ${of}${where}`));
  } else {
    parts.push(svg("text", { ...label, y: 88, class: "small" }, selects));
    parts.push(svg("text", { ...label, y: 106, class: "small" }, of));
  }

  // 3: the bits.
  const bottom = top + 30;
  const y = bottom + (wide ? 70 : 64);
  numeral("3", y + 22);
  parts.push(svg("path", {
    class: "zoom",
    d: `M${pickedLeft + 1} ${bottom + 2}L${left} ${y - 3}M${pickedLeft + cell - 1} ${bottom + 2}L${right} ${y - 3}`,
  }));
  const middle = { x: left + width / 2, y: y - 14, "text-anchor": "middle", class: wide ? "halo" : "halo small" };
  parts.push(svg("text", middle, bitsText(probes)));
  return { y, parts };
}

function box(x: number, width: number, text: string, below: string): Element[] {
  return [
    svg("rect", { class: "box", x: x + 0.5, y: 0.5, width: width - 1, height: BOX - 1, rx: 4 }),
    svg("text", { x: x + width / 2, y: 20, "text-anchor": "middle", class: "mono" }, text),
    svg("text", { x: x + width / 2, y: 38, "text-anchor": "middle", class: "small muted" }, below),
  ];
}

/** A line, and a triangle whose tip is at (x, y). */
function arrowTo(d: string, x: number, y: number, head: string, colour = ""): Element[] {
  return [
    svg("path", { class: `arrow ${colour}`, d }),
    svg("polygon", { class: `head ${colour}`, points: head, transform: `translate(${x} ${y})` }),
  ];
}

function cellOf(x: number, y: number, width: number, kind: string): Element {
  const gap = Math.min(2, width / 8);
  return svg("rect", { class: `cell ${kind}`, x: x + gap, y, width: width - 2 * gap, height: 30 });
}

/** `text`, cut to the width of `most` letters. East Asian characters and emoji are twice as wide. */
function fitted(text: string, most: number): string {
  let [shown, width] = ["", 0];
  for (const character of text) {
    width += character >= "\u1100" ? 2 : 1;
    if (width > most) return `${shown}…`;
    shown += character;
  }
  return shown;
}

function hex(hash: bigint): string {
  return `0x${hash.toString(16).padStart(16, "0")}`;
}

function bitsText(probes: Probe[]): string {
  const k = probes.length;
  const [first] = probes;
  if (k === 1) return `and one bit, in lane ${first?.lane}`;
  if (k < 8) return `and one bit in each of ${k} lanes: ${probes.map(({ lane }) => lane).join(", ")}`;
  if (k === 8) return "and one bit in each of the eight lanes";
  return k === 16 ? "and two bits in each of the eight lanes" : `and ${k} bits: one or two in each lane`;
}

/** The drawing for screen readers. The table of probes has the rest. */
function describe({ key, blocks, modules }: Lookup): string {
  return modules.map(({ hash, block, probes, lanes }, i) => {
    const clear = probes.filter((probe) => !isSet(lanes, probe)).length;
    return `${i === 0 ? `The key ${key}` : `In module ${i}, it`} has the hash ${hex(hash)}. It selects block ` +
      `${count(block)} of ${count(blocks)}, counted from 0, and ${probes.length} bits, of which ${clear} are clear.`;
  }).join(" ");
}
