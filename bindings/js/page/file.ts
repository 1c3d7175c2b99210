// "Your file": opens a filter or a bank, and asks it for keys.

import { BloomView, FilterBank, type Key } from "../src/index.js";
import { after, byId, chosen, complain, make, messageOf, onChoice, say } from "./dom.js";
import { keysOf, shown } from "./keys.js";
import { count, percent, size as sizeText } from "./numbers.js";

/** How a bank's file ends: docs/format.md, section 12. */
const BANK = "\x89blbnk\r\n";
/** Answers that are listed. */
const LISTED = 1000;
/** Slots of a bank that are listed. */
const SLOTS = 20;

type Opened = BloomView | FilterBank;

let opened: Opened | undefined;
/** A number that changes when another file is opened. */
let run = 0;

export function startFile(drawn: () => Uint8Array | undefined): void {
  const input = byId<HTMLInputElement>("file");
  input.addEventListener("change", () => {
    const [file] = input.files ?? [];
    if (file) void open(file, file.name);
  });
  // The same file can be chosen again after it changed.
  input.addEventListener("click", () => (input.value = ""));
  byId("use-drawn").addEventListener("click", () => {
    const bytes = drawn();
    input.value = "";
    if (bytes) void open(new Blob([bytes as Uint8Array<ArrayBuffer>]), "the filter drawn above");
  });
  // A file dropped beside the frame must not replace the page.
  addEventListener("dragover", (event) => {
    event.preventDefault();
    byId("drop").classList.add("over");
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) byId("drop").classList.remove("over");
  });
  addEventListener("drop", (event) => {
    event.preventDefault();
    byId("drop").classList.remove("over");
    const files = event.dataTransfer?.files;
    const file = files?.[0];
    if (!file) return;
    input.files = files;
    byId("file-section").scrollIntoView();
    void open(file, file.name);
  });
  byId("ask").addEventListener("input", after(150, answer));
  onChoice("ask-type", answer);
}

async function open(file: Blob, name: string): Promise<void> {
  run += 1;
  const mine = run;
  const status = byId("file-status");
  complain(byId("file"), byId("file-error"));
  byId("opened").hidden = true;
  opened?.free();
  opened = undefined;
  say(status, `Reading ${name}, ${sizeText(file.size)} …`);
  try {
    const end = String.fromCharCode(...new Uint8Array(await file.slice(-8).arrayBuffer()));
    const type = end === BANK ? FilterBank : BloomView;
    // A response, because its bytes go straight into WebAssembly's memory.
    const filter = await type.fromResponse(new Response(file, { headers: { "content-length": String(file.size) } }), {
      onProgress: (loaded) => {
        if (mine === run) say(status, `Reading ${name}: ${sizeText(loaded)} of ${sizeText(file.size)} …`);
      },
    });
    if (mine !== run) {
      filter.free();
      return;
    }
    opened = filter;
    say(status, `Opened ${name}, ${sizeText(file.size)}. Its checksums match.`);
    showFacts(filter);
    byId("opened").hidden = false;
    answer();
  } catch (error) {
    if (mine !== run) return;
    say(status, "");
    complain(byId("file"), byId("file-error"), `${name}: ${messageOf(error)}`);
  }
}

function showFacts(filter: Opened): void {
  const facts = filter instanceof FilterBank ? factsOfBank(filter) : factsOf(filter);
  byId("file-facts").replaceChildren(...facts.map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

type Facts = [name: string, value: string][];

function factsOf(filter: BloomView): Facts {
  const estimate = filter.estimatedKeys;
  const keys = filter.knownKeys !== undefined ? count(filter.knownKeys)
    : estimate ? `about ${count(estimate.keys)} ± ${count(Math.ceil(estimate.standardError))}`
    : "too full to estimate";
  return [
    ["Distinct keys", keys],
    ["Blocks", count(filter.blocks)],
    ["Modules", String(filter.nModules)],
    ["Probes per module (k)", String(filter.k)],
    ["Seed", String(filter.seed)],
    ["Bits set", percent(filter.fillRatio)],
    ["False-positive rate", percent(filter.estimatedFpr)],
  ];
}

function factsOfBank(bank: FilterBank): Facts {
  return [
    ["Filters (slots)", count(bank.slots)],
    ["Blocks per filter", count(bank.blocks)],
    ["Probes per key (k)", String(bank.k)],
    ["Seed", String(bank.seed)],
  ];
}

interface Answer {
  present: boolean;
  text: string;
}

function ask(keys: Key[]): Answer[] {
  const filter = opened;
  if (!filter) return [];
  if (filter instanceof FilterBank) return keys.map((key) => ofSlots(filter.find(key)));
  return Array.from(filter.hasAll(keys), (found) =>
    ({ present: found === 1, text: found === 1 ? "possibly present" : "definitely absent" }));
}

function ofSlots(slots: number[]): Answer {
  if (slots.length === 0) return { present: false, text: "definitely absent from all slots" };
  const more = slots.length > SLOTS ? ` and ${count(slots.length - SLOTS)} more` : "";
  const name = slots.length === 1 ? "slot" : "slots";
  return { present: true, text: `possibly present in ${name} ${slots.slice(0, SLOTS).join(", ")}${more}` };
}

/** Asks for all keys in the text area. */
function answer(): void {
  if (!opened) return;
  const input = byId<HTMLTextAreaElement>("ask");
  const error = byId("ask-error");
  let keys: Key[] = [];
  let answers: Answer[] = [];
  try {
    keys = keysOf(input.value, chosen("ask-type"));
    answers = ask(keys);
    complain(input, error);
  } catch (problem) {
    complain(input, error, messageOf(problem));
    keys = [];
  }
  byId("answers").replaceChildren(...keys.slice(0, LISTED).map((key, i) => {
    const { present, text } = answers[i] ?? { present: true, text: "" };
    const shownKey = make("span", { class: "asked" }, shown(key));
    const shownAnswer = make("span", { class: "answer" }, text);
    return make("li", { class: present ? "present" : "absent" }, shownKey, " ", shownAnswer);
  }));
  say(byId("ask-status"), summary(answers));
}

function summary(answers: Answer[]): string {
  if (answers.length === 0) return "No keys yet.";
  const present = answers.filter((answer) => answer.present).length;
  const listed = answers.length > LISTED ? ` The first ${count(LISTED)} are listed.` : "";
  return `${count(answers.length)} ${answers.length === 1 ? "key" : "keys"}: ${count(present)} possibly present, ` +
    `${count(answers.length - present)} definitely absent.${listed}`;
}
