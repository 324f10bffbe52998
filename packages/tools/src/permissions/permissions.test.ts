import { mkdir, mkdtemp, realpath, rm, symlink, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, type AgentTool, defineTool, Suspend, type ToolInvocation } from "@gyre/agent";
import { call, scriptedModel } from "@gyre/ai/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Access, GuardedTool } from "../contract/access.ts";
import { type PermissionOptions, permissions } from "../permissions.ts";
import {
  type ApprovalAnswer,
  type ApprovalRequest,
  approvalRequest,
  type PermissionDecision,
  type PermissionMode,
} from "./permissions.ts";
import { openWorkspace, type Workspace } from "../workspace/workspace.ts";

let folder: string;
let workspace: Workspace;

beforeEach(async () => {
  folder = await mkdtemp(join(await realpath(tmpdir()), "gyre-permissions-"));
  await mkdir(join(folder, "src"));
  await writeFile(join(folder, "src/a.ts"), "a");
  await writeFile(join(folder, "secret"), "s");
  workspace = await openWorkspace(folder);
});
afterEach(async () => {
  await workspace.close();
  await rm(folder, { recursive: true });
});

/** A tool that declares the access it is made with. */
function createTool(
  name: string,
  access?: Partial<Access> | (() => Access | Promise<Access>),
): AgentTool {
  const tool = defineTool({
    name,
    description: "For tests.",
    parameters: { type: "object", properties: {} },
    execute: () => "done",
  });
  if (access === undefined) return tool;
  const whole: Access = { kind: "none", targets: [], summary: "Does it", ...access };
  const guarded: GuardedTool = {
    ...tool,
    access: typeof access === "function" ? access : () => whole,
  };
  return guarded;
}

const shell = (command: string, more: Partial<Access> = {}): AgentTool =>
  createTool("shell", { kind: "run", targets: [command], ...more });

function invocation(tool: AgentTool, more: Partial<ToolInvocation> = {}): ToolInvocation {
  return {
    toolCall: { type: "toolCall", id: "c1", name: tool.name, arguments: {} },
    tool,
    args: {},
    signal: new AbortController().signal,
    run: { sessionId: undefined, model: scriptedModel([]).model, fallbacks: [] },
    ...more,
  };
}

/** "ran", "asked", or the words of the denial. */
async function outcome(
  tool: AgentTool,
  options: Partial<PermissionOptions>,
  more: Partial<ToolInvocation> = {},
): Promise<string> {
  const guard = permissions({
    sandboxed: true,
    ask: () => Promise.reject(new Error("asked")),
    tools: ["shell", "write", "edit", "read", "fetch", "git", tool.name].map((name) => ({ name })),
    ...options,
  });
  try {
    await guard.tool?.(invocation(tool, more), () => Promise.resolve({ content: [] }));
    return "ran";
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return message.endsWith("may run: asked") ? "asked" : message;
  }
}

const approve = (request: ApprovalRequest): Promise<ApprovalAnswer> =>
  Promise.resolve({ allow: true, fingerprint: request.fingerprint });

describe("the modes", () => {
  const rows: [string, AgentTool, Record<PermissionMode, string>][] = [
    ["none", createTool("x", { kind: "none" }), table("ran ran ran ran ran")],
    ["read", createTool("x", { kind: "read", targets: ["a"] }), table("ran ran ran ran ran")],
    ["agent", createTool("x", { kind: "agent" }), table("ran ran ran ran ran")],
    [
      "write",
      createTool("x", { kind: "write", targets: ["a"] }),
      table("asked ran ran denied ran"),
    ],
    [
      "write outside",
      createTool("x", { kind: "write", targets: ["/a"] }),
      table("asked asked asked denied ran"),
    ],
    ["run", shell("ls"), table("asked asked ran denied ran")],
    ["network", createTool("fetch", { kind: "network" }), table("asked asked asked asked ran")],
    [
      "destructive",
      createTool("x", { kind: "write", destructive: true }),
      table("asked asked asked denied ran"),
    ],
    ["unsandboxed", shell("ls", { unsandboxed: true }), table("asked asked asked denied asked")],
    ["a tool without access", createTool("x"), table("asked asked asked denied ran")],
  ];
  function table(row: string): Record<PermissionMode, string> {
    const [ask = "", autoEdit = "", auto = "", plan = "", full = ""] = row.split(" ");
    return { ask, "auto-edit": autoEdit, auto, plan, full };
  }

  it.each(rows)("%s", async (_name, tool, expected) => {
    for (const mode of ["ask", "auto-edit", "auto", "plan", "full"] as const) {
      const got = await outcome(tool, { mode });
      expect(got.startsWith("Denied") ? "denied" : got, mode).toBe(expected[mode]);
    }
  });

  it("full asks about commands that no sandbox confines, unless the user chose so", async () => {
    const options = { mode: "full" as const, rules: { allow: ["shell(npm test)", "shell(ls*)"] } };
    expect(await outcome(shell("id"), { ...options, sandboxed: false })).toBe("asked");
    expect(await outcome(shell("npm test"), { ...options, sandboxed: false })).toBe("ran");
    expect(await outcome(shell("ls -l"), { ...options, sandboxed: false })).toBe("asked");
    expect(await outcome(shell("id"), { ...options, sandboxed: "waived" })).toBe("ran");
    const headless = { ...options, sandboxed: false, headless: true };
    expect(await outcome(shell("id"), headless)).toContain("There is no sandbox around it.");
    const write = createTool("write", { kind: "write", targets: ["a"] });
    expect(await outcome(write, { ...options, sandboxed: false })).toBe("ran");
  });

  it("may change between calls", async () => {
    let mode: PermissionMode = "ask";
    const options = { mode: () => mode };
    expect(await outcome(shell("ls"), options)).toBe("asked");
    mode = "full";
    expect(await outcome(shell("ls"), options)).toBe("ran");
  });

  it("is an error if there is no such mode, or denies where it is found out late", async () => {
    const wrong = "yolo" as PermissionMode;
    expect(() => permissions({ mode: wrong, sandboxed: true })).toThrow('no mode "yolo"');
    expect(await outcome(createTool("x", {}), { mode: () => wrong })).toMatch(/^Denied: .*no mode/);
  });

  it("lets rules that deny and ask go first, whatever the mode", async () => {
    const read = createTool("read", { kind: "read", targets: [".env"] });
    expect(await outcome(read, { mode: "full", rules: { deny: ["read(.env)"] } })).toMatch(
      "forbids",
    );
    expect(await outcome(read, { mode: "full", rules: { ask: ["read"] } })).toBe("asked");
  });

  it("asks in full about what may be a forbidden command", async () => {
    const rules = { deny: ["shell(rm *)"] };
    expect(await outcome(shell("$X a"), { mode: "full" })).toBe("ran");
    expect(await outcome(shell("$X a"), { mode: "full", rules })).toBe("asked");
    expect(await outcome(shell(`echo "`), { mode: "full", rules })).toBe("asked");
    expect(await outcome(shell("ls"), { mode: "full", rules })).toBe("ran");
  });

  it("asks about what is destructive or leaves the sandbox, also where a rule allows it", async () => {
    const rules = { allow: ["shell", "git"] };
    expect(await outcome(createTool("git", { kind: "write", destructive: true }), { rules })).toBe(
      "asked",
    );
    const out = shell("ls", { unsandboxed: true });
    expect(await outcome(out, { rules })).toBe("asked");
  });

  it("lets a command leave the sandbox in full only by a rule that names it", async () => {
    const out = shell("npm run x", { unsandboxed: true });
    const full = (rule: string): Promise<string> =>
      outcome(out, { mode: "full", rules: { allow: [rule] } });
    for (const rule of ["shell", "shell(*)", "shell(npm run *)", "shell(npm run x)"]) {
      expect(await full(rule), rule).toBe("asked");
    }
    expect(await full("shell(unsandboxed: npm run x)")).toBe("ran");
    expect(await full("shell(unsandboxed: npm run *)")).toBe("ran");
    expect(await full("shell(unsandboxed: npm test)")).toBe("asked");
    const named = { allow: ["shell(unsandboxed: npm run *)"] };
    expect(await outcome(out, { rules: named })).toBe("asked");
    expect(await outcome(shell("npm run x"), { rules: named })).toBe("ran");
    const forbidden = { deny: ["shell(unsandboxed: *)"] };
    expect(await outcome(out, { rules: forbidden })).toMatch("forbids");
    expect(await outcome(shell("npm run x"), { mode: "full", rules: forbidden })).toBe("ran");
  });

  it("asks in plan about other ways to the network than fetching", async () => {
    const push = createTool("git", { kind: "network", targets: ["https://example.org/x"] });
    expect(await outcome(push, { mode: "plan", rules: { allow: ["git"] } })).toBe("asked");
  });
});

describe("commands", () => {
  it("are asked about where the shell that runs them may read them in another way", async () => {
    const rules = { allow: ["shell(git *)"] };
    const posix = { language: "sh" } as const;
    expect(await outcome(shell("git log | git status", posix), { rules })).toBe("ran");
    expect(await outcome(shell("git $'status'"), { rules })).toBe("ran");
    expect(await outcome(shell("git $'status'", posix), { rules })).toBe("asked");
  });

  const rules = { allow: ["shell(ls*)", "shell(npm test)", "write(out/**)"] };

  it("run without a question where rules allow all of it, in a sandbox", async () => {
    expect(await outcome(shell("ls -l && npm test"), { rules })).toBe("ran");
    expect(await outcome(shell("ls; rm x"), { rules })).toBe("asked");
    expect(await outcome(shell("ls -l"), { rules, sandboxed: false })).toBe("asked");
    expect(await outcome(shell("npm test"), { rules, sandboxed: false })).toBe("ran");
  });

  it("are allowed by an exact rule in the workspace's own folder alone", async () => {
    const at = (folder: string): AgentTool => shell("npm test", { folder });
    for (const sandboxed of [true, false]) {
      expect(await outcome(at("."), { rules, sandboxed })).toBe("ran");
      expect(await outcome(at("src"), { rules, sandboxed })).toBe("asked");
      const named = { allow: ["shell(in src: npm test)"] };
      expect(await outcome(at("src"), { rules: named, sandboxed })).toBe("ran");
      expect(await outcome(at("src/x"), { rules: named, sandboxed })).toBe("asked");
      expect(await outcome(at("."), { rules: named, sandboxed })).toBe("asked");
      const all = { allow: ["shell(in **: npm test)"] };
      expect(await outcome(at("src/x"), { rules: all, sandboxed })).toBe("ran");
      expect(await outcome(at("."), { rules: all, sandboxed })).toBe("ran");
    }
    // A tool that does not say where it leads, and a folder as the model wrote it.
    const bare = shell("npm test");
    expect(await outcome(bare, { rules }, { args: { cwd: "src" } })).toBe("asked");
    expect(await outcome(bare, { rules }, { args: { cwd: "./src/.." } })).toBe("ran");
    expect(await outcome(bare, { rules }, { args: { cwd: "/elsewhere" } })).toBe("asked");
  });

  it("are not allowed by an exact rule behind a change of folders", async () => {
    const moving = { allow: [...rules.allow, "shell(cd *)", "shell(cd src)"] };
    expect(await outcome(shell("cd src && npm test"), { rules: moving })).toBe("asked");
    expect(await outcome(shell("npm test && cd src"), { rules: moving })).toBe("asked");
    expect(await outcome(shell("cd src && ls -l"), { rules: moving })).toBe("ran");
    expect(await outcome(shell("(cd src); npm test"), { rules: moving })).toBe("asked");
  });

  it("are forbidden in a folder, and asked about where the folder may become that one", async () => {
    const forbidden = { mode: "full", rules: { deny: ["shell(in src: npm *)"] } } as const;
    expect(await outcome(shell("npm test", { folder: "src" }), forbidden)).toMatch("forbids");
    expect(await outcome(shell("npm test", { folder: "src/x" }), forbidden)).toMatch("forbids");
    expect(await outcome(shell("npm test", { folder: "." }), forbidden)).toBe("ran");
    expect(await outcome(shell("cd src; npm test"), forbidden)).toBe("asked");
    expect(await outcome(shell("cd src; ls"), forbidden)).toBe("ran");
  });

  it("may be confined by what is known only when one is to run", async () => {
    let asked = 0;
    const sandboxed = async (): Promise<boolean> => ++asked > 1;
    const read = createTool("read", { kind: "read", targets: ["a"] });
    expect(await outcome(read, { rules, sandboxed })).toBe("ran");
    expect(asked).toBe(0);
    expect(await outcome(shell("ls -l"), { rules, sandboxed })).toBe("asked");
    expect(await outcome(shell("ls -l"), { rules, sandboxed })).toBe("ran");
    const broken = (): Promise<boolean> => Promise.reject(new Error("no bwrap"));
    expect(await outcome(shell("ls -l"), { rules, sandboxed: broken })).toContain(
      "it could not be decided whether it may run: no bwrap",
    );
  });

  it("may write by redirection only where writing is allowed", async () => {
    const options = { rules, workspace };
    expect(await outcome(shell("ls > out/x 2>/dev/null"), options)).toBe("ran");
    expect(await outcome(shell("ls > other"), options)).toBe("asked");
    expect(await outcome(shell("ls > other"), { ...options, mode: "auto-edit" })).toBe("ran");
    expect(await outcome(shell("ls > /elsewhere"), { ...options, mode: "auto-edit" })).toBe(
      "asked",
    );
    expect(await outcome(shell("ls > out/$X"), options)).toBe("asked");
    expect(await outcome(shell("ls > out/x"), { rules })).toBe("asked");
    expect(await outcome(shell("ls > x"), options, { args: { cwd: "out" } })).toBe("ran");
    expect(await outcome(shell("ls < src/a.ts"), options)).toBe("ran");
    const moving = { allow: [...rules.allow, "shell(cd *)"] };
    expect(await outcome(shell("cd src; ls > out/x"), { rules: moving, workspace })).toBe("asked");
  });

  it("never write to what is read-only for tools, nor where a rule forbids it", async () => {
    const options = { mode: "full", workspace } as const;
    expect(await outcome(shell("echo x > .mcp.json"), options)).toMatch("read-only for tools");
    expect(await outcome(shell("echo x | tee .git/hooks/a"), options)).toMatch(
      "read-only for tools",
    );
    const forbidden = { deny: ["edit(src/**)", "read(secret)"] };
    expect(await outcome(shell("echo x > src/b"), { ...options, rules: forbidden })).toMatch(
      "forbids",
    );
    expect(await outcome(shell("cat < secret"), { ...options, rules: forbidden })).toMatch(
      "forbids",
    );
    await symlink("src", join(folder, "link"));
    expect(await outcome(shell("echo x > link/b"), { ...options, rules: forbidden })).toMatch(
      "forbids",
    );
  });
});

describe("asking", () => {
  /** A tool that reports where a link leads at the moment. */
  const edit = (): AgentTool =>
    createTool("edit", async () => {
      const { path } = await workspace.resolve("link");
      return { kind: "write", targets: [path], summary: `Edit ${path}` };
    });
  async function point(to: string): Promise<void> {
    await unlink(join(folder, "link")).catch(() => undefined);
    await symlink(to, join(folder, "link"));
  }

  it("shows where it leads, safely, and why", async () => {
    const requests: ApprovalRequest[] = [];
    const ask = (request: ApprovalRequest): Promise<ApprovalAnswer> => {
      requests.push(request);
      return approve(request);
    };
    const tool = shell("ls \u001b[2K\u202e", { summary: "Run ls \u001b[2K\u202e\nx" });
    expect(await outcome(tool, { ask }, { args: { command: "ls" } })).toBe("ran");
    const [request] = requests;
    expect(request).toMatchObject({ callId: "c1", tool: "shell", args: { command: "ls" } });
    expect(request?.reason).toBe('In mode "ask" "run" is asked about.');
    expect(request?.byMode).toEqual({ mode: "ask", about: "run", notes: [] });
    expect(request?.access?.summary).toBe("Run ls ␛[2K<U+202E>␊x");
    expect(request?.access?.targets).toEqual(["ls ␛[2K<U+202E>"]);
    expect(request?.fingerprint).toMatch(/^[0-9a-f]{64}$/);
  });
  it("runs what was approved, and asks again if a link leads elsewhere by then", async () => {
    await point("src/a.ts");
    const asked: (readonly string[] | undefined)[] = [];
    const ask = async (request: ApprovalRequest): Promise<ApprovalAnswer> => {
      asked.push(request.access?.targets);
      if (asked.length === 1) await point("secret");
      return approve(request);
    };
    expect(await outcome(edit(), { ask })).toBe("ran");
    expect(asked).toEqual([["src/a.ts"], ["secret"]]);
  });

  it("denies after the answer what is forbidden by then", async () => {
    await point("src/a.ts");
    const ask = async (request: ApprovalRequest): Promise<ApprovalAnswer> => {
      await point("secret");
      return approve(request);
    };
    expect(await outcome(edit(), { ask, rules: { deny: ["edit(secret)"] } })).toMatch("forbids");
  });

  it("denies what is never what was approved", async () => {
    let count = 0;
    const tool = createTool("x", () => ({ kind: "write", targets: [`${count++}`], summary: "" }));
    expect(await outcome(tool, { ask: approve })).toMatch("changes all the time");
  });

  it("notices arguments that change while a person thinks", async () => {
    const args: Record<string, unknown> = { content: "harmless" };
    let asks = 0;
    const ask = (request: ApprovalRequest): Promise<ApprovalAnswer> => {
      if (asks++ === 0) args["content"] = "evil";
      else return Promise.resolve({ allow: false, reason: "not that" });
      return approve(request);
    };
    expect(await outcome(createTool("write", { kind: "write" }), { ask }, { args })).toBe(
      "Denied: a person said no: not that",
    );
  });

  it.each<[string, unknown]>([
    ["another call", { allow: true, fingerprint: "0".repeat(64) }],
    ["another call", { allow: "yes" }],
    ["a person said no.", { allow: false }],
    ["could not be decided", undefined],
    ["could not be decided", { allow: "always", rule: "shel(ls)" }],
  ])("denies (%s) on the answer %j", async (words, answer) => {
    const ask = (): Promise<ApprovalAnswer> => Promise.resolve(answer as ApprovalAnswer);
    expect(await outcome(shell("ls"), { ask })).toMatch(words);
  });

  it("remembers a rule", async () => {
    let asks = 0;
    const guard = permissions({
      sandboxed: true,
      ask: () => Promise.resolve({ allow: "always", rule: `shell(git log*)${asks++ ? "!" : ""}` }),
    });
    const next = () => Promise.resolve({ content: [] });
    await guard.tool?.(invocation(shell("git log")), next);
    await guard.tool?.(invocation(shell("git log -p")), next);
    expect(asks).toBe(1);
    await expect(guard.tool?.(invocation(shell("git push")), next)).rejects.toThrow("is wrong");
  });

  it("denies where something fails on the way", async () => {
    const broken = createTool("x", () => Promise.reject(new Error("The path leads out.")));
    expect(await outcome(broken, { mode: "full" })).toBe("Denied: The path leads out.");
    expect(
      await outcome(shell("ls"), { ask: () => Promise.reject(new Error("no screen")) }),
    ).toMatch(/^Denied: .*no screen/);
    const onDecision = (): void => {
      throw new Error("disk full");
    };
    expect(await outcome(createTool("x", {}), { onDecision })).toMatch(/^Denied: .*disk full/);
  });

  it("denies what would be asked about where no person can be asked", async () => {
    expect(await outcome(shell("ls"), { headless: true })).toMatch(
      "no person can be asked here. In mode",
    );
  });

  it("denies when the run was stopped meanwhile", async () => {
    const controller = new AbortController();
    const ask = (request: ApprovalRequest): Promise<ApprovalAnswer> => {
      controller.abort();
      return approve(request);
    };
    expect(await outcome(shell("ls"), { ask }, { signal: controller.signal })).toMatch("stopped");
  });

  it("reports each decision", async () => {
    const decisions: PermissionDecision[] = [];
    const onDecision = (decision: PermissionDecision): void => void decisions.push(decision);
    await outcome(createTool("x", {}), { onDecision });
    await outcome(shell("ls"), { onDecision, ask: approve });
    await outcome(shell("ls"), { onDecision, mode: "plan" });
    expect(decisions.map(({ tool, effect, asked }) => [tool, effect, asked])).toEqual([
      ["x", "allow", false],
      ["shell", "allow", true],
      ["shell", "deny", false],
    ]);
  });
});

describe("the report of a call that is denied as no person can be asked", () => {
  async function decide(tool: AgentTool, options: Partial<PermissionOptions> = {}) {
    const decisions: PermissionDecision[] = [];
    const onDecision = (decision: PermissionDecision): void => void decisions.push(decision);
    await outcome(tool, { headless: true, onDecision, ...options });
    const [{ effect, summary, rule } = { effect: "none" }] = decisions;
    return { effect, summary, rule };
  }

  it("is what it would have done, and the rule that would do", async () => {
    const npm = shell("npm test", { summary: "Run npm\u001b[2J test" });
    expect(await decide(npm)).toEqual({
      effect: "deny",
      summary: expect.stringMatching(/^Run npm\P{Cc}* test$/u),
      rule: "shell(npm test)",
    });
    expect(await outcome(npm, { headless: true, rules: { allow: ["shell(npm test)"] } })).toBe(
      "ran",
    );
    expect((await decide(createTool("x"))).rule).toBe("x");
    const inside = shell("npm test", { folder: "src/a b" });
    expect((await decide(inside)).rule).toBe("shell(in src/a b: npm test)");
    expect(await decide(shell("npm test", { folder: "src/*" }))).toMatchObject({ rule: undefined });
  });

  it.each<[string, AgentTool, Partial<PermissionOptions>]>([
    ["a mode that forbids", shell("ls"), { mode: "plan" }],
    ["a rule that forbids", shell("ls"), { rules: { deny: ["shell"] } }],
    ["a rule that wants it asked about", shell("ls"), { rules: { ask: ["shell(ls)"] } }],
    ["what cannot be undone", shell("ls", { destructive: true }), {}],
    ["what leaves the sandbox", shell("ls", { unsandboxed: true }), {}],
    ["a command that no rule can stand for", shell("ls; id"), {}],
    ["advice against it", shell("ls"), { advice: () => ({ effect: "ask", reason: "Hm." }) }],
    ["a name that no rule can have", { ...createTool("a"), name: "a b" }, {}],
  ])("is no rule for %s", async (_, tool, options) => {
    expect(await decide(tool, options)).toMatchObject({ effect: "deny", rule: undefined });
  });

  it("is no rule where a person can be asked", async () => {
    const ask = (): Promise<ApprovalAnswer> => Promise.resolve({ allow: false });
    expect(await decide(shell("ls"), { headless: false, ask })).toMatchObject({ rule: undefined });
  });
});

describe("an approval that comes later", () => {
  const runs: string[] = [];
  const write = (): AgentTool => {
    const tool = defineTool({
      name: "write",
      description: "For tests.",
      parameters: { type: "object", properties: { count: { type: "number" } } },
      execute: async () => {
        runs.push((await workspace.resolve("link")).path);
        return "done";
      },
    });
    const guarded: GuardedTool<typeof tool.parameters> = {
      ...tool,
      async access() {
        const { path } = await workspace.resolve("link");
        return { kind: "write", targets: [path], summary: `Write ${path}` };
      },
    };
    return guarded;
  };

  async function suspended(): Promise<{ agent: Agent; tool: AgentTool }> {
    runs.length = 0;
    await symlink("src/a.ts", join(folder, "link"));
    const model = scriptedModel([call("write", { count: "1" }), "Done"]);
    const tool = write();
    const agent = new Agent({
      protocol: model,
      model: model.model,
      tools: [tool],
      middleware: [permissions({ sandboxed: true })],
    });
    expect((await agent.prompt("Go"))?.stop).toBe("suspended");
    return { agent, tool };
  }

  it("is bound to what was shown", async () => {
    const { agent, tool } = await suspended();
    const [pending] = agent.state.pending;
    if (!pending) throw new Error("Nothing is pending.");
    expect(pending.reason).toMatch('needs approval. In mode "ask"');
    const { fingerprint, access } = await approvalRequest(tool, pending);
    expect(access?.targets).toEqual(["src/a.ts"]);
    const decisions = { [pending.toolCall.id]: { type: "approve", fingerprint } } as const;

    // From another process: nothing is remembered there.
    const again = scriptedModel(["Done"]);
    const { messages } = agent.state;
    const other = new Agent({
      protocol: again,
      model: again.model,
      tools: [tool],
      messages,
      middleware: [permissions({ sandboxed: true })],
    });
    await unlink(join(folder, "link"));
    await symlink("secret", join(folder, "link"));
    expect((await other.continue({ decisions })).stop).toBe("suspended");
    expect(other.state.pending[0]?.reason).toMatch("has changed since it was approved");
    expect(runs).toEqual([]);

    await unlink(join(folder, "link"));
    await symlink("src/a.ts", join(folder, "link"));
    expect((await other.continue({ decisions })).stop).toBe("done");
    expect(runs).toEqual(["src/a.ts"]);
  });

  it("needs no fingerprint in the process that asked, as long as nothing changed", async () => {
    const { agent } = await suspended();
    const id = agent.state.pending[0]?.toolCall.id ?? "";
    const decisions = { [id]: { type: "approve" } } as const;
    await unlink(join(folder, "link"));
    await symlink("secret", join(folder, "link"));
    expect((await agent.continue({ decisions })).stop).toBe("suspended");
    expect((await agent.continue({ decisions })).stop).toBe("done");
    expect(runs).toEqual(["secret"]);
  });

  it("of changed arguments is of these alone, and rules hold for them", async () => {
    const ran: string[] = [];
    const tool: GuardedTool = {
      ...defineTool({
        name: "shell",
        description: "Runs.",
        parameters: {
          type: "object",
          properties: { command: { type: "string" } },
          required: ["command"],
        } as const,
        execute({ command }) {
          ran.push(command);
          return "done";
        },
      }),
      access: ({ command }) => ({
        kind: "run",
        targets: [String(command)],
        summary: `Run ${String(command)}`,
      }),
    };
    const model = scriptedModel([call("shell", { command: "ls" }, "c1"), "Done", "Done"]);
    const agent = new Agent({
      protocol: model,
      model: model.model,
      tools: [tool],
      middleware: [permissions({ sandboxed: true, rules: { deny: ["shell(rm *)"] } })],
    });
    await agent.prompt("Go");
    const [asked] = agent.state.pending;
    const approve = async (more: object): Promise<string> =>
      (await agent.continue({ decisions: { c1: { type: "approve", ...more } } })).stop;
    const args = { command: "id" };
    // Neither the fingerprint of the question nor none at all is one of these arguments.
    expect(await approve({ args, fingerprint: asked?.fingerprint })).toBe("suspended");
    const [changed] = agent.state.pending;
    expect(changed?.access?.["summary"]).toBe("Run id");
    expect(changed?.fingerprint).not.toBe(asked?.fingerprint);
    // An approval of the changed ones does not run the call as it was, nor others.
    expect(await approve({ fingerprint: changed?.fingerprint })).toBe("suspended");
    expect(await approve({ args: { command: "w" }, fingerprint: changed?.fingerprint })).toBe(
      "suspended",
    );
    expect(ran).toEqual([]);
    expect(await approve({ args, fingerprint: changed?.fingerprint })).toBe("done");
    expect(ran).toEqual(["id"]);
    await expect(approve({ args })).rejects.toThrow('No call "c1" waits');
  });

  it.each([
    ["that a rule forbids", { command: "rm x" }, "forbids it"],
    ["that do not fit", { command: 1, x: [] }, "Invalid arguments"],
  ])("of changed arguments %s runs nothing", async (_what, args, why) => {
    const tool: GuardedTool = {
      ...defineTool({
        name: "shell",
        description: "Runs.",
        parameters: {
          type: "object",
          properties: { command: { type: "string" } },
          required: ["command"],
          additionalProperties: false,
        } as const,
        execute: () => "ran",
      }),
      access: ({ command }) => ({ kind: "run", targets: [String(command)], summary: "Run" }),
    };
    const model = scriptedModel([call("shell", { command: "ls" }, "c1"), "Done"]);
    const agent = new Agent({
      protocol: model,
      model: model.model,
      tools: [tool],
      middleware: [permissions({ sandboxed: true, rules: { deny: ["shell(rm *)"] } })],
    });
    await agent.prompt("Go");
    await agent.continue({ decisions: { c1: { type: "approve", args } } });
    const [result] = agent.state.messages.filter(({ role }) => role === "toolResult");
    expect(JSON.stringify(result)).toContain(why);
    expect(JSON.stringify(result)).not.toContain('"ran"');
  });

  it("does not hold for what the tool calls in its turn", async () => {
    const guard = permissions({ sandboxed: true });
    const more = { parentId: "c0", decision: { type: "approve" } } as const;
    const nested = guard.tool?.(invocation(shell("ls"), more), () =>
      Promise.resolve({ content: [] }),
    );
    await expect(nested).rejects.toThrow("inside of another call");
    await expect(nested).rejects.not.toBeInstanceOf(Suspend);
  });
});
