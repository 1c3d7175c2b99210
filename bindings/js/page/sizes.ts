// "Size": expected keys, and a rate or bits per key → a filter's size.

import { sizing } from "../src/index.js";
import { Chart, fillTable, rateAt, rateOf } from "./chart.js";
import { type Choice, sizeOf } from "./choice.js";
import { after, byId, choose, chosen, complain, make, messageOf, onChoice, perFrame, say } from "./dom.js";
import { count, parse, percent, plain, rounded, size as sizeText, source } from "./numbers.js";

export type Sizing = ReturnType<typeof sizing>;

/** Steps of a logarithmic slider within a decade. */
const STEPS = [1, 1.1, 1.25, 1.4, 1.6, 1.8, 2, 2.25, 2.5, 2.8, 3, 3.5, 4, 4.5, 5, 5.5, 6, 7, 8, 9];

/** The values of a logarithmic slider's steps, both ends included. */
function scale(from: number, to: number): number[] {
  const values: number[] = [];
  for (let decade = Math.floor(Math.log10(from)); values.at(-1) !== to; decade++) {
    for (const step of STEPS) {
      const value = Number(`${step}e${decade}`);
      if (value >= from && value <= to) values.push(value);
    }
  }
  return values;
}

interface FieldOptions {
  /** The slider's values, in its order. */
  values: number[];
  /** What the text shows is the value times this. */
  times: number;
  unit: string;
  accepts(value: number): boolean;
  /** What to say of a text that is no such number. */
  expected: string;
  changed(): void;
}

/** A number, as a text input with a slider. */
class Field {
  readonly input: HTMLInputElement;
  readonly error: Element;
  readonly slider: HTMLInputElement;
  #options: FieldOptions;
  #value = NaN;

  constructor(id: "keys" | "fpr" | "bits", options: FieldOptions) {
    this.#options = options;
    this.input = byId(id);
    this.error = byId(`${id}-error`);
    this.slider = byId(`${id}-slider`);
    Object.assign(this.slider, { min: "0", max: String(options.values.length - 1), step: "1" });
    this.input.addEventListener("input", () => {
      // Division leaves digits that nobody typed: 0.07 / 100 is 0.0007000000000000001.
      this.#value = Number((parse(this.input.value.replace(options.unit, "")) / options.times).toPrecision(12));
      this.#slide();
      options.changed();
    });
    this.input.addEventListener("change", () => this.#write());
    this.slider.addEventListener("input", () => {
      this.value = options.values[this.slider.valueAsNumber] ?? NaN;
      options.changed();
    });
  }

  get value(): number {
    return this.#value;
  }

  set value(value: number) {
    this.#value = value;
    this.#write();
    this.#slide();
  }

  /** What is wrong with the text itself. */
  get problem(): string {
    return this.#options.accepts(this.#value) ? "" : this.#options.expected;
  }

  #write(): void {
    if (!Number.isNaN(this.#value)) this.input.value = plain(this.#value * this.#options.times);
  }

  #slide(): void {
    if (Number.isNaN(this.#value)) return;
    const { values, times, unit } = this.#options;
    const distance = (value: number) => Math.abs(Math.log(value / this.#value));
    let nearest = 0;
    for (const i of values.keys()) {
      if (distance(values[i] ?? 0) < distance(values[nearest] ?? 0)) nearest = i;
    }
    this.slider.value = String(nearest);
    this.slider.setAttribute("aria-valuetext", plain(this.#value * times) + unit);
  }
}

/** Shows `first`, and calls `changed` with each choice that has a size, and whether the reader made it here. */
export function startSizes(first: Choice, changed: (choice: Choice, size: Sizing, byReader: boolean) => void) {
  const update = perFrame(() => show(true));
  const fields = {
    keys: new Field("keys", {
      values: scale(10, 1e9), times: 1, unit: "",
      accepts: (keys) => Number.isInteger(keys) && keys >= 0 && keys < 2 ** 32,
      expected: "Give a whole number up to 4,294,967,295, such as 1,000,000 or 250M.", changed: update,
    }),
    fpr: new Field("fpr", {
      values: scale(1e-5, 0.3).reverse(), times: 100, unit: "%", accepts: (fpr) => fpr > 0 && fpr < 1,
      expected: "Give a percentage between 0 and 100, such as 0.1.", changed: update,
    }),
    bits: new Field("bits", {
      values: Array.from({ length: 301 }, (_, i) => (i + 20) / 10), times: 1, unit: "",
      accepts: (bits) => bits > 0 && bits <= 64, expected: "Give a number above 0 and up to 64, such as 10.",
      changed: update,
    }),
  };
  let size: Sizing | undefined;
  const chart = new Chart((bits) => {
    if (chosen("by") === "bits") fields.bits.value = Math.max(Number(bits.toFixed(1)), 0.1);
    else fields.fpr.value = Number(Math.min(rateAt(Math.max(bits, 0.1)), 0.9).toPrecision(2));
    update();
  });
  const announce = after(700, () => say(byId("size-status"), summary(size)));

  onChoice("by", () => {
    // The other control starts at the size that this one had.
    if (chosen("by") === "bits") fields.bits.value = Number(Math.min(size?.bitsPerKey ?? 10, 64).toFixed(1));
    else fields.fpr.value = Number(Math.max(size?.fpr ?? 0.01, 1e-10).toPrecision(2));
    update();
  });

  function choice(): Choice {
    const by = chosen("by") === "bits" ? "bits" : "fpr";
    return { keys: fields.keys.value, by, fpr: fields.fpr.value, bits: fields.bits.value };
  }

  function show(byReader: boolean): void {
    const now = choice();
    byId("fpr-field").hidden = now.by !== "fpr";
    byId("bits-field").hidden = now.by !== "bits";
    const problems = { keys: fields.keys.problem, [now.by]: fields[now.by].problem };
    size = undefined;
    if (!problems.keys && !problems[now.by]) {
      try {
        size = sizing(sizeOf(now));
      } catch (error) {
        const message = messageOf(error);
        problems[message.includes("out of reach") ? now.by : "keys"] = explained(message);
      }
    }
    for (const [name, field] of Object.entries(fields)) complain(field.input, field.error, problems[name]);
    byId("size").classList.toggle("invalid", !size);
    showFacts(size);
    showCode(size && now);
    chart.mark(size && { bits: size.bitsPerKey ?? NaN, ...rateOf(size) });
    announce();
    if (size) changed(now, size, byReader);
  }

  function set(next: Choice): void {
    choose("by", next.by);
    for (const name of ["keys", "fpr", "bits"] as const) fields[name].value = next[name];
    show(false);
  }

  set(first);
  // The table is not visible at first, so that it need not be drawn at first.
  setTimeout(fillTable, 200);
  return { set };
}

/** Rates are in per cent here, and WebAssembly is the machine of the package's message, not the reader's. */
function explained(message: string): string {
  return message.replace(/[\d.]+e-\d+/g, (rate) => `${Number((100 * Number(rate)).toPrecision(6))}%`)
    .replace(/address space.*/, "$&. In a browser a filter has at most 2 GiB, in a 64-bit program more.");
}

function summary(size: Sizing | undefined): string {
  if (!size) return "";
  const modules = `${size.nModules} ${size.nModules === 1 ? "module" : "modules"}`;
  return `${sizeText(size.byteLength)}, ${count(size.blocks)} blocks, ${modules}, k ${size.k}, ` +
    `${rounded(size.bitsPerKey ?? NaN)} bits per key, false-positive rate ${percent(size.fpr ?? NaN)}`;
}

function showFacts(size: Sizing | undefined): void {
  const facts = {
    short: size && sizeText(size.byteLength),
    bytes: size && size.byteLength >= 1000 ? `${count(size.byteLength)} bytes` : "",
    blocks: size && count(size.blocks),
    modules: size && String(size.nModules),
    k: size && String(size.k),
    bits: size && rounded(size.bitsPerKey ?? NaN),
    fpr: size && percent(size.fpr ?? NaN),
  };
  for (const [name, text] of Object.entries(facts)) byId(`size-${name}`).textContent = text ?? "–";
}

/** The calls that make this filter. */
function showCode(choice: Choice | undefined): void {
  byId("size-code").hidden = !choice;
  if (!choice) return;
  const { keys, by, bits } = choice;
  const [grouped, fpr] = [source(keys), plain(choice.fpr).replaceAll(",", "")];
  // Rust takes no integer for a floating-point number, and Java no integer of more than 31 bits without its L.
  const [float, long] = [Number.isInteger(bits) ? `${bits}.0` : bits, keys < 2 ** 31 ? grouped : `${grouped}L`];
  const code = by === "fpr" ? {
    "Rust": `BloomFilter::with_fpr(${grouped}, ${fpr})?`,
    "Python": `BloomFilter(${grouped}, ${fpr})`,
    "JavaScript": `new BloomFilter({ expectedKeys: ${grouped}, fpr: ${fpr} })`,
    "Java": `new BloomFilter(${long}, ${fpr})`,
    "C": `bloomline_filter_with_fpr(${keys}, ${fpr})`,
    "SQL": `bloom_filter(key, ${keys}, ${fpr})`,
    "Command line": `bloomline build --keys ${keys} --fpr ${fpr} -o keys.bloom keys.txt`,
  } : {
    "Rust": `BloomFilter::with_bits_per_key(${grouped}, ${float})?`,
    "Python": `BloomFilter.with_bits_per_key(${grouped}, ${bits})`,
    "JavaScript": `new BloomFilter({ expectedKeys: ${grouped}, bitsPerKey: ${bits} })`,
    "Java": `new BloomFilter(Sizing.forBitsPerKey(${long}, ${bits}), 0)`,
    "C": `bloomline_filter_with_bits_per_key(${keys}, ${bits})`,
    "Command line": `bloomline build --keys ${keys} --bits-per-key ${bits} -o keys.bloom keys.txt`,
  };
  byId("size-code").replaceChildren(...Object.entries(code).map(([language, line]) =>
    make("div", {}, make("dt", {}, language), make("dd", {}, make("code", {}, line)))));
}
