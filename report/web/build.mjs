// Packs src/ and the parts of ECharts that it uses into one page that needs no other file.
// usage: node build.mjs PAGE.html
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
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

// The licenses of what is packed, which every copy has to carry, as text of a comment.
function licenses() {
  const files = [];
  for (const name of ["echarts", "zrender", "tslib"]) {
    const folder = `node_modules/${name}`;
    for (const file of readdirSync(folder))
      if (/^(LICENSE|NOTICE|CopyrightNotice)/.test(file)) files.push(`${folder}/${file}`);
    if (existsSync(`${folder}/licenses`))
      for (const file of readdirSync(`${folder}/licenses`)) files.push(`${folder}/licenses/${file}`);
  }
  const texts = files.map((file) => `${file}\n\n${readFileSync(file, "utf8")}`);
  return texts.join("\n\n").replace(/-(?=-)/g, "- ").replaceAll(">", "&gt;");
}

// Nothing in a script may end its element.
const script = (await packed("src/main.js", "js")).replaceAll("</", "<\\/");
const style = await packed("src/style.css", "css");
const hash = createHash("sha256").update(script).digest("base64");
const fill = {
  "@LICENSES@": licenses(),
  "@STYLE@": style,
  "@SCRIPT@": script,
  "@SCRIPT_HASH@": `sha256-${hash}`,
};
let page = readFileSync("src/page.html", "utf8");
for (const [mark, text] of Object.entries(fill)) page = page.replace(mark, () => text);
writeFileSync(process.argv[2], page);
