import { expect, it } from "vitest";
import { run } from "./command.mjs";
import { runParts, type Part } from "../shared/parts.mjs";
import { plant } from "./tree.ts";

async function outcome(parts: readonly Part[]): Promise<{ ok: boolean; printed: string }> {
  const lines: string[] = [];
  const ok = await runParts(parts, (line) => lines.push(line));
  return { ok, printed: lines.join("\n").replaceAll(/\d+\.\d s/g, "_ s") };
}

it("holds when every part does, and shows figures", async () => {
  const { ok, printed } = await outcome([
    { name: "a", check: () => ({ problems: [] }) },
    { name: "b", check: async () => ({ problems: [], figures: ["42"] }) },
  ]);
  expect(ok).toBe(true);
  expect(printed).toMatch(/^a +_ s {2}ok\nb +_ s {2}ok\n {4}42$/);
});

it("runs the parts after one that failed, and shows what it printed", async () => {
  const { ok, printed } = await outcome([
    { name: "a", check: () => ({ problems: ["one\ntwo\n"] }) },
    { name: "b", check: () => Promise.reject(new Error("broken")) },
    { name: "c", check: () => ({ problems: [] }) },
  ]);
  expect(ok).toBe(false);
  expect(printed).toMatch(
    /^a +_ s {2}FAILED\n {4}one\n {4}two\nb +_ s {2}FAILED\n {4}Error: broken/,
  );
  expect(printed).toMatch(/\nc +_ s {2}ok$/);
});

it("a program's code and both of its streams come back", async () => {
  const script = 'console.log("a"); console.error("b"); process.exit(3)';
  const { code, stdout, output } = await run(process.execPath, ["-e", script], { cwd: "." });
  expect({ code, stdout }).toEqual({ code: 3, stdout: "a\n" });
  expect(output.split("\n").toSorted()).toEqual(["", "a", "b"]);
});

it("a program that a signal ends has failed", async () => {
  const script = "process.kill(process.pid, 'SIGKILL')";
  const { code, output } = await run(process.execPath, ["-e", script], { cwd: plant({}) });
  expect(code).toBe(1);
  expect(output).toContain("SIGKILL");
});

it("a program that is not there rejects", async () => {
  await expect(run("no-such-program", [], { cwd: "." })).rejects.toThrow("ENOENT");
});
