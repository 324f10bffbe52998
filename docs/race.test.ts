import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { DEFAULT_RIVALS, RACE_USAGE } from "../packages/cli/src/slash-commands/race/parse.ts";
import { MAX_COPY_BYTES } from "../packages/coding/src/copies/work-copy.ts";
import { MAX_RIVALS } from "../packages/coding/src/race/race.ts";
import { root } from "./snippets.ts";

describe("docs/race.md", () => {
  it("has the limits and the usage of the code", async () => {
    const page = await readFile(join(root, "docs/race.md"), "utf8");
    const text = page.replaceAll("\n", " ");
    expect(page).toContain(`\n    ${RACE_USAGE}\n`);
    expect(text).toContain(`there are at most ${MAX_RIVALS}`);
    expect(DEFAULT_RIVALS).toBe(3);
    expect(text).toContain("Without a number there are three rivals");
    expect(text).toContain(`up to ${MAX_COPY_BYTES / 1024 ** 3} GB`);
  });
});
