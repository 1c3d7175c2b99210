// The page's entry point: wires its three parts and the address.

import { sizing } from "../src/index.js";
import { FIRST, fromHash, sizeOf, toHash } from "./choice.js";
import { after } from "./dom.js";
import { startFile } from "./file.js";
import { startLookup } from "./lookup.js";
import { startSizes } from "./sizes.js";

let hash = "";
// Browsers limit how often a page may change its address.
const write = after(250, () => history.replaceState(null, "", hash));

const lookup = startLookup();
const sizes = startSizes(fromHash(location.hash), (choice, size, byReader) => {
  lookup.resize(size);
  // A choice that comes from the address is there already.
  if (!byReader) return;
  hash = toHash(choice);
  write();
});
// An address whose choice has no size leaves the drawing without a filter.
if (!lookup.started) lookup.resize(sizing(sizeOf(FIRST)));
startFile(lookup.standalone);

addEventListener("hashchange", () => sizes.set(fromHash(location.hash)));
requestAnimationFrame(() => performance.mark("drawn"));
