import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { hashFile, type UserContent } from "@gyre/ai";
import { RemoteAgent } from "@gyre/server/client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { TEST_KEY } from "../../testing/program.ts";
import type { ServiceRequest } from "../../testing/scripted-service.ts";
import { type ServedProgram, ServeWorld } from "../../testing/served-program.ts";

// Files from a client over the wire into the session, to one model and to another, and over a crash.

let world: ServeWorld;
let server: ServedProgram;
let agent: RemoteAgent;

beforeAll(async () => {
  world = await ServeWorld.open();
});
afterAll(() => world.remove());
beforeEach(() => world.begin());
afterEach(() => world.end());

const PDF = Buffer.concat([Buffer.from("%PDF-1.7\n"), Buffer.alloc(500_000, "prompted ")]);
const READ_PDF = Buffer.concat([Buffer.from("%PDF-1.7\n"), Buffer.alloc(300_000, "read ")]);
const PNG = Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), Buffer.alloc(300_000, 7)]);
const MIB = 1024 * 1024;

async function start(args: readonly string[] = [], home?: string): Promise<void> {
  const env = { DEEPSEEK_API_KEY: TEST_KEY, DEEPSEEK_BASE_URL: world.service.url };
  server = await world.serve(args, { env, ...(home !== undefined && { home }) });
}

async function restart(): Promise<void> {
  const { sessionId } = agent;
  server.run.kill("SIGKILL");
  await server.run.end;
  await agent.close();
  await start([], server.run.home);
  agent = await RemoteAgent.attach({ connect: server.webSocket }, sessionId);
  world.closes(agent);
}

function readMessages(request: ServiceRequest): string {
  return JSON.stringify(request.body["messages"]);
}

/** The session file of the only session. */
function readSession(): { path: string; text: string } {
  const folder = join(server.run.home, "state/gyre/sessions");
  const [name = ""] = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((each) =>
    each.endsWith(".jsonl"),
  );
  const path = join(folder, name);
  return { path, text: readFileSync(path, "utf8") };
}

function fetchFile(sha256: string, token = server.token): Promise<Response> {
  return fetch(`${server.url}/api/sessions/${agent.sessionId}/files/${sha256}`, {
    headers: { authorization: `Bearer ${token}` },
  });
}

describe("files", () => {
  it("cross the wire, the session file, a crash and a change of the model", async () => {
    await start();
    agent = await world.createAgent(server);
    writeFileSync(join(server.run.cwd, "scan.pdf"), READ_PDF);
    const pdfData = PDF.toString("base64");
    const attachments: UserContent[] = [
      {
        type: "file",
        mediaType: "application/pdf",
        name: "report.pdf",
        source: { type: "base64", data: pdfData },
      },
      { type: "image", mimeType: "image/png", data: PNG.toString("base64") },
    ];
    world.service.play([
      { say: [{ call: "read", arguments: { path: "scan.pdf" } }] },
      { say: "Tea." },
      { say: "Green." },
      { say: "Black." },
    ]);
    await agent.prompt("What is in these?", { attachments });

    // The service gets the contents: of the prompt, and of what a tool read.
    const first = readMessages(await world.service.asked(0));
    expect(first).toContain(pdfData);
    expect(first).toContain(PNG.toString("base64"));
    expect(first).toContain('"title":"report.pdf"');
    const second = readMessages(await world.service.asked(1));
    expect(second).toContain(READ_PDF.toString("base64"));
    expect(second).toMatch(/"type":"tool_result"[^]*"type":"document"/);

    // Clients and the session file get references.
    const sha256 = await hashFile(PDF);
    const source = { type: "stored", sha256, size: PDF.length } as const;
    const [prompted] = agent.state.messages.filter(({ role }) => role === "user");
    expect(prompted).toMatchObject({
      content: [
        {},
        { type: "file", name: "report.pdf", source },
        { type: "file", mediaType: "image/png", source: { type: "stored", size: PNG.length } },
      ],
    });
    const [result] = agent.state.messages.filter(({ role }) => role === "toolResult");
    expect(result).toMatchObject({
      content: [{}, { type: "file", name: "scan.pdf", source: { size: READ_PDF.length } }],
    });
    const { path, text } = readSession();
    expect(text.length).toBeLessThan(200_000);
    expect(readdirSync(`${path}.files`).toSorted()).toEqual(
      (await Promise.all([PDF, READ_PDF, PNG].map(hashFile))).toSorted(),
    );

    // They fetch the contents, on the connection and by HTTP.
    expect(Buffer.from(await agent.readFile(source)).equals(PDF)).toBe(true);
    const got = await fetchFile(sha256);
    expect([got.status, got.headers.get("x-content-type-options")]).toEqual([200, "nosniff"]);
    expect(Buffer.from(await got.arrayBuffer()).equals(PDF)).toBe(true);
    expect((await fetchFile(sha256, "wrong")).status).toBe(401);
    expect((await fetchFile("0".repeat(64))).status).toBe(404);
    await expect(agent.readFile({ sha256: "0".repeat(64), size: 1 })).rejects.toMatchObject({
      code: "file_not_found",
    });

    // After a crash the next request has them again, the same to the byte.
    await restart();
    await agent.prompt("Which tea?");
    const third = readMessages(await world.service.asked(2));
    expect(third).toContain(pdfData);
    expect(third).toContain(READ_PDF.toString("base64"));
    expect(withoutMarks(third).startsWith(withoutMarks(second).slice(0, -1))).toBe(true);

    // Another model gets what it takes, and a line for what it does not.
    await agent.setModel("deepseek/pro");
    await agent.prompt("And now?");
    const { wire, body } = await world.service.asked(3);
    const fourth = JSON.stringify(body["messages"]);
    expect(wire).toBe("openai-completions");
    expect(fourth).not.toContain(pdfData);
    expect(fourth).toContain("[File left out (report.pdf, application/pdf, 501 KB): ");
    expect(fourth).toContain("[File left out (scan.pdf, application/pdf, 301 KB): ");
    expect(world.service.problems).toEqual([]);
  });

  it("whose contents were lost leave the session usable, and say so", async () => {
    await start();
    agent = await world.createAgent(server);
    const data = PDF.toString("base64");
    const attachments: UserContent[] = [
      {
        type: "file",
        mediaType: "application/pdf",
        name: "report.pdf",
        source: { type: "base64", data },
      },
    ];
    world.service.play([{ say: "Tea." }, { say: "Green." }]);
    await agent.prompt("What is it?", { attachments });
    const { path } = readSession();
    const sha256 = await hashFile(PDF);
    writeFileSync(join(`${path}.files`, sha256), "damaged");
    await restart();
    await agent.prompt("Which tea?");
    expect(readMessages(await world.service.asked(1))).toContain(
      "[File left out (report.pdf, application/pdf, 501 KB): its contents are damaged in the store of the session]",
    );
    expect((await fetchFile(sha256)).status).toBe(404);
  });

  it("that are larger than a part come in parts", async () => {
    await start();
    agent = await world.createAgent(server);
    const large = Buffer.alloc(9 * MIB, "0123456789");
    world.service.play([{ say: "Long." }]);
    const source = { type: "base64", data: large.toString("base64") } as const;
    await agent.prompt("What is it?", {
      attachments: [{ type: "file", mediaType: "application/pdf", source }],
    });
    const sha256 = await hashFile(large);
    const read = await agent.readFile({ sha256, size: large.length });
    expect(Buffer.from(read).equals(large)).toBe(true);
  });
});

/** Marks for the cache move with the end of the conversation. */
function withoutMarks(messages: string): string {
  return messages.replaceAll(',"cache_control":{"type":"ephemeral"}', "");
}
