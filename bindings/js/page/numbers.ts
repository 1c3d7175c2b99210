// Numbers as text, and text as numbers.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3, minimumSignificantDigits: 3 });
const exact = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 12 });

/** 1,241,856 */
export function count(number: number): string {
  return whole.format(number);
}

/** As few digits as show all of the number: 0.1, 1,000,000 */
export function plain(number: number): string {
  return exact.format(number);
}

/** 9.93 */
export function rounded(number: number): string {
  return number >= 1000 ? whole.format(number) : short.format(number);
}

/** A rate as 0.97%. Below 1e-10 the model's rounding errors are larger than the rate. */
export function percent(rate: number): string {
  return rate < 1e-10 ? "below 0.00000001%" : `${short.format(rate * 100)}%`;
}

/** 1.24 MB, in powers of 1,000. */
export function size(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (bytes >= 999.5 && unit < units.length - 1) {
    bytes /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? whole.format(bytes) : short.format(bytes)} ${units[unit]}`;
}

const POWERS: Record<string, string> = { k: "e3", K: "e3", M: "e6", G: "e9", T: "e12", P: "e15", E: "e18" };

/**
 * A number as people type it: 1,000,000 or 1_000_000 or 1e6 or 1M, as on the command line, and with spaces and
 * apostrophes. NaN if it is not a number, as 0,1, because a comma may be meant as a decimal point.
 */
export function parse(text: string): number {
  const digits = text.replace(/[\s_'’]/g, "").replace(/[kKMGTPE]$/, (unit) => POWERS[unit] ?? "");
  const ungrouped = digits.replace(/^\d{1,3}(,\d{3})+(?=e\d+$|$)/, (groups) => groups.replaceAll(",", ""));
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(ungrouped) ? Number(ungrouped) : NaN;
}

/** A number in the source code of Rust, Python, JavaScript and Java: 1_000_000 */
export function source(number: number): string {
  return count(number).replaceAll(",", "_");
}
