// A report in headless Chromium: what every look at one shares.
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

export const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

export const launch = () =>
  chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });

// Opens a file; complaints gathers what the console says, exceptions, and requests that leave it.
export async function open(browser, file, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  const page = await context.newPage();
  const url = pathToFileURL(file).href;
  const complaints = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!/^(file|data|blob):/.test(request.url())) complaints.push(`request ${request.url()}`);
  });
  await page.goto(url);
  await page.waitForSelector("footer");
  return { page, complaints };
}

// Saves one chart as its own button would: kind is "svg" or "png".
export async function picture(page, id, kind) {
  const url = await page.evaluate(([name, type]) => window.meshwrightCharts.picture(name, type), [id, kind]);
  const comma = url.indexOf(",");
  const text = url.slice(comma + 1);
  return url.slice(0, comma).endsWith("base64")
    ? Buffer.from(text, "base64")
    : Buffer.from(decodeURIComponent(text), "utf8");
}
