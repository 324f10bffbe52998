import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { MCP_CALL, TOOL_SEARCH } from "@gyre/mcp";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { buildProgram, type Ended, type Program } from "../testing/program.ts";
import { type Script, type ScriptedService, scriptedService } from "../testing/scripted-service.ts";

// What a trusted project runs outside of the sandbox, and an agent that changes it.

let program: Program;
let service: ScriptedService;
let home: string;
let work: string;

beforeAll(async () => {
  program = await buildProgram();
});
afterAll(() => program.remove());
beforeEach(async () => {
  service = await scriptedService([]);
  const run = await program.start(["--version"]);
  await run.end;
  ({ home, cwd: work } = run);
});
afterEach(async () => {
  await service.close();
});

function write(name: string, content: unknown): void {
  mkdirSync(dirname(join(work, name)), { recursive: true });
  writeFileSync(join(work, name), typeof content === "string" ? content : JSON.stringify(content));
}

function gyre(args: readonly string[], script: Script = []): Promise<Ended> {
  service.play(script);
  return program.gyre(args, { home, service });
}

const call = (name: string, args: Record<string, unknown>) => ({
  say: [{ call: name, arguments: args }],
});
const isOwned = (): boolean => existsSync(join(work, "owned"));
const DONE = { say: "Done." };

describe("a file that a trusted server runs", () => {
  beforeEach(async () => {
    write("tools/server.mjs", "process.exit(1)");
    write(".mcp.json", { mcpServers: { t: { command: "node", args: ["./tools/server.mjs"] } } });
    await gyre(["trust"]);
  });
  const evil = `require("fs").writeFileSync("owned", "")`;
  const search = call(TOOL_SEARCH, { query: "issue" });

  it("cannot be written by the agent", async () => {
    const path = "tools/server.mjs";
    const content = `import { writeFileSync } from "node:fs"; writeFileSync("owned", "");`;
    await gyre(
      ["-p", "Go", "--mode", "auto-edit"],
      [call("read", { path }), call("write", { path, content }), search, DONE],
    );
    expect(isOwned()).toBe(false);
    expect(readFileSync(join(work, path), "utf8")).toBe("process.exit(1)");
  });

  it("is not run if a command has changed it", async () => {
    write("do.sh", `echo 'import{writeFileSync as w}from"fs";w("owned","")' > tools/server.mjs`);
    const args = ["-p", "Go", "--mode", "full", "--sandbox", "none"];
    const ended = await gyre(args, [
      call("shell", { command: "sh do.sh" }),
      search,
      call(MCP_CALL, { tool: "t_x", arguments: {} }),
      DONE,
    ]);
    expect(readFileSync(join(work, "tools/server.mjs"), "utf8")).toContain("owned");
    expect(isOwned()).toBe(false);
    expect(JSON.stringify(ended.requests)).toContain("has changed since it was trusted");
  });

  it("is shown, and ends the trust when it changes", async () => {
    const { stdout } = await gyre(["trust", "--show"]);
    expect(stdout).toMatch(/trusted as they are now:\n {2}tools\/server\.mjs$/m);
    write("tools/server.mjs", evil);
    const { stderr } = await gyre(["mcp"]);
    expect(stderr).toContain("has changed since it was trusted");
    expect(isOwned()).toBe(false);
  });
});

describe("a file that a trusted hook runs", () => {
  const own = "touch owned";

  async function trusted(command: string, files: Record<string, unknown>): Promise<void> {
    for (const [name, content] of Object.entries(files)) write(name, content);
    write(".gyre/config.json", { hooks: { PostToolUse: [{ command }] } });
    const { stdout } = await gyre(["trust", "--show"]);
    for (const name of Object.keys(files)) expect(stdout).toContain(name);
    await gyre(["trust"]);
  }

  it.each([
    ["sh scripts/format.sh", "scripts/format.sh", "true", own],
    [
      "npm run -s lint",
      "package.json",
      { scripts: { lint: "true" } },
      JSON.stringify({ scripts: { lint: own } }),
    ],
  ])("cannot be written by the agent: %s", async (command, path, before, content) => {
    await trusted(command, { [path]: before });
    await gyre(
      ["-p", "Go", "--mode", "auto-edit"],
      [call("read", { path }), call("write", { path, content }), call("ls", {}), DONE],
    );
    expect(isOwned()).toBe(false);
    expect(readFileSync(join(work, path), "utf8")).not.toContain("owned");
  });

  it.each([
    ["sourced by a script", "sh scripts/format.sh", ". ./scripts/lib.sh", "scripts/lib.sh"],
    ["run by a script", "sh scripts/format.sh", "sh scripts/lib.sh", "scripts/lib.sh"],
    ["made for a script", "sh scripts/format.sh", "[ ! -f x.sh ] || . ./x.sh", "x.sh"],
  ])("cannot be written by the agent: %s", async (_how, command, script, path) => {
    const files = { "scripts/format.sh": script, "scripts/lib.sh": "true" };
    for (const [name, content] of Object.entries(files)) write(name, content);
    await trusted(command, { "scripts/format.sh": script });
    const calls = [call("read", { path }), call("write", { path, content: own }), call("ls", {})];
    await gyre(["-p", "Go", "--mode", "auto-edit"], [...calls, DONE]);
    expect(isOwned()).toBe(false);
  });

  it("cannot be made by the agent where the project is trusted once", async () => {
    write(".gyre/config.json", { hooks: { PostToolUse: [{ command: "sh scripts/later.sh" }] } });
    await gyre(
      ["-p", "Go", "--mode", "auto-edit", "--trust"],
      [call("write", { path: "scripts/later.sh", content: own }), call("ls", {}), DONE],
    );
    expect(isOwned()).toBe(false);
    expect(existsSync(join(work, "scripts/later.sh"))).toBe(false);
  });

  it("is not run if a command has changed it", async () => {
    await trusted("sh scripts/format.sh", { "scripts/format.sh": "true" });
    const args = ["-p", "Go", "--mode", "full", "--sandbox", "none"];
    write("do.sh", `echo ${own} > scripts/format.sh`);
    const ended = await gyre(args, [call("shell", { command: "sh do.sh" }), DONE]);
    expect(isOwned()).toBe(false);
    expect(ended.stderr).toContain("scripts/format.sh has changed since it was trusted");
  });

  it(
    "is read-only for sandboxed commands, with the folders around it",
    { tags: "bubblewrap" },
    async () => {
      await trusted("sh scripts/format.sh", { "scripts/format.sh": "true" });
      const f = "scripts/format.sh";
      write("do.sh", `echo ${own} > ${f}; mv scripts other; rm -f ${f}; touch scripts/free; true`);
      const args = ["-p", "Go", "--mode", "full"];
      await gyre(args, [call("shell", { command: "sh do.sh" }), DONE]);
      expect(readFileSync(join(work, "scripts/format.sh"), "utf8")).toBe("true");
      expect(existsSync(join(work, "scripts/free"))).toBe(true);
      expect(isOwned()).toBe(false);
    },
  );
});

describe("a file of the project that a hook of the user's own settings runs", () => {
  const own = "touch owned";

  function ofUser(command: string): void {
    const path = join(home, "config/gyre/config.json");
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, JSON.stringify({ hooks: { PostToolUse: [{ command }] } }));
  }

  it.each([
    ["sh ./scripts/format.sh", "scripts/format.sh", "touch formatted", own],
    [
      "npm run -s lint",
      "package.json",
      { scripts: { lint: "touch formatted" } },
      JSON.stringify({ scripts: { lint: own } }),
    ],
  ])("is run, and cannot be written by the agent: %s", async (command, path, before, content) => {
    write(path, before);
    ofUser(command);
    await gyre(
      ["-p", "Go", "--mode", "auto-edit"],
      [call("read", { path }), call("write", { path, content }), call("ls", {}), DONE],
    );
    expect(existsSync(join(work, "formatted"))).toBe(true);
    expect(isOwned()).toBe(false);
    expect(readFileSync(join(work, path), "utf8")).not.toContain("owned");
  });

  it("cannot be made by the agent", async () => {
    ofUser("sh scripts/later.sh");
    await gyre(
      ["-p", "Go", "--mode", "auto-edit"],
      [call("write", { path: "scripts/later.sh", content: own }), call("ls", {}), DONE],
    );
    expect(isOwned()).toBe(false);
    expect(existsSync(join(work, "scripts/later.sh"))).toBe(false);
  });

  it("is not run if a command has changed it", async () => {
    write("scripts/format.sh", "true");
    write("do.sh", `echo ${own} > scripts/format.sh`);
    ofUser("sh scripts/format.sh");
    const args = ["-p", "Go", "--mode", "full", "--sandbox", "none"];
    const ended = await gyre(args, [call("shell", { command: "sh do.sh" }), DONE]);
    expect(isOwned()).toBe(false);
    expect(ended.stderr).toContain(
      "scripts/format.sh has changed since gyre was started. Look at it, and start gyre again",
    );
  });
});
