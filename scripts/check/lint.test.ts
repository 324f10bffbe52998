import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { run } from "../shared/command.mjs";
import { plant } from "../shared/tree.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

async function rulesBroken(source: string): Promise<string[]> {
  const tree = plant({
    "a.ts": source,
    "tsconfig.json": { compilerOptions: { strict: true, types: [] }, include: ["a.ts"] },
  });
  const lint = ["node_modules/oxlint/bin/oxlint", "-f", "json", `${tree}/a.ts`];
  const { stdout } = await run(process.execPath, lint, { cwd: ROOT });
  const { diagnostics }: { diagnostics: { code: string }[] } = JSON.parse(stdout);
  return diagnostics.map(({ code }) => code);
}

it.each([
  ["export const f = async () => 1; f();", "typescript(no-floating-promises)"],
  ["export const f = async () => await 1;", "typescript(await-thenable)"],
  [
    "export const f = (a: number[]) => a.filter(async (b) => b > 1);",
    "typescript(no-misused-promises)",
  ],
  ["export const f = (a: any) => String(a);", "typescript(no-explicit-any)"],
  ["export const f = (a?: string) => a!.length;", "typescript(no-non-null-assertion)"],
  ["// @ts-ignore\nexport const a: string = 1;", "typescript(ban-ts-comment)"],
])("%s breaks %s", async (source, rule) => {
  expect(await rulesBroken(source)).toContain(rule);
});

it("good code breaks nothing", async () => {
  expect(await rulesBroken("export const f = async (): Promise<number> => 1;\n")).toEqual([]);
});
