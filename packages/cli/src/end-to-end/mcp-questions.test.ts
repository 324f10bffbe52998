import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type {
  ClientCapabilities,
  CreateElicitationRequest,
  CreateElicitationResponse,
} from "@agentclientprotocol/sdk";
import type { Envelope, Payload } from "@gyre/protocol";
import { call } from "@gyre/ai/testing";
import { MCP_CALL } from "@gyre/mcp";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type TeaServer, teaServer } from "../../../mcp/src/testing/tea-server.ts";
import { createAcpHost } from "../modes/acp/host.ts";
import { runServe } from "../modes/serve/serve.ts";
import { startEditor } from "../testing/acp-client.ts";
import { textIo } from "../testing/command-io.ts";
import { FrameWorld } from "../testing/frame-driver.ts";
import { ScreenReaderWorld } from "../testing/screen-reader-program.ts";
import { scriptedService } from "../testing/scripted-service.ts";
import { ask, decide, terminalWorld } from "../testing/terminal-world.ts";

// An MCP server that asks in the middle of a call, in each of the places where a person may be.

let tea: TeaServer;
beforeEach(async () => {
  tea = await teaServer();
});
afterEach(() => tea.close());

const ORDER = { call: MCP_CALL, arguments: { tool: "mcp__tea__order", arguments: {} } };
const SCRIPT = [{ say: [ORDER] }, { say: "Done." }];

/** The settings of a user who has the server. */
function writeSettings(config: string): void {
  const path = join(config, "gyre", "config.json");
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, JSON.stringify({ mcp: { tea: { url: tea.url } }, allow: ["mcp__tea__*"] }));
}

describe("a question of an MCP server", () => {
  const world = terminalWorld();

  it("is declined where no person is there", async () => {
    const home = await world.program.makeHome();
    writeSettings(join(home, "config"));
    const service = await scriptedService(SCRIPT);
    try {
      const { requests } = await world.program.gyre(["-p", "Order tea"], { home, service });
      expect(requests[1]?.text).toContain("Not ordered: decline.");
    } finally {
      await service.close();
    }
  });

  it("is a list and a line in the terminal", async () => {
    const home = await world.program.makeHome();
    writeSettings(join(home, "config"));
    const { run, service } = await world.open(SCRIPT, { home, env: { NO_PROXY: "127.0.0.1" } });
    ask(run, "Order tea");
    await run.until('The MCP server "tea" asks');
    expect(run.screen()).toContain("Which tea?");
    await decide(run, "1", "name");
    await decide(run, "2", "cups");
    await run.until("› 2");
    run.press("enter");
    await run.until('Send this to "tea"?');
    expect(run.screen()).toContain("name: black");
    await decide(run, "1", "asks you to open a page");
    expect(run.screen()).toContain("https://pay.example/1");
    await decide(run, "2", "Done.");
    expect(service.requests[1]?.text).toContain("2 cups of black:");
  });
});

it("is asked in words for a screen reader", async () => {
  const world = new ScreenReaderWorld();
  try {
    writeSettings(join(dirname(world.work), "config"));
    const { driver, seen } = world.start([
      call(MCP_CALL, { tool: "mcp__tea__order", arguments: {} }),
      "Done.",
    ]);
    await driver.until("You: ");
    driver.type("Order tea");
    await driver.until("Number: ");
    driver.type("1");
    await driver.until("name");
    await driver.until("Number: ");
    driver.type("green");
    await driver.until("Your answer: ");
    driver.type("7");
    await driver.until("Number: ");
    driver.type("1");
    await driver.until("Number: ");
    driver.type("Decline");
    await driver.until("Done.");
    expect(seen()).toContain('The MCP server "tea" asks\nWhich tea?\n1. Answer\n2. Decline');
    expect(seen()).toContain("cups (optional)\nAn empty line is: 2\n");
    expect(tea.notes).toContain("done");
  } finally {
    await world.close();
  }
});

describe("over frames", () => {
  let world: FrameWorld;
  beforeEach(async () => {
    world = await FrameWorld.open();
    writeSettings(join(world.home, "config"));
  });
  afterEach(() => world.close());

  interface Shown {
    id: string;
    kind: string;
    message: string;
  }

  const readQuestions = ({ type, payload }: Envelope): Shown[] =>
    type === "session_status" ? ((payload["questions"] ?? []) as Shown[]) : [];

  it("is in the status of the session, and any client may answer it", async () => {
    world.service.play(SCRIPT);
    const driver = world.start(runServe, { stdio: true });
    const session = await driver.create();
    await driver.ask("session_attach", { status: true }, session);
    await driver.ask("prompt", { text: "Order tea" }, session);
    const find = async (kind: string): Promise<Shown> => {
      const frame = await driver.next((one) =>
        readQuestions(one).some((each) => each.kind === kind),
      );
      const [found] = readQuestions(frame);
      if (!found) throw new Error("There is no question.");
      return found;
    };
    const answer = async (question: string, payload: Payload): Promise<Envelope> =>
      driver.ask("session_request", { session, name: "answer_question", question, ...payload });
    const form = await find("form");
    expect(form).toMatchObject({
      server: "tea",
      message: "Which tea?",
      fields: [
        { name: "name", type: "choice" },
        { name: "cups", default: 2 },
      ],
    });
    const refused = [
      await answer("no-such", { action: "accept" }),
      await answer(form.id, { action: "perhaps" }),
      await answer(form.id, { action: "accept", content: { name: "coffee" } }),
      await answer(form.id, { action: "accept", content: {} }),
    ];
    expect(refused.map(({ type }) => type)).toEqual(["nack", "nack", "nack", "nack"]);
    expect(refused[2]?.payload["message"]).toContain("is one of: green, black");
    await answer(form.id, { action: "accept", content: { name: "green", cups: 4 } });
    const page = await find("url");
    expect(page).toMatchObject({ url: "https://pay.example/1" });
    await answer(page.id, { action: "decline" });
    await driver.next(({ type }) => type === "agent_end");
    expect(world.service.requests[1]?.text).toContain("4 cups of green: decline.");
    const last = driver.frames.filter(({ type }) => type === "session_status").at(-1);
    expect(last?.payload["questions"]).toBeUndefined();
    await driver.end();
  });

  it("is declined where no client follows the session", async () => {
    world.service.play(SCRIPT);
    const driver = world.start(runServe, { stdio: true });
    const session = await driver.create();
    await driver.run("Order tea", session);
    expect(world.service.requests[1]?.text).toContain("Not ordered: decline.");
    await driver.end();
  });
});

describe("in an editor", () => {
  let home: string;
  beforeEach(() => {
    home = realpathSync(mkdtempSync(join(tmpdir(), "gyre-questions-")));
    mkdirSync(join(home, "work"));
    writeSettings(join(home, "config"));
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  /** What the model got, after a prompt in an editor. */
  async function order(
    editor: Partial<Parameters<typeof startEditor>[0]> & { capabilities?: ClientCapabilities },
  ): Promise<{ result: string; asked: number }> {
    const service = await scriptedService(SCRIPT);
    const env = {
      HOME: home,
      PATH: process.env["PATH"] ?? "",
      XDG_CONFIG_HOME: join(home, "config"),
      XDG_STATE_HOME: join(home, "state"),
      ANTHROPIC_API_KEY: "sk-ant-test",
      ANTHROPIC_BASE_URL: service.url,
    };
    const started = await startEditor({
      load: () => Promise.resolve(createAcpHost({ sandbox: "none" }, textIo({ env, cwd: home }))),
      ...editor,
    });
    try {
      const { sessionId } = await started.agent.request("session/new", {
        cwd: join(home, "work"),
        mcpServers: [],
      });
      const prompt = [{ type: "text" as const, text: "Order tea" }];
      await started.agent.request("session/prompt", { sessionId, prompt });
      return { result: service.requests[1]?.text ?? "", asked: started.asked.length };
    } finally {
      await started.end();
      await service.close();
    }
  }

  it("is a form of the editor, where it has such", async () => {
    const requests: CreateElicitationRequest[] = [];
    const { result } = await order({
      capabilities: { elicitation: { form: {}, url: {} } },
      elicit: (request): CreateElicitationResponse => {
        requests.push(request);
        return request.mode === "form"
          ? { action: "accept", content: { name: "black", cups: 1 } }
          : { action: "cancel" };
      },
    });
    expect(result).toContain("1 cups of black: cancel.");
    expect(requests).toMatchObject([
      {
        mode: "form",
        message: 'The MCP server "tea" asks: Which tea?',
        requestedSchema: {
          required: ["name"],
          properties: {
            name: { type: "string", oneOf: [{ const: "green" }, { const: "black" }] },
            cups: { type: "integer", default: 2 },
          },
        },
      },
      { mode: "url", url: "https://pay.example/1" },
    ]);
  });

  it("is a choice as for permissions, where the editor has no forms", async () => {
    const { result, asked } = await order({
      answer: ({ options }) => {
        const option = options.find(({ name }) => name !== "Decline");
        return { outcome: { outcome: "selected", optionId: option?.optionId ?? "" } };
      },
    });
    expect(result).toContain("2 cups of green: accept.");
    expect(asked).toBe(4);
  });

  it("is declined where the editor cannot ask it", async () => {
    const tool = tea.tools.find(({ name }) => name === "order");
    if (!tool) throw new Error("There is no such tool.");
    tool.call = async (_args, context) => {
      const { note } = await context.ask({
        note: {
          kind: "form",
          message: "Say something.",
          schema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
        },
      });
      return `The answer: ${note.action}.`;
    };
    const { result, asked } = await order({});
    expect(result).toContain("The answer: decline.");
    expect(asked).toBe(0);
  });
});
