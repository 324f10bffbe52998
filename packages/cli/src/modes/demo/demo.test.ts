import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type AgentTool, SinkError } from "@gyre/agent";
import { manualClock } from "@gyre/ai/testing";
import { createSandbox } from "@gyre/tools";
import { describe, expect, it } from "vitest";
import { BROKEN_CODE, FIXED_CODE, PROJECT_FILES, SOURCE_FILE } from "./project.ts";
import { type DemoOptions, runDemo } from "./demo.ts";
import { plainText } from "@gyre/coding/internal/text/plain-text";

interface Shown {
  code: number;
  text: string;
  folder: string;
}

/** Runs the demo; `watch` sees what was written so far, after each piece. */
async function demo(
  options: Partial<DemoOptions> & { isTTY?: boolean } = {},
  watch: (text: string) => void = () => {},
): Promise<Shown> {
  const { isTTY = false, ...rest } = options;
  let written = "";
  const write = (piece: string): void => {
    written += piece;
    watch(written);
  };
  const code = await runDemo({ output: { write, isTTY, columns: 120 }, env: {}, ...rest });
  const text = plainText(written);
  return { code, text, folder: /Folder: (\S+)/.exec(text)?.[1] ?? "" };
}

/** The demo's tools, one of them made to do something else. */
function withTool(
  name: string,
  execute: AgentTool["execute"],
): (own: readonly AgentTool[]) => AgentTool[] {
  return (own) => own.map((tool) => (tool.name === name ? { ...tool, execute } : tool));
}

/** What there is of a run in the temporary folder: its own folder, and those beside it. */
async function listLeft(folder: string): Promise<string[]> {
  expect(folder).not.toBe("");
  const names = await readdir(dirname(folder));
  return names.filter((name) => name.startsWith(basename(folder)));
}

/** Whether a process has a text in its command line, which a zombie has none of. */
function isRunning(text: string): boolean {
  const { stdout } = spawnSync("ps", ["-A", "-o", "args"], { encoding: "utf8" });
  expect(stdout).toContain("ps -A");
  return stdout.includes(text);
}

describe("the story", () => {
  it("shows it in order: looks, fails, reads, explains, edits, passes, sums up", async () => {
    const { code, text } = await demo();
    const story = [
      "The model here is scripted",
      "The tools, the files and the test runs are real.",
      "Folder: ",
      "Sandbox: ",
      "› The tests of this small project fail.",
      "● ls .",
      "bill.js, bill.test.js, package.json",
      "✗ shell node --test --test-reporter=spec  exit code 1",
      "actual: 999,",
      "1 of 3 tests fails, `no cent is lost`: `999 !== 1000`.",
      "● read 2 files  bill.test.js, bill.js",
      "3 × 333 = 999",
      "● edit bill.js",
      `- ${BROKEN_CODE.trimEnd()}`,
      "+   const left = cents % people;",
      "● shell node --test --test-reporter=spec",
      "pass 3",
      "All 3 tests pass.",
      "✔ Fixed",
      "5 turns · 6 tool calls · ",
      "The model was scripted; the tools, the files and the test runs were real.",
      "gyre login SERVICE",
      'gyre -p "..."',
    ];
    let at = 0;
    for (const part of story) {
      const found = text.indexOf(part, at);
      expect(found, `"${part}" after "${text.slice(0, at).slice(-80)}"`).toBeGreaterThanOrEqual(0);
      at = found + part.length;
    }
    expect(code).toBe(0);
  });

  it("really changes the file, and really fixes the project", async () => {
    const { code, folder, text } = await demo({ keep: true });
    try {
      const source = await readFile(join(folder, SOURCE_FILE), "utf8");
      expect(source).toBe(PROJECT_FILES[SOURCE_FILE]?.replace(BROKEN_CODE, FIXED_CODE));
      const { status } = spawnSync(process.execPath, ["--test"], { cwd: folder });
      expect(status).toBe(0);
      expect(await listLeft(folder)).toEqual([basename(folder)]);
      expect(text).toContain(`Kept: ${folder}\n`);
      expect(code).toBe(0);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("removes the folder, and leaves no listener on the process", async () => {
    // On some systems the first sandbox leaves one.
    await demo();
    const before = process.listenerCount("exit");
    const { folder } = await demo();
    expect(await listLeft(folder)).toEqual([]);
    expect(process.listenerCount("exit")).toBe(before);
  });

  it("says which sandbox its commands run in, or that there is none", async () => {
    const { text } = await demo({ signal: AbortSignal.abort() });
    const kind = await createSandbox().then(
      (sandbox) => sandbox.kind,
      () => "none works here",
    );
    expect(text).toContain(`\nSandbox: ${kind}. Commands `);
  });

  it.each<[string, Partial<DemoOptions> & { isTTY?: boolean }]>([
    ["where there is no terminal", {}],
    ["in CI", { isTTY: true, env: { CI: "1" } }],
    ["when asked to", { isTTY: true, fast: true }],
  ])("has no delays %s", async (_where, options) => {
    // Time stands still: what waits does so for ever.
    expect((await demo({ ...options, clock: manualClock() })).code).toBe(0);
  });
});

describe("what did not happen is not claimed", () => {
  it("fails where the edit says that it worked and did nothing", async () => {
    const { code, text } = await demo({ tools: withTool("edit", () => "Edited bill.js.") });
    expect(text).toContain(
      "The tests still fail (no cent is lost). My change did not fix the bug.",
    );
    expect(text).toContain("✗ Not fixed");
    expect(text).not.toMatch(/tests pass|✔ Fixed/);
    expect(code).toBe(1);
  });

  it("fails where the edit fails", async () => {
    const execute = (): never => {
      throw new Error("The disk is full.");
    };
    const { code, text } = await demo({ tools: withTool("edit", execute) });
    expect(text).toMatch(/The edit failed, so the bug is still there\.[^]*The disk is full/);
    expect(text).not.toContain("✔ Fixed");
    expect(code).toBe(1);
  });

  it("fails where the tests cannot be run", async () => {
    const nothing = (): never => {
      throw new Error("There is no shell.");
    };
    const { code, text } = await demo({ tools: withTool("shell", nothing) });
    expect(text).toContain("The tests could not be run, so I stop here.");
    expect(code).toBe(1);
  });

  it("does not take credit where there was nothing to fix", async () => {
    const source = PROJECT_FILES[SOURCE_FILE]?.replace(BROKEN_CODE, FIXED_CODE) ?? "";
    const tools = (own: readonly AgentTool[], folder: string): AgentTool[] =>
      own.map((tool) => ({
        ...tool,
        async execute(...args) {
          await writeFile(join(folder, SOURCE_FILE), source);
          return tool.execute(...args);
        },
      }));
    const { code, text } = await demo({ tools });
    expect(text).toContain("The tests pass already, so there is nothing to fix.");
    expect(code).toBe(1);
  });

  it("leaves alone a file that is not what the story needs", async () => {
    const { code, text } = await demo({ tools: withTool("read", () => "something else") });
    expect(text).toContain("bill.js is not what I expected, so I leave it as it is.");
    expect(code).toBe(1);
  });
});

describe("abort", () => {
  it("ends in the middle of a sentence, and cleans up", async () => {
    const controller = new AbortController();
    const { code, folder, text } = await demo(
      { isTTY: true, signal: controller.signal },
      (shown) => {
        if (plainText(shown).includes("nothing")) controller.abort();
      },
    );
    expect(text).not.toContain("its tests say?");
    expect(text).toContain("Aborted.\n\nThe folder is removed");
    expect(existsSync(folder)).toBe(false);
    expect(code).toBe(130);
  });

  it("ends a command that runs, with all that it started", async () => {
    const controller = new AbortController();
    const mark = randomUUID();
    const wait = `node -e "console.log('begun'); setInterval(() => {}, 1000)" ${mark}`;
    const command = `${wait} & ${wait}`;
    let wasRunning = false;
    const tools = (own: readonly AgentTool[]): AgentTool[] =>
      own.map((tool) => {
        if (tool.name !== "shell") return tool;
        const execute: AgentTool["execute"] = (_args, context) =>
          tool.execute(
            { command },
            {
              ...context,
              update: (partial) => {
                context.update(partial);
                wasRunning ||= isRunning(mark);
                controller.abort();
              },
            },
          );
        return { ...tool, execute };
      });
    const { code, folder } = await demo({ tools, signal: controller.signal });
    expect(code).toBe(130);
    expect(await listLeft(folder)).toEqual([]);
    expect(wasRunning).toBe(true);
    expect(isRunning(mark)).toBe(false);
  });

  it("does not even begin when it was aborted before", async () => {
    const { code, folder, text } = await demo({ signal: AbortSignal.abort() });
    expect(text).not.toContain("›");
    expect(existsSync(folder)).toBe(false);
    expect(code).toBe(130);
  });

  it("removes the folder when the screen fails", async () => {
    let folder = "";
    const failing = demo({}, (text) => {
      folder = /Folder: (\S+)/.exec(text)?.[1] ?? folder;
      if (text.includes("exit code 1")) throw new Error("The screen is gone.");
    });
    await expect(failing).rejects.toThrow(SinkError);
    expect(await listLeft(folder)).toEqual([]);
  });
});
