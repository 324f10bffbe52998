import { appendFileSync, writeFileSync } from "node:fs";
import { test } from "vitest";
import { MarkdownBlock } from "./markdown.ts";
import { COLOURS } from "./theme.ts";
import { textOfRow } from "./row.ts";
const log = (...a: unknown[]) => appendFileSync("/tmp/mdA/log.txt", a.map((x) => typeof x === "string" ? x : JSON.stringify(x, undefined, 1)).join(" ") + "\n");
writeFileSync("/tmp/mdA/log.txt","");
test("x", () => {
  const text = "- alpha alpha alpha\n- alpha &lt; beta  \n| head | other |\n|---|--:|\n| 1. alpha / alpha alpha - ~~struck~~ | alpha # alpha \\* &lt; alpha |\n| beta `code x` ~~struck~~ beta ~~struck~~ &lt; | [name](https://a.example/p) alpha &lt; |\nalpha\n```ts\n\n```\n\n1. alpha\n\n";
  const m = new MarkdownBlock({ theme: COLOURS });
  const c = 235 % (text.length + 1);
  log(c, text.length, JSON.stringify(text.slice(0, c)));
  for (const p of [text.slice(0,c), text.slice(c)]) {
    m.feed(p); const rows = m.rows(40); const f = m.freeze(Math.max(0, rows.length-1)); 
    log("--all", rows.map(textOfRow)); log("fr40", f.rows(40).map(textOfRow)); log("fr31", f.rows(31).map(textOfRow));
  }
});
