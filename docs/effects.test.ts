import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { MAX_UNASKED_BYTES, MAX_UNASKED_FILES } from "../packages/tools/src/effects/judge.ts";
import { KEPT_MS, MAX_KEPT } from "../packages/tools/src/effects/layers.ts";
import { summarizeEffects } from "../packages/cli/src/text/effects-text.ts";
import { root } from "./snippets.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const MB = 1024 * 1024;

describe("docs/effects.md", () => {
  it("has the limits of the code", async () => {
    const page = (await readFile(join(root, "docs/effects.md"), "utf8")).replaceAll("\n", " ");
    expect(page).toContain(`at most ${MAX_UNASKED_FILES} files and ${MAX_UNASKED_BYTES / MB} MB`);
    expect(page).toContain(
      `The last ${MAX_KEPT} of a folder can be undone, for ${KEPT_MS / DAY_MS} days`,
    );
  });

  it("shows the summary as the question does", async () => {
    const page = await readFile(join(root, "docs/effects.md"), "utf8");
    const effects = (["create", "modify", "delete"] as const).map((kind, id) => ({
      id,
      kind,
      path: kind,
      type: "file" as const,
      notes: [],
    }));
    const end = { exitCode: 0, timedOut: false, durationMs: 800, isHarmless: true };
    expect(page).toContain(`\n${summarizeEffects({ ...end, effects })}\n`);
  });
});
