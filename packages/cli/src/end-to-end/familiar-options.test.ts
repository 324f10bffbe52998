import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
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

  it("is a document where it is a PDF, whole, however large it is", async () => {
    const pdf = Buffer.concat([Buffer.from("%PDF-1.7\n"), Buffer.alloc(400_000, "pdf ")]);
    put("work/report.pdf", pdf);
    const { request } = asked(await gyre(["-p", "@report.pdf", "What is in it?"]));
    expect(JSON.stringify(request.body)).toContain(
      JSON.stringify({
        type: "document",
        source: {
          type: "base64",
          media_type: "application/pdf",
          data: pdf.toString("base64"),
        },
        title: "report.pdf",
      }).slice(0, -1),
    );
  });

  it("that the model does not take is an error before anything is sent", async () => {
    put("work/call.mp3", Buffer.from("ID3"));
    const { code, stderr, requests } = await gyre(["-p", "@call.mp3", "Who calls?"]);
    expect([code, requests.length]).toEqual([1, 0]);
    expect(stderr).toContain(
      "The file (call.mp3, audio/mpeg, 1 KB) cannot be sent to Anthropic: this service reads no audio.",
    );
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

describe("the facts of the start", () => {
  it("are what the model reads before the first prompt, with what it may do", async () => {
    const { request } = asked(
      await gyre(["-p", "Go.", "--mode", "auto-edit", "--sandbox", "none"]),
    );
    const messages = JSON.stringify(request.body["messages"]);
    expect(messages).toMatch(/"\[Date: \d{4}-\d\d-\d\d\\nSystem: [^"]*Mode: auto-edit/);
    expect(messages).toContain("Commands: not in a sandbox");
    expect(messages).toMatch(/Tools that are off[^"]*todo[^"]*\]".*Go\./);
  });

  it("are left out where a setting says so", async () => {
    const { text } = asked(await gyre(["-p", "Go."], { GYRE_FACTS: "false" }));
    expect(text).not.toContain("[Date: ");
  });
});

describe("a slash command with -p", () => {
  it("is the prompt that its file has, with what follows it", async () => {
    put("work/.claude/commands/greet.md", "Say hello to $ARGUMENTS, politely.");
    put(".claude/commands/mine.md", "Do as I always do.");
    expect(asked(await gyre(["-p", "/greet Anna"])).text).toContain("Say hello to Anna, politely.");
    expect(asked(await gyre(["-p", "/mine"])).text).toContain("Do as I always do.");
  });

  it("uses a skill by its name, and /review", async () => {
    put("work/.claude/skills/tea/SKILL.md", "---\nname: tea\ndescription: Makes tea.\n---\nBoil.");
    expect(asked(await gyre(["-p", "/tea with milk"])).text).toContain(
      "Use the skill tea: with milk",
    );
    expect(asked(await gyre(["-p", "/review main"])).text).toContain("Review the change main");
  });

  it("that is not there sends nothing, and names those that are", async () => {
    put("work/.claude/commands/greet.md", "Say hello.");
    const { code, stderr, requests } = await gyre(["-p", "/compose a song"]);
    expect([code, requests]).toEqual([2, []]);
    expect(stderr).toContain('There is no command "/compose". There are /init, /review, /greet.');
    expect((await gyre(["-p", "/greeet"])).stderr).toContain("Did you mean /greet?");
    expect((await gyre(["-p", "/compact"])).stderr).toContain("/compact is for a conversation");
    expect(asked(await gyre(["-p", "/tmp/x is full: why?"])).text).toContain("/tmp/x is full");
    expect(asked(await gyre(["-p", " /tmp is full: why?"])).text).toContain("/tmp is full");
  });
});

describe("settings of Claude Code", () => {
  const SETTINGS = {
    permissions: { allow: ["Bash(touch ran:*)"], deny: ["Read(./secret.txt)", "Agent(x)"] },
    hooks: { Stop: [] },
  };
  async function attempt(
    call: { call: string; arguments: Record<string, unknown> },
    ...args: string[]
  ) {
    const service = await scriptedService([{ say: [call] }, { say: "Done." }]);
    services.push(service);
    const given = ["-p", "Go.", "--mode", "ask", ...args];
    return program.gyre(given, { service, home, env: {} });
  }

  it("deny always, allow once the folder is trusted, and the rest is named in a line", async () => {
    put("work/secret.txt", "hunter22");
    put("work/.claude/settings.json", JSON.stringify(SETTINGS));
    const read = await attempt({ call: "read", arguments: { path: "secret.txt" } });
    const sent = JSON.stringify(read.requests.at(-1)?.body);
    expect(sent).not.toContain("hunter22");
    expect(sent).toContain("read(secret.txt)");
    expect(read.stderr).toMatch(
      /settings\.json: not used here: the deny rule "Agent\(x\)", "hooks"/,
    );
    expect(read.stderr).toContain("the rules that allow something do not hold");
    const run = { call: "shell", arguments: { command: "touch ran" } };
    expect((await attempt(run)).stderr).toContain("1 call was denied: shell.");
    expect(existsSync(join(home, "work/ran"))).toBe(false);
    const trusted = await program.gyre(["trust"], { home });
    expect(trusted.stdout).toContain("Bash(touch ran:*)");
    const { stderr } = await attempt(run);
    expect(stderr).not.toMatch(/do not hold|denied/);
    expect(existsSync(join(home, "work/ran"))).toBe(true);
    const doctor = await program.gyre(["doctor"], { home });
    expect(doctor.stdout).toContain('the deny rule "Agent(x)"');
    const removed = await program.gyre(["trust", "--remove"], { home });
    expect(removed.stdout).toContain("is not trusted any more");
    expect((await attempt(run)).stderr).toContain("do not hold");
  });
});

describe("options of Claude Code", () => {
  it("are taken where there is an equal", async () => {
    const args = [
      "-p",
      "Go.",
      "--output-format",
      "stream-json",
      "--permission-mode",
      "acceptEdits",
    ];
    const { stdout } = await gyre([...args, "--allowedTools", "Bash(git log:*),Read"]);
    expect(JSON.parse(stdout.split("\n")[0] ?? "")).toMatchObject({
      permissionMode: "acceptEdits",
    });
  });

  it("are an error that says what to write where there is none", async () => {
    const { code, stderr } = await gyre(["--dangerously-skip-permissions", "-p", "Go."]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("`--mode full`")]);
    const refused = await gyre(["doctor", "--debug"]);
    expect(refused.stderr).toContain('There is no option "--debug" here.');
    expect(refused.stderr).not.toContain("--verbose");
  });
});

it("-q says nothing of servers and rules that are not trusted", async () => {
  put("work/.mcp.json", JSON.stringify({ mcpServers: { a: { command: "false" } } }));
  put("work/.claude/settings.json", JSON.stringify({ permissions: { allow: ["Bash"] } }));
  expect((await gyre(["-p", "Go."])).stderr).toBe("");
  const service = await scriptedService([{ say: "Done." }]);
  services.push(service);
  const { stderr } = await program.gyre(["-p", "Go."], { service, home });
  expect(stderr).toMatch(/\.mcp\.json is not used/);
});

it("gyre mcp add takes a command without --, and says where by -s", async () => {
  const user = await program.gyre(["mcp", "add", "foo", "npx", "-y", "server"], { home });
  expect(user.stdout).toContain("foo was added to");
  await program.gyre(["mcp", "add", "-s", "project", "-t", "http", "bar", "https://a.org/mcp"], {
    home,
  });
  const project = JSON.parse(readFileSync(join(home, "work/.mcp.json"), "utf8")) as unknown;
  expect(project).toEqual({ mcpServers: { bar: { url: "https://a.org/mcp" } } });
  const { stdout } = await program.gyre(["config", "--json"], { home });
  expect(JSON.parse(stdout)).toMatchObject({
    settings: { mcp: { value: { foo: { command: "npx", args: ["-y", "server"] } } } },
  });
});
