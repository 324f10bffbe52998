import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { AgentTool, AgentToolResult, ToolHost } from "@gyre/agent";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { editTool, MAX_OUTPUT_CHARS, MAX_READ_BYTES, readTool, shellTool } from "./demo-tools.ts";

let home: string;
let folder: string;

beforeEach(async () => {
  home = await mkdtemp(join(await realpath(tmpdir()), "gyre-tools-"));
  folder = join(home, "project");
  await mkdir(folder);
  await writeFile(join(home, "secret.txt"), "secret");
  await writeFile(join(folder, "bill.js"), "one\ntwo\nthree\n");
});

afterEach(() => rm(home, { recursive: true, force: true }));

const host: ToolHost = { call: () => Promise.reject(new Error("not here")) };

interface Ran {
  text: string;
  result: AgentToolResult;
  updates: string[];
}

async function run(
  tool: AgentTool,
  args: Record<string, unknown>,
  signal: AbortSignal = new AbortController().signal,
): Promise<Ran> {
  const updates: string[] = [];
  const given = await tool.execute(
    "1",
    args,
    signal,
    (partial) => updates.push(textOf(partial)),
    host,
  );
  if (typeof given === "string") throw new Error("The demo's tools give results with a view.");
  return { text: textOf(given), result: given, updates };
}

function textOf(result: AgentToolResult): string {
  return result.content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

describe("paths", () => {
  const outside = [
    "../secret.txt",
    "..",
    "/etc/passwd",
    "sub/../../secret.txt",
    "link",
    "way/secret.txt",
  ];

  it.each(outside)("refuses %s, which leads out of the folder", async (path) => {
    await symlink(join(home, "secret.txt"), join(folder, "link"));
    await symlink(home, join(folder, "way"));
    const edit = { path, oldText: "secret", newText: "changed" };
    await expect(run(readTool(folder), { path })).rejects.toThrow("outside the project's folder");
    await expect(run(editTool(folder), edit)).rejects.toThrow("outside the project's folder");
    expect(await readFile(join(home, "secret.txt"), "utf8")).toBe("secret");
  });

  it("takes a name that only begins with dots, and a folder that is itself behind a link", async () => {
    await writeFile(join(folder, "..dots"), "x");
    await symlink(folder, join(home, "other"));
    expect((await run(readTool(join(home, "other")), { path: "..dots" })).text).toBe("x");
  });
});

describe("read", () => {
  it("reads a file and lists a folder", async () => {
    await writeFile(join(folder, "a.txt"), "");
    expect((await run(readTool(folder), { path: "bill.js" })).text).toBe("one\ntwo\nthree\n");
    expect((await run(readTool(folder), { path: "." })).text).toBe("a.txt\nbill.js");
  });

  it("names what may have been meant", async () => {
    await expect(run(readTool(folder), { path: "bil.js" })).rejects.toThrow(
      "There is no bil.js in the project. Did you mean bill.js?",
    );
  });

  it("refuses a file that is too long", async () => {
    await writeFile(join(folder, "long.txt"), "x".repeat(MAX_READ_BYTES + 1));
    await expect(run(readTool(folder), { path: "long.txt" })).rejects.toThrow("at most");
  });
});

describe("edit", () => {
  it("replaces the one place, byte for byte, and tells the lines that differ", async () => {
    const args = { path: "bill.js", oldText: "two\nthree", newText: "$& two\nthree" };
    const { result } = await run(editTool(folder), args);
    expect(await readFile(join(folder, "bill.js"), "utf8")).toBe("one\n$& two\nthree\n");
    expect(result.details).toEqual({
      type: "diff",
      lines: [
        { sign: "-", text: "two" },
        { sign: "+", text: "$& two" },
      ],
    });
  });

  it.each([
    ["is not there", "four", "does not contain"],
    ["is there twice", "e", "more than once"],
  ])("changes nothing where the text %s", async (_what, oldText, why) => {
    const args = { path: "bill.js", oldText, newText: "x" };
    await expect(run(editTool(folder), args)).rejects.toThrow(why);
    expect(await readFile(join(folder, "bill.js"), "utf8")).toBe("one\ntwo\nthree\n");
  });
});

describe("shell", () => {
  it("runs in the folder, with this very Node, and tells output and exit code", async () => {
    const command = `node -p "process.execPath + ' ' + process.cwd()"`;
    const { text, result } = await run(shellTool(folder), { command });
    expect(text).toBe(`${process.execPath} ${folder}\nexit code 0`);
    expect(result.isError).toBe(false);
  });

  it("makes an error of a command that does not succeed", async () => {
    const { text, result } = await run(shellTool(folder), { command: "echo bad >&2; exit 3" });
    expect(text).toBe("bad\nexit code 3");
    expect(result.isError).toBe(true);
  });

  it("reports output while the command runs", async () => {
    const { updates } = await run(shellTool(folder), { command: "echo a; sleep 0.1; echo b" });
    expect(updates[0]).toBe("a\n");
    expect(updates.at(-1)).toBe("a\nb\n");
  });

  it("has nothing on stdin", async () => {
    expect((await run(shellTool(folder), { command: "cat" })).text).toBe("exit code 0");
  });

  it("keeps the end of a long output and says how much is left out", async () => {
    const command = `node -e "process.stdout.write('é'.repeat(100000) + 'end')"`;
    const { text } = await run(shellTool(folder), { command });
    const left = 100_003 - MAX_OUTPUT_CHARS;
    expect(text.startsWith(`(${left} characters left out)\né`)).toBe(true);
    expect(text.endsWith("éend\nexit code 0")).toBe(true);
    expect(text).not.toContain("\ufffd");
  });

  it("ends a command that takes too long", async () => {
    const { text, result } = await run(shellTool(folder, 100), { command: "echo begun; sleep 30" });
    expect(text).toBe("begun\nThe command took longer than 100 ms and was ended.");
    expect(result.isError).toBe(true);
  });

  const LATE = "(sleep 1; echo late > late.txt) &";

  it.each([
    ["an abort", `${LATE} sleep 30`, 100],
    ["its end", `${LATE} true`, undefined],
  ])("leaves no process behind after %s", async (_what, command, abortAfter) => {
    const signal = abortAfter === undefined ? undefined : AbortSignal.timeout(abortAfter);
    const begun = performance.now();
    const { text } = await run(shellTool(folder), { command }, signal);
    expect(performance.now() - begun).toBeLessThan(5000);
    expect(text).toBe(signal ? "The command was aborted." : "exit code 0");
    await sleep(1300);
    expect(existsSync(join(folder, "late.txt"))).toBe(false);
  });

  it("does not wait for a process that left its group and holds the output open", async () => {
    const leave = `require("node:child_process").spawn("sleep", ["2"], { detached: true, stdio: "inherit" }).unref()`;
    const begun = performance.now();
    const { result } = await run(shellTool(folder), { command: `node -e '${leave}'` });
    expect(result.isError).toBe(false);
    expect(performance.now() - begun).toBeLessThan(1500);
  });

  it("starts nothing when it was aborted before", async () => {
    const running = run(shellTool(folder), { command: "echo x > x.txt" }, AbortSignal.abort());
    await expect(running).rejects.toThrow("aborted");
    expect(existsSync(join(folder, "x.txt"))).toBe(false);
  });

  it("tells when it cannot be started, and leaves no listener behind", async () => {
    const before = process.listenerCount("exit");
    const running = run(shellTool(join(folder, "gone")), { command: "true" });
    await expect(running).rejects.toThrow("could not be started");
    await run(shellTool(folder), { command: "true" });
    expect(process.listenerCount("exit")).toBe(before);
  });
});
