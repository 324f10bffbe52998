import { present } from "@gyre/agent";
import { errorMessage, isRecord, systemClock } from "@gyre/ai";
import type { McpAnswer, McpFieldValue } from "@gyre/mcp";
import { type Payload, ProtocolError } from "@gyre/protocol";
import type { HostAnswer } from "@gyre/server";
import type { EntryBody, Session } from "@gyre/sessions";
import type { ApprovalRequest } from "@gyre/tools";
import { findPresentation } from "@gyre/coding/internal/core/presentations";
import type { PlanAnswer } from "@gyre/coding/internal/conversation/plan";
import type { AgentHarness, Harness } from "@gyre/coding/internal/harness/harness";
import type { Environment } from "../../core/io.ts";
import type { Setup } from "../../core/setup.ts";
import type { SlashCommand } from "../../slash-commands/command-context.ts";
import type { GivenAnswer } from "../../slash-commands/remote/run-asked.ts";
import { listOfferedRules, readQuestion } from "../../text/pending-question.ts";
import type { FileFinder } from "../tui/editor/file-finder.ts";
import type { PlanQuestions } from "./plan-questions.ts";
import type { ServerQuestions } from "./server-questions.ts";

/**
 * Commands of the program that clients may use: what they change is within the ceilings of the session. The others are
 * for the person at the server, or need a terminal.
 */
export const SERVED_COMMANDS: ReadonlySet<string> = new Set([
  "permissions",
  "tools",
  "add-dir",
  "jobs",
  "mcp",
  "context",
  "compact",
  "cost",
  "btw",
  "diff",
  "status",
  "fork",
  "handoff",
  "session",
  "title",
]);

/** The folder that a session works in, as far as commands need it. */
export interface CommandPlace {
  setup: Setup;
  env: Environment;
}

export interface SessionRequestsOptions {
  harness: () => Harness;
  session: Session | undefined;
  place: CommandPlace | undefined;
  /** Of MCP servers. */
  questions: ServerQuestions;
  plans: PlanQuestions;
}

/** Requests of `gyre`'s own to a session, `session_request`: what a terminal at a client needs beside the conversation. */
export class SessionRequests {
  readonly #options: SessionRequestsOptions;
  #finder: FileFinder | undefined;
  #commands: Promise<readonly SlashCommand[]> | undefined;

  constructor(options: SessionRequestsOptions) {
    this.#options = options;
  }

  /** Throws an error for the client. */
  async answer(name: string, payload: Payload): Promise<HostAnswer> {
    switch (name) {
      case "commands":
        return { payload: { commands: await this.#listCommands() } };
      case "command":
        return { payload: await this.#runCommand(payload) };
      case "call_files":
        return { payload: { files: await this.#readCallFiles(this.#findQuestion(payload)) } };
      case "allow":
        return { payload: await this.#allow(payload) };
      case "answer_question":
        return { payload: this.#answerQuestion(payload) };
      case "show_plans":
        this.#options.plans.isShown = true;
        return { payload: {} };
      case "answer_plan":
        return { payload: this.#answerPlan(payload) };
      case "background":
        return { payload: this.#moveToBackground() };
      case "find_files":
        return { payload: { paths: await this.#findFiles(payload) } };
      case "tree":
        return { payload: this.#readTree() };
      case "entry":
        return { payload: { entry: await this.#requireSession().read(readEntryId(payload)) } };
      case "label":
        return { payload: await this.#label(payload) };
      case "go_to":
        return this.#goTo(payload);
      default:
        throw new ProtocolError("not_implemented", `There is no request "${name}" here.`);
    }
  }

  async #listCommands(): Promise<Payload[]> {
    const commands = await this.#readCommands();
    return commands.map(({ name, aliases, about, hint, allowWhileRunning }) => ({
      ...{ name, about },
      ...(aliases && { aliases }),
      ...(hint !== undefined && { hint }),
      ...(allowWhileRunning && { allowWhileRunning }),
    }));
  }

  /** Those of the program that are served, and those of files, skills and plugins. */
  #readCommands(): Promise<readonly SlashCommand[]> {
    this.#commands ??= this.#collectCommands();
    return this.#commands;
  }

  async #collectCommands(): Promise<readonly SlashCommand[]> {
    const { harness, place } = this.#options;
    if (!place) return [];
    const [{ findCommands }, { builtinCommands }] = await Promise.all([
      import("../../slash-commands/find-commands.ts"),
      import("../../slash-commands/builtin.ts"),
    ]);
    const own = new Set(builtinCommands);
    const all = await findCommands("terminal", { ...place, harness: harness() });
    return all.filter((command) => !own.has(command) || SERVED_COMMANDS.has(command.name));
  }

  async #runCommand(payload: Payload): Promise<Payload> {
    const { command: name, rest = "", answers = [] } = payload;
    if (typeof rest !== "string") throw invalid('"rest" is a string.');
    if (!isAnswers(answers)) throw invalid('"answers" is a list of {choice, label} and null.');
    const { place } = this.#options;
    const commands = await this.#readCommands();
    const command = commands.find((each) => each.name === name);
    if (!place || !command) {
      const what = `There is no command ${JSON.stringify(name)} for clients here.`;
      throw new ProtocolError("not_implemented", what);
    }
    // It would be trusted for everybody who uses this computer's settings.
    if (name === "mcp" && /^trust\b/.test(rest.trim())) {
      throw invalid("MCP servers are trusted at the server.");
    }
    const { runAsked } = await import("../../slash-commands/remote/run-asked.ts");
    const { setup, env } = place;
    const { cwd, layers, settings } = setup;
    const outcome = await runAsked(
      command,
      rest,
      {
        harness: this.#options.harness(),
        signal: new AbortController().signal,
        env,
        setup: { cwd, settings, ...(layers && { layers }) },
        models: () => Promise.resolve([]),
        commands: () => commands,
        help: [],
      },
      answers,
    );
    return { ...outcome };
  }

  #findQuestion({ call }: Payload): ApprovalRequest {
    const { pending } = this.#options.harness().agent.state;
    const found = pending.find(({ toolCall }) => toolCall.id === call);
    if (!found) throw invalid(`No call ${JSON.stringify(call)} waits for a decision.`);
    return readQuestion(found);
  }

  /** The text that a call would change, for a diff: as far as the model may read it as well. */
  async #readCallFiles({ tool, args, access }: ApprovalRequest): Promise<Payload[]> {
    const proposal = present(() => findPresentation(tool)?.proposal?.(args));
    if (!proposal || proposal.type === "patch") return [];
    const path = access?.targets[0] ?? proposal.path;
    if (!(await this.#mayRead(path))) return [];
    const { createTextReader } = await import("../tui/panels/permission-preview.ts");
    const text = createTextReader(this.#options.harness().toolset.env.workspace.root)(path);
    return text === undefined ? [] : [{ path, text }];
  }

  async #mayRead(path: string): Promise<boolean> {
    const harness = this.#options.harness();
    if (!harness.toolset.registry.has("read")) return false;
    try {
      const { signal } = new AbortController();
      const { isError } = await harness.callTool({ tool: "read", args: { path }, signal });
      return isError !== true;
    } catch {
      // Not there, or not allowed: the change is shown without what was there.
      return false;
    }
  }

  /** From now on, calls that fit these rules need no approval: rules that the question offers, and no others. */
  async #allow(payload: Payload): Promise<Payload> {
    const { rules } = payload;
    const harness = this.#options.harness();
    const offered = await listOfferedRules(this.#findQuestion(payload));
    if (!Array.isArray(rules) || rules.length === 0) throw invalid('"rules" is a list of rules.');
    for (const rule of rules) {
      if (typeof rule === "string" && offered.includes(rule)) continue;
      const known = offered.length === 0 ? "none" : offered.join(", ");
      throw invalid(`The rule ${JSON.stringify(rule)} is not offered for this call: ${known}.`);
    }
    for (const rule of rules) await harness.giveRule?.(String(rule));
    return { rules };
  }

  /** Answers an MCP server that asks in the middle of a call. */
  #answerQuestion({ question, action, content }: Payload): Payload {
    if (action !== "accept" && action !== "decline" && action !== "cancel") {
      throw invalid('"action" is "accept", "decline" or "cancel".');
    }
    if (content !== undefined && !isRecord(content)) throw invalid('"content" is an object.');
    // Its values are checked against what the server asks for.
    const values = content as Record<string, McpFieldValue> | undefined;
    const answer: McpAnswer =
      action === "accept" ? { action, ...(values && { content: values }) } : { action };
    try {
      this.#options.questions.answer(question, answer);
    } catch (error) {
      throw invalid(errorMessage(error));
    }
    return {};
  }

  /** Approves a plan, as it was edited, or says what is missing. */
  #answerPlan({ question, ...given }: Payload): Payload {
    const answer = this.#readPlanAnswer(given);
    try {
      this.#options.plans.answer(question, answer);
    } catch (error) {
      throw invalid(errorMessage(error));
    }
    return {};
  }

  #readPlanAnswer({ approve, mode, plan, reason }: Payload): PlanAnswer {
    if (approve === false && typeof reason === "string") return { approve, reason };
    const { modes } = this.#options.harness();
    const found = modes.find((each) => each === mode);
    if (approve === true && typeof plan === "string" && found) {
      return { approve, mode: found, plan };
    }
    const names = modes.join(", ");
    throw invalid(
      `A plan is answered with {"approve": true, "mode", "plan"}, the mode one of ${names}, or with {"approve": false, "reason"}.`,
    );
  }

  /** Commands that run in the foreground go on as jobs. */
  #moveToBackground(): Payload {
    const { jobs } = this.#options.harness().toolset;
    if (!jobs.hasMovable) throw invalid("No command runs that can go on in the background.");
    jobs.moveAll();
    return {};
  }

  async #findFiles({ query }: Payload): Promise<readonly string[]> {
    if (typeof query !== "string") throw invalid('"query" is a part of a path.');
    const { createWorkspaceFinder } = await import("../tui/editor/file-finder.ts");
    const { workspace } = this.#options.harness().toolset.env;
    this.#finder ??= createWorkspaceFinder(workspace, systemClock);
    return this.#finder.find(query, new AbortController().signal);
  }

  #readTree(): Payload {
    const { entries, leaf } = this.#requireSession();
    return { entries, leaf };
  }

  async #label({ entry, label }: Payload): Promise<Payload> {
    if (typeof entry !== "number" || (typeof label !== "string" && label !== null)) {
      throw invalid('"entry" is the number of an entry, "label" its name, or null.');
    }
    const body: EntryBody = { type: "label", entry, label };
    return { entry: await this.#requireSession().append(body) };
  }

  /** Goes on from an entry; null: from the beginning. */
  async #goTo({ entry }: Payload): Promise<HostAnswer> {
    const harness = this.#options.harness();
    if (entry !== null && typeof entry !== "number") throw invalid('"entry" is a number or null.');
    if (harness.agent.isRunning) {
      throw new ProtocolError("session_busy", "A run goes on: abort it, or wait.");
    }
    if (!canGoTo(harness)) throw invalid("This session has one branch alone.");
    await harness.goTo(entry);
    return { payload: {}, isRewritten: true };
  }

  #requireSession(): Session {
    const { session } = this.#options;
    if (session) return session;
    throw invalid("This session is not written down: it has no tree.");
  }
}

function canGoTo(harness: Harness): harness is AgentHarness {
  return "goTo" in harness;
}

function isAnswers(value: unknown): value is GivenAnswer[] {
  if (!Array.isArray(value)) return false;
  return value.every((answer: unknown) => {
    if (answer === null) return true;
    const { choice, label } = isRecord(answer) ? answer : {};
    return typeof choice === "number" && typeof label === "string";
  });
}

function readEntryId({ entry }: Payload): number {
  if (typeof entry === "number") return entry;
  throw invalid('"entry" is the number of an entry.');
}

function invalid(message: string): ProtocolError {
  return new ProtocolError("invalid_request", message);
}
