import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent } from "@gyre/agent";
import { textOf } from "@gyre/ai";
import { call, scriptedModel } from "@gyre/ai/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { permissions, type PermissionOptions } from "../permissions.ts";
import type { ApprovalRequest } from "../permissions/permissions.ts";
import { openToolset, type Toolset } from "../toolset.ts";

let base: string;
let tools: Toolset;
let requests: ApprovalRequest[];
const at = (path: string): string => join(base, path);

beforeEach(async () => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "gyre-added-")));
  for (const name of ["work", "lib", "other"]) mkdirSync(at(name));
  writeFileSync(at("lib/a.txt"), "a\n");
  execFileSync("git", ["init", "-q", at("lib")]);
  requests = [];
  tools = await openToolset({
    root: at("work"),
    addDirs: [at("lib")],
    stateFolder: at("state"),
  });
});

afterEach(async () => {
  await tools.close();
  rmSync(base, { recursive: true, force: true });
});

async function shell(command: string, options: Partial<PermissionOptions> = {}): Promise<string> {
  const guard = permissions({
    mode: "auto",
    sandboxed: true,
    tools: tools.registry.list(),
    workspace: tools.env.workspace,
    ask(request) {
      requests.push(request);
      return Promise.resolve({ allow: false });
    },
    ...options,
  });
  const model = scriptedModel([call("shell", { command }), "Done."]);
  const agent = new Agent({
    protocol: model,
    model: model.model,
    tools: tools.registry.list(),
    middleware: [guard],
  });
  let result = "";
  agent.subscribe((event) => {
    if (event.type === "tool_execution_end") result = textOf(event.result);
  });
  await agent.prompt("Go");
  return result;
}

describe("commands and folders that were added", { tags: "bubblewrap" }, () => {
  it("change them without a question in mode auto, and nothing else outside", async () => {
    await shell("echo new > ../lib/new.txt && cat ../lib/a.txt");
    expect(requests).toEqual([]);
    expect(readFileSync(at("lib/new.txt"), "utf8")).toBe("new\n");
    const text = await shell('node -e \'require("fs").writeFileSync("../other/x", "")\'', {
      mode: "full",
    });
    expect(text).toContain("Exit code 1.");
    expect(existsSync(at("other/x"))).toBe(false);
  });

  it("use one that was added meanwhile", async () => {
    tools.env.workspace.addFolder(at("other"));
    await shell("echo new > ../other/new.txt");
    expect(requests).toEqual([]);
    expect(readFileSync(at("other/new.txt"), "utf8")).toBe("new\n");
  });

  it("do not change what git runs there", async () => {
    const config = readFileSync(at("lib/.git/config"), "utf8");
    await shell("cd ../lib && git config core.fsmonitor ./x; touch .git/hooks/post-commit", {
      mode: "full",
    });
    expect(readFileSync(at("lib/.git/config"), "utf8")).toBe(config);
    expect(existsSync(at("lib/.git/hooks/post-commit"))).toBe(false);
    const text = await shell(
      "cd ../lib && git init -q sub && git -C sub config core.fsmonitor ./x && echo made",
      { mode: "full" },
    );
    expect(text).toContain("made");
    expect(text).toContain("sub/.git/config");
    expect(existsSync(at("lib/sub/.git/config"))).toBe(false);
  });

  it("do not leave instructions for agents there", async () => {
    const text = await shell("mkdir ../lib/.claude && echo {} > ../lib/.claude/settings.json", {
      mode: "full",
    });
    expect(text).toContain("../lib/.claude");
    expect(existsSync(at("lib/.claude"))).toBe(false);
  });

  it("change nothing there before the question in a layer", async () => {
    await shell("touch ../lib/early.txt || true; touch own.txt", { mode: "ask", rehearse: true });
    expect(requests.length).toBe(1);
    expect(requests[0]?.effects).toBeUndefined();
    expect(existsSync(at("lib/early.txt"))).toBe(false);
    expect(existsSync(at("work/own.txt"))).toBe(false);
  });

  it("are asked about where they remove what cannot be brought back", async () => {
    await shell("rm ../lib/a.txt");
    expect(requests.length).toBe(1);
    expect(existsSync(at("lib/a.txt"))).toBe(true);
  });
});
