import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent } from "@gyre/agent";
import { textOf } from "@gyre/ai";
import { callAll, scriptedModel } from "@gyre/ai/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { permissions } from "../permissions.ts";
import { openToolset, type Toolset } from "../toolset.ts";
import type { ApprovalAnswer, ApprovalRequest, PermissionMode } from "./permissions.ts";
import type { RuleList } from "./rules.ts";

let folder: string;
let root: string;
let toolset: Toolset | undefined;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "gyre-rehearse-")));
  root = join(folder, "ws");
  mkdirSync(root);
  writeFileSync(join(root, "tea.txt"), "green\n");
});

afterEach(async () => {
  await toolset?.close();
  toolset = undefined;
  rmSync(folder, { recursive: true, force: true });
});

interface Ran {
  /** What was asked, as a person would see it. */
  asked: ApprovalRequest[];
  /** What the model got. */
  results: string[];
}

interface Options {
  mode?: PermissionMode;
  rules?: RuleList;
  answer?: (request: ApprovalRequest) => ApprovalAnswer | Promise<ApprovalAnswer>;
  network?: boolean;
}

const keep = ({ fingerprint }: ApprovalRequest): ApprovalAnswer => ({ allow: true, fingerprint });

/** A model that calls `shell` with each of these, one after the other; with those of a list at once. */
async function run(
  commands: readonly (string | Record<string, unknown> | readonly Record<string, unknown>[])[],
  { mode = "ask", rules = {}, answer = keep, network = false }: Options = {},
): Promise<Ran> {
  toolset = await openToolset({
    root,
    stateFolder: join(folder, "state"),
    sandbox: "bubblewrap",
    network,
  });
  const asked: ApprovalRequest[] = [];
  const guard = permissions({
    mode,
    rules,
    sandboxed: true,
    workspace: toolset.env.workspace,
    rehearse: true,
    async ask(request) {
      asked.push(request);
      return answer(request);
    },
  });
  const calls = commands.map((args) =>
    callAll(
      (Array.isArray(args) ? args : [typeof args === "string" ? { command: args } : args]).map(
        (each: Record<string, unknown>): [string, Record<string, unknown>] => ["shell", each],
      ),
    ),
  );
  const model = scriptedModel([...calls, "Done."]);
  const agent = new Agent({
    protocol: model,
    model: model.model,
    tools: toolset.registry.list(),
    middleware: [guard],
  });
  const { messages } = await agent.prompt("Go.");
  const results = messages.filter((message) => message.role === "toolResult").map(textOf);
  return { asked, results };
}

function read(name: string): string {
  return readFileSync(join(root, name), "utf8");
}

/** What is left of layers. */
function listLayers(): string[] {
  const home = join(folder, "state/layers");
  return existsSync(home) ? readdirSync(home).flatMap((name) => readdirSync(join(home, name))) : [];
}

describe("a command that would be asked about", { tags: ["bubblewrap"] }, () => {
  it("has run when it is asked about, and the question says what it did", async () => {
    let seen: string[] = [];
    const { asked, results } = await run(["echo black >> tea.txt; echo new > cup; cat tea.txt"], {
      answer(request) {
        seen = [read("tea.txt"), ...readdirSync(root)];
        return keep(request);
      },
    });
    expect(seen).toEqual(["green\n", "tea.txt"]);
    expect(asked).toHaveLength(1);
    expect(asked[0]?.effects).toMatchObject({
      exitCode: 0,
      timedOut: false,
      effects: [
        { path: "cup", kind: "create", type: "file", texts: { before: "", after: "new\n" } },
        {
          path: "tea.txt",
          kind: "modify",
          texts: { before: "green\n", after: "green\nblack\n" },
        },
      ],
    });
    expect(results[0]).toContain("green\nblack");
    expect([read("tea.txt"), read("cup")]).toEqual(["green\nblack\n", "new\n"]);
  });

  it("leaves nothing where a person discards it, and the model gets to know", async () => {
    const { results } = await run(["rm tea.txt; echo x > x"], {
      answer: () => ({ allow: false, reason: "keep the tea" }),
    });
    expect(results[0]).toContain("discarded what it did");
    expect(results[0]).toContain("keep the tea");
    expect(readdirSync(root)).toEqual(["tea.txt"]);
    expect(listLayers()).toEqual([]);
  });

  it("is kept in part, and the model gets to know which part is missing", async () => {
    const { results } = await run(["mkdir -p a/b; echo 1 > a/b/one; echo 2 > two; rm tea.txt"], {
      answer({ fingerprint, effects }) {
        const one = effects?.effects.find(({ path }) => path === "a/b/one");
        return { allow: true, fingerprint, keep: one ? [one.id] : [] };
      },
    });
    expect(readdirSync(root).toSorted()).toEqual(["a", "tea.txt"]);
    expect(read("a/b/one")).toBe("1\n");
    expect(results[0]).toContain("the user discarded 2 changes of it: tea.txt, two.");
  });

  it("is not asked about where it changed nothing", async () => {
    const { asked, results } = await run(["sort -r tea.txt | sed s/green/GREEN/; touch tea.txt"]);
    expect(asked).toEqual([]);
    expect(results[0]).toContain("GREEN");
    expect(listLayers()).toEqual([]);
  });

  it("is not asked about in mode auto-edit where all that it did is harmless and can be undone", async () => {
    const { asked } = await run(["echo more >> tea.txt; mkdir out; echo x > out/x"], {
      mode: "auto-edit",
    });
    expect(asked).toEqual([]);
    expect([read("tea.txt"), read("out/x")]).toEqual(["green\nmore\n", "x\n"]);
  });

  it.each([
    ["runs later", "echo '{}' > package.json"],
    ["instructs agents", "echo hi > AGENTS.md"],
    ["is a link to outside", "echo L2V0Yw== | base64 -d | xargs -I{} ln -s {} p"],
    ["is more than is kept unseen", "for i in $(seq 501); do : > f$i; done"],
    ["was made by git", "git init -q . && git add ."],
  ])("is asked about in mode auto-edit where what it made %s", async (_, command) => {
    const { asked } = await run([command], { mode: "auto-edit", answer: () => ({ allow: false }) });
    expect(asked).toHaveLength(1);
    expect(asked[0]?.effects?.isHarmless).toBe(false);
    expect(readdirSync(root)).toEqual(["tea.txt"]);
  });

  it("is kept by rules on the files that it changed, and asked about else", async () => {
    const { asked } = await run(["mkdir out; echo x > out/x", "echo y >> out/x; echo y > y"], {
      rules: { allow: ["write(out/**)", "write(out)"] },
      answer: () => ({ allow: false }),
    });
    expect(asked.map(({ args }) => args["command"])).toEqual(["echo y >> out/x; echo y > y"]);
    expect(read("out/x")).toBe("x\n");
  });

  it("is not kept against a rule that forbids to write there, whatever a person says", async () => {
    const { asked, results } = await run(["name=secret; cp tea.txt $name; echo y > y"], {
      mode: "auto-edit",
      rules: { deny: ["write(secret)"] },
    });
    expect(asked[0]?.effects?.effects[0]).toMatchObject({
      path: "secret",
      conflict: "is forbidden by a rule",
    });
    expect(results[0]).toContain('a rule forbids to change "secret"');
    expect(readdirSync(root)).toEqual(["tea.txt"]);
  });

  it("is asked about in mode auto with what it destroys, where files are all that it destroys", async () => {
    const { asked } = await run(["rm -rf *"], {
      mode: "auto",
      answer: () => ({ allow: false }),
    });
    expect(asked.map(({ reason }) => reason)).toEqual([
      '"rm tea.txt" cannot be undone. It deletes all files of the workspace, also what git ignores.',
    ]);
    expect(asked[0]?.effects?.effects).toMatchObject([{ kind: "delete", path: "tea.txt" }]);
    expect(readdirSync(root)).toEqual(["tea.txt"]);
  });

  it.each([
    ["needs the network", { command: "curl https://example.com" }, "network"],
    ["is outside of the workspace", { command: "touch /etc/tea" }, "outside"],
    ["goes on in the background", { command: "sleep 1", background: true }, "background"],
    ["may be a server", { command: "npm start" }, "may be a server"],
    ["reaches other programs", { command: "kill 1" }, "other programs"],
  ])("is asked about before where it %s, and the question says so", async (_, args, why) => {
    const { asked } = await run([args], { answer: () => ({ allow: false }) });
    expect(asked).toHaveLength(1);
    expect(asked[0]?.effects).toBeUndefined();
    expect(asked[0]?.reason).toContain(why);
  });

  it("is asked about before where a rule forbids to read a file, which it might show", async () => {
    const { asked } = await run(["name=tea.txt; sort $name > sorted"], {
      rules: { deny: ["read(tea.txt)"] },
      answer: () => ({ allow: false }),
    });
    expect(asked[0]?.effects).toBeUndefined();
    expect(asked[0]?.reason).toContain("Rules forbid to read some files");
  });

  it("is asked about before by a rule that says so", async () => {
    const { asked } = await run(["echo x > x"], {
      rules: { ask: ["shell(echo *)"] },
      answer: () => ({ allow: false }),
    });
    expect(asked).toHaveLength(1);
    expect(asked[0]?.effects).toBeUndefined();
  });

  it("runs once more without a layer where a person says so", async () => {
    const { results } = await run(["echo x >> x"], {
      answer: ({ fingerprint }) => ({ allow: true, fingerprint, direct: true }),
    });
    expect(read("x")).toBe("x\n");
    expect(results[0]).toContain("No output");
    expect(listLayers()).toEqual([]);
  });

  it("is refused where the user changed the same file before the answer", async () => {
    const { results } = await run(["echo black > tea.txt; echo x > x"], {
      answer(request) {
        writeFileSync(join(root, "tea.txt"), "oolong\n");
        return keep(request);
      },
    });
    expect(results[0]).toContain('Nothing was kept: "tea.txt" was changed meanwhile');
    expect(readdirSync(root)).toEqual(["tea.txt"]);
    expect(read("tea.txt")).toBe("oolong\n");
  });

  it("is decided, and kept, before a call of the same answer that comes after it goes on", async () => {
    const order: string[] = [];
    const { results } = await run(
      [[{ command: "echo black > tea.txt" }, { command: "sort tea.txt > sorted; cat sorted" }]],
      {
        async answer(request) {
          order.push(`${String(request.args["command"]).slice(0, 4)} ${read("tea.txt").trim()}`);
          return keep(request);
        },
      },
    );
    expect(order).toEqual(["echo green", "sort black"]);
    expect(results[1]).toContain("black");
  });

  it("is asked about before where it failed in the layer by what that lacks", async () => {
    const { asked } = await run(
      ["node_modules/.bin/nope; echo 'getaddrinfo ENOTFOUND x'; exit 1"],
      {
        network: true,
        answer: () => ({ allow: false }),
      },
    );
    expect(asked[0]?.effects).toBeUndefined();
    expect(asked[0]?.reason).toContain("It needs the network, which a layer does not have.");
    expect(listLayers()).toEqual([]);
  });

  it("shows what it did until its time was over, and is never kept unasked then", async () => {
    const { asked, results } = await run([{ command: "echo x > x; sleep 60", timeoutMs: 6_000 }], {
      mode: "auto-edit",
    });
    expect(asked[0]?.effects).toMatchObject({ timedOut: true, isHarmless: false });
    expect(results[0]).toContain("its time was over");
  });

  it("is decided before the next call begins", async () => {
    const order: string[] = [];
    const { results } = await run(["echo black > tea.txt", "cat tea.txt"], {
      answer(request) {
        order.push(String(request.args["command"]));
        return keep(request);
      },
    });
    expect(order).toEqual(["echo black > tea.txt"]);
    expect(results[1]).toContain("black");
  });
});
