import { appendFileSync } from "node:fs";
import { test } from "vitest";
import { MarkdownBlock } from "./markdown.ts";
import { COLOURS } from "./theme.ts";
test("x", () => {
  for (const t of [">".repeat(3000)+" x", "- ".repeat(1000)+"x", "*".repeat(20000), "[".repeat(5000), "`".repeat(9999), "**a ".repeat(5000), "<a ".repeat(5000), "| a ".repeat(3000)+"\n"+"|-".repeat(3000)+"\n| x |", "a ".repeat(100000), "> - ".repeat(300)+"x"]) {
    const m = new MarkdownBlock({ theme: COLOURS }); const s = performance.now();
    m.feed(t); const n = m.rows(80).length;
    appendFileSync("/tmp/mdA/log.txt", `${t.slice(0,8)} ${n} rows ${(performance.now()-s).toFixed(0)} ms\n`);
  }
}, 100000);
