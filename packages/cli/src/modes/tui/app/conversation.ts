import { basename } from "node:path";
import { type Clock, errorMessage, THINKING_LEVELS } from "@gyre/ai";
import {
  type ApprovalAnswer,
  type ApprovalRequest,
  type PermissionMode,
  rulesFor,
} from "@gyre/tools";
import type {
  CommandPart,
  OpenRequest,
  Question,
} from "@gyre/coding/internal/conversation/command";
import { recommendedThinking } from "@gyre/coding/internal/models/recommended-thinking";
import { ConversationController } from "@gyre/coding/internal/conversation/controller";
import type { ConversationItem, ConversationView } from "@gyre/coding/internal/conversation/view";
import type { Io } from "../../../core/io.ts";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import type { PlanAnswer } from "@gyre/coding/internal/conversation/plan";
import type { Setup } from "../../../core/setup.ts";
import {
  createSlashContext,
  type SlashCommand,
  type SlashContext,
} from "../../../slash-commands/command-context.ts";
import { keyTable } from "../../../slash-commands/help.ts";
import { partsMarkdown } from "../../../text/markdown-text.ts";
import { assumeMode } from "@gyre/coding/internal/text/choices";
import { oneLine } from "@gyre/coding/internal/text/shown-text";
import { noticeOfJob } from "@gyre/coding/internal/conversation/job-notice";
import { readBranch } from "./branch.ts";
import type { FooterFacts } from "./footer.ts";
import { formatKey, type Key } from "../terminal/key.ts";
import { createErrorBlock } from "../transcript/message-blocks.ts";
import { fitRow, type Row, row } from "../terminal/row.ts";
import { Spinner } from "./spinner.ts";
import { todoRows, waitingRows, workingRow } from "./status.ts";
import type { Theme } from "../terminal/theme.ts";
import { Title, type TitleState } from "../terminal/title.ts";
import type { Transcript } from "../transcript/transcript.ts";
import type { Window } from "./window.ts";

/** A second Esc within this time opens the tree; a second Ctrl-C leaves. */
const TWICE_MS = 600;
const LEAVE_MS = 2_000;
/** After a longer run the user is notified. */
const NOTIFY_AFTER_MS = 5_000;
const BELL = "\x07";
const EDITING_PLAN =
  "Edit the plan: Enter is the end, Esc leaves it as it was, Ctrl+G opens an editor.";
/** The modes that Shift+Tab selects one after the other. */
const MODES: readonly PermissionMode[] = ["ask", "auto-edit", "auto", "plan"];

export interface TerminalConversationOptions {
  window: Window;
  transcript: Transcript;
  theme: Theme;
  clock: Clock;
  io: Io;
  setup: () => Setup;
  commands: () => readonly SlashCommand[];
  reopen: (request: OpenRequest) => Promise<void>;
  quit: () => void;
  editorText: () => string;
  /** Adds a cleared text to the earlier prompts. */
  remember: (text: string) => void;
}

/** Shows the conversation in the transcript of a terminal, and asks in panels. */
export class TerminalConversation implements ConversationView {
  readonly stopKey = "Esc";
  readonly controller: ConversationController<Harness, SlashContext>;
  readonly #options: TerminalConversationOptions;
  readonly #spinner: Spinner;
  #pressed: { name: string; at: number } = { name: "", at: 0 };
  /** When Esc interrupted something. */
  #interruptedAt = Number.NEGATIVE_INFINITY;
  #hint: string | undefined;
  readonly #title: Title;
  /** The branch of the repository, as it was when something began or ended. */
  #branch: string | undefined;
  /** The agent whose jobs are shown. */
  #watched: Harness | undefined;
  /** Takes the plan that the user edits; undefined: they left it as it was. */
  #editedPlan: ((plan: string | undefined) => void) | undefined;

  constructor(options: TerminalConversationOptions) {
    this.#options = options;
    const { clock, io, transcript, window } = options;
    this.#title = new Title((sequence) => window.control(sequence), io.env);
    this.#spinner = new Spinner({
      clock,
      draw: () => window.draw(),
      isCalm: () => transcript.isStreaming || window.hasPanel,
    });
    this.controller = new ConversationController<Harness, SlashContext>({
      ...options,
      view: this,
      env: io.env,
      commandContext: (harness, signal) => this.#commandContext(harness, signal),
    });
  }

  /** The rows above the editor: the activity, queued messages, a hint. */
  status(columns: number): readonly Row[] {
    const { clock, theme, transcript, window } = this.#options;
    const { isWorking, task, waiting } = this.controller;
    const rows: Row[] = todoRows(
      this.controller.harness?.toolset.todos.items ?? [],
      columns,
      theme,
    );
    const isAsking = window.hasPanel && !isWorking;
    if (task && !isAsking) {
      const elapsedMs = clock.now() - task.startedAt;
      const activity = task.name ?? (transcript.activity || "working");
      const countdown = task.name === undefined ? transcript.countdown : undefined;
      const { tick } = this.#spinner;
      rows.push(workingRow({ activity, countdown, elapsedMs, tick }, columns, theme));
    }
    rows.push(...waitingRows(waiting, columns, theme));
    const hint = this.#editedPlan ? EDITING_PLAN : this.#hint;
    if (hint !== undefined) rows.push(fitRow([{ text: hint, style: theme.dim }], columns));
    return rows;
  }

  get facts(): FooterFacts {
    const { contextTokens, harness } = this.controller;
    const { settings } = this.#options.setup();
    return {
      ...(harness && { model: harness.model, compactAt: harness.compactAt }),
      ...(harness && { usualThinking: recommendedThinking(harness.model) }),
      thinking: harness?.agent.state.thinkingLevel ?? settings.thinking ?? "off",
      mode: harness?.mode ?? settings.mode ?? assumeMode(settings),
      branch: this.#branch,
      jobs: harness?.toolset.jobs.list().filter(({ end }) => !end).length ?? 0,
      usage: harness?.spending.session ?? {},
      ...(contextTokens !== undefined && { contextTokens }),
    };
  }

  /** Sends the typed text. */
  submit(text: string, followUp: boolean): void {
    this.#hint = undefined;
    if (this.#editedPlan) return this.#editedPlan(text);
    void this.controller.submit(text, followUp);
  }

  /** Whether a key is for the program although the editor has a use for it. */
  claims(key: Key): boolean {
    return formatKey(key) === "ctrl+b" && this.controller.harness?.toolset.jobs.hasMovable === true;
  }

  /** Called for typed text: the next key does not count as the second of two. */
  typed(): void {
    this.#pressed = { name: "", at: 0 };
    this.#hint = undefined;
  }

  /** A key that the editor does not handle. */
  key(key: Key): void {
    const now = this.#options.clock.now();
    const name = formatKey(key);
    const since = this.#pressed.name === name ? now - this.#pressed.at : Number.POSITIVE_INFINITY;
    this.#pressed = { name, at: now };
    const isHinted = this.#hint !== undefined;
    this.#hint = undefined;
    switch (name) {
      case "escape":
        if (this.#editedPlan) return this.#editedPlan(undefined);
        return this.#escape(since < TWICE_MS, now);
      case "ctrl+c":
        return this.#clearOrLeave(isHinted && since < LEAVE_MS);
      case "ctrl+d":
        return this.#options.quit();
      case "alt+up":
        return void this.controller.takeBack();
      case "ctrl+z":
        return void this.#suspend();
      case "ctrl+g":
        return void this.#editOutside();
      case "ctrl+b":
        return this.#moveToBackground();
      case "ctrl+o":
        return this.#options.transcript.expand();
      case "shift+tab":
        return this.#changeSetting((harness) => harness.setMode(findNext(MODES, harness.mode)));
      case "ctrl+t":
        return this.#changeSetting((harness) =>
          harness.setThinking(findNext(THINKING_LEVELS, harness.agent.state.thinkingLevel)),
        );
      default:
    }
  }

  show(item: ConversationItem): void {
    const { transcript, window } = this.#options;
    switch (item.type) {
      case "event":
        transcript.handle(item.event);
        return window.drawSoon();
      case "user_command_start":
        return transcript.startUserCommand(item);
      case "user_command_output":
        return transcript.updateUserCommand(item.output);
      case "user_command_end":
        return transcript.endUserCommand(item.message);
      case "parts":
        return this.#showParts(item.parts);
      case "note":
        return transcript.note(item.text);
      case "warning":
        return window.warn(item.text);
      case "error":
        return this.#showError(item.text);
      case "rejected":
        this.giveBack([item.text]);
        return this.#showError(item.reason);
      case "end":
        if (item.durationMs > NOTIFY_AFTER_MS) this.#notify("gyre is done");
        return undefined;
      // The transcript and the rows above the editor show these.
      case "prompt":
      case "queued":
      case "resumed":
        return undefined;
    }
  }

  async ask(request: ApprovalRequest, cwd: string): Promise<ApprovalAnswer | undefined> {
    this.#notify("gyre asks for permission");
    const { clock, theme, transcript, window } = this.#options;
    const { PermissionPanel } = await import("../panels/permission.ts");
    const { callId, signal } = request;
    if (signal?.aborted) return undefined;
    const rules = await rulesFor(request);
    const now = (): number => clock.now();
    const isKept = this.controller.harness?.keepsRules ?? false;
    const options = { theme, cwd, now, isKept, ...(rules && { rules }) };
    const panel = new PermissionPanel(request, options);
    // An aborted call needs no answer.
    const withdraw = (): void => window.withdraw(panel);
    signal?.addEventListener("abort", withdraw, { once: true });
    const answered = transcript.asks(callId);
    this.#showTitle("asking");
    try {
      return await window.open(panel);
    } finally {
      this.#showTitle("working");
      answered();
      signal?.removeEventListener("abort", withdraw);
    }
  }

  async reviewPlan(plan: string, signal: AbortSignal): Promise<PlanAnswer | undefined> {
    this.#notify("gyre has a plan");
    const { window } = this.#options;
    const { reviewPlan } = await import("../panels/plan.ts");
    return reviewPlan(plan, signal, {
      say: (markdown) => window.say(markdown),
      open: (panel) => window.open(panel),
      withdraw: (panel) => window.withdraw(panel),
      edit: (text) => this.#editPlan(text, signal),
      theme: this.#options.theme,
    });
  }

  /** Has the user edit a plan in the place of a prompt. */
  async #editPlan(plan: string, signal: AbortSignal): Promise<string | undefined> {
    const { editorText, window } = this.#options;
    const typed = editorText();
    window.edit(plan);
    const edited = await new Promise<string | undefined>((settle) => {
      this.#editedPlan = settle;
      signal.addEventListener("abort", () => settle(undefined), { once: true });
    });
    this.#editedPlan = undefined;
    window.edit(typed);
    return edited;
  }

  edit(text: string): void {
    this.#options.window.edit(text);
  }

  giveBack(texts: readonly string[]): void {
    const typed = this.#options.editorText();
    this.#options.window.edit([...texts, ...(typed === "" ? [] : [typed])].join("\n\n"));
  }

  update(): void {
    const { harness } = this.controller;
    if (harness && harness !== this.#watched) this.#watch(harness);
    this.#branch = harness && readBranch(harness.toolset.env.workspace.root);
    this.#showTitle(this.controller.isWorking ? "working" : "idle");
    if (this.controller.task) this.#spinner.start();
    else this.#spinner.stop();
    this.#options.window.draw();
  }

  ready(): void {
    this.#options.window.draw();
  }

  async close(): Promise<void> {
    this.#title.end();
    this.#spinner.stop();
    await this.controller.close();
  }

  #commandContext(harness: Harness, signal: AbortSignal): SlashContext {
    const { theme, window } = this.#options;
    return createSlashContext(this.#options, {
      signal,
      harness,
      help: [keyTable()],
      choose: (question) => window.choose(this.#toPanel(question)),
      show: (...parts) => this.#showParts(parts),
      async chooseEntry(session) {
        const { TreePanel } = await import("../panels/tree.ts");
        return window.open(new TreePanel({ session, theme, changed: () => window.draw() }));
      },
      async askSecret(title) {
        const { TextPanel } = await import("../panels/text.ts");
        return window.open(new TextPanel({ title, secret: true }, theme));
      },
      control: (sequence) => !signal.aborted && window.control(sequence),
    });
  }

  #toPanel<T>({ about = [], ...question }: Question<T>) {
    const { columns } = this.#options.window;
    return { ...question, about: about.map((line) => fitRow(row(oneLine(line)), columns)) };
  }

  #showParts(parts: readonly CommandPart[]): void {
    const { window } = this.#options;
    const texts = parts.filter(({ type }) => type !== "warning");
    if (texts.length > 0) window.say(partsMarkdown(texts, window.columns));
    for (const part of parts) if (part.type === "warning") window.warn(part.text);
  }

  #escape(isSecond: boolean, now: number): void {
    // A repeated Esc to interrupt does not open the tree.
    const isHurry = now - this.#interruptedAt < TWICE_MS;
    const { isBusy } = this.controller;
    if (isBusy || isHurry) this.#interruptedAt = now;
    if (isBusy) this.controller.interrupt();
    else if (isSecond && !isHurry) void this.controller.runNamed("tree");
  }

  /** Shows jobs that start and end. */
  #watch(harness: Harness): void {
    this.#watched = harness;
    harness.toolset.jobs.onChange(({ job, isNews }) => {
      if (isNews && this.#watched === harness) {
        this.#options.transcript.note(noticeOfJob(job).summary);
        this.#notify("a job of gyre has ended");
      }
      this.#options.window.drawSoon();
    });
  }

  #moveToBackground(): void {
    try {
      this.controller.harness?.toolset.jobs.moveAll();
    } catch (error) {
      this.#showError(error);
    }
  }

  /** Ctrl-C: leaves a panel, else clears the editor, else interrupts, else (twice) quits. */
  #clearOrLeave(isSecond: boolean): void {
    const { editorText, quit, remember, window } = this.#options;
    if (window.hasPanel) return window.leavePanel();
    const typed = editorText();
    if (typed !== "") {
      remember(typed.trimEnd());
      return window.edit("");
    }
    if (this.controller.canInterrupt) return void this.controller.interrupt();
    if (isSecond) return quit();
    this.#hint = "Ctrl-C again leaves.";
  }

  #changeSetting(change: (harness: Harness) => Promise<void>): void {
    const { harness } = this.controller;
    if (!harness) return;
    change(harness).then(
      () => this.#options.window.draw(),
      (error: unknown) => this.#showError(error),
    );
  }

  async #suspend(): Promise<void> {
    const { hasShell, suspend } = await import("../terminal/job-control.ts");
    if (hasShell()) return suspend();
    this.#hint = "There is no shell to go to. Ctrl+_ undoes.";
    this.#options.window.draw();
  }

  async #editOutside(): Promise<void> {
    const { editorText, io, window } = this.#options;
    try {
      const { editExternally: editOutside } = await import("../editor/external-editor.ts");
      const text = await window.suspend(() => editOutside(editorText(), io.env));
      if (text !== undefined) window.edit(text);
    } catch (error) {
      this.#showError(error);
    }
  }

  #showTitle(state: TitleState): void {
    const root = this.controller.harness?.toolset.env.workspace.root;
    if (root !== undefined) this.#title.show(state, basename(root));
  }

  #notify(text: string): void {
    const { setup, window } = this.#options;
    const { notify = "off" } = setup().settings;
    if (notify === "off") return;
    const notice = notify === "desktop" ? `\x1b]9;${text}${BELL}` : "";
    window.control(notice + BELL);
  }

  #showError(error: unknown): void {
    const { theme, window } = this.#options;
    window.show(createErrorBlock(theme, errorMessage(error)));
  }
}

/** The item after the current one; the first follows the last. */
function findNext<T>(all: readonly T[], current: T): T {
  return all[(all.indexOf(current) + 1) % all.length] ?? current;
}
