import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createCodingAgent } from "@gyre/coding";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { buildEnvironment, buildProgram, type Program } from "../testing/program.ts";
import { type ScriptedService, scriptedService } from "../testing/scripted-service.ts";

// The program as a process, and the library in this one, with one home and one service.

let program: Program;
let service: ScriptedService;
let home: string;
let cwd: string;

beforeAll(async () => {
  program = await buildProgram();
});
afterAll(() => program.remove());
beforeEach(async () => {
  service = await scriptedService([]);
  home = await program.makeHome();
  cwd = join(home, "work");
  mkdirSync(cwd);
  writeFileSync(join(cwd, "AGENTS.md"), "Tea is always green here.");
});
afterEach(async () => {
  await service.close();
  if (service.problems.length > 0) throw new Error(service.problems.join("\n"));
});

it("the library asks as the program does", async () => {
  service.play([{ say: "Green." }, { say: "Green." }]);
  const env = buildEnvironment(home, service);
  const agent = await createCodingAgent({ cwd, env });
  const end = await agent.prompt("Which tea?");
  await agent.close();
  const ended = await program.gyre(["-p", "Which tea?"], { home, service });
  expect([end.text, ended.stdout]).toEqual(["Green.", "Green.\n"]);
  const [ours, theirs] = service.requests.map(({ body }) => body);
  expect(ours?.["system"]).toBeDefined();
  // The program has the pages about itself in its package.
  const withoutPages = (value: unknown): string =>
    JSON.stringify(value).replace(/ ?About gyre: read [^ ]+\.md\./, "");
  expect(withoutPages(theirs?.["system"])).not.toBe(JSON.stringify(theirs?.["system"]));
  for (const part of ["model", "system", "tools", "messages"]) {
    expect(withoutPages(ours?.[part])).toBe(withoutPages(theirs?.[part]));
  }
});

it("a session of the library goes on in the program, and back", async () => {
  service.play([{ say: "Green." }, { say: "Black." }, { say: "Both." }]);
  const env = buildEnvironment(home, service);
  const first = await createCodingAgent({ cwd, env });
  await first.prompt("Which tea?");
  const id = first.session?.header.id ?? "";
  await first.close();
  const ended = await program.gyre(["-p", "--resume", id, "And in winter?"], { home, service });
  expect(ended).toMatchObject({ code: 0, stdout: "Black.\n" });
  const again = await createCodingAgent({ cwd, env, session: "latest" });
  expect(again.session?.header.id).toBe(id);
  expect((await again.prompt("Which one, then?")).text).toBe("Both.");
  await again.close();
  const [one, two, three] = service.requests.map(({ body }) => body);
  expect([two?.["system"], three?.["system"]]).toEqual([one?.["system"], one?.["system"]]);
  for (const text of ["Which tea?", "Green.", "And in winter?", "Black.", "Which one, then?"]) {
    expect(JSON.stringify(three?.["messages"])).toContain(text);
  }
});
