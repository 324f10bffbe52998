import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { textOf } from "@gyre/ai";
import { call, scriptedModel } from "@gyre/ai/testing";
import { createCodingAgent } from "@gyre/coding";
import type { PermissionMode } from "@gyre/tools";
import type { Task, TaskCall } from "./task.ts";

const FILES: Readonly<Record<string, string>> = {
  "project/README.md": "# Tea\n\nAdds teas.\n",
  "project/package.json": JSON.stringify({
    name: "tea",
    version: "1.0.0",
    type: "module",
    scripts: { lint: "node scripts/lint.js", build: "mkdir -p dist && cp src/tea.js dist/" },
  }),
  "project/data.json": '{"teas":[1,2]}',
  "project/scripts/lint.js": "console.log('no problems');\n",
  "project/src/tea.js": "var kind = 'tea';\nexport const addTea = (a, b) => a - b;\n",
  "project/test/tea.test.js":
    'import test from "node:test";\nimport assert from "node:assert";\nimport { addTea } from "../src/tea.js";\ntest("adds", () => assert.equal(addTea(1, 2), 3));\n',
  "outside/notes.txt": "private\n",
  "home/.ssh/id_ed25519": "a key\n",
  "home/.bashrc": "# settings\n",
  "home/.gitconfig": "[user]\n\tname = Ada\n\temail = ada@example.org\n",
};

/** What became of the calls of one task. */
export interface Count {
  title: string;
  /** Commands of calls that were asked about and need not be. */
  needless: string[];
  /** Calls that were asked about or denied, and must be. */
  stopped: number;
  /** Calls that were made without asking, and must not be. */
  unasked: string[];
}

/** Runs a task with real tools in a repository of its own: a person approves what is harmless, denies the rest. */
export async function countQuestions(task: Task, mode: PermissionMode): Promise<Count> {
  const base = mkdtempSync(join(tmpdir(), "gyre-questions-"));
  const calls = task.calls.map((each) => ("call" in each ? each : { call: each }));
  const isDelicate = (id: string): boolean => "reason" in (calls[Number(id)] ?? {});
  const asked = new Set<string>();
  try {
    openRepository(base);
    const steps = calls.map(({ call: [name, args] }, id) => call(name, args, String(id)));
    const model = scriptedModel([...steps, "Done."]);
    const agent = await createCodingAgent({
      cwd: join(base, "project"),
      model: model.model,
      protocol: model,
      tools: ["+fetch"],
      session: "none",
      env: {
        PATH: process.env["PATH"],
        HOME: join(base, "home"),
        XDG_STATE_HOME: join(base, "state"),
      },
      onWarning: () => undefined,
      permissions: {
        mode,
        approve({ callId }) {
          asked.add(callId);
          return !isDelicate(callId);
        },
      },
    });
    const denied = new Set<string>();
    agent.subscribe((event) => {
      if (event.type !== "tool_execution_end" || !event.isError) return;
      if (textOf(event.result).includes("Denied")) denied.add(event.toolCallId);
    });
    try {
      await agent.prompt(task.title);
    } finally {
      await agent.close();
    }
    const ids = calls.map((_, id) => String(id));
    const show = (id: string): string => showCall(calls[Number(id)]?.call ?? ["", {}]);
    const isStopped = (id: string): boolean => asked.has(id) || denied.has(id);
    return {
      title: task.title,
      needless: ids.filter((id) => !isDelicate(id) && isStopped(id)).map(show),
      stopped: ids.filter((id) => isDelicate(id) && isStopped(id)).length,
      unasked: ids.filter((id) => isDelicate(id) && !isStopped(id)).map(show),
    };
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
}

/** A small repository with two commits, a folder beside it, and the home of its user. */
function openRepository(base: string): void {
  for (const [path, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(base, path)), { recursive: true });
    writeFileSync(join(base, path), text);
  }
  const cwd = join(base, "project");
  const env = { PATH: process.env["PATH"], HOME: join(base, "home"), GIT_CONFIG_NOSYSTEM: "1" };
  const git = (...args: string[]): void =>
    void execFileSync("git", args, { cwd, env, stdio: "ignore" });
  git("init", "-q", "-b", "main");
  git("add", "README.md");
  git("commit", "-qm", "Begin");
  git("add", "-A");
  git("commit", "-qm", "Add tea");
}

function showCall([tool, args]: TaskCall): string {
  const words = [args["command"], args["path"], args["url"]].filter(
    (each) => typeof each === "string",
  );
  return "command" in args ? words.join(" ") : `${tool} ${words.join(" ")}`;
}
