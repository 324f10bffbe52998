import { spawn } from "node:child_process";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { BROKEN_CODE, FIXED_CODE, SOURCE_FILE, TEST_COMMAND } from "./project.ts";
import { textIo } from "../../testing/command-io.ts";
import { openModel } from "./live-model.ts";

const MAIN = fileURLToPath(new URL("../../../dist/main.js", import.meta.url));
const KEY = "sk-ant-only-for-this-test";

/** The turns of a service that fixes the demo's project, as its wire has them. */
const TURNS: readonly (readonly object[])[] = [
  [text("I run the tests."), call("toolu_1", "shell", { command: TEST_COMMAND })],
  [
    text("No."),
    call("toolu_2", "shell", { command: "curl example.org" }),
    call("toolu_3", "shell", { command: TEST_COMMAND, unsandboxed: "It is better." }),
  ],
  [
    call("toolu_4", "edit", {
      path: SOURCE_FILE,
      edits: [{ oldText: BROKEN_CODE, newText: FIXED_CODE }],
    }),
    call("toolu_5", "shell", { command: TEST_COMMAND }),
  ],
  [text("The remainder is shared out now.")],
];

function text(words: string): object {
  return { type: "text", text: words };
}

function call(id: string, name: string, input: object): object {
  return { type: "tool_use", id, name, input };
}

/** One response in the events of the service. */
function response(blocks: readonly object[], turn: number): string {
  const message = {
    id: `msg_${turn}`,
    model: "claude-of-the-test",
    content: [],
    usage: { input_tokens: 100, output_tokens: 1 },
  };
  const calls = blocks.some((block) => "input" in block);
  const events = [
    { type: "message_start", message },
    ...blocks.flatMap((content_block, index) => [
      { type: "content_block_start", index, content_block },
      { type: "content_block_stop", index },
    ]),
    {
      type: "message_delta",
      delta: { stop_reason: calls ? "tool_use" : "end_turn" },
      usage: { output_tokens: 10 },
    },
    { type: "message_stop" },
  ];
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

interface Asked {
  url: string;
  key: unknown;
  body: string;
}

let server: Server | undefined;
afterEach(() => server?.close());

async function serve(
  answer: (turn: number) => { status: number; body: string },
): Promise<{ url: string; asked: Asked[] }> {
  const asked: Asked[] = [];
  server = createServer((request, out) => {
    void readBody(request).then((body) => {
      const given = answer(asked.length);
      asked.push({ url: request.url ?? "", key: request.headers["x-api-key"], body });
      out.writeHead(given.status, { "content-type": "text/event-stream" }).end(given.body);
    });
  });
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

async function readBody(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const piece of request.setEncoding("utf8")) body += String(piece);
  return body;
}

function gyre(
  args: string[],
  env: Record<string, string>,
): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [MAIN, ...args], {
      env: { PATH: process.env["PATH"], HOME: "/nonexistent", NO_COLOR: "1", ...env },
    });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (piece: string) => (output += piece));
    child.stderr.setEncoding("utf8").on("data", (piece: string) => (output += piece));
    child.on("close", (code) => resolve({ code, output }));
  });
}

describe("gyre demo --model", () => {
  it("lets a service's model do the work, with key and address from the environment", async () => {
    const { url, asked } = await serve((turn) => ({
      status: 200,
      body: response(TURNS[turn] ?? [], turn),
    }));
    const { code, output } = await gyre(["demo", "--model", "anthropic/sonnet"], {
      ANTHROPIC_API_KEY: KEY,
      ANTHROPIC_BASE_URL: url,
    });
    expect(output).toContain("at Anthropic");
    expect(output).toContain("This demo runs no other command");
    expect(output).toContain("This demo runs nothing outside of its sandbox.");
    expect(output).toContain("✔ Fixed");
    expect(output).toContain("440 tokens");
    expect(code).toBe(0);
    expect(asked.map(({ url: path, key }) => [path, key])).toEqual(
      TURNS.map(() => ["/v1/messages", KEY]),
    );
    expect(asked[1]?.body).toContain("no cent is lost");
    expect(output).not.toContain(KEY);
  });

  it("says what to do about a key that the service refuses, and does not show it", async () => {
    const error = { type: "authentication_error", message: `invalid x-api-key: ${KEY}` };
    const body = JSON.stringify({ type: "error", error });
    const { url } = await serve(() => ({ status: 401, body }));
    const { code, output } = await gyre(["demo", "-m", "anthropic/sonnet"], {
      ANTHROPIC_API_KEY: KEY,
      ANTHROPIC_BASE_URL: url,
    });
    expect(code).toBe(1);
    expect(output).toContain("invalid x-api-key");
    expect(output).not.toContain(KEY);
  });

  it("says where it looked for a key", async () => {
    const { code, output } = await gyre(["demo", "--model", "anthropic/sonnet"], {});
    expect(code).toBe(1);
    expect(output).toContain("ANTHROPIC_API_KEY");
    expect(output).toContain("keys.json");
  });

  it("says what there is where a name fits nothing", async () => {
    const { code, output } = await gyre(["demo", "--model", "sonet"], {});
    expect(code).toBe(2);
    expect(output).toMatch(/No model fits "sonet"\..*sonnet/);
  });
});

describe("openModel", () => {
  it("takes a model that the catalog does not know at its word", async () => {
    expect(await openModel("groq/brand-new-1", textIo())).toMatchObject({
      service: "Groq",
      model: { id: "brand-new-1", api: "openai-completions", provider: "groq" },
    });
    await expect(openModel("nowhere/brand-new-1", textIo())).rejects.toThrow(
      'No model fits "nowhere/brand-new-1"',
    );
  });
});
