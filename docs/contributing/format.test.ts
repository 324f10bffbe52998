import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { format } from "oxfmt";
import { expect, it } from "vitest";
import { readFences, root } from "../snippets.ts";

const folder = join(root, "docs/contributing");
const options = JSON.parse(readFileSync(join(root, ".oxfmtrc.json"), "utf8"));

// Blocks of a whole file, which begins with its imports; the others are lines for files that are there.
const files = readdirSync(folder)
  .filter((name) => name.endsWith(".md"))
  .flatMap((name) => readFences(readFileSync(join(folder, name), "utf8")))
  .filter(({ body, note }) => note.startsWith("packages/") && body.startsWith("import "));

it.each(files)("$note is formatted as the repository is", async ({ body, note }) => {
  expect(await format(note, body, options)).toMatchObject({ code: body, errors: [] });
});

it("finds the files of the pages", () => {
  expect(files).toHaveLength(10);
});
