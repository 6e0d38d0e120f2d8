// Saves charts of a report as its own buttons would.
// usage: node pictures.mjs FOLDER REPORT.html SECTION.svg|SECTION.png...
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { launch, open, picture } from "./browser.mjs";

const [folder, file, ...names] = process.argv.slice(2);
const browser = await launch();
const { page } = await open(browser, file, { colorScheme: "light" });
for (const name of names) {
  const [id, kind] = name.split(".");
  // Of a step's timeline the beginning: all of it at once is too fine for a small picture.
  await page.evaluate((section) => {
    const zoom = { type: "dataZoom", start: 0, end: 12 };
    if (section === "timeline") window.meshwrightCharts.instance(section).dispatchAction(zoom);
  }, id);
  writeFileSync(join(folder, name), await picture(page, id, kind));
}
await page.screenshot({ path: join(folder, "page.png"), clip: { x: 0, y: 0, width: 1200, height: 620 } });
await browser.close();
