import { readFileSync } from "node:fs";
import { findModel } from "@gyre/ai/models";
import { describe, expect, it } from "vitest";
import { recommendedThinking } from "./recommended-thinking.ts";

const page = readFileSync(new URL("../../../../docs/models.md", import.meta.url), "utf8");
const table = page.split("### What a service recommends\n")[1]?.split("\n#")[0] ?? "";
/** Models and level of each row of the page. */
const rows = [...table.matchAll(/^\| (`.*?) \| `(\w+)` \|/gm)].flatMap(([, names = "", level]) =>
  [...names.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => [name, level] as const),
);

describe("recommendedThinking", () => {
  it("has a page that names models of every large service", () => {
    const services = new Set(rows.map(([name]) => name.split("/")[0]));
    expect([...services]).toEqual(
      expect.arrayContaining([
        "anthropic",
        "openai",
        "google",
        "xai",
        "deepseek",
        "zai",
        "moonshot",
        "mistral",
      ]),
    );
  });

  it.each(rows)("%s thinks as the page says: %s", (name, level) => {
    expect(recommendedThinking(findModel(name))).toBe(level);
  });

  it("is off for a model of which nothing is known, and for one that does not think", () => {
    const model = { id: "mine", name: "mine", api: "openai-completions", provider: "ollama" };
    expect(recommendedThinking(model)).toBe("off");
    expect(recommendedThinking({ ...model, reasoning: false })).toBe("off");
    expect(recommendedThinking({ ...model, reasoning: true })).toBe("off");
  });
});
