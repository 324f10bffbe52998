import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { EXIT } from "../core/exit-codes.ts";
import { typedCommands } from "./help.ts";
import { manualPage } from "./manual.ts";
import { OPTIONS } from "../core/options.ts";
import { SETTING_NAMES, findSetting } from "@gyre/coding/internal/settings/table";

const FILE = fileURLToPath(new URL("../../man/gyre.1", import.meta.url));
/** Of `lint`, what is for the base system of an operating system alone. */
const STYLE = /STYLE:|^$/;

function isThere(program: string, ...args: string[]): boolean {
  return spawnSync(program, args, { input: "" }).error === undefined;
}

describe("the manual page", () => {
  it("is named as npm links it: in a list", () => {
    const manifest: unknown = JSON.parse(
      readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
    );
    expect(manifest).toMatchObject({ man: ["./man/gyre.1"] });
  });

  it("is the one that is checked in: node scripts/docs/manual.mjs writes it", () => {
    expect(readFileSync(FILE, "utf8")).toBe(manualPage());
  });

  it("has every command, option, variable of a setting and exit code", () => {
    const page = manualPage().replaceAll("\\-", "-");
    for (const name of Object.keys(OPTIONS))
      expect(page).toMatch(new RegExp(`(Fl Fl |--)${name}\\b`));
    for (const [name] of typedCommands())
      expect(page).toMatch(new RegExp(`^\\.Ss ${name}\\b`, "m"));
    for (const code of Object.values(EXIT))
      expect(page).toMatch(new RegExp(`^\\.It ${code}$`, "m"));
    for (const name of SETTING_NAMES) {
      const { env } = findSetting(name);
      if (env !== undefined) expect(page).toContain(`.It Ev ${env}`);
    }
  });

  it.runIf(isThere("groff", "--version"))("is rendered by groff without a warning", () => {
    const args = ["-mdoc", "-Tutf8", "-ww", "-z", FILE];
    const { status, stderr } = spawnSync("groff", args, { encoding: "utf8" });
    expect([status, stderr]).toEqual([0, ""]);
  });

  it.runIf(isThere("mandoc", "-l"))("is rendered by mandoc without a warning", () => {
    const { stdout } = spawnSync("mandoc", ["-Tlint", FILE], { encoding: "utf8" });
    expect(stdout.split("\n").filter((line) => !STYLE.test(line))).toEqual([]);
  });
});
