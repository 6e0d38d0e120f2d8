// Opens reports in Chromium and checks what a person would: every chart has its data and its table,
// nothing complains, nothing leaves the page, no text of the job becomes markup, keys suffice.
// usage: node check.mjs FOLDER REPORT.html...      pictures of each go to FOLDER
import assert from "node:assert/strict";
import { statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { launch, open, picture } from "./browser.mjs";

const MAX_BYTES = 2.5e6;
const WIDTHS = [360, 768, 1200, 1600];
const SCRIPTS = 2; // the document and the page's own
const [folder, ...files] = process.argv.slice(2);

const documentOf = (page) =>
  page.evaluate(() => JSON.parse(document.getElementById("document").textContent));

// What ECharts holds of a chart, and how much of it is on the page.
const drawnOf = (page, id) =>
  page.evaluate((name) => {
    const place = document.getElementById(`chart-${name}`);
    const series = window.meshwrightCharts.instance(name).getOption().series;
    const canvas = place.querySelector("canvas");
    let colours = 0;
    if (canvas) {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const seen = new Set();
      for (let i = 0; i < data.length; i += 4 * 37) seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
      colours = seen.size;
    }
    return {
      items: Number(place.dataset.items),
      stands: Number(place.dataset.stands),
      points: series.reduce((sum, one) => sum + one.data.length, 0),
      shapes: place.querySelectorAll("svg path").length,
      colours,
      label: place.getAttribute("aria-label"),
      role: place.getAttribute("role"),
      top: window.meshwrightCharts.instance(name).getModel().getComponent("yAxis")?.axis.scale.getExtent()[1],
    };
  }, id);

// The axis ends near the largest figure that is drawn.
function checkTop(section, top) {
  const { figure } = section.data;
  const drawn = section.columns.findIndex((column) =>
    column.key === (figure === "step_time_s" ? "step_time_high_s" : figure));
  const most = Math.max(...section.rows.map((row) => row[drawn] ?? 0));
  assert.ok(top >= most && top <= 2 * most, `${section.id}: an axis up to ${top} for at most ${most}`);
}

// Every GPU is drawn, or stood for by one that does the same in another node.
function checkFold(section, drawn) {
  const { gpus, stage_gpus: all, stage_gpus_drawn: some } = section.data;
  assert.equal(drawn.stands, (gpus.length * all) / some, `${section.id}: GPUs that are stood for`);
  if (drawn.stands <= 64) assert.equal(drawn.items, drawn.stands);
  else assert.ok(drawn.items < drawn.stands, `${section.id}: repeats are folded`);
}

async function checkChart(page, section) {
  const drawn = await drawnOf(page, section.id);
  assert.ok(drawn.items > 0 && drawn.points >= drawn.items, `${section.id}: ${JSON.stringify(drawn)}`);
  assert.ok(drawn.shapes > 2 || drawn.colours > 3, `${section.id}: nothing drawn ${JSON.stringify(drawn)}`);
  assert.equal(drawn.role, "img");
  assert.ok(drawn.label.includes(section.title));
  // Items that stand for rows of the table are as many as its rows.
  const rowItems = ["waterfall", "scatter", "goodput", "shares"];
  if (rowItems.includes(section.chart)) assert.equal(drawn.items, section.rows.length, section.id);
  if (section.chart === "curve") checkTop(section, drawn.top);
  if (section.chart === "layout") checkFold(section, drawn);
  if (section.chart === "memory")
    assert.equal(drawn.items, section.rows.length * (section.columns.length - 3));
}

async function checkSections(page, report) {
  let charts = 0;
  for (const part of report.parts)
    for (const section of part.sections) {
      const block = page.locator(`#section-${section.id}`);
      assert.equal(await block.locator("h3").textContent(), section.title);
      const upright = section.rows.length === 1 && section.columns.length > 6;
      const rows = upright ? section.columns.length : section.rows.length;
      assert.equal(await block.locator("tbody tr").count(), rows, `${section.id}: its table`);
      if (!section.chart || section.rows.length === 0) continue;
      await checkChart(page, section);
      charts++;
    }
  return charts;
}

// Texts of the charts that are cut off or lie over one another, and charts whose bars have no room.
const faultsOf = (page) =>
  page.evaluate(() => {
    const faults = [];
    const SLACK = 3; // pixels: boxes of letters are larger than the letters
    for (const place of document.querySelectorAll(".chart")) {
      const id = place.id.replace("chart-", "");
      const grid = window.meshwrightCharts.instance(id).getModel().getComponent("grid");
      const share = grid.coordinateSystem.getRect().width / place.clientWidth;
      if (share < 0.3) faults.push(`${id}: ${Math.round(share * 100)} % of the width are left for the data`);
      const svg = place.querySelector("svg");
      if (!svg) continue;
      const frame = svg.getBoundingClientRect();
      const texts = [...svg.querySelectorAll("text")]
        .map((text) => ({ text: text.textContent, box: text.getBoundingClientRect() }))
        .filter(({ text, box }) => text.trim() && box.width > 0);
      for (const { text, box } of texts)
        if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
          faults.push(`${id}: "${text}" is cut off`);
      texts.forEach((a, index) => {
        for (const b of texts.slice(index + 1)) {
          const wide = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
          const high = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
          if (wide > SLACK && high > SLACK) faults.push(`${id}: "${a.text}" over "${b.text}"`);
        }
      });
    }
    if (document.documentElement.scrollWidth > window.innerWidth) faults.push("the page is wider than the window");
    return faults;
  });

// Charts follow the window once its layout is done.
const chartsAreAsWide = (page) =>
  page.waitForFunction(() =>
    [...document.querySelectorAll(".chart")].every((place) =>
      Math.abs(window.meshwrightCharts.instance(place.id.replace("chart-", "")).getWidth() - place.clientWidth) < 2));

async function checkWidths(browser, file) {
  for (const width of WIDTHS) {
    const { page, complaints } = await open(browser, file, { colorScheme: "light", viewport: { width, height: 900 } });
    assert.deepEqual(await faultsOf(page), [], `${basename(file)} at ${width} pixels`);
    // The same after the window was made as wide.
    await page.setViewportSize({ width: WIDTHS[0] + WIDTHS[WIDTHS.length - 1] - width, height: 900 });
    await chartsAreAsWide(page);
    assert.deepEqual(await faultsOf(page), [], `${basename(file)} after a change from ${width} pixels`);
    assert.deepEqual(complaints, []);
    await page.context().close();
  }
}

// The answer at a glance stands above the prose.
async function checkCards(page, report) {
  const cards = await page.locator("header .card").count();
  const figures = report.parts.flatMap((part) => part.sections).some((one) => one.id === "figures");
  if (figures) assert.equal(cards, 5);
  if (cards === 0) return;
  const [card, prose] = await page.evaluate(() =>
    [".cards", ".summary"].map((name) => document.querySelector(name).getBoundingClientRect().top));
  assert.ok(card < prose, "the cards are above the prose");
}

async function checkKeys(page, report) {
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  const before = await theme();
  await page.keyboard.press("Tab"); // "To the content"
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.notEqual(await theme(), before, "the second key stop changes light and dark");
  await page.keyboard.press("Enter");
  const timeline = report.parts.flatMap((part) => part.sections).find((one) => one.chart === "timeline");
  if (!timeline) return;
  const shown = () =>
    page.evaluate((id) => {
      const { start, end } = window.meshwrightCharts.instance(id).getOption().dataZoom[0];
      return end - start;
    }, timeline.id);
  assert.equal(await shown(), 100);
  await page.locator(`#section-${timeline.id} button`, { hasText: "Zoom in" }).press("Enter");
  assert.equal(await shown(), 50, "Zoom in shows half");
  await page.locator(`#section-${timeline.id} button`, { hasText: "All" }).press("Enter");
  assert.equal(await shown(), 100);
}

async function checkPictures(page, report) {
  const sections = report.parts.flatMap((part) => part.sections).filter((one) => one.chart && one.rows.length > 0);
  for (const section of sections.slice(0, 2)) {
    assert.match((await picture(page, section.id, "svg")).toString("utf8"), /^<svg/);
    assert.equal((await picture(page, section.id, "png")).subarray(1, 4).toString("latin1"), "PNG");
  }
}

async function checkPrint(page, name) {
  await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "light", "paper is light");
  writeFileSync(`${name}.pdf`, await page.pdf({ format: "A4", printBackground: true }));
  await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
}

// Dark colours and paper are those of the first report alone: the page is the same.
async function checkFile(browser, file) {
  const name = join(folder, basename(file, ".html"));
  assert.ok(statSync(file).size < MAX_BYTES, `${file}: ${statSync(file).size} bytes`);
  const light = await open(browser, file, { colorScheme: "light" });
  const report = await documentOf(light.page);
  assert.equal(await light.page.title(), report.title.replace(/\s+/g, " ").trim());
  assert.equal(await light.page.locator("h1").textContent(), report.title);
  assert.equal(await light.page.locator("script").count(), SCRIPTS, "no text became a script");
  const charts = await checkSections(light.page, report);
  assert.ok(charts > 0, "no chart");
  await light.page.screenshot({ path: `${name}-light.png`, fullPage: true });
  await checkCards(light.page, report);
  await checkKeys(light.page, report);
  await checkPictures(light.page, report);
  assert.deepEqual(light.complaints, []);
  await light.page.context().close();
  await checkWidths(browser, file);

  console.log(`${basename(file)}: ${charts} charts`);
  if (file !== files[0]) return;
  const dark = await open(browser, file, { colorScheme: "dark" });
  await dark.page.screenshot({ path: `${name}-dark.png`, fullPage: true });
  await checkPrint(dark.page, name);
  assert.deepEqual(dark.complaints, []);
  await dark.page.context().close();
}

const browser = await launch();
try {
  for (const file of files) await checkFile(browser, file);
} finally {
  await browser.close();
}
