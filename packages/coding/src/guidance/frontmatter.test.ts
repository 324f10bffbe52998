import { describe, expect, it } from "vitest";
import { readBody, readFrontmatter } from "./frontmatter.ts";

const KEYS = new Set(["name", "description", "metadata", "allowed-tools"]);

/** What is read of some lines, and what is wrong with them. */
async function read(
  ...lines: string[]
): Promise<{ fields: Record<string, unknown>; problems: string[] }> {
  const { fields, problems } = await readFrontmatter(
    ["---", ...lines, "---", "Text."].join("\n"),
    KEYS,
  );
  return {
    fields: Object.fromEntries([...fields].map(([key, { value }]) => [key, value])),
    problems: problems.map(({ line, text }) => `${line}: ${text}`),
  };
}

const description = async (...lines: string[]): Promise<unknown> =>
  (await read(...lines)).fields["description"];

describe("a text", () => {
  it.each([
    ["plain", ["description: Makes a fox."], "Makes a fox."],
    ["plain with a colon", ["description: Use when: a fox is near"], "Use when: a fox is near"],
    [
      "plain with an address",
      ["description: See https://fox.example/#a"],
      "See https://fox.example/#a",
    ],
    ["before a remark", ["description: A fox. # not a bear"], "A fox."],
    [
      "in double quotes",
      [String.raw`description: "A \"fox\":\n\u00e9\x41\\" # remark`],
      'A "fox":\néA\\',
    ],
    ["in single quotes", ["description: 'It''s a \"fox\" # here'"], `It's a "fox" # here`],
    ["over lines", ["description: Makes", "  a fox", "  of it."], "Makes a fox of it."],
    ["over lines in quotes", ['description: "Makes', '  a fox."'], "Makes a fox."],
    ["below its key", ["description:", "  Makes a fox."], "Makes a fox."],
    ["below its key in quotes", ["description:", '  "a: fox"'], "a: fox"],
    [
      "as it stands",
      ["description: |", "  One", "    two", "", "  three", ""],
      "One\n  two\n\nthree",
    ],
    ["folded", ["description: >-", "  One", "  two", "", "  three"], "One two\nthree"],
    ["folded with a remark", ["description: >2 # so", "  One", "  two"], "One two"],
    ["empty", ["description:", "name: fox"], ""],
    ["with a dash in it", ["description: a - b"], "a - b"],
    ["with an escape of eight digits", [String.raw`description: "\U0001F98A"`], "\u{1F98A}"],
    ["of two paragraphs", ["description: One", "", "  two"], "One\ntwo"],
    [
      "folded around a list",
      ["description: >", "  One", "    - two", "  three"],
      "One\n  - two\nthree",
    ],
    ["that looks like another type", ["description: 1.10"], "1.10"],
    ["with an anchor", ["description: &a A fox"], "A fox"],
    ["plain with a list below it", ["description: Use for:", "  - foxes"], "Use for: - foxes"],
    ["plain in brackets", ["description: [file] [line]"], "[file] [line]"],
  ])("%s", async (_what, lines, text) => {
    expect(await description(...lines)).toBe(text);
    expect((await read(...lines)).problems).toEqual([]);
  });
});

describe("other values", () => {
  it.each([
    ["a list", ["allowed-tools: [read, 'a, b', \"c\"]"], ["read", "a, b", "c"]],
    ["a list over lines", ["allowed-tools: [read,", "  grep]"], ["read", "grep"]],
    ["a list below", ["allowed-tools:", "  - read", "  # remark", '  - "grep"'], ["read", "grep"]],
    ["a list as far left", ["allowed-tools:", "- read", "- grep"], ["read", "grep"]],
    ["nothing in a list", ["allowed-tools: []"], []],
  ])("%s", async (_what, lines, list) => {
    expect((await read(...lines)).fields["allowed-tools"]).toEqual(list);
  });

  it("keys and texts in braces", async () => {
    const { fields } = await read("metadata: { author: fox, 'the version': \"1, 2\" }");
    expect(fields).toEqual({ metadata: { author: "fox", "the version": "1, 2" } });
  });

  it("keys and texts", async () => {
    const { fields } = await read("metadata:", "  author: fox", '  version: "1.0"', "name: a");
    expect(fields).toEqual({ metadata: { author: "fox", version: "1.0" }, name: "a" });
  });

  it("of keys that are not asked for are passed over, whatever they are", async () => {
    const { fields, problems } = await read("hooks:", "  - a: {b: c}", "model: &x y", "name: fox");
    expect({ fields, problems }).toEqual({ fields: { name: "fox" }, problems: [] });
  });
});

describe("what is wrong", () => {
  it.each([
    ["no key", ["name: fox", "and so on"], '3: "and so on" is no key with a value'],
    ["a key twice", ["name: fox", "name: bear"], '3: "name" is there twice; the first counts'],
    ["an alias", ["name: *a"], '2: the value of "name" cannot be read: write it in quotes'],
    [
      "a quote without an end",
      ['name: "fox'],
      '2: the value of "name" cannot be read: write it in quotes',
    ],
    [
      "a list without an end",
      ["name: [fox"],
      '2: the value of "name" cannot be read: write it in quotes',
    ],
    [
      "depth",
      ["metadata:", "  a:", "    - b"],
      '2: the value of "metadata" cannot be read: write it in quotes',
    ],
  ])("%s is reported with its line", async (_what, lines, problem) => {
    expect((await read(...lines)).problems).toEqual([problem]);
  });

  it.each([
    ["# A fox\n", 'it does not begin with "---"'],
    ["", 'it does not begin with "---"'],
    ["---\nname: fox\n", 'the "---" has no second one that ends it'],
  ])("with the whole: %j", async (text, problem) => {
    expect((await readFrontmatter(text, KEYS)).problems).toEqual([{ line: 1, text: problem }]);
  });
});

it("reads a file as Windows writes it", async () => {
  const text = "\uFEFF---\r\nname: fox\r\n---\r\n\r\nOne.\r\nTwo.\r\n";
  const { fields } = await readFrontmatter(text, KEYS);
  expect(fields.get("name")).toEqual({ value: "fox", line: 2 });
  expect(readBody(text)).toBe("One.\nTwo.");
});

it("has the text after it, rules and all", () => {
  expect(readBody("---\nname: a\n---\n\nOne.\n\n---\n\nTwo.\n")).toBe("One.\n\n---\n\nTwo.");
  expect(readBody("One.\n---\nTwo.")).toBe("One.\n---\nTwo.");
});

it("comes to an end with whatever it is given", async () => {
  const hostile = ["description: " + '"\\'.repeat(50_000), "name: " + "[,".repeat(50_000)];
  const { problems } = await read(...hostile, `${" ".repeat(100_000)}#`);
  expect(problems.map((text) => text.slice(0, 2))).toEqual(["2:", "3:"]);
});

// Deep values overflow the stack of the parser, which can end the process, or take minutes.
it.each(["[", "{", "{a: ", "- ", "? ", "- ? ", "!!x [", "&a {b: "])(
  "refuses a value that is deep: %s",
  async (unit) => {
    for (const depth of [500, 1_000, 4_000]) {
      const { fields } = await read("metadata:", `  ${unit.repeat(depth)}`);
      expect(fields).toEqual({});
    }
  },
);
