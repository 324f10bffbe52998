import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { buildProgram, type Ended, type Program } from "../testing/program.ts";
import {
  type ScriptedService,
  scriptedService,
  type ServiceRequest,
} from "../testing/scripted-service.ts";

// The program as a process: options and files that people know from other agents.

let program: Program;
let home: string;
const services: ScriptedService[] = [];

beforeAll(async () => {
  program = await buildProgram();
});
afterAll(() => program.remove());
beforeEach(async () => {
  home = await program.makeHome();
  put("work/.git/HEAD", "ref: refs/heads/main\n");
});
afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.close()));
});

function put(path: string, text: string | Buffer): void {
  mkdirSync(dirname(join(home, path)), { recursive: true });
  writeFileSync(join(home, path), text);
}

async function gyre(args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  const service = await scriptedService([{ say: "Done." }]);
  services.push(service);
  return program.gyre([...args, "--quiet"], { service, home, env });
}

function asked({ requests }: Ended): { request: ServiceRequest; text: string } {
  const [request] = requests;
  if (!request) throw new Error("Nothing was asked.");
  return { request, text: JSON.stringify(request.body) };
}

describe("--model NAME:LEVEL", () => {
  it("sets the level of thinking with the model", async () => {
    const { request } = asked(await gyre(["-p", "Go.", "--model", "sonnet:high"]));
    expect(request.body).toMatchObject({ model: "claude-sonnet-5-5" });
    expect(JSON.stringify(request.body["thinking"] ?? request.body["output_config"])).toMatch(
      /high|budget|adaptive/,
    );
  });

  it("counts less than --thinking", async () => {
    const { request } = asked(
      await gyre(["-p", "Go.", "--model", "sonnet:high", "--thinking", "off"]),
    );
    expect(JSON.stringify(request.body["thinking"] ?? {})).not.toMatch(/enabled|adaptive/);
  });
});

describe("--api-key", () => {
  it("is the key of the model's service for this run, and stored nowhere", async () => {
    const { request } = asked(
      await gyre(["-p", "Go.", "--model", "sonnet", "--api-key", "sk-ant-given"]),
    );
    expect(request.headers["x-api-key"]).toBe("sk-ant-given");
    const { request: next } = asked(await gyre(["-p", "Go.", "--model", "sonnet"]));
    expect(next.headers["x-api-key"]).not.toBe("sk-ant-given");
  });

  it("needs a model", async () => {
    const { code, stderr } = await gyre(["-p", "Go.", "--api-key", "k"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("name the model with --model")]);
  });
});

describe("the system prompt", () => {
  const system = (ended: Ended): string => JSON.stringify(asked(ended).request.body["system"]);

  it("is replaced by --system-prompt, but for the folder, what is denied, and sources", async () => {
    put("work/AGENTS.md", "Use tabs.");
    const text = system(await gyre(["-p", "Go.", "--system-prompt", "You are a parrot."]));
    expect(text).toContain("You are a parrot.");
    expect(text).not.toContain("You are gyre");
    expect(text).toContain("A call that was denied stays denied");
    expect(text).toContain("are data from a file");
    expect(text).toContain("Use tabs.");
  });

  it("has --append-system-prompt at the end of its own text", async () => {
    const text = system(await gyre(["-p", "Go.", "--append-system-prompt", "Rhyme."]));
    expect(text).toContain("You are gyre");
    expect(text).toContain("Rhyme.");
  });

  it("is that of SYSTEM.md: the project's, else the user's; an option counts more", async () => {
    put("config/gyre/SYSTEM.md", "You are the user's.");
    expect(system(await gyre(["-p", "Go."]))).toContain("You are the user's.");
    put("work/.gyre/SYSTEM.md", "You are the project's.");
    const projects = system(await gyre(["-p", "Go."]));
    expect(projects).toContain("You are the project's.");
    expect(projects).not.toContain("You are the user's.");
    const given = system(await gyre(["-p", "Go.", "--system-prompt", "You are given."]));
    expect(given).not.toContain("You are the project's.");
    const none = system(await gyre(["-p", "Go."], { GYRE_INSTRUCTION_FILES: "false" }));
    expect(none).toContain("You are gyre");
  });

  it("of a session stays, unless another is asked for", async () => {
    await gyre(["-p", "Go."]);
    put("work/.gyre/SYSTEM.md", "You are new.");
    expect(system(await gyre(["-p", "Go on.", "-c"]))).toContain("You are gyre");
    const given = system(await gyre(["-p", "Go on.", "-c", "--system-prompt", "You are given."]));
    expect(given).toContain("You are given.");
  });
});

describe("@FILE as an argument", () => {
  it("is part of the prompt, with where it comes from; a picture is a picture", async () => {
    put("work/notes.md", "Buy milk.");
    put("work/dot.png", Buffer.from("iVBORw0KGgo=", "base64"));
    const { text } = asked(await gyre(["-p", "@notes.md", "@dot.png", "What is this?"]));
    expect(text).toContain("What is this?");
    expect(text).toMatch(/<source kind=\\"file\\" name=\\"notes\.md\\"[^]*Buy milk\./);
    expect(text).toContain('"media_type":"image/png"');
  });

  it("needs no -p and no words where there is no terminal", async () => {
    put("work/task.md", "Do it.");
    expect(asked(await gyre(["@task.md"])).text).toContain("Do it.");
  });

  it("that is not there is an error of usage", async () => {
    const { code, stderr } = await gyre(["-p", "@none.md", "What?"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("@none.md:")]);
  });
});

it("--resume without an ID is an error of usage where no person can choose", async () => {
  const { code, stderr } = await gyre(["-p", "Go.", "-r"]);
  expect([code, stderr]).toEqual([2, expect.stringContaining("`gyre sessions` lists them")]);
});
