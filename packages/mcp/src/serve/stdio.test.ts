import { PassThrough } from "node:stream";
import { type AgentTool, Suspend } from "@gyre/agent";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { serveMcp, type ServeMcpOptions } from "./stdio.ts";

interface Written {
  id?: number;
  method?: string;
  params?: { progress?: number; message?: string };
  result?: { content?: object[]; isError?: boolean; tools?: { name: string }[] };
}

let stdin: PassThrough;
let stdout: PassThrough;
let written: Written[];
let served: Promise<void>;
let watchers: Set<() => void>;

const greet: AgentTool = {
  name: "greet",
  description: "Greets.",
  parameters: {
    type: "object",
    properties: { name: { type: "string" } },
    required: ["name"],
  },
  execute(args, { update: onUpdate }) {
    onUpdate({ content: [{ type: "text", text: "half" }] });
    return `Hello, ${(args as { name: string }).name}.`;
  },
};
const picture: AgentTool = {
  name: "picture",
  description: "Shows.",
  parameters: { type: "object" },
  execute: () => ({ content: [{ type: "image", data: "AAAA", mimeType: "image/png" }] }),
};
const wait: AgentTool = {
  name: "wait",
  description: "Waits.",
  parameters: { type: "object" },
  execute: (_args, { signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        stopped = true;
        reject(new Error("stopped"));
        for (const look of watchers) look();
      });
    }),
};
let stopped: boolean;

beforeEach(() => {
  stopped = false;
  stdin = new PassThrough();
  stdout = new PassThrough();
  written = [];
  watchers = new Set();
  let text = "";
  stdout.setEncoding("utf8").on("data", (piece: string) => {
    text += piece;
    const lines = text.split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) written.push(JSON.parse(line) as Written);
    for (const look of watchers) look();
  });
});
afterEach(async () => {
  stdin.end();
  await served;
});

function serve(options: Partial<ServeMcpOptions> = {}): void {
  served = serveMcp({
    tools: [greet, picture, wait],
    middleware: [],
    version: "1",
    stdin,
    stdout,
    signal: new AbortController().signal,
    warn: () => {},
    ...options,
  });
  send({
    id: 0,
    method: "initialize",
    params: {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "test", version: "1" },
    },
  });
  send({ method: "notifications/initialized" });
}

function send(message: object): void {
  stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}

function until(isThere: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (!isThere()) return;
      watchers.delete(look);
      resolve();
    };
    watchers.add(look);
    look();
  });
}

async function call(
  id: number,
  name: string,
  args: object = {},
  meta?: object,
): Promise<Written["result"]> {
  send({
    id,
    method: "tools/call",
    params: { name, arguments: args, ...(meta && { _meta: meta }) },
  });
  await until(() => written.some((message) => message.id === id));
  return written.find((message) => message.id === id)?.result;
}

describe("tools for others", () => {
  it("are listed and run, and report their progress", async () => {
    serve();
    send({ id: 1, method: "tools/list" });
    await until(() => written.some(({ id }) => id === 1));
    const tools = written.find(({ id }) => id === 1)?.result?.tools;
    expect(tools?.map(({ name }) => name)).toEqual(["greet", "picture", "wait"]);
    expect(await call(2, "greet", { name: "you" }, { progressToken: "p" })).toMatchObject({
      content: [{ type: "text", text: "Hello, you." }],
    });
    const progress = written.find(({ method }) => method === "notifications/progress");
    expect(progress?.params).toMatchObject({ progress: 1, message: "half" });
    expect(await call(3, "picture")).toMatchObject({ content: [{ type: "image" }] });
  });

  it("check their arguments", async () => {
    serve();
    const result = await call(1, "greet", {});
    expect(result?.isError).toBe(true);
    expect(JSON.stringify(result)).toContain("Invalid arguments");
    expect(JSON.stringify(await call(2, "great"))).toContain("Did you mean greet?");
  });

  it("are under permissions", async () => {
    const middleware = [
      {
        tool: () => Promise.reject(new Suspend("It needs approval.")),
      },
    ];
    serve({ middleware });
    const result = await call(1, "greet", { name: "you" });
    expect(result).toMatchObject({ isError: true });
    expect(JSON.stringify(result)).toContain("It needs approval.");
  });

  it("are stopped when the client cancels", async () => {
    serve();
    send({ id: 1, method: "tools/call", params: { name: "wait", arguments: {} } });
    await call(2, "greet", { name: "you" });
    send({ method: "notifications/cancelled", params: { requestId: 1 } });
    await until(() => stopped);
    expect(written.some(({ id }) => id === 1)).toBe(false);
  });

  it("end with the input, or when asked to", async () => {
    const controller = new AbortController();
    serve({ signal: controller.signal });
    await call(1, "greet", { name: "you" });
    controller.abort();
    await expect(served).resolves.toBeUndefined();
  });

  it("answer each call with its own result", async () => {
    serve();
    await Promise.all([call(1, "greet", { name: "a" }), call(2, "greet", { name: "b" })]);
    const text = (id: number): string => JSON.stringify(written.find((one) => one.id === id));
    expect(text(1)).toContain("Hello, a.");
    expect(text(2)).toContain("Hello, b.");
  });
});
