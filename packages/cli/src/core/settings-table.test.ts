import { readFileSync } from "node:fs";
import { validateToolArguments } from "@gyre/ai";
import { describe, expect, it } from "vitest";
import { OPTIONS } from "./options.ts";
import { POLICY, POLICY_KEYS, policySchema } from "@gyre/coding/internal/policy/table";
import { makePolicy, removePolicies } from "@gyre/coding/internal/testing/policy-file";
import { settingsSchema } from "@gyre/coding/internal/settings/schema";
import { type Kind, SETTING_NAMES, SETTINGS } from "@gyre/coding/internal/settings/table";

const page = readFileSync(new URL("../../../../docs/configuration.md", import.meta.url), "utf8");

/** The rows of the table that is under a heading and has these columns. */
function readRows(heading: string, columns: string): string[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? "";
  const [, table = ""] = section.split(`${columns}\n`);
  const rows = table.split("\n").slice(1);
  return rows.slice(0, rows.indexOf(""));
}

const code = (text: string | undefined): string => (text === undefined ? "" : `\`${text}\``);
const row = (...cells: string[]): string => `| ${cells.join(" | ")} |`.replace(/ +\|/g, " |");

describe("docs/configuration.md", () => {
  it("lists every setting as the program has it", () => {
    const expected = SETTING_NAMES.map((name) => {
      const { about, env, flag, kind } = SETTINGS[name];
      const option = flag === undefined ? undefined : `--${flag}`;
      return row(code(name), about, kind.allowed, code(env), code(option));
    });
    const columns = "| key | | value in a file | variable | option |";
    expect(readRows("Settings", columns)).toEqual(expected);
  });

  it("lists all that is not taken from a project", () => {
    const expected = SETTING_NAMES.flatMap((name) => {
      const rule = SETTINGS[name].project;
      return rule ? [row(code(name), rule.not ?? "any value", rule.why)] : [];
    });
    expect(readRows("Trust", "| key | not taken | why |")).toEqual(expected);
  });

  it("lists all that a policy may say, with an example that one may be", async () => {
    const expected = POLICY_KEYS.map((key) =>
      row(code(key), POLICY[key].about, POLICY[key].kind.allowed),
    );
    expect(readRows("Managed policy", "| key | | value |")).toEqual(expected);
    const [, text = ""] = /^## Managed policy$.*?```json\n(.*?)```/ms.exec(page) ?? [];
    expect((await makePolicy(text)).modes).not.toContain("full");
    removePolicies();
  });
});

/** Of the formatter. */
const MAX_LINE_CHARS = 100;

/** As the formatter has lists: short ones on a line. */
function formatSchema(schema: unknown): string {
  const lines = JSON.stringify(schema, undefined, 2);
  const text = lines.replace(/^.*\[\n\s+([^[\]{}]*)\n\s+\]/gm, (all, items: string) => {
    const [before = ""] = all.split("\n");
    const line = `${before}${items.replace(/\n\s+/g, " ")}]`;
    return line.length > MAX_LINE_CHARS ? all : line;
  });
  return `${text}\n`;
}

describe("policy.schema.json", () => {
  it("is what the table gives (else: vitest -u)", async () => {
    await expect(formatSchema(policySchema())).toMatchFileSnapshot("../../policy.schema.json");
  });
});

describe("config.schema.json", () => {
  it("is what the table gives (else: vitest -u)", async () => {
    await expect(formatSchema(settingsSchema())).toMatchFileSnapshot("../../config.schema.json");
  });

  const values: unknown[] = [
    ...["", " ", "sonnet", "two\nlines", "a\0b", "none", "high", "full", "auto", "true"],
    ...[0, 1, -1, 1.5, 20, 1e300, 2_147_483, 2_147_484, Number.MAX_SAFE_INTEGER + 1],
    ...[true, false, null, [], ["read"], [""], ["a", 1], [["a"]], {}],
  ];
  it.each(SETTING_NAMES)("agrees with the check of %s", (name) => {
    const { kind } = SETTINGS[name];
    const parameters = { type: "object", properties: { [name]: kind.schema } };
    for (const value of values) {
      const given = { [name]: value };
      const checked = validateToolArguments({ name, parameters }, given);
      if (checked instanceof Promise) throw new Error("The schema is a plain one.");
      // What had to be turned into something else did not fit.
      const fits = checked.ok && checked.value === given;
      expect({ value, fits }).toEqual({ value, fits: kind.is(value) });
    }
  });
});

describe("a text of a variable or an option", () => {
  const cases: [keyof typeof SETTINGS, string, unknown][] = [
    ["model", "sonnet", "sonnet"],
    ["model", " ", undefined],
    ["thinking", "high", "high"],
    ["thinking", "High", undefined],
    ["mode", "auto-edit", "auto-edit"],
    ["mode", "yolo", undefined],
    ["sandbox", "none", "none"],
    ["sandbox", "seatbelt", undefined],
    ["tools", "read, edit", ["read", "edit"]],
    ["tools", "none", []],
    ["tools", "read,,edit", undefined],
    ["tools", "", undefined],
    ["network", "1", true],
    ["network", "false", false],
    ["network", "maybe", undefined],
    ["maxTurns", "20", 20],
    ["maxTurns", "0", undefined],
    ["maxTurns", "-3", undefined],
    ["maxTurns", "1.5", undefined],
    ["maxTurns", "0x10", undefined],
    ["maxTurns", "1e3", undefined],
    ["maxTurns", "99999999999999999999", undefined],
    ["maxCost", "2.50", 2.5],
    ["maxCost", ".5", 0.5],
    ["maxCost", "0", undefined],
    ["maxCost", "$5", undefined],
    ["maxCost", "Infinity", undefined],
    ["timeout", "90", 90],
    ["timeout", "90s", 90],
    ["timeout", "5m", 300],
    ["timeout", "1.5h", 5400],
    ["timeout", "5 min", undefined],
    ["timeout", "m", undefined],
    ["timeout", "0s", undefined],
    ["timeout", "1000h", undefined],
  ];
  it.each(cases)("%s from %j is %j", (name, text, value) => {
    expect(SETTINGS[name].kind.read(text)).toEqual(value);
  });

  it("is described more widely where more is allowed", () => {
    const kinds: Kind<unknown>[] = [SETTINGS.timeout.kind, SETTINGS.tools.kind];
    for (const { allowed, allowedText } of kinds) expect(allowedText).not.toBe(allowed);
  });
});

it("each option that sets something is there, and each variable once", () => {
  const variables = SETTING_NAMES.flatMap((name) => SETTINGS[name].env ?? []);
  expect(new Set(variables).size).toBe(variables.length);
  for (const name of SETTING_NAMES) {
    const { flag } = SETTINGS[name];
    if (flag !== undefined) expect(Object.keys(OPTIONS)).toContain(flag);
  }
});
