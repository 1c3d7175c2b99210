// Chromium, for the tests of the package and of the page. CHROMIUM is its path (default /usr/bin/chromium).

import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { chromium } from "playwright-core";

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** The reason to skip tests, or `false`. */
export const skip = existsSync(executablePath) ? false : `no ${executablePath}: install chromium, or set CHROMIUM`;

export function launch() {
  return chromium.launch({ executablePath, args: ["--no-sandbox"] });
}

/** Until the test ends, a server whose answers `answer` writes, and a browser. */
export async function serve(t, answer) {
  const server = createServer(answer);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const browser = await launch();
  t.after(async () => {
    await browser.close();
    server.closeAllConnections();
    server.close();
  });
  return { address: `http://127.0.0.1:${server.address().port}`, context: await browser.newContext() };
}
