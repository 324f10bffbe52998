import { Agent } from "@gyre/agent";
import {
  type Context,
  hashFile,
  MAX_STORED_BYTES,
  MemoryFiles,
  toBase64,
  type UserContent,
  withStoredFiles,
} from "@gyre/ai";
import { scriptedModel } from "@gyre/ai/testing";
import { createTransportPair, MAX_FRAME_BYTES, WireServer } from "@gyre/protocol";
import { createFileRoutes, listenHttp } from "@gyre/protocol/node";
import { afterEach, describe, expect, it } from "vitest";
import { MAX_FILE_PART_BYTES } from "../sessions/live-session.ts";
import { SessionService } from "../sessions/session-service.ts";
import { RemoteAgent } from "./remote-agent.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

interface World {
  remote: RemoteAgent;
  service: SessionService;
  files: MemoryFiles;
  /** What the model was sent. */
  sent: Context[];
  agent: Agent;
}

async function open(isStoring = true): Promise<World> {
  const files = new MemoryFiles();
  const sent: Context[] = [];
  const script = scriptedModel(
    Array.from({ length: 8 }, () => (context: Context) => {
      sent.push(context);
      return "Fine.";
    }),
  );
  const agent = new Agent({ protocol: withStoredFiles(script, files), model: script.model });
  const service = new SessionService({
    create: async () => ({
      id: "s 1",
      agent,
      ...(isStoring && { files }),
      close: async () => agent.abort(),
    }),
    open: async () => undefined,
    list: async () => [],
  });
  const server = new WireServer([service]);
  const remote = await RemoteAgent.create({
    connect: async () => {
      const [near, far] = createTransportPair();
      server.serve(far);
      return near;
    },
  });
  closing.push(
    () => server.close(),
    () => remote.close(),
  );
  return { remote, service, files, sent, agent };
}

function createFile(bytes: Uint8Array): UserContent {
  const source = { type: "base64", data: toBase64(bytes) } as const;
  return { type: "file", mediaType: "application/pdf", name: "a.pdf", source };
}

const LARGE = new Uint8Array(300_000).fill(7);
const source = { type: "stored", sha256: await hashFile(LARGE), size: LARGE.length } as const;
const stored = { type: "file", mediaType: "application/pdf", name: "a.pdf", source };

/** Quicker than a matcher, for so many bytes. */
function isSame(one: Uint8Array | undefined, other: Uint8Array): boolean {
  return one !== undefined && Buffer.compare(one, other) === 0;
}

describe("files of a session", () => {
  it("a prompt has its large files stored before anything refers to them", async () => {
    const { remote, files, sent, agent } = await open();
    const small = createFile(new Uint8Array(10));
    const image = { type: "image", data: toBase64(LARGE), mimeType: "image/png" } as const;
    await remote.prompt("What is it?", {
      attachments: [small, createFile(LARGE)],
      images: [image],
    });
    const content = [
      { type: "text", text: "What is it?" },
      small,
      stored,
      { type: "file", mediaType: "image/png", source },
    ];
    expect(remote.state.messages[0]).toMatchObject({ content });
    expect(agent.state.messages[0]).toMatchObject({ content });
    expect(isSame(await files.read(source.sha256), LARGE)).toBe(true);
    // The model gets the contents.
    expect(sent[0]?.messages[0]).toMatchObject({
      content: [{}, small, createFile(LARGE), { source: { type: "base64", data: image.data } }],
    });
  });

  it("so do messages that wait, and those that replace others", async () => {
    const { remote, agent } = await open();
    const attachments = [createFile(LARGE)];
    await remote.followUp("Later", { attachments });
    await remote.steer("Now", { attachments });
    const [waiting] = await remote.queued("followUp");
    expect(waiting?.message).toMatchObject({ content: [{ text: "Later" }, stored] });
    await remote.editQueued("followUp", waiting?.id ?? "", "Much later", { attachments });
    expect(agent.queued("followUp")).toMatchObject([
      { message: { content: [{ text: "Much later" }, stored] } },
    ]);
    expect(agent.queued("steering")).toMatchObject([
      { message: { content: [{ text: "Now" }, stored] } },
    ]);
    await remote.clearAllQueues();
    await remote.replaceMessages([{ role: "user", content: attachments, timestamp: 1 }]);
    expect(remote.state.messages).toMatchObject([{ content: [stored] }]);
  });

  it("clients read them in parts, and over HTTP with the token", async () => {
    const { remote, service } = await open();
    const long = new Uint8Array(MAX_FILE_PART_BYTES + 5).map((_, at) => at % 253);
    await remote.prompt("What is it?", { attachments: [createFile(long)] });
    const sha256 = await hashFile(long);
    expect(isSame(await remote.readFile({ sha256, size: long.length }), long)).toBe(true);
    await expect(remote.readFile({ sha256, size: 1 })).rejects.toMatchObject({
      code: "damaged_file",
    });
    const token = "a-token-of-this-test";
    const http = await listenHttp({ token, routes: createFileRoutes(service), serve: () => {} });
    closing.push(() => http.close());
    const get = (id: string, hash: string, given = token): Promise<Response> =>
      fetch(`${http.url}/api/sessions/${id}/files/${hash}`, {
        headers: { authorization: `Bearer ${given}` },
      });
    const got = await get("s%201", sha256);
    expect(Object.fromEntries(got.headers)).toMatchObject({
      "content-type": "application/octet-stream",
      "content-disposition": "attachment",
      "x-content-type-options": "nosniff",
      "cache-control": "private, max-age=31536000, immutable",
    });
    expect(isSame(new Uint8Array(await got.arrayBuffer()), long)).toBe(true);
    const refused = [
      get("s%201", sha256, "another"),
      get("s%201", "0".repeat(64)),
      get("none", sha256),
      get("%E0%A4%A", sha256),
      get("s%201", "..%2f..%2fsecret"),
    ];
    expect((await Promise.all(refused)).map(({ status }) => status)).toEqual([
      401, 404, 404, 404, 404,
    ]);
  });

  it("what is too large for a frame is uploaded over HTTP, and a prompt refers to it", async () => {
    const { remote, service, sent } = await open();
    const token = "a-token-of-this-test";
    const http = await listenHttp({ token, routes: createFileRoutes(service), serve: () => {} });
    closing.push(() => http.close());
    const post = (id: string, hash: string, body: Uint8Array, given = token): Promise<Response> =>
      fetch(`${http.url}/api/sessions/${id}/files/${hash}`, {
        method: "POST",
        headers: { authorization: `Bearer ${given}` },
        body: Buffer.from(body),
      });
    const long = new Uint8Array(MAX_FRAME_BYTES + 5).map((_, at) => at % 253);
    const sha256 = await hashFile(long);
    const refused = [
      await post("s%201", sha256, long, "another"),
      await post("s%201", "0".repeat(64), long),
      await post("none", sha256, long),
    ];
    expect(refused.map(({ status }) => status)).toEqual([401, 400, 404]);
    await expect(remote.readFile({ sha256, size: long.length })).rejects.toMatchObject({
      code: "file_not_found",
    });
    expect((await post("s%201", sha256, long)).status).toBe(204);
    // Twice does no harm.
    expect((await post("s%201", sha256, long)).status).toBe(204);
    const attachment = {
      type: "file",
      mediaType: "application/pdf",
      source: { type: "stored", sha256, size: long.length },
    } as const;
    await remote.prompt("What is it?", { attachments: [attachment] });
    expect(remote.state.messages[0]).toMatchObject({ content: [{}, attachment] });
    const loaded = { type: "base64", data: toBase64(long) };
    expect(sent[0]?.messages[0]).toMatchObject({ content: [{}, { source: loaded }] });
  });

  it("an agent uploads a file and gets the block for its prompt", async () => {
    const { remote, service, sent } = await open();
    const token = "a-token-of-this-test";
    const http = await listenHttp({ token, routes: createFileRoutes(service), serve: () => {} });
    closing.push(() => http.close());
    const bytes = new Uint8Array(MAX_FRAME_BYTES + 5).map((_, at) => at % 251);
    const file = { mediaType: "application/pdf", name: "report.pdf", bytes };
    const block = await remote.uploadFile(file, { url: `${http.url}/`, token });
    expect(block).toEqual({
      ...{ type: "file", mediaType: "application/pdf", name: "report.pdf" },
      source: { type: "stored", sha256: await hashFile(bytes), size: bytes.length },
    });
    await remote.prompt("What is it?", { attachments: [block] });
    const loaded = { type: "base64", data: toBase64(bytes) };
    expect(sent[0]?.messages[0]).toMatchObject({ content: [{}, { source: loaded }] });
    await expect(
      remote.uploadFile(file, { url: http.url, token: "another" }),
    ).rejects.toMatchObject({
      code: "unauthorized",
    });
  });

  it("an upload that cannot be is an error with its code, and one too large is not sent", async () => {
    const { remote, service } = await open(false);
    const token = "a-token-of-this-test";
    const http = await listenHttp({ token, routes: createFileRoutes(service), serve: () => {} });
    closing.push(() => http.close());
    const file = { mediaType: "application/pdf", bytes: LARGE };
    const failed = remote.uploadFile(file, { url: http.url, token });
    await expect(failed).rejects.toMatchObject({ code: "not_implemented" });
    const page = (): Promise<Response> => Promise.resolve(new Response("<p>", { status: 502 }));
    const strange = remote.uploadFile(file, { url: http.url, fetch: page });
    await expect(strange).rejects.toThrow("The upload was answered with 502.");
    await expect(strange).rejects.toMatchObject({ code: "unavailable" });
    const never = (): Promise<never> => Promise.reject(new Error("It was sent."));
    const whole = { mediaType: "video/mp4", bytes: new Uint8Array(MAX_STORED_BYTES + 1) };
    const large = remote.uploadFile(whole, { url: http.url, fetch: never });
    await expect(large).rejects.toMatchObject({ code: "too_large" });
    const control = new AbortController();
    control.abort(new Error("Left."));
    const left = remote.uploadFile(file, { url: http.url, token, signal: control.signal });
    await expect(left).rejects.toThrow("Left.");
  });

  it("an upload that is too large, or for a host without a store, is refused", async () => {
    const { service } = await open(false);
    const token = "a-token-of-this-test";
    const http = await listenHttp({ token, routes: createFileRoutes(service), serve: () => {} });
    closing.push(() => http.close());
    const post = async (body: Uint8Array): Promise<number> => {
      const { status } = await fetch(
        `${http.url}/api/sessions/s%201/files/${await hashFile(body)}`,
        {
          method: "POST",
          headers: { authorization: `Bearer ${token}` },
          body: Buffer.from(body),
        },
      );
      return status;
    };
    expect(await post(new Uint8Array(MAX_STORED_BYTES + 1))).toBe(413);
    expect(await post(LARGE)).toBe(501);
  });

  it("contents that are damaged are not given", async () => {
    const { remote, files } = await open();
    await remote.prompt("What is it?", { attachments: [createFile(LARGE)] });
    files.remove(source.sha256);
    await expect(remote.readFile(source)).rejects.toMatchObject({ code: "file_not_found" });
    await files.write(source.sha256, new Uint8Array(3));
    await expect(remote.readFile(source)).rejects.toMatchObject({
      code: "file_not_found",
      message: expect.stringContaining("is damaged"),
    });
  });

  it("a host without a store has them in the messages", async () => {
    const { remote } = await open(false);
    await remote.prompt("What is it?", { attachments: [createFile(LARGE)] });
    expect(remote.state.messages[0]).toMatchObject({ content: [{}, createFile(LARGE)] });
    await expect(remote.readFile(source)).rejects.toMatchObject({ code: "file_not_found" });
  });

  it.each([
    [{ attachments: [{ type: "file", mediaType: "application/pdf" }] }, "attachments"],
    [
      { attachments: [{ type: "file", mediaType: 1, source: { type: "url", url: "x" } }] },
      "attach",
    ],
    [
      {
        attachments: [
          { type: "file", mediaType: "a/b", source: { type: "stored", sha256: "../x", size: 1 } },
        ],
      },
      "attachments",
    ],
    [{ attachments: "a.pdf" }, "attachments"],
    [{ attachments: [] }, "empty"],
  ])("a prompt with %j is refused", async (payload, says) => {
    const { service } = await open();
    const [near, far] = createTransportPair();
    new WireServer([service]).serve(far);
    const answers: unknown[] = [];
    const answered = new Promise<void>((settle) => {
      near.receive({
        onFrame(frame) {
          if (frame.re !== "m_3") return;
          answers.push(frame.payload);
          settle();
        },
        onFault: () => {},
        onClose: () => {},
      });
    });
    void near.send({ v: 1, type: "hello", id: "m_1", payload: { versions: [1] } });
    void near.send({ v: 1, type: "session_attach", id: "m_2", stream: "s 1", seq: 1, payload: {} });
    void near.send({ v: 1, type: "prompt", id: "m_3", stream: "s 1", seq: 2, payload });
    await answered;
    expect(answers).toMatchObject([
      { code: "invalid_request", message: expect.stringContaining(says) },
    ]);
    await near.close();
  });
});
