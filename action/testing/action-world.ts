import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll } from "vitest";
import { buildProgram, type Program, TEST_KEY } from "../../packages/cli/src/testing/program.ts";
import {
  type Script,
  type ScriptedService,
  scriptedService,
} from "../../packages/cli/src/testing/scripted-service.ts";
import {
  createFakeGitHub,
  type FakeGitHub,
  makeComment,
  REPOSITORY,
  TOKEN,
} from "./fake-github.ts";

const ENTRY = fileURLToPath(new URL("../main.mjs", import.meta.url));
const FILES = { "tea.txt": "black\n", ".gitignore": "ignored/\n" };

export interface EventFile {
  name: string;
  body: Record<string, unknown>;
}

export interface Ended {
  code: number | null;
  log: string;
  outputs: Record<string, string>;
  summary: string;
}

export interface StartOptions {
  inputs?: Readonly<Record<string, string>>;
  env?: Readonly<Record<string, string>>;
}

export interface ActionWorld {
  folder: string;
  github: FakeGitHub;
  service: ScriptedService;
  workspace: string;
  program: Program;
  /** The action in a process of its own, as the runner starts it. */
  start(event: EventFile, options?: StartOptions): { child: ChildProcess; end: Promise<Ended> };
  run(event: EventFile, options?: StartOptions): Promise<Ended>;
}

/** A world for each test: GitHub, a checkout, a model service. */
export function actionWorld(): { open: (script: Script) => Promise<ActionWorld> } {
  const built: { program?: Program } = {};
  const cleanUps: (() => unknown)[] = [];
  beforeAll(async () => {
    built.program = await buildProgram();
  });
  afterAll(() => built.program?.remove());
  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  });
  return {
    async open(script) {
      const { program } = built;
      if (!program) throw new Error("It is not built yet.");
      const folder = realpathSync(mkdtempSync(join(tmpdir(), "gyre-action-")));
      cleanUps.push(() => rmSync(folder, { recursive: true, force: true }));
      const github = await createFakeGitHub(folder, FILES);
      cleanUps.push(() => github.close());
      const service = await scriptedService(script);
      cleanUps.push(() => service.close());
      const workspace = join(folder, "checkout");
      execFileSync("git", ["clone", "-q", github.remote, workspace]);
      let runs = 0;
      const start: ActionWorld["start"] = (event, { inputs = {}, env = {} } = {}) => {
        const place = join(folder, `run-${++runs}`);
        for (const name of ["home", "temp", "tmp"]) {
          mkdirSync(join(place, name), { recursive: true });
        }
        const files = ["event.json", "output", "summary"].map((name) => join(place, name));
        const [eventFile = "", output = "", summary = ""] = files;
        writeFileSync(eventFile, JSON.stringify(event.body));
        for (const file of [output, summary]) writeFileSync(file, "");
        const given = {
          "github-token": TOKEN,
          "anthropic-api-key": TEST_KEY,
          env: "ANTHROPIC_BASE_URL",
          mode: "auto-edit",
          program: program.entry,
          ...inputs,
        };
        const child = spawn(process.execPath, [ENTRY], {
          cwd: workspace,
          env: {
            PATH: process.env["PATH"],
            HOME: join(place, "home"),
            TMPDIR: join(place, "tmp"),
            ANTHROPIC_BASE_URL: service.url,
            ACTIONS_RUNTIME_TOKEN: "runtime-token-of-the-runner",
            GITHUB_API_URL: `${github.url}/api`,
            GITHUB_SERVER_URL: github.url,
            GITHUB_REPOSITORY: REPOSITORY,
            GITHUB_EVENT_NAME: event.name,
            GITHUB_EVENT_PATH: eventFile,
            GITHUB_OUTPUT: output,
            GITHUB_STEP_SUMMARY: summary,
            GITHUB_WORKSPACE: workspace,
            GITHUB_RUN_ID: String(runs),
            RUNNER_TEMP: join(place, "temp"),
            ...Object.fromEntries(
              Object.entries(given).map(([name, value]) => [`INPUT_${name.toUpperCase()}`, value]),
            ),
            ...env,
          },
        });
        cleanUps.push(() => child.kill("SIGKILL"));
        let log = "";
        for (const stream of [child.stdout, child.stderr]) {
          stream.setEncoding("utf8").on("data", (part: string) => (log += part));
        }
        const end = new Promise<Ended>((settle) => {
          child.on("close", (code) => {
            const outputs = parseOutputs(readFileSync(output, "utf8"));
            settle({ code, log, outputs, summary: readFileSync(summary, "utf8") });
          });
        });
        return { child, end };
      };
      return {
        folder,
        github,
        service,
        workspace,
        program,
        start,
        run: (event, options) => start(event, options).end,
      };
    },
  };
}

/** As the runner reads them. */
function parseOutputs(text: string): Record<string, string> {
  const outputs: Record<string, string> = {};
  const lines = text.split("\n");
  for (let nth = 0; nth < lines.length; nth++) {
    const [name = "", end] = (lines[nth] ?? "").split("<<");
    if (end === undefined) continue;
    const last = lines.indexOf(end, nth + 1);
    outputs[name] = lines.slice(nth + 1, last).join("\n");
    nth = last;
  }
  return outputs;
}

/** A comment on issue 7, or on pull request 7. */
export function commentEvent(
  { github }: ActionWorld,
  body: string,
  { login = "ann", isPull = false, type = "User", id = 50 } = {},
): EventFile {
  const comment = makeComment(id, login, body);
  github.comments.push(comment);
  return {
    name: "issue_comment",
    body: {
      action: "created",
      issue: { number: 7, ...(isPull && { pull_request: {} }) },
      comment: { ...comment, user: { login, type } },
      sender: { login, type, id: 11 },
      repository: { full_name: REPOSITORY },
    },
  };
}

/** The text that the model got as a file of the thread. */
export function readMarked(world: ActionWorld, file: string): string {
  const { body } = world.service.requests[0] ?? {};
  const pattern = new RegExp(
    `<source kind="file" name="[^"]*/${file}" mark="(\\w+)">\n([\\s\\S]*?)\n</source mark="\\1">`,
  );
  const texts = JSON.stringify(body?.["messages"]).match(/"text":"(?:[^"\\]|\\.)*"/g) ?? [];
  const found = texts
    .map((text) => pattern.exec(String(JSON.parse(text.slice('"text":'.length)))))
    .find((match) => match !== null);
  return found?.[2] ?? "";
}
