import type { AssistantMessage } from "@gyre/ai";
import { manualClock, scriptedModel } from "@gyre/ai/testing";
import { describe, expect, it, vi } from "vitest";
import { approval } from "../contract/middleware.ts";
import { agentLoop, agentLoopContinue } from "./loop.ts";
import { anAnswer, asked, makeResult } from "../testing/messages.ts";
import { play, start, text, tool, user } from "../testing/play.ts";
import { empty, injected, ran } from "../testing/render.ts";
import { GO, run, textTurn, turn } from "../testing/sequences.ts";
import { defaultConvertToLlm } from "../transcript/history.ts";
import type { AgentLoopConfig, AgentTool } from "../contract/types.ts";

describe("R19: resuming a transcript", () => {
  const interrupted = (name: string): string =>
    `error "Interrupted: the run ended before tool "${name}" gave its result. Whether it had effects is not known; look before you call it again."`;

  it("R19: continue throws on an empty context", () => {
    const script = scriptedModel([]);
    const config = { model: script.model, protocol: script };
    expect(() => agentLoopContinue({ messages: [] }, config)).toThrow(
      "Cannot continue: no messages in context",
    );
  });

  it("R19: continue throws on an assistant message", () => {
    const script = scriptedModel([]);
    const config = { model: script.model, protocol: script };
    expect(() => agentLoopContinue({ messages: [user("A"), anAnswer] }, config)).toThrow(
      "Cannot continue from message role: assistant",
    );
  });

  it("R19: runAgentLoop without prompts continues, and refuses the same", async () => {
    const bad = start({ prompts: [], messages: [user("A"), anAnswer] });
    await expect(bad.done).rejects.toThrow("Cannot continue from message role: assistant");
    expect(bad.recorder.lines).toEqual([]);
    const { lines } = await play({ prompts: [], messages: [user("A")], script: ["B"] });
    expect(lines).toEqual(run("done", textTurn("B")));
  });

  it.each(["error", "aborted"] as const)(
    "R19: trailing %s messages are looked past",
    async (stopReason) => {
      const failed: AssistantMessage = { ...anAnswer, stopReason, errorMessage: "x" };
      const { model, end } = await play({
        prompts: [],
        messages: [user("A"), { ...failed, content: [] }, failed],
        script: ["B"],
      });
      expect(end.stop).toBe("done");
      expect(model.calls[0]?.messages).toEqual([user("A")]);
    },
  );

  it("R19: calls without results are answered in place, before anything else", async () => {
    const { lines, model, transcript } = await play({
      messages: [user("A"), asked("x1", "x2"), makeResult("x2"), user("B"), asked("y1")],
      prompts: [user("C")],
      script: ["D"],
      tools: [tool("x", () => expect.unreachable())],
    });
    expect(lines).toEqual(
      run(
        "done",
        textTurn("D", ran("x#x1", interrupted("x")), ran("y#y1", interrupted("y")), injected("C")),
      ),
    );
    expect(transcript.map((m) => (m.role === "toolResult" ? m.toolCallId : m.role))).toEqual([
      "user",
      "assistant",
      "x1",
      "x2",
      "user",
      "assistant",
      "y1",
      "user",
      "assistant",
    ]);
    expect(model.calls[0]?.messages).toEqual(transcript.slice(0, -1));
  });

  it("R19: continue answers the calls of the last message and goes on", async () => {
    const { lines } = await play({
      prompts: [],
      messages: [user("A"), asked("x1")],
      script: ["B"],
    });
    expect(lines).toEqual(run("done", textTurn("B", ran("x#x1", interrupted("x")))));
  });

  it("R19: a result that a journal recorded is used, before the tool is run again", async () => {
    const { lines } = await play({
      messages: [user("A"), asked("x1", "x2")],
      prompts: [],
      script: ["B"],
      tools: [tool("x", () => "again", { idempotent: true })],
      config: { unfinished: (id) => (id === "x1" ? text("recorded") : undefined) },
    });
    expect(lines.slice(2, -5)).toEqual([
      ...ran("x#x1", 'ok "recorded"'),
      ...ran("x#x2", 'ok "again"'),
    ]);
  });

  it("R27: a call that never began runs through the middleware; one that may have is reported", async () => {
    const { lines } = await play({
      messages: [user("A"), asked("x1", "x2", "x3")],
      prompts: [],
      script: ["B"],
      tools: [tool("x", (_, { id }) => (id === "x2" ? expect.unreachable() : `ran ${id}`))],
      config: {
        unfinished: (id) => (id === "x2" ? undefined : "not begun"),
        middleware: [approval(({ toolCall: { id } }) => (id === "x1" ? "allow" : { deny: "no" }))],
      },
    });
    expect(lines.slice(2, -5)).toEqual([
      ...ran("x#x1", 'ok "ran x1"'),
      ...ran("x#x2", interrupted("x")),
      ...ran("x#x3", 'error "Tool "x" failed: Denied: no"'),
    ]);
  });

  it("R27: a call that never began and needs approval waits for it", async () => {
    const { end, model } = await play({
      messages: [user("A"), asked("x1")],
      prompts: [],
      tools: [tool("x", () => expect.unreachable(), { needsApproval: true })],
      config: { unfinished: () => "not begun" },
    });
    expect(end).toMatchObject({ stop: "suspended", pending: [{ toolCall: { id: "x1" } }] });
    expect(model.requests).toBe(0);
  });

  it("R27: a prompt is newer than a call that never began, which is reported as not started", async () => {
    const { lines } = await play({
      messages: [user("A"), asked("x1")],
      script: ["B"],
      tools: [tool("x", () => expect.unreachable())],
      config: { unfinished: () => "not begun" },
    });
    expect(lines.slice(2, 6)).toEqual(
      ran(
        "x#x1",
        'error "Not started: the run ended before tool "x" was started, so it had no effects. Call it again if it is still needed."',
      ),
    );
  });

  it("R15: steering that waits skips calls that never began", async () => {
    const queue = [user("Stop paying")];
    const { recorder } = await play({
      messages: [user("A"), asked("x1", "x2")],
      prompts: [],
      script: ["B"],
      tools: [tool("x", () => expect.unreachable())],
      config: {
        unfinished: () => "not begun",
        getSteeringMessages: () => queue.splice(0, 1),
      },
    });
    expect(recorder.only("tool_execution_end")).toEqual([
      'tool_end x#x1 error "Skipped due to queued user message."',
      'tool_end x#x2 error "Skipped due to queued user message."',
    ]);
  });

  describe("R27: recover", () => {
    const recovered = (
      recover: NonNullable<AgentTool["recover"]>,
      config: Partial<AgentLoopConfig> = {},
      more: Partial<AgentTool> = {},
    ): ReturnType<typeof play> =>
      play({
        messages: [user("A"), asked("x1")],
        prompts: [],
        script: ["B"],
        tools: [tool("x", () => "ran again", { recover, ...more })],
        config,
      });

    it("R27: is asked with arguments and context, and gives the result", async () => {
      const { lines } = await recovered(
        (args, { id, host }) => `${JSON.stringify(args)} ${id} ${host.key}`,
        { sessionId: "s1" },
      );
      expect(lines.slice(2, 6)).toEqual(ran("x#x1", 'ok "{} x1 s1:x1"'));
    });

    it("R27: again runs the call through the middleware", async () => {
      const seen: string[] = [];
      const { lines } = await recovered(async () => "again", {
        middleware: [
          {
            tool({ toolCall }, next) {
              seen.push(toolCall.id);
              return next();
            },
          },
        ],
      });
      expect(seen).toEqual(["x1"]);
      expect(lines.slice(2, 6)).toEqual(ran("x#x1", 'ok "ran again"'));
    });

    it("R15: again is skipped where steering waits", async () => {
      const queue = [user("Stop paying")];
      const { recorder } = await recovered(() => "again", {
        getSteeringMessages: () => queue.splice(0, 1),
      });
      expect(recorder.only("tool_execution_end")).toEqual([
        'tool_end x#x1 error "Skipped due to queued user message."',
      ]);
    });

    it("R27: nothing leaves the outcome unknown", async () => {
      const { lines } = await recovered(() => undefined);
      expect(lines.slice(2, 6)).toEqual(ran("x#x1", interrupted("x")));
    });

    it("R27: a throw is reported, and leaves the outcome unknown", async () => {
      const warnings = vi.spyOn(process, "emitWarning").mockReturnValue();
      const { lines } = await recovered(() => Promise.reject(new Error("no network")));
      expect(warnings).toHaveBeenCalledWith('recover of tool "x": no network', "GyreWarning");
      warnings.mockRestore();
      expect(lines.slice(2, 6)).toEqual(ran("x#x1", interrupted("x")));
    });

    it("R27: it has the tool's timeout; past it the outcome is unknown", async () => {
      const clock = manualClock();
      const { done } = start({
        messages: [user("A"), asked("x1")],
        prompts: [],
        script: ["B"],
        tools: [
          tool("x", () => expect.unreachable(), {
            timeoutMs: 50,
            recover: (_, { signal }) => {
              signal.addEventListener("abort", () => seen.push("abort"));
              queueMicrotask(() => void clock.advance(50));
              return new Promise(() => {});
            },
          }),
        ],
        config: { clock },
      });
      const seen: string[] = [];
      expect((await done).lines.slice(2, 6)).toEqual(ran("x#x1", interrupted("x")));
      expect(seen).toEqual(["abort"]);
    });

    it.each<[string, AgentLoopConfig["unfinished"], Partial<AgentTool>]>([
      ["never began", () => "not begun", {}],
      ["has a result", () => text("recorded"), {}],
      ["is of an idempotent tool", undefined, { idempotent: true }],
    ])("R27: is not asked of a call that %s", async (_, unfinished, more) => {
      const { end } = await recovered(
        () => expect.unreachable(),
        unfinished && { unfinished },
        more,
      );
      expect(end.stop).toBe("done");
    });
  });

  it("R19: a call that may run is run through the middleware, whatever its tool", async () => {
    const seen: string[] = [];
    const { lines } = await play({
      messages: [user("A"), asked("x1")],
      prompts: [],
      script: ["B"],
      tools: [tool("x", () => "ran")],
      config: {
        unfinished: () => "run",
        middleware: [
          {
            tool({ toolCall }, next) {
              seen.push(toolCall.id);
              return next();
            },
          },
        ],
      },
    });
    expect(seen).toEqual(["x1"]);
    expect(lines.slice(2, 6)).toEqual(ran("x#x1", 'ok "ran"'));
  });

  it("R27: a decision that a journal recorded is acted on, unless the run has another", async () => {
    const { recorder, end } = await play({
      messages: [user("A"), asked("x1", "x2", "x3")],
      prompts: [],
      script: ["B"],
      tools: [tool("x", (_, { id }) => `ran ${id}`)],
      config: {
        unfinished: (id) => ({ type: id === "x2" ? "deny" : "approve" }),
        decisions: { x3: { type: "deny", reason: "changed my mind" } },
      },
    });
    expect(recorder.only("tool_execution_end")).toEqual([
      'tool_end x#x1 ok "ran x1"',
      'tool_end x#x2 error "Tool "x" was denied."',
      'tool_end x#x3 error "Tool "x" was denied: changed my mind"',
    ]);
    expect(end.stop).toBe("done");
  });

  it("R15: steering that waits keeps open calls from being run again; a new decision is acted on", async () => {
    const queue = [user("Stop paying"), user("Later")];
    const { lines, model } = await play({
      messages: [user("A"), asked("x1", "x2", "x3")],
      prompts: [],
      script: ["B", "C"],
      tools: [tool("x", (_, { id }) => (id === "x1" ? "paid" : expect.unreachable()))],
      config: {
        unfinished: () => "run",
        decisions: { x1: { type: "approve" } },
        getSteeringMessages: () => queue.splice(0, 1),
      },
    });
    expect(lines.slice(2, 16)).toEqual([
      ...ran("x#x1", 'ok "paid"'),
      ...ran("x#x2", 'error "Skipped due to queued user message."'),
      ...ran("x#x3", 'error "Skipped due to queued user message."'),
      ...injected("Stop paying"),
    ]);
    expect(model.calls[0]?.messages.at(-1)).toMatchObject({ content: "Stop paying" });
    expect(model.calls[1]?.messages.at(-1)).toMatchObject({ content: "Later" });
  });

  it("R5: a poll that throws before a call would run leaves it not run, and the run ends with the error", async () => {
    const { end, recorder } = await play({
      messages: [user("A"), asked("x1")],
      prompts: [],
      tools: [tool("x", () => expect.unreachable(), { idempotent: true })],
      config: {
        getSteeringMessages: () => {
          throw new Error("the queue is gone");
        },
      },
    });
    expect(end.stop).toBe("error");
    expect(recorder.only("tool_execution_end")).toEqual([
      'tool_end x#x1 error "Tool "x" was not run: the queue is gone"',
    ]);
  });

  it("R15: with after-batch, open calls are run before steering is delivered", async () => {
    const queue = [user("Stop paying")];
    const { recorder } = await play({
      messages: [user("A"), asked("x1")],
      prompts: [],
      script: ["B"],
      tools: [tool("x", () => "paid")],
      config: {
        steering: "after-batch",
        unfinished: () => "run",
        getSteeringMessages: () => queue.splice(0, 1),
      },
    });
    expect(recorder.only("tool_execution_end")).toEqual(['tool_end x#x1 ok "paid"']);
  });

  it("R19: a message that paused is continued", async () => {
    const paused: AssistantMessage = { ...anAnswer, stopReason: "pause" };
    const { end, model } = await play({
      prompts: [],
      messages: [user("A"), paused],
      script: ["B"],
    });
    expect(end.stop).toBe("done");
    expect(model.calls[0]?.messages).toEqual([user("A"), paused]);
  });

  it("R19: an idempotent tool runs again through the middleware", async () => {
    const seen: string[] = [];
    const { lines } = await play({
      messages: [user("A"), asked("x1")],
      prompts: [],
      script: ["B"],
      tools: [tool("x", () => "again", { idempotent: true })],
      config: {
        middleware: [
          {
            tool(invocation, next) {
              seen.push(invocation.toolCall.id);
              return next();
            },
          },
        ],
      },
    });
    expect(seen).toEqual(["x1"]);
    expect(lines.slice(2, 6)).toEqual(ran("x#x1", 'ok "again"'));
  });

  it("R19: repair comes before the prompts and the first steering poll", async () => {
    const { recorder, done } = start({
      messages: [user("A"), asked("x1")],
      script: ["B"],
      config: { getSteeringMessages: () => void recorder.lines.push("poll") },
    });
    const { lines } = await done;
    expect(lines.slice(0, 9)).toEqual([
      "agent_start",
      "turn_start",
      ...ran("x#x1", interrupted("x")),
      "poll",
      ...injected("Go"),
    ]);
  });

  it("R19: a signal that fired before answers the calls as aborted and runs nothing", async () => {
    const { lines } = await play({
      messages: [user("A"), asked("x1")],
      signal: AbortSignal.abort(),
      tools: [tool("x", () => expect.unreachable(), { idempotent: true })],
    });
    expect(lines).toEqual(
      run(
        "aborted",
        turn(
          "aborted",
          ran("x#x1", 'error "Aborted: the user stopped the run before tool "x" was started."'),
          GO,
          empty("aborted", "Aborted."),
        ),
      ),
    );
  });

  it("R19: unfinished that throws ends the run with an error, and the calls are answered", async () => {
    const { end, transcript } = await play({
      messages: [user("A"), asked("x1", "x2")],
      config: {
        unfinished: () => {
          throw new Error("the journal is gone");
        },
      },
    });
    expect(end.stop).toBe("error");
    expect(end.finalMessage?.errorMessage).toBe("the journal is gone");
    expect(transcript.map((m) => m.role)).toEqual([
      "user",
      "assistant",
      "toolResult",
      "toolResult",
      "user",
      "assistant",
    ]);
  });

  it("R19: a recorded value that is no result is an error result", async () => {
    const { end, recorder } = await play({
      messages: [user("A"), asked("x1")],
      script: ["Ok"],
      config: { unfinished: () => ({ deep: 1n }) as never },
    });
    expect(end.stop).toBe("done");
    expect(recorder.only("tool_execution_end")).toEqual([
      expect.stringMatching(/^tool_end x#x1 error "Tool "x" .*JSON/),
    ]);
  });

  it.each(["error", "aborted", "length"] as const)(
    "R19: a call of a message that ended %s is not run, idempotent or not",
    async (stopReason) => {
      const { end, recorder } = await play({
        messages: [user("A"), { ...asked("x1"), stopReason }],
        script: ["Ok"],
        tools: [tool("x", () => expect.unreachable(), { idempotent: true })],
      });
      expect(end.stop).toBe("done");
      expect(recorder.only("tool_execution_end")).toEqual([
        expect.stringMatching(/^tool_end x#x1 error "Tool "x" was not run/),
      ]);
    },
  );

  it("R19: prompts that hold unanswered calls end with a clear error, and the next run repairs them", async () => {
    const script = scriptedModel(["Ok"]);
    const config: AgentLoopConfig = { model: script.model, protocol: script };
    const made = await agentLoop(
      [user("A"), asked("x1"), user("B")],
      { messages: [] },
      config,
    ).result();
    const last = made.at(-1);
    expect(last?.role === "assistant" && last.failure?.kind).toBe("invalid_transcript");
    expect(script.requests).toBe(0);
    const next = await agentLoop([user("C")], { messages: made }, config).result();
    expect(next.map((m) => m.role)).toEqual(["toolResult", "user", "assistant"]);
    script.assertComplete();
  });

  it.each<[string, Partial<AgentLoopConfig>]>([
    ["alone", {}],
    ["after a hook", { convertToLlm: defaultConvertToLlm }],
  ])("R19: results whose call is lost, and second ones, are not sent, %s", async (_, config) => {
    const kept = [user("A"), asked("x1"), makeResult("x1")];
    const messages = [makeResult("w1"), ...kept, makeResult("x1"), makeResult("v1")];
    const long = Array.from({ length: 100 }, (__, i) => user(`${i}`));
    for (const more of [[], long]) {
      const script = scriptedModel(["C"]);
      const given = [...messages, ...more];
      const made = await agentLoop(
        [user("B")],
        { messages: given },
        { model: script.model, protocol: script, ...config },
      ).result();
      expect(made.at(-1)).toMatchObject({ role: "assistant", stopReason: "stop" });
      expect(script.calls[0]?.messages).toEqual([...kept, ...more, user("B")]);
      expect(given).toHaveLength(messages.length + more.length);
    }
  });

  it("R19: in a long history only what is missing is made", async () => {
    const long = Array.from({ length: 200 }, (_, i) => user(`${i}`));
    const { model, transcript } = await play({
      messages: [...long, asked("x1"), ...long.map((m) => ({ ...m }))],
      script: ["Ok"],
    });
    expect(transcript.length).toBe(404);
    expect(transcript[201]?.role).toBe("toolResult");
    model.assertComplete();
  });
});
