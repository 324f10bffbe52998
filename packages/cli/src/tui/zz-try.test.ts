import { test } from "vitest";
import { MarkdownBlock } from "./markdown.ts";
import { COLOURS } from "./theme.ts";
import { textOfRow } from "./row.ts";
test("x", () => {
  const text = "| head | other |\n|---|--:|\n| alpha | alpha |\n\n---\n\n";
  const m = new MarkdownBlock({ theme: COLOURS });
  const frozen = [];
  for (const p of [text.slice(0,29), text.slice(29,38), text.slice(38)]) {
    m.feed(p); const rows = m.rows(40); const f = m.freeze(Math.max(0, rows.length-2)); frozen.push(f);
    console.log("--all", rows.map(textOfRow)); console.log("fr40", f.rows(40).map(textOfRow)); console.log("fr31", f.rows(31).map(textOfRow));
  }
});
