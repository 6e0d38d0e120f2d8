// Packs src/ and the parts of ECharts that it uses into one page that needs no other file.
// usage: node build.mjs PAGE.html
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

async function packed(entry, loader) {
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    target: "es2020",
    format: loader === "js" ? "iife" : undefined,
    legalComments: "inline",
    charset: "ascii",
    define: { "process.env.NODE_ENV": '"production"' },
  });
  return result.outputFiles[0].text.trim();
}

// Nothing in a script may end its element.
const script = (await packed("src/main.js", "js")).replaceAll("</", "<\\/");
const style = await packed("src/style.css", "css");
const hash = createHash("sha256").update(script).digest("base64");
const fill = {
  "@STYLE@": style,
  "@SCRIPT@": script,
  "@SCRIPT_HASH@": `sha256-${hash}`,
};
let page = readFileSync("src/page.html", "utf8");
for (const [mark, text] of Object.entries(fill)) page = page.replace(mark, () => text);
writeFileSync(process.argv[2], page);
