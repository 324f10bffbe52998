import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  type ContentBlock,
  methods,
  type PromptResponse,
  RequestError,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import { type Usage } from "@gyre/ai";
import { call, fail, say, scriptedModel, type ScriptStep, stall, think } from "@gyre/ai/testing";
import { SessionStore } from "@gyre/sessions";
import type { PermissionMode } from "@gyre/tools";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runAcp } from "./acp.ts";
import type { AcpHost } from "./host.ts";
import { EXIT, ExitError } from "../../core/exit-codes.ts";
import { type EditorOptions, startEditor, type TestEditor } from "../../testing/acp-client.ts";
import { MODELS, scriptedHarness } from "../../testing/acp-harness.ts";
import { textIo } from "../../testing/command-io.ts";

const TOOLS = ["read", "edit", "write", "apply_patch", "shell", "grep", "todo"];
const AUTH_REQUIRED = -32_000;
const NOT_FOUND = -32_002;
const INVALID = -32_602;
const INTERNAL = -32_603;
const USAGE: Usage = { input: 90, output: 10, cost: { total: 0.5 } };

let home: string;
let cwd: string;
let editor: TestEditor | undefined;
/** Every model that was made, to see what it was asked. */
let models: ReturnType<typeof scriptedModel>[];

beforeEach(async () => {
  home = await mkdtemp(join(await realpath(tmpdir()), "gyre-acp-"));
  cwd = join(home, "work");
  await mkdir(cwd);
  models = [];
});

afterEach(async () => {
  await editor?.end();
  editor = undefined;
  await rm(home, { recursive: true, force: true });
});

interface HostOptions {
  script?: readonly ScriptStep[];
  mode?: PermissionMode;
  limits?: { maxTurns?: number };
  usage?: Usage;
  isKept?: boolean;
  missing?: string;
}

function host({ script = [], isKept = true, missing, ...options }: HostOptions = {}): AcpHost {
  const store = new SessionStore(join(home, "sessions"));
  return {
    folder: (folder) =>
      Promise.resolve({
        open: (given) => {
          if (missing !== undefined) return Promise.reject(new ExitError(EXIT.auth, missing));
          const { usage } = options;
          const model = scriptedModel(script, usage ? { usage } : {});
          models.push(model);
          return scriptedHarness(
            {
              ...options,
              script: model,
              cwd: folder,
              stateFolder: join(home, "state"),
              tools: TOOLS,
            },
            given,
          );
        },
        ...(isKept && { store }),
        models: () =>
          Promise.resolve(
            MODELS.map(({ provider, id, name }) => ({ value: `${provider}/${id}`, name })),
          ),
      }),
    store: () => Promise.resolve(store),
    missingKey: () => Promise.resolve(missing),
  };
}

async function start(options: HostOptions & Omit<EditorOptions, "load"> = {}): Promise<TestEditor> {
  const { answer, capabilities, signal, ...rest } = options;
  editor = await startEditor({
    load: () => Promise.resolve(host(rest)),
    ...(answer && { answer }),
    ...(capabilities && { capabilities }),
    ...(signal && { signal }),
  });
  return editor;
}

async function open({ agent }: TestEditor): Promise<string> {
  const { sessionId } = await agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
  return sessionId;
}

function ask(
  { agent }: TestEditor,
  sessionId: string,
  prompt: string | ContentBlock[],
): Promise<PromptResponse> {
  const blocks: ContentBlock[] =
    typeof prompt === "string" ? [{ type: "text", text: prompt }] : prompt;
  return agent.request(methods.agent.session.prompt, { sessionId, prompt: blocks });
}

async function catchError(answer: Promise<unknown>): Promise<RequestError> {
  try {
    await answer;
  } catch (error) {
    if (error instanceof RequestError) return error;
    throw error;
  }
  throw new Error("It was answered.");
}

type Kind = SessionUpdate["sessionUpdate"];

function ofKind<K extends Kind>(
  updates: readonly SessionUpdate[],
  kind: K,
): Extract<SessionUpdate, { sessionUpdate: K }>[] {
  return updates.filter(
    (update): update is Extract<SessionUpdate, { sessionUpdate: K }> =>
      update.sessionUpdate === kind,
  );
}

function textIn(updates: readonly SessionUpdate[], kind: Kind = "agent_message_chunk"): string {
  return updates
    .flatMap((update) =>
      update.sessionUpdate === kind && "content" in update && isText(update.content)
        ? [update.content.text]
        : [],
    )
    .join("");
}

function isText(content: unknown): content is { type: "text"; text: string } {
  return typeof content === "object" && content !== null && "text" in content;
}

function showsText(update: SessionUpdate, text: string): boolean {
  return "content" in update && JSON.stringify(update.content).includes(text);
}

/** What a model was last asked. */
function asked(index = 0): unknown {
  return models[index]?.calls.at(-1)?.messages.at(-1)?.content;
}

describe("initialize", () => {
  test("reports versions, capabilities and ways to log in, and loads nothing", async () => {
    let loads = 0;
    editor = await startEditor({
      load: () => {
        loads += 1;
        return Promise.resolve(host());
      },
    });
    const [answer] = editor.written();
    expect(answer?.result).toEqual({
      protocolVersion: 1,
      agentInfo: { name: "gyre", title: "Gyre", version: "1.2.3" },
      agentCapabilities: {
        loadSession: true,
        mcpCapabilities: { http: true, sse: false },
        promptCapabilities: { image: true, audio: true, embeddedContext: true },
        sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
      },
      authMethods: [expect.objectContaining({ id: "key" })],
    });
    expect(loads).toBe(0);
  });

  test("answers with its own version to one that it does not know", async () => {
    const { agent } = await start();
    const answer = await agent.request(methods.agent.initialize, { protocolVersion: 99 });
    expect(answer.protocolVersion).toBe(1);
  });

  test("offers a login in a terminal where the editor has one", async () => {
    const { agent } = await start();
    const { authMethods } = await agent.request(methods.agent.initialize, {
      protocolVersion: 1,
      clientCapabilities: { auth: { terminal: true } },
    });
    expect(authMethods).toContainEqual(
      expect.objectContaining({ type: "terminal", env: { GYRE_ACP_LOGIN: "anthropic" } }),
    );
  });
});

describe("authenticate", () => {
  test("succeeds where there is a key, and else says what to do", async () => {
    const good = await start();
    await expect(
      good.agent.request(methods.agent.authenticate, { methodId: "key" }),
    ).resolves.toEqual({});
    await good.end();
    const bad = await start({ missing: "No key. Run gyre login." });
    const error = await catchError(
      bad.agent.request(methods.agent.authenticate, { methodId: "key" }),
    );
    expect(error).toMatchObject({ code: AUTH_REQUIRED });
    expect(error.message).toContain("Run gyre login.");
    const unknown = bad.agent.request(methods.agent.authenticate, { methodId: "magic" });
    expect((await catchError(unknown)).code).toBe(INVALID);
  });

  test("a session without a key is refused with the code for that", async () => {
    const { agent } = await start({ missing: "No key." });
    const error = await catchError(
      agent.request(methods.agent.session.new, { cwd, mcpServers: [] }),
    );
    expect(error).toMatchObject({ code: AUTH_REQUIRED, data: { hint: expect.any(String) } });
    expect(error.message).toContain("No key.");
  });

  test("a key that the service refuses ends a prompt with that code", async () => {
    const started = await start({ script: [fail("The key was refused.", { kind: "auth" })] });
    const error = await catchError(ask(started, await open(started), "Hi"));
    expect(error.code).toBe(AUTH_REQUIRED);
    expect(error.message).toContain("The key was refused.");
  });
});

describe("citations", () => {
  test("are a list of sources after the answer, live and when it is loaded", async () => {
    const citations = [
      { url: "https://tea.example/", title: "Tea", start: 0, end: 3 },
      { url: "https://tea.example/", title: "Tea", start: 4, end: 6 },
      { title: "report.pdf", page: 2 },
    ];
    const started = await start({ script: [[say("Tea is old.", { citations })], "No sources."] });
    const sessionId = await open(started);
    await ask(started, sessionId, "How old is tea?");
    const wanted =
      "Tea is old.\n\nSources:\n- [1] Tea: https://tea.example/\n- [2] report.pdf, page 2";
    expect(textIn(started.updates())).toBe(wanted);
    await ask(started, sessionId, "And milk?");
    expect(textIn(started.updates())).toBe(`${wanted}No sources.`);
    await started.end();
    const again = await start();
    await again.agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
    expect(textIn(again.updates())).toBe(`${wanted}No sources.`);
  });
});

describe("session/new", () => {
  test("reports modes and options, and the commands only after the answer", async () => {
    const started = await start();
    const answer = await started.agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
    expect(answer.modes).toMatchObject({ currentModeId: "ask" });
    expect(answer.modes?.availableModes.map(({ id }) => id)).toEqual([
      "ask",
      "auto-edit",
      "auto",
      "plan",
      "full",
    ]);
    expect(answer.configOptions).toMatchObject([
      { id: "mode", category: "mode", currentValue: "ask" },
      {
        id: "model",
        category: "model",
        currentValue: "scripted/one",
        options: [{ value: "scripted/one" }, { value: "scripted/two" }],
      },
      { id: "thinking", category: "thought_level", currentValue: "off" },
    ]);
    const commands = await started.update((u) => u.sessionUpdate === "available_commands_update");
    expect(ofKind([commands], "available_commands_update")[0]?.availableCommands).toContainEqual({
      name: "model",
      description: expect.any(String),
      input: { hint: expect.any(String) },
    });
    const written = started.written();
    const firstUpdate = written.findIndex(({ params }) => params?.update !== undefined);
    const answered = written.findIndex(({ result }) =>
      JSON.stringify(result)?.includes("sessionId"),
    );
    expect(answered).toBeGreaterThan(0);
    expect(firstUpdate).toBeGreaterThan(answered);
  });

  test("a folder that is not absolute or not there is an error", async () => {
    const { agent } = await start();
    const request = agent.request(methods.agent.session.new, { cwd: "work", mcpServers: [] });
    expect((await catchError(request)).code).toBe(INVALID);
    const missing = join(home, "nowhere");
    await catchError(agent.request(methods.agent.session.new, { cwd: missing, mcpServers: [] }));
  });

  test("MCP servers that cannot be reached are reported as not used", async () => {
    const started = await start({ capabilities: { session: { notices: {} } } });
    const mcpServers = [
      { name: "tracker", type: "sse" as const, url: "http://127.0.0.1/sse", headers: [] },
      { name: "files", command: "x", args: [], env: [] },
    ];
    await started.agent.request(methods.agent.session.new, { cwd, mcpServers });
    expect(started.stderr()).toContain("not used: tracker.");
    const notice = await started.update((update) => update.sessionUpdate === "notice");
    expect(notice).toMatchObject({
      severity: "warning",
      title: expect.stringContaining("tracker"),
    });
  });
});

describe("session/prompt", () => {
  test("streams thoughts and text, with one id a message, then reports usage and answers", async () => {
    const started = await start({
      script: [[think("Hmm"), say("Hello"), { chunkSize: 2 }]],
      usage: USAGE,
    });
    const session = await open(started);
    expect(await ask(started, session, "Hi there")).toEqual({ stopReason: "end_turn" });
    const updates = started.updates(session);
    expect(textIn(updates)).toBe("Hello");
    expect(textIn(updates, "agent_thought_chunk")).toBe("Hmm");
    const chunks = ofKind(updates, "agent_message_chunk");
    expect(chunks.length).toBeGreaterThan(1);
    expect(new Set(chunks.map(({ messageId }) => messageId)).size).toBe(1);
    expect(ofKind(updates, "usage_update")).toEqual([
      {
        sessionUpdate: "usage_update",
        used: 100,
        size: 160_000,
        cost: { amount: 0.5, currency: "USD" },
      },
    ]);
    expect(ofKind(updates, "session_info_update")).toMatchObject([{ title: "Hi there" }]);
    expect(ofKind(updates, "user_message_chunk")).toEqual([]);
  });

  test("links, embedded files and images reach the model", async () => {
    const started = await start({ script: ["Ok"] });
    const session = await open(started);
    const uri = (path: string): string => pathToFileURL(join(cwd, path)).href;
    await ask(started, session, [
      { type: "text", text: "Compare " },
      { type: "resource_link", name: "a.ts", uri: `${uri("src/a.ts")}#L3-5` },
      { type: "text", text: " with " },
      { type: "resource", resource: { uri: uri("b c.ts"), text: "let b;" } },
      { type: "resource_link", name: "spec", uri: "https://example.org/spec" },
      { type: "image", data: "aGk=", mimeType: "image/png" },
    ]);
    const content = asked();
    expect(content).toEqual([
      { type: "text", text: expect.any(String) },
      { type: "text", text: expect.any(String) },
      { type: "image", data: "aGk=", mimeType: "image/png" },
    ]);
    const text = JSON.stringify(content);
    expect(text).toContain(
      "Compare `src/a.ts` (lines 3-5) with `b c.ts``https://example.org/spec`",
    );
    expect(text).toMatch(/<source kind=\\"file\\" name=\\"b c.ts\\"[^>]*>\\nlet b;\\n/);
  });

  test("audio and other files come along: the service says whether it takes them", async () => {
    const started = await start({ script: ["Ok"] });
    const session = await open(started);
    const blob = { uri: "file:///x.pdf", blob: "AA==", mimeType: "application/pdf" };
    await ask(started, session, [
      { type: "audio", data: "AAAA", mimeType: "audio/wav" },
      { type: "resource", resource: blob },
    ]);
    expect(asked()).toMatchObject([
      { type: "text" },
      { type: "file", mediaType: "audio/wav" },
      { type: "file", mediaType: "application/pdf", name: "x.pdf" },
    ]);
  });

  test("reports each way to end", async () => {
    const script: ScriptStep[] = [
      { parts: ["Cut"], stopReason: "length" },
      { refuse: "I will not." },
      fail("The service is broken.", { kind: "bad_request" }),
    ];
    const started = await start({ script: [...script, "fine"] });
    const session = await open(started);
    expect(await ask(started, session, "1")).toEqual({ stopReason: "max_tokens" });
    expect(await ask(started, session, "2")).toEqual({ stopReason: "refusal" });
    const error = await catchError(ask(started, session, "3"));
    expect(error.code).toBe(INTERNAL);
    expect(error.message).toContain("The service is broken.");
    expect(await ask(started, session, "4")).toEqual({ stopReason: "end_turn" });
  });

  test("a limit of turns ends it and is reported", async () => {
    await writeFile(join(cwd, "a"), "x\n");
    const reads = Array.from({ length: 3 }, (_, at) => call("read", { path: "a", offset: at + 1 }));
    const started = await start({ script: reads, limits: { maxTurns: 1 } });
    const session = await open(started);
    expect(await ask(started, session, "Go")).toEqual({ stopReason: "max_turn_requests" });
    expect(textIn(started.updates())).toContain("maxTurns");
  });

  test("one that comes while another runs is answered after it", async () => {
    let go = (): void => {};
    const waits = new Promise<void>((resolve) => (go = resolve));
    const started = await start({
      script: [async () => (await waits, "first"), "second"],
    });
    const session = await open(started);
    const first = ask(started, session, "1");
    const second = ask(started, session, "2");
    go();
    expect(await Promise.all([first, second])).toEqual([
      { stopReason: "end_turn" },
      { stopReason: "end_turn" },
    ]);
    expect(textIn(started.updates())).toBe("firstsecond");
  });

  test("an unknown session is an error that names it", async () => {
    const started = await start();
    const error = await catchError(ask(started, "absent", "Hi"));
    expect(error).toMatchObject({ code: NOT_FOUND, data: { sessionId: "absent" } });
  });

  test("sessions run side by side, each with its own folder and agent", async () => {
    const started = await start({ script: ["Hello"] });
    const [one, two] = [await open(started), await open(started)];
    await Promise.all([ask(started, one, "1"), ask(started, two, "2")]);
    expect(one).not.toBe(two);
    expect(textIn(started.updates(one))).toBe("Hello");
    expect(textIn(started.updates(two))).toBe("Hello");
    expect(models).toHaveLength(2);
  });
});

describe("session/cancel", () => {
  test("the prompt is answered with cancelled, after all of its updates", async () => {
    const started = await start({ script: [[say("Begun"), stall()]] });
    const session = await open(started);
    const answer = ask(started, session, "Go");
    await started.update((update) => update.sessionUpdate === "agent_message_chunk");
    await started.agent.notify(methods.agent.session.cancel, { sessionId: session });
    expect(await answer).toEqual({ stopReason: "cancelled" });
    const written = started.written();
    expect(written.at(-1)?.result).toEqual({ stopReason: "cancelled" });
  });

  test("ends those that wait, too, and not those that come later", async () => {
    const started = await start({ script: [[say("Begun"), stall()], "Again"] });
    const session = await open(started);
    const answers = [ask(started, session, "1"), ask(started, session, "2")];
    await started.update((update) => update.sessionUpdate === "agent_message_chunk");
    await started.agent.notify(methods.agent.session.cancel, { sessionId: session });
    answers.push(ask(started, session, "3"));
    expect((await Promise.all(answers)).map(({ stopReason }) => stopReason)).toEqual([
      "cancelled",
      "cancelled",
      "end_turn",
    ]);
  });

  test("that comes before anything was asked is not lost", async () => {
    const started = await start({ script: ["Never", "Hello"] });
    const session = await open(started);
    const answer = ask(started, session, "1");
    await started.agent.notify(methods.agent.session.cancel, { sessionId: session });
    expect(await answer).toEqual({ stopReason: "cancelled" });
  });

  test("takes back a question, and the call has failed", async () => {
    const started = await start({
      script: [call("shell", { command: "touch hi" })],
      answer: () => new Promise(() => {}),
    });
    const session = await open(started);
    const answer = ask(started, session, "Go");
    await started.message(({ method }) => method === "session/request_permission");
    await started.agent.notify(methods.agent.session.cancel, { sessionId: session });
    expect(await answer).toEqual({ stopReason: "cancelled" });
    expect(ofKind(started.updates(), "tool_call_update").at(-1)).toMatchObject({
      status: "failed",
    });
  });

  test("$/cancel_request does the same", async () => {
    const started = await start({ script: [[say("Begun"), stall()]] });
    const session = await open(started);
    const stop = new AbortController();
    const answer = started.agent.request(
      methods.agent.session.prompt,
      { sessionId: session, prompt: [{ type: "text", text: "Go" }] },
      { cancellationSignal: stop.signal },
    );
    await started.update((update) => update.sessionUpdate === "agent_message_chunk");
    stop.abort();
    expect(await answer).toEqual({ stopReason: "cancelled" });
  });

  test("of a session that is idle or unknown does nothing", async () => {
    const started = await start({ script: ["Hello"] });
    const session = await open(started);
    await started.agent.notify(methods.agent.session.cancel, { sessionId: "absent" });
    await started.agent.notify(methods.agent.session.cancel, { sessionId: session });
    expect(await ask(started, session, "Hi")).toEqual({ stopReason: "end_turn" });
  });
});

describe("tool calls", () => {
  test("are reported from their name to their result, with place and text", async () => {
    await writeFile(join(cwd, "notes.md"), "one\ntwo\n");
    const started = await start({
      script: [call("read", { path: "notes.md", offset: 2 }), "Done"],
    });
    const session = await open(started);
    await ask(started, session, "Read it");
    const updates = started.updates(session);
    expect(ofKind(updates, "tool_call")).toEqual([
      {
        sessionUpdate: "tool_call",
        toolCallId: "call_1",
        name: "read",
        title: "read",
        kind: "read",
        status: "pending",
        locations: [],
      },
    ]);
    const [pending, running, done] = ofKind(updates, "tool_call_update");
    expect(pending).toMatchObject({
      title: "Read `notes.md` (from line 2)",
      rawInput: { path: "notes.md", offset: 2 },
      locations: [{ path: join(cwd, "notes.md"), line: 2 }],
    });
    expect(running).toMatchObject({ status: "in_progress" });
    expect(done).toMatchObject({ status: "completed" });
    const text = JSON.stringify(done?.content);
    expect(text).toContain("two");
    expect(text).not.toContain("<source");
  });

  test("that fail say so", async () => {
    const started = await start({ script: [call("read", { path: "nowhere" }), "Ok"] });
    await ask(started, await open(started), "Go");
    expect(ofKind(started.updates(), "tool_call_update").at(-1)).toMatchObject({
      status: "failed",
    });
  });

  test("that run a command report its output as it comes", async () => {
    const command = "mkfifo pipe; echo first; cat pipe; echo `echo third`";
    const started = await start({ mode: "full", script: [call("shell", { command }), "Ok"] });
    const answer = ask(started, await open(started), "Go");
    const running = await started.update(
      (update) => update.sessionUpdate === "tool_call_update" && showsText(update, "first"),
    );
    expect(showsText(running, "second")).toBe(false);
    await writeFile(join(cwd, "pipe"), "second\n");
    await answer;
    const updates = ofKind(started.updates(), "tool_call_update");
    expect(updates[0]?.title).toBe(`\`\` ${command} \`\``);
    expect(updates.at(-1)).toMatchObject({ status: "completed" });
    expect(JSON.stringify(updates.at(-1))).toContain("first\\nsecond\\nthird");
  });

  test("edits are sent as whole files, before and after, with the changed line", async () => {
    await writeFile(join(cwd, "a.txt"), "one\ntwo\nthree\n");
    const started = await start({
      mode: "auto-edit",
      script: [
        call("edit", { path: "a.txt", edits: [{ oldText: "two", newText: "2" }] }),
        call("write", { path: "new.txt", content: "fresh\n" }),
        call("apply_patch", {
          patch:
            "*** Begin Patch\n*** Update File: a.txt\n@@\n-three\n+3\n*** Add File: b.txt\n+bee\n*** End Patch",
        }),
        "Done",
      ],
    });
    await ask(started, await open(started), "Edit it");
    const done = ofKind(started.updates(), "tool_call_update").filter(
      ({ status }) => status === "completed",
    );
    const path = (name: string): string => join(cwd, name);
    expect(done.map(({ content }) => content)).toEqual([
      [
        {
          type: "diff",
          path: path("a.txt"),
          oldText: "one\ntwo\nthree\n",
          newText: "one\n2\nthree\n",
        },
      ],
      [{ type: "diff", path: path("new.txt"), newText: "fresh\n" }],
      [
        { type: "diff", path: path("a.txt"), oldText: "one\n2\nthree\n", newText: "one\n2\n3\n" },
        { type: "diff", path: path("b.txt"), newText: "bee\n" },
      ],
    ]);
    expect(done[0]?.locations).toEqual([{ path: path("a.txt"), line: 2 }]);
  });

  test("todos are sent as a plan", async () => {
    const todos = [
      { content: "Look", status: "done" },
      { content: "Fix", status: "in_progress" },
    ];
    const started = await start({ script: [call("todo", { todos }), "Ok"] });
    await ask(started, await open(started), "Go");
    expect(ofKind(started.updates(), "plan")).toEqual([
      {
        sessionUpdate: "plan",
        entries: [
          { content: "Look", priority: "medium", status: "completed" },
          { content: "Fix", priority: "medium", status: "in_progress" },
        ],
      },
    ]);
  });

  test("those that never ran do not stay open", async () => {
    const started = await start({
      script: [[call("read", { path: "a" }), fail("Broken.", { kind: "bad_request" })]],
    });
    await catchError(ask(started, await open(started), "Go"));
    expect(ofKind(started.updates(), "tool_call_update").at(-1)).toMatchObject({
      status: "failed",
    });
  });
});

describe("permission", () => {
  const script: ScriptStep[] = [call("write", { path: "a.txt", content: "hello\n" }), "Done"];

  test("is asked for with what would change, and once means once", async () => {
    const started = await start({
      script: [...script, call("write", { path: "a.txt", content: "again\n" }), "Done"],
      answer: () => ({ outcome: { outcome: "selected", optionId: "allow" } }),
    });
    const session = await open(started);
    await ask(started, session, "Write");
    const [request] = started.asked;
    expect(request).toMatchObject({
      sessionId: session,
      toolCall: {
        toolCallId: "call_1",
        kind: "edit",
        title: "Write `a.txt`",
        rawInput: { path: "a.txt", content: "hello\n" },
        locations: [{ path: join(cwd, "a.txt") }],
      },
      options: [
        { optionId: "allow", kind: "allow_once" },
        { optionId: "always", kind: "allow_always", name: "Always allow write(a.txt)" },
        { optionId: "reject", kind: "reject_once" },
      ],
    });
    expect(request?.toolCall.content?.[0]).toEqual({
      type: "diff",
      path: join(cwd, "a.txt"),
      newText: "hello\n",
    });
    expect(await readFile(join(cwd, "a.txt"), "utf8")).toBe("hello\n");
    await ask(started, session, "Write again");
    expect(started.asked).toHaveLength(2);
    expect(started.asked[1]?.toolCall.content?.[0]).toMatchObject({ oldText: "hello\n" });
  });

  test("always means that it is not asked about again", async () => {
    const started = await start({
      script: [
        call("shell", { command: "touch one" }),
        call("shell", { command: "touch one" }),
        call("shell", { command: "touch two" }),
        "Done",
      ],
      answer: () => ({ outcome: { outcome: "selected", optionId: "always" } }),
    });
    await ask(started, await open(started), "Go");
    expect(started.asked.map(({ options }) => options[1]?.name)).toEqual([
      "Always allow shell(touch one)",
      "Always allow shell(touch two)",
    ]);
  });

  test("is not offered for good where no rule would do", async () => {
    const started = await start({ script: [call("shell", { command: "echo $HOME | cat" }), "Ok"] });
    await ask(started, await open(started), "Go");
    expect(started.asked[0]?.options.map(({ kind }) => kind)).toEqual([
      "allow_once",
      "reject_once",
    ]);
  });

  test.each([
    ["rejected", { outcome: { outcome: "selected", optionId: "reject" } }],
    ["cancelled", { outcome: { outcome: "cancelled" } }],
    ["answered with what was not offered", { outcome: { outcome: "selected", optionId: "yes!" } }],
  ] as const)("that is %s is a no, and the model gets to know", async (_how, response) => {
    const started = await start({ script, answer: () => response });
    expect(await ask(started, await open(started), "Write")).toEqual({ stopReason: "end_turn" });
    await expect(readFile(join(cwd, "a.txt"))).rejects.toThrow("ENOENT");
    expect(JSON.stringify(asked())).toContain("Denied");
  });
});

describe("options", () => {
  test("model, mode and thinking can be set, each way", async () => {
    const started = await start({ script: ["Hello"] });
    const { agent } = started;
    const sessionId = await open(started);
    const set = (configId: string, value: string): Promise<Record<string, unknown>> =>
      agent
        .request(methods.agent.session.setConfigOption, { sessionId, configId, value })
        .then(({ configOptions }) =>
          Object.fromEntries(configOptions.map(({ id, currentValue }) => [id, currentValue])),
        );
    expect(await set("model", "scripted/two")).toMatchObject({ model: "scripted/two" });
    expect(await set("thinking", "high")).toMatchObject({ thinking: "high" });
    expect(await set("mode", "plan")).toEqual({
      model: "scripted/two",
      thinking: "high",
      mode: "plan",
    });
    expect(ofKind(started.updates(), "current_mode_update")).toEqual([
      { sessionUpdate: "current_mode_update", currentModeId: "plan" },
    ]);
    await agent.request(methods.agent.session.setMode, { sessionId, modeId: "full" });
    const [config] = ofKind(started.updates(), "config_option_update");
    expect(config?.configOptions[0]).toMatchObject({ id: "mode", currentValue: "full" });
    await ask(started, sessionId, "Hi");
    expect(models[0]?.calls[0]).toMatchObject({
      model: { id: "two" },
      options: { thinkingLevel: "high" },
    });
  });

  test("what there is not cannot be set", async () => {
    const started = await start();
    const { agent } = started;
    const sessionId = await open(started);
    for (const [configId, value] of [
      ["color", "red"],
      ["mode", "yolo"],
      ["thinking", "deeply"],
    ] as const) {
      const request = { sessionId, configId, value };
      const error = await catchError(agent.request(methods.agent.session.setConfigOption, request));
      expect(error.code).toBe(INVALID);
    }
    const model = { sessionId, configId: "model", value: "absent" };
    const error = await catchError(agent.request(methods.agent.session.setConfigOption, model));
    expect(error.message).toContain('There is no model "absent"');
  });
});

describe("commands", () => {
  test("work without asking a model", async () => {
    const started = await start();
    const session = await open(started);
    const send = async (text: string): Promise<string> => {
      const before = textIn(started.updates()).length;
      expect(await ask(started, session, text)).toEqual({ stopReason: "end_turn" });
      return textIn(started.updates()).slice(before);
    };
    expect(await send("/model")).toContain("`scripted/two`");
    expect(await send("/model two")).toContain("scripted/two now");
    expect(await send("/thinking low")).toContain("low now");
    expect(await send("/mode plan")).toContain("plan now");
    expect(await send("/mode yolo")).toContain('There is no mode "yolo"');
    expect(await send("/cost")).toContain("0 tokens");
    expect(await send("/context")).toMatch(/About [\d,]+ tokens;[^]*\| tools \| [\d,]+ \|/);
    expect(await send("/session")).toContain(session);
    expect(await send("/title My work")).toContain("My work");
    const updates = started.updates();
    expect(ofKind(updates, "config_option_update")).toHaveLength(3);
    expect(ofKind(updates, "current_mode_update")).toHaveLength(1);
    expect(ofKind(updates, "session_info_update")).toMatchObject([{ title: "My work" }]);
    expect(models[0]?.requests).toBe(0);
  });

  test("what is no command is a prompt", async () => {
    const started = await start({ script: ["A folder."] });
    const session = await open(started);
    await ask(started, session, "/etc is what?");
    expect(textIn(started.updates())).toBe("A folder.");
  });
});

describe("sessions", () => {
  const script: ScriptStep[] = [
    [think("Let me look"), say("Looking."), call("read", { path: "notes.md" })],
    call("edit", { path: "notes.md", edits: [{ oldText: "one", newText: "1" }] }),
    "Done",
  ];

  async function earlier(): Promise<string> {
    await writeFile(join(cwd, "notes.md"), "one\ntwo\n");
    const started = await start({ script, mode: "auto-edit", usage: USAGE });
    const session = await open(started);
    await ask(started, session, "Fix it");
    await started.end();
    return session;
  }

  test("load sends the whole conversation, then answers", async () => {
    const sessionId = await earlier();
    const started = await start({ script: ["More"] });
    const answer = await started.agent.request(methods.agent.session.load, {
      sessionId,
      cwd,
      mcpServers: [],
    });
    const written = started.written();
    const answered = written.findIndex(({ result }) => JSON.stringify(result)?.includes("modes"));
    expect(answer.configOptions).toHaveLength(3);
    const updates = written.slice(0, answered).flatMap(({ params }) => params?.update ?? []);
    expect(textIn(updates, "user_message_chunk")).toBe("Fix it");
    expect(textIn(updates, "agent_thought_chunk")).toBe("Let me look");
    expect(textIn(updates)).toBe("Looking.Done");
    expect(ofKind(updates, "tool_call").map(({ title }) => title)).toEqual([
      "Read `notes.md`",
      "Edit `notes.md`",
    ]);
    const results = ofKind(updates, "tool_call_update");
    expect(results.map(({ status }) => status)).toEqual(["completed", "completed"]);
    expect(results[1]?.content).toEqual([
      {
        type: "diff",
        path: join(cwd, "notes.md"),
        oldText: "one\ntwo\n",
        newText: "1\ntwo\n",
      },
    ]);
    expect(ofKind(updates, "session_info_update")).toMatchObject([{ title: "Fix it" }]);
    await started.update((update) => update.sessionUpdate === "available_commands_update");
    const usage = await started.update((update) => update.sessionUpdate === "usage_update");
    expect(usage).toMatchObject({ used: 100, cost: { amount: 1.5 } });
    expect(await ask(started, sessionId, "Go on")).toEqual({ stopReason: "end_turn" });
    expect(models.at(-1)?.calls[0]?.messages.length).toBeGreaterThan(4);
  });

  test("resume sends nothing of it, and goes on with it", async () => {
    const sessionId = await earlier();
    const started = await start({ script: ["More"] });
    await started.agent.request(methods.agent.session.resume, { sessionId, cwd });
    await ask(started, sessionId, "Go on");
    expect(ofKind(started.updates(), "user_message_chunk")).toEqual([]);
    expect(ofKind(started.updates(), "session_info_update")).toEqual([]);
    expect(textIn(started.updates())).toBe("More");
    expect(models.at(-1)?.calls[0]?.messages.length).toBeGreaterThan(4);
  });

  test("list has those of a folder, with title and time, a page at a time", async () => {
    const sessionId = await earlier();
    const { agent } = await start();
    await agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
    const { sessions } = await agent.request(methods.agent.session.list, { cwd });
    expect(sessions).toEqual([
      { sessionId, cwd, title: "Fix it", updatedAt: expect.stringMatching(/^\d{4}-.*Z$/) },
    ]);
    expect((await agent.request(methods.agent.session.list, {})).sessions).toHaveLength(1);
    const elsewhere = await agent.request(methods.agent.session.list, { cwd: home });
    expect(elsewhere).toEqual({ sessions: [] });
    const wrong = agent.request(methods.agent.session.list, { cursor: "behind" });
    expect((await catchError(wrong)).code).toBe(INVALID);
  });

  test("close ends what runs and lets go; delete removes it", async () => {
    const started = await start({ script: [[say("Begun"), stall()]] });
    const { agent } = started;
    const sessionId = await open(started);
    const answer = ask(started, sessionId, "Go");
    await started.update((update) => update.sessionUpdate === "agent_message_chunk");
    await agent.request(methods.agent.session.close, { sessionId });
    expect(await answer).toEqual({ stopReason: "cancelled" });
    expect((await catchError(ask(started, sessionId, "More"))).code).toBe(NOT_FOUND);
    await agent.request(methods.agent.session.resume, { sessionId, cwd });
    await agent.request(methods.agent.session.delete, { sessionId });
    expect((await agent.request(methods.agent.session.list, {})).sessions).toEqual([]);
  });

  test("one that is not there, or only begins like it, is not found", async () => {
    const sessionId = await earlier();
    const { agent } = await start();
    for (const id of ["absent", sessionId.slice(0, -1), join(home, "x.jsonl")]) {
      const request = { sessionId: id, cwd, mcpServers: [] };
      expect((await catchError(agent.request(methods.agent.session.load, request))).code).toBe(
        NOT_FOUND,
      );
    }
    await agent.request(methods.agent.session.delete, { sessionId: sessionId.slice(0, -1) });
    expect((await agent.request(methods.agent.session.list, {})).sessions).toHaveLength(1);
  });

  test("one that is open already is sent again, and stays one", async () => {
    const started = await start({ script: ["Hello", "Again"] });
    const sessionId = await open(started);
    await ask(started, sessionId, "Hi");
    const request = { sessionId, cwd, mcpServers: [] };
    await Promise.all([
      started.agent.request(methods.agent.session.load, request),
      started.agent.request(methods.agent.session.resume, request),
    ]);
    expect(textIn(started.updates(), "user_message_chunk")).toBe("Hi");
    await ask(started, sessionId, "More");
    expect(models).toHaveLength(1);
  });

  test("one that another process writes to is refused, with the reason", async () => {
    const sessionId = await earlier();
    const other = await new SessionStore(join(home, "sessions")).open(sessionId);
    const { agent } = await start();
    const request = { sessionId, cwd, mcpServers: [] };
    const error = await catchError(agent.request(methods.agent.session.load, request));
    expect(error).toMatchObject({ code: INTERNAL, data: { code: "locked" } });
    await other.close();
    await agent.request(methods.agent.session.load, request);
  });

  test("a name that was given is kept, and sent when it is loaded", async () => {
    const started = await start({ script: ["Hello"] });
    const sessionId = await open(started);
    await ask(started, sessionId, "/title My work");
    await ask(started, sessionId, "Hi");
    await started.end();
    const next = await start();
    await next.agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
    expect(ofKind(next.updates(), "session_info_update")).toMatchObject([{ title: "My work" }]);
    const { sessions } = await next.agent.request(methods.agent.session.list, { cwd });
    expect(sessions).toMatchObject([{ sessionId, title: "My work" }]);
  });

  test("without a store they live as long as the connection", async () => {
    const started = await start({ script: ["Hello"], isKept: false });
    const sessionId = await open(started);
    expect(await ask(started, sessionId, "Hi")).toEqual({ stopReason: "end_turn" });
    const other = { sessionId: "absent", cwd, mcpServers: [] };
    const error = await catchError(started.agent.request(methods.agent.session.load, other));
    expect(error.code).toBe(NOT_FOUND);
  });
});

test("started in a terminal in order to log in, it stores a key", async () => {
  const env = { GYRE_ACP_LOGIN: "anthropic", XDG_CONFIG_HOME: join(home, "config"), HOME: home };
  const io = textIo({ env, cwd: home, input: "sk-ant-test\n" });
  expect(await runAcp({}, io)).toBe(EXIT.done);
  const keys = await readFile(join(home, "config/gyre/keys.json"), "utf8");
  expect(keys).toContain("sk-ant-test");
  expect(io.out()).not.toContain("sk-ant-test");
});

describe("standard streams", () => {
  test("the end of input stops what runs, writes it down, and is no failure", async () => {
    const started = await start({ script: [[say("Begun"), stall()]] });
    const sessionId = await open(started);
    const answer = ask(started, sessionId, "Go");
    answer.catch(() => undefined);
    await started.update((update) => update.sessionUpdate === "agent_message_chunk");
    expect(await started.end()).toBe(EXIT.done);
    const next = await start();
    const request = { sessionId, cwd, mcpServers: [] };
    await next.agent.request(methods.agent.session.load, request);
    expect(textIn(next.updates(), "user_message_chunk")).toBe("Go");
    expect(textIn(next.updates())).toContain("Begun");
  });

  test("a signal ends it with the code for that", async () => {
    const stop = new AbortController();
    const started = await start({ signal: stop.signal });
    await open(started);
    stop.abort();
    expect(await started.end()).toBe(EXIT.interrupted);
  });

  test("what is logged goes to standard error", async () => {
    const started = await start({
      script: [
        () => {
          console.log("chatter", { a: 1 });
          console.warn("more");
          return "Hello";
        },
      ],
    });
    await ask(started, await open(started), "Hi");
    expect(started.stderr()).toContain("chatter { a: 1 }");
    expect(started.stderr()).toContain("more");
    started.written();
  });

  test("what is no message is answered with an error, and the rest goes on", async () => {
    const started = await start({ script: ["Hello"] });
    started.raw("this is no JSON\n[]\n");
    await started.message(({ error }) => error?.code === -32_700);
    expect(await ask(started, await open(started), "Hi")).toEqual({ stopReason: "end_turn" });
  });
});
