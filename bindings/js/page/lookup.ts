// "One lookup": a filter of the chosen size, one key, and the bits that it probes.

import { BloomFilter, type Key } from "../src/index.js";
import { after, byId, choose, chosen, complain, make, messageOf, onChoice, say } from "./dom.js";
import { Drawing, type Probed } from "./drawing.js";
import { integer, shown } from "./keys.js";
import { body, isSet, lanesOf, masks } from "./mask.js";
import { count, percent, size as sizeText } from "./numbers.js";
import type { Sizing } from "./sizes.js";

/** The drawn filter's limits, so that the page stays quick. */
const MOST_BLOCKS = (16 << 20) / 64;
const MOST_KEYS = 1 << 24;
/** Other keys inserted at a time, then the page may react to its reader. */
const CHUNK = 1 << 17;
/** Milliseconds from one drawing to the next while other keys are inserted. */
const REDRAW = 120;
/** Inserted keys that are listed, the last ones. */
const LISTED = 8;

interface Drawn {
  blocks: number;
  nModules: number;
  k: number;
  /** Keys that the filter is for. */
  keys: number;
  /** The chosen size, if it is larger than the drawn one. */
  instead: Sizing | undefined;
}

function drawnSize(size: Sizing): Drawn {
  const { nModules, k } = size;
  const bits = size.bitsPerKey ?? NaN;
  const most = Math.max(1, Math.floor(Math.min(MOST_BLOCKS, (MOST_KEYS * bits) / 512) / nModules));
  const blocks = Math.min(size.blocks, most * nModules);
  const keys = Math.round((blocks * 512) / bits);
  return { blocks, nModules, k, keys, instead: blocks < size.blocks ? size : undefined };
}

class LookupPart {
  #drawing = new Drawing();
  #size: Drawn | undefined;
  #filter: BloomFilter | undefined;
  /** The bytes of the filter's lanes, until its bits change. */
  #bytes: Uint8Array | undefined;
  /** By the text that shows them. */
  #inserted = new Map<string, Key>();
  /** Other keys are the integers from 1 on: how many are to be in the filter, and how many are. */
  #others = 0;
  #added = 0;
  /** A number that changes when other keys are no longer to be inserted. */
  #run = 0;
  #rebuildSoon = after(150, () => this.#rebuild());
  #announceSoon = after(700, () => say(byId("lookup-status"), byId("verdict-text").textContent ?? ""));

  constructor() {
    byId("key").addEventListener("input", () => this.#draw());
    onChoice("key-type", () => this.#draw());
    byId("lookup-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#insert();
    });
    byId("insert-others").addEventListener("click", () => this.#insertOthers(this.#others + 1000));
    byId("fill").addEventListener("click", () => this.#insertOthers(this.#room));
    byId("clear").addEventListener("click", () => {
      this.#inserted.clear();
      this.#others = 0;
      this.#rebuild();
    });
  }

  resize(size: Sizing): void {
    const drawn = drawnSize(size);
    const same = JSON.stringify(drawn) === JSON.stringify(this.#size);
    this.#size = drawn;
    if (!this.#filter) this.#rebuild();
    else if (!same) this.#rebuildSoon();
  }

  get started(): boolean {
    return this.#filter !== undefined;
  }

  standalone = (): Uint8Array | undefined => this.#filter?.toBytes();

  /** How many other keys fill the filter. */
  get #room(): number {
    return Math.max(0, (this.#size?.keys ?? 0) - this.#inserted.size);
  }

  /** A new filter with the same keys. */
  #rebuild(): void {
    if (!this.#size) return;
    const { blocks, nModules, k } = this.#size;
    const old = this.#filter;
    this.#filter = new BloomFilter({ blocks, nModules, k });
    old?.free();
    this.#filter.addAll(this.#inserted.values());
    this.#added = 0;
    this.#insertOthers(Math.min(this.#others, this.#room));
  }

  #insert(): void {
    const key = this.#key();
    if (key === undefined || !this.#filter) return;
    this.#filter.add(key);
    // A repeated key becomes the last.
    this.#inserted.delete(shown(key));
    this.#inserted.set(shown(key), key);
    this.#changed();
  }

  /** Inserts integers until they are `others`. */
  #insertOthers(others: number): void {
    this.#others = others;
    this.#run += 1;
    let drawn = performance.now();
    const run = this.#run;
    const more = () => {
      if (run !== this.#run || !this.#filter) return;
      const length = Math.min(CHUNK, this.#others - this.#added);
      const first = this.#added + 1;
      this.#filter.addAll(Int32Array.from({ length }, (_, i) => first + i));
      this.#added += length;
      const done = this.#added >= this.#others;
      if (done || performance.now() - drawn > REDRAW) {
        this.#changed();
        drawn = performance.now();
      }
      if (!done) setTimeout(more);
    };
    more();
  }

  #changed(): void {
    this.#bytes = undefined;
    this.#draw();
    this.#showFacts();
  }

  /** The typed key, unless it is none: then an error is beside it. */
  #key(): Key | undefined {
    const input = byId<HTMLInputElement>("key");
    const error = byId("key-error");
    try {
      const key = chosen("key-type") === "integer" ? integer(input.value) : input.value;
      this.#filter?.hash(key);
      complain(input, error);
      return key;
    } catch (problem) {
      complain(input, error, messageOf(problem));
      return undefined;
    }
  }

  #draw(): void {
    const key = this.#key();
    byId("lookup").classList.toggle("invalid", key === undefined);
    if (key === undefined || !this.#filter) return;
    const filter = this.#filter;
    const bytes = this.#bytes ??= body(filter.toBytes(), filter.nModules);
    const blocks = filter.blocks / filter.nModules;
    const modules = masks(filter.hash(key), filter).map((mask, i) =>
      ({ ...mask, lanes: lanesOf(bytes, i * blocks + mask.block) }));
    this.#drawing.show({ key: shown(key), blocks, modules });
    showProbes(modules);
    this.#showVerdict(shown(key), filter.has(key), modules);
  }

  #showVerdict(key: string, present: boolean, modules: Probed[]): void {
    byId("present").classList.toggle("is", present);
    byId("absent").classList.toggle("is", !present);
    const states = modules.flatMap(({ probes, lanes }) => probes.map((probe) => isSet(lanes, probe)));
    const clear = states.filter((set) => !set).length;
    const why = present
      ? `all ${states.length} probed bits are set` : `${clear} of ${states.length} probed bits are clear`;
    const wrong = present && !this.#has(key) ? " This is a false positive: the key was not inserted." : "";
    say(byId("verdict-text"), `${key} is ${present ? "possibly present" : "definitely absent"}: ${why}.${wrong}`);
    this.#announceSoon();
  }

  /** Whether the key was inserted. */
  #has(key: string): boolean {
    const other = /^\d+$/.test(key) ? Number(key) : 0;
    return this.#inserted.has(key) || (other >= 1 && other <= this.#added);
  }

  #showFacts(): void {
    const [filter, size] = [this.#filter, this.#size];
    if (!filter || !size) return;
    const keys = this.#inserted.size + this.#added;
    const among = this.#inserted.size ? "among them the" : "the";
    const others = this.#added ? `, ${among} integers 1 to ${count(this.#added)}` : "";
    const inserted = `${count(keys)} ${keys === 1 ? "key" : "keys"} inserted${others}`;
    say(byId("filter-facts"), keys === 0 ? "The filter is empty."
      : `${inserted}: ${percent(filter.fillRatio)} of the bits are set, and the false-positive rate is now ` +
        `${percent(filter.estimatedFpr)}.`);
    say(byId("filter-note"), size.instead
      ? `A filter of ${sizeText(size.instead.byteLength)} is too large for this drawing. The filter drawn takes ` +
        `${sizeText(size.blocks * 64)}, for ${count(size.keys)} keys, with the same bits per key.` : "");
    say(byId("fill"), `Fill to ${count(size.keys)} keys`);
    byId<HTMLButtonElement>("fill").disabled = this.#others >= this.#room;
    byId<HTMLButtonElement>("clear").disabled = keys === 0;
    this.#listInserted();
  }

  /** Buttons that show an inserted key again. */
  #listInserted(): void {
    const last = [...this.#inserted].slice(-LISTED).reverse();
    byId("inserted").replaceChildren(...last.map(([text, key]) => {
      const button = make("button", { type: "button" }, text);
      button.addEventListener("click", () => {
        byId<HTMLInputElement>("key").value = String(key);
        choose("key-type", typeof key === "string" ? "text" : "integer");
        this.#draw();
      });
      return make("li", {}, button);
    }));
    byId("inserted-keys").hidden = last.length === 0;
  }
}

function showProbes(modules: Probed[]): void {
  byId("probes").querySelector("tbody")?.replaceChildren(...modules.flatMap(({ probes, lanes }, i) =>
    probes.map((probe, j) => {
      const cells = [i, j, probe.lane, probe.bit, isSet(lanes, probe) ? "set" : "clear"];
      return make("tr", {}, ...cells.map((cell) => make("td", {}, String(cell))));
    })));
}

export function startLookup(): Pick<LookupPart, "resize" | "standalone" | "started"> {
  return new LookupPart();
}
