import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { buildProgram, type Program } from "../testing/program.ts";
import {
  type Answer,
  type AnswerPart,
  scriptedService,
  type ServiceRequest,
} from "../testing/scripted-service.ts";

// The program as a process: a model that is asked about gyre reads its pages, which are outside of the folder.

let program: Program;
beforeAll(async () => {
  program = await buildProgram();
});
afterAll(() => program.remove());

/** Where the system prompt says that the pages are. */
function findPages({ body }: ServiceRequest): string {
  const path = /About gyre: read (\S+)\./.exec(JSON.stringify(body["system"]))?.[1];
  if (path === undefined) throw new Error("The prompt names no pages.");
  return path;
}

/** Asks, with calls that are made from the place of the pages; gives the request with their results. */
async function ask(
  makeCalls: (folder: string) => readonly AnswerPart[],
  args: readonly string[],
): Promise<{ answered: string; pages: string }> {
  let pages = "";
  const first = (request: ServiceRequest): Answer => {
    pages = findPages(request);
    return { say: makeCalls(dirname(pages)) };
  };
  const service = await scriptedService([first, { say: "By a setting." }]);
  try {
    const ended = await program.gyre(["-p", "How do I change the theme?", "--quiet", ...args], {
      service,
    });
    expect(ended.stdout).toBe("By a setting.\n");
    return { answered: ended.requests[1]?.text ?? "", pages };
  } finally {
    await service.close();
  }
}

it("pages of the guide are read without a question, and never changed", async () => {
  const path = (name: string, folder: string): string => join(folder, name);
  const { answered, pages } = await ask(
    (folder) => [
      { call: "read", arguments: { path: path("configuration.md", folder) } },
      { call: "grep", arguments: { pattern: "notifyAfter", path: folder } },
      { call: "write", arguments: { path: path("new.md", folder), content: "x" } },
    ],
    ["--mode", "full", "--sandbox", "none"],
  );
  expect(pages.endsWith("docs/README.md")).toBe(true);
  expect(answered).toContain("## Precedence");
  expect(answered).toContain("terminal.md");
  expect(existsSync(path("new.md", dirname(pages)))).toBe(false);
});

it("and by commands in the sandbox", { tags: "bubblewrap" }, async () => {
  const { answered, pages } = await ask(
    (folder) => [{ call: "shell", arguments: { command: `head -1 ${folder}/README.md` } }],
    ["--mode", "ask"],
  );
  const [title = ""] = readFileSync(pages, "utf8").split("\n");
  expect(answered).toContain(title);
});
