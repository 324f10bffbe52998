import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { run } from "../../../scripts/shared/command.mjs";
import { plant } from "../../../scripts/shared/tree.ts";
import { COLUMNS } from "./peers.ts";

const main = fileURLToPath(new URL("./main.ts", import.meta.url));
const root = fileURLToPath(new URL("../../..", import.meta.url));
const measure = (...args: readonly string[]) =>
  run(process.execPath, [main, ...args], { cwd: root });

/** Node runs TypeScript as it is from then on. */
const LEAST_NODE = 24;
const major = Number(process.versions.node.split(".")[0]);

describe.runIf(major >= LEAST_NODE)("the command", () => {
  it("has a help that names every library", async () => {
    const { code, output } = await measure("--help");
    expect(code).toBe(0);
    for (const { id } of COLUMNS) expect(output).toContain(id);
  });

  it.each([
    [["--peer", "unknown"], /^There is no peer "unknown"\. There are: floor, gyre, .*\.$/],
    [["--case", "nothing"], /^There is no case "nothing"\. There are: text, .*\.$/],
    [["--rounds", "0"], /^--rounds is "0"; it has to be a whole number from 1 on\.$/],
    [["--rounds", "many"], /^--rounds is "many"; it has to be a whole number from 1 on\.$/],
    [["--pear", "gyre"], /^Unknown option '--pear'/],
  ])("refuses %j in one line", async (args, message) => {
    const { code, output } = await measure(...args);
    expect(code).toBe(2);
    expect(output.trim()).toMatch(message);
    expect(output).not.toMatch(/\n +at /);
  });

  it("refuses to report on results that are not there", async () => {
    const out = plant({});
    const { code, output } = await measure("--report", "--out", out);
    expect(code).toBe(2);
    expect(output).toBe(`There is no ${out}/latest.json. Run npm run bench:peers first.\n`);
  });

  it("checks what it is asked for without doing it", async () => {
    const { code, output } = await measure("--check", "--peer", "gyre", "--case", "text");
    expect({ code, output }).toEqual({ code: 0, output: "" });
  });
});
