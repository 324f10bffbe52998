import { someCases } from "../../tests/support/cases.ts";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, scriptedService } from "../../packages/cli/src/testing/scripted-service.ts";
import { run } from "../../scripts/shared/command.mjs";
import { compile, root, type Snippet } from "../snippets.ts";

/** One process of a program: what it is given, what the model says. prints.json has what it prints. */
interface Run {
  args?: readonly string[];
  answers?: readonly Answer[];
  /** What it writes to stderr; nothing, unless this says so. */
  logs?: string;
  /** What its last request has, such as the result of a call. */
  sends?: string;
  /** It ends itself in the middle. */
  isKilled?: boolean;
  /** It reaches the service by a proxy alone. */
  isProxied?: boolean;
}

const wrongKey: Answer = { status: 401, message: "invalid x-api-key" };
const ask = (call: string, args: Record<string, unknown>, id?: string): Answer => ({
  say: [{ call, arguments: args, ...(id !== undefined && { id }) }],
});
const egg = { name: "Egg", steps: ["Boil.", "Peel."] };

/** What people build first, and how many lines it takes at most, imports included. */
const programs: Readonly<Record<string, { lines: number; runs: readonly Run[] }>> = {
  "first-agent": { lines: 4, runs: [{ answers: [{ say: "It is 42." }] }] },
  "agent-as-tool": {
    lines: 5,
    runs: [
      {
        answers: [ask("poet", { prompt: "Tea" }), { say: "O tea!" }, { say: "Here it is: O tea!" }],
        sends: "O tea!",
      },
    ],
  },
  "multi-agent": {
    lines: 8,
    runs: [
      {
        answers: [
          {
            say: ["Sencha", "Assam", "Oolong"].map((prompt) => ({
              call: "research",
              arguments: { prompt },
            })),
          },
          ...["Green.", "Black.", "Both."].map((say) => ({ say })),
          { say: "All three are teas." },
        ],
      },
    ],
  },
  handoff: {
    lines: 7,
    runs: [
      {
        answers: [
          ask("transfer_to_refunds", {}),
          { say: "You get it back." },
          { say: "Tomorrow." },
        ],
        sends: '"Refund it."',
      },
    ],
  },
  tools: {
    lines: 31,
    runs: [
      {
        answers: [
          ask("add", { a: 19, b: 24 }),
          ask("half", { of: 43 }),
          ask("round", { of: 21.5 }),
          ask("spell", { word: "tea" }),
          { say: "It is 22." },
        ],
        sends: String.raw`[\"t\",\"e\",\"a\"]`,
      },
    ],
  },
  "typed-answer": {
    lines: 6,
    runs: [
      {
        answers: [
          { say: "I would boil it." },
          ask("final_answer", { ...egg, steps: ["Boil."] }),
          ask("final_answer", egg),
        ],
        sends: "expected at least 2 items",
      },
    ],
  },
  route: {
    lines: 18,
    runs: [
      {
        answers: [{ say: "Green." }, wrongKey],
      },
    ],
  },
  // The first three lines are the route.
  "use-chat": {
    lines: 9,
    runs: [
      {
        answers: [{ say: "Green." }, wrongKey],
        logs: "@gyre/server: Anthropic answered 401: invalid x-api-key. Check the key for Anthropic, and that it may use claude-sonnet-4-5.\n",
      },
    ],
  },
  remote: {
    lines: 20,
    runs: [{ answers: [{ say: "Green, and then black." }] }],
  },
  approval: {
    lines: 16,
    runs: [
      { answers: [ask("refund", { order: 7 }, "toolu_7")] },
      {
        args: ["toolu_7"],
        answers: [{ say: "It is refunded." }],
        sends: "Order 7 is refunded.",
      },
    ],
  },
  "approval-in-session": {
    lines: 23,
    runs: [
      { answers: [ask("refund", { order: 7 })], isKilled: true },
      {
        answers: [{ say: "It is refunded." }],
        sends: "Order 7 is refunded.",
        isKilled: true,
      },
    ],
  },
  fallback: {
    lines: 9,
    runs: [{ answers: [{ status: 529 }, { say: "Black." }] }],
  },
  options: {
    lines: 10,
    runs: [{ answers: [{ say: "Green." }], sends: '"top_p":0.9' }],
  },
  record: {
    lines: 9,
    runs: [
      { answers: [{ say: "Green." }] },
      {},
      {
        args: ["Which coffee?"],
      },
    ],
  },
  clock: { lines: 15, runs: [{}] },
  evals: {
    lines: 9,
    runs: [
      {
        answers: [
          { say: "Sencha." },
          ask("final_answer", { score: 1 }),
          { say: "Green." },
          ask("final_answer", { score: 0.2 }),
        ],
      },
    ],
  },
  proxy: {
    lines: 5,
    runs: [{ answers: [{ say: "Green." }], isProxied: true }],
  },
  "coding-agent": {
    lines: 8,
    runs: [
      {
        answers: [ask("write", { path: "tea.txt", content: "O tea!\n" }), { say: "Written." }],
        sends: "tea.txt",
      },
    ],
  },
  mcp: {
    lines: 15,
    runs: [
      {
        answers: [ask("mcp__tea__echo", { text: "green" }), { say: "Green." }],
        sends: String.raw`name=\"tea/echo\"`,
      },
    ],
  },
  "long-run": {
    lines: 23,
    runs: [
      {
        args: ["kill"],
        answers: [ask("step", { nth: 1 }), ask("step", { nth: 2 })],
        isKilled: true,
      },
      {
        answers: [{ say: "Step 2 broke off." }],
        sends: "Interrupted: the run ended before tool",
      },
    ],
  },
};

/** What each program prints, by process; the site of the guide shows it. */
const prints: Record<string, string[]> = JSON.parse(
  readFileSync(join(root, "docs/programs/prints.json"), "utf8"),
);

let folder: string;
const files = new Map<string, string>();

beforeAll(async () => {
  await mkdir(join(root, ".tmp"), { recursive: true });
  folder = await mkdtemp(join(root, ".tmp", "programs-"));
  const snippets = Object.keys(programs).map((name): Snippet => {
    const code = readFileSync(join(root, "docs/programs", `${name}.ts`), "utf8");
    return { place: `${name}.ts`, code, language: "ts", output: "", answers: [] };
  });
  const { problems, programs: compiled } = await compile(snippets, folder);
  if (problems.length > 0) throw new Error(problems.join("\n"));
  for (const [{ place }, file] of compiled) files.set(place, file);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

/** A proxy that leads every name to one port of this machine. */
async function startProxy(port: number): Promise<{ url: string; close: () => void }> {
  const proxy = createServer();
  proxy.on("connect", (_request, socket) => {
    const through = connect(port, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      through.pipe(socket).pipe(through);
    });
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const address = proxy.address();
  if (address === null || typeof address === "string") throw new Error("There is no port.");
  return { url: `http://127.0.0.1:${address.port}`, close: () => void proxy.close() };
}

/** Runs a program in a process and a folder, with a service to ask. */
async function runProgram(name: string, cwd: string, one: Run): Promise<string> {
  const service = await scriptedService(one.answers);
  const proxy = one.isProxied ? await startProxy(Number(new URL(service.url).port)) : undefined;
  try {
    const file = files.get(`${name}.ts`) ?? "";
    const child = spawn(process.execPath, [file, ...(one.args ?? [])], {
      cwd,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ANTHROPIC_API_KEY: "sk-ant-for-the-programs-alone",
        ANTHROPIC_BASE_URL: service.url,
        VLLM_BASE_URL: `${service.url}/v1`,
        LITELLM_BASE_URL: `${service.url}/v1`,
        ...(proxy && { HTTP_PROXY: proxy.url, ANTHROPIC_BASE_URL: "http://anthropic.test" }),
        XDG_STATE_HOME: join(cwd, "state"),
        MCP_SERVER: join(root, "packages/mcp/src/testing/mcp-server.mjs"),
      },
    });
    const ended = new Promise((settle) => child.once("close", (_, signal) => settle(signal)));
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    expect(stderr).toBe(one.logs ?? "");
    expect(await ended).toBe(one.isKilled === true ? "SIGKILL" : null);
    expect(service.problems).toEqual([]);
    expect(service.requests).toHaveLength(one.answers?.length ?? 0);
    if (one.sends !== undefined) expect(service.requests.at(-1)?.text).toContain(one.sends);
    return stdout;
  } finally {
    proxy?.close();
    await service.close();
  }
}

const ran = new Set(someCases(4, Object.keys(programs)));

describe.each(Object.entries(programs))("%s", (name, { lines, runs }) => {
  it(`has at most ${lines} lines, imports included`, () => {
    const file = join(root, "docs/programs", `${name}.ts`);
    const written = readFileSync(file, "utf8").split("\n");
    expect(written.filter((line) => line.trim() !== "").length).toBeLessThanOrEqual(lines);
  });

  it.runIf(ran.has(name))("runs", { tags: "long" }, async () => {
    const cwd = await mkdtemp(join(folder, "cwd-"));
    for (const [at, one] of runs.entries()) {
      expect(await runProgram(name, cwd, one)).toBe(prints[name]?.[at]);
    }
  });
});

it("prints.json has each program, and each of its processes", () => {
  const counts = Object.entries(programs).map(([name, { runs }]) => [name, runs.length]);
  expect(Object.entries(prints).map(([name, runs]) => [name, runs.length])).toEqual(counts);
});

it("a program with OpenTelemetry and pino has at most 12 lines; npm run test:telemetry runs it", () => {
  const written = readFileSync(join(root, "docs/programs/telemetry.mjs"), "utf8");
  expect(written.trimEnd().split("\n").length).toBeLessThanOrEqual(12);
  const drive = readFileSync(join(root, "scripts/drive/telemetry.mjs"), "utf8");
  expect(drive).toContain("docs/programs/telemetry.mjs");
});

it("the lines are as the formatter has them", async () => {
  const oxfmt = join(root, "node_modules/oxfmt/bin/oxfmt");
  const { code } = await run(process.execPath, [oxfmt, "--check", "docs/programs"], { cwd: root });
  expect(code).toBe(0);
});
