import { basename } from "node:path";
import { type Clock, errorMessage, THINKING_LEVELS } from "@gyre/ai";
import {
  type ApprovalAnswer,
  type ApprovalRequest,
  type PermissionMode,
  rulesFor,
} from "@gyre/tools";
import type {
  Command,
  CommandContext,
  CommandPart,
  OpenRequest,
  Question,
} from "@gyre/coding/internal/conversation/command";
import { ConversationController } from "@gyre/coding/internal/conversation/controller";
import type {
  ConversationItem,
  ConversationView,
  ReadText,
} from "@gyre/coding/internal/conversation/view";
import type { McpAnswer, McpQuestion } from "@gyre/mcp";
import type { Io } from "../../../core/io.ts";
import type { ShownAgent } from "@gyre/coding/internal/conversation/types";
import type { PlanAnswer } from "@gyre/coding/internal/conversation/plan";
import type { Setup } from "../../../core/setup.ts";
import type { ViewContext } from "../../../slash-commands/command-context.ts";
import { findInstead } from "../../../slash-commands/familiar/instead.ts";
import { keyTable } from "../../../slash-commands/help.ts";
import { elapsed } from "../../../text/tool-text.ts";
import { partsMarkdown } from "../../../text/markdown-text.ts";
import { assumeMode } from "@gyre/coding/internal/text/choices";
import { oneLine } from "@gyre/coding/internal/text/shown-text";
import { noticeOfJob } from "@gyre/coding/internal/conversation/job-notice";
import { readBranch } from "./branch.ts";
import type { ClipboardPaster } from "./clipboard-paster.ts";
import type { Editor } from "../editor/editor.ts";
import type { FooterFacts } from "../status-line/footer.ts";
import { formatKey, type Key } from "../terminal/key.ts";
import type { KeyBindings } from "../../../core/key-bindings.ts";
import { createErrorBlock } from "../transcript/message-blocks.ts";
import { fitRow, type Row, row } from "../terminal/row.ts";
import { Spinner } from "./spinner.ts";
import { connectionText, stashRow, todoRows, waitingRows, workingRow } from "./status.ts";
import type { Theme } from "../terminal/theme.ts";
import { Title, type TitleState } from "../terminal/title.ts";
import type { Transcript } from "../transcript/transcript.ts";
import type { Window } from "./window.ts";

/** A second Esc within this time opens the tree; a second Ctrl-C leaves. */
const TWICE_MS = 600;
const LEAVE_MS = 2_000;
/** After a longer run the user is notified, unless a setting says otherwise. */
const NOTIFY_AFTER_S = 5;
const MS_PER_SECOND = 1_000;
/** The modes that Shift+Tab selects one after the other. */
const MODES: readonly PermissionMode[] = ["ask", "auto-edit", "auto", "plan"];

export interface TerminalConversationOptions {
  window: Window;
  transcript: Transcript;
  theme: Theme;
  clock: Clock;
  io: Io;
  setup: () => Setup;
  commands: () => readonly Command[];
  /** What slash commands get. */
  createContext: (own: ViewContext) => CommandContext;
  reopen: (request: OpenRequest) => Promise<void>;
  quit: () => void;
  editorText: () => string;
  /** Where the clipboard is pasted, and prompts are put aside. */
  editor: Pick<Editor, "attach" | "take" | "stashed" | "restoreStash" | "mode">;
  /** Which key does what. */
  keys: KeyBindings;
  /** Has keys work as in vim, or as before. */
  setVim: (isOn: boolean) => Promise<void>;
  /** Uses the colors of a theme. Rejects where there is none of this name. */
  setTheme: (name: string) => Promise<void>;
  /** Adds a cleared text to the earlier prompts. */
  remember: (text: string) => void;
}

/** Shows the conversation in the transcript of a terminal, and asks in panels. */
export class TerminalConversation implements ConversationView {
  readonly controller: ConversationController<ShownAgent>;
  readonly #options: TerminalConversationOptions;
  readonly #spinner: Spinner;
  #pressed: { name: string; at: number } = { name: "", at: 0 };
  /** When Esc interrupted something. */
  #interruptedAt = Number.NEGATIVE_INFINITY;
  #hint: string | undefined;
  readonly #title: Title;
  #paster: ClipboardPaster | undefined;
  /** The branch of the repository, as it was when something began or ended. */
  #branch: string | undefined;
  /** The agent whose jobs are shown. */
  #watched: ShownAgent | undefined;
  /** Takes the plan that the user edits; undefined: they left it as it was. */
  #editedPlan: ((plan: string | undefined) => void) | undefined;
  /** What a slash command shows while it is at work. */
  #commandRows: (() => readonly string[]) | undefined;

  constructor(options: TerminalConversationOptions) {
    this.#options = options;
    const { clock, io, transcript, window } = options;
    this.#title = new Title((sequence) => window.control(sequence), io.env);
    this.#spinner = new Spinner({
      clock,
      draw: () => window.draw(),
      isCalm: () => transcript.isStreaming || window.hasPanel,
    });
    this.controller = new ConversationController<ShownAgent>({
      ...options,
      view: this,
      env: io.env,
      commandContext: (_harness, signal) => this.#commandContext(signal),
      findInstead,
    });
  }

  /** In the insert mode of vim the first Esc leaves that. */
  get stopKey(): string {
    const { editor, keys } = this.#options;
    const key = keys.label("interrupt") ?? "Ctrl+C";
    return key === "Esc" && editor.mode?.takesEscape ? "Esc Esc" : key;
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
      const elapsedMs = clock.now() - task.startedAt - transcript.answerMs;
      const activity = task.name ?? (transcript.activity || "working");
      const countdown = task.name === undefined ? transcript.countdown : undefined;
      const { tick } = this.#spinner;
      rows.push(
        workingRow({ activity, countdown, elapsedMs, tick, stopKey: this.stopKey }, columns, theme),
        ...(this.#commandRows?.() ?? []).map((text) => fitRow(row(oneLine(text)), columns)),
      );
    }
    const connection = this.#connectionText;
    if (connection !== undefined) rows.push(fitRow(row(connection, theme.warning), columns));
    const { keys } = this.#options;
    rows.push(...waitingRows(waiting, columns, theme, keys.label("takeBack")));
    const { stashed } = this.#options.editor;
    if (stashed !== undefined) rows.push(stashRow(stashed, columns, theme, keys.label("stash")));
    const hint = this.#editedPlan ? this.#planHint : this.#hint;
    if (hint !== undefined) rows.push(fitRow([{ text: hint, style: theme.dim }], columns));
    return rows;
  }

  /** That the connection to an agent elsewhere is lost; undefined where it is there. */
  get #connectionText(): string | undefined {
    const connection = this.controller.harness?.remote?.connection;
    return connection && connectionText(connection, this.#options.clock.now());
  }

  get #planHint(): string {
    const { keys } = this.#options;
    const parts = [
      [keys.label("submit"), "is the end"],
      [this.stopKey, "leaves it as it was"],
      [keys.label("externalEditor"), "opens an editor"],
    ].filter(([key]) => key !== undefined);
    return `Edit the plan: ${parts.map((part) => part.join(" ")).join(", ")}.`;
  }

  get facts(): FooterFacts {
    const { contextTokens, harness } = this.controller;
    const { settings } = this.#options.setup();
    return {
      ...(harness && { model: harness.model, compactAt: harness.compactAt }),
      ...(harness && { usualThinking: harness.usualThinking }),
      thinking: harness?.agent.state.thinkingLevel ?? settings.thinking ?? "off",
      mode: harness?.mode ?? settings.mode ?? assumeMode(settings),
      keyMode: this.#options.editor.mode?.label,
      branch: this.#branch,
      folder: harness?.toolset.env.workspace.root,
      session: harness?.session?.header.id,
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
    const action = this.#options.keys.findForProgram(formatKey(key));
    return action === "background" && this.controller.harness?.toolset.jobs.hasMovable === true;
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
    if (name === "ctrl+c") return this.#clearOrLeave(isHinted && since < LEAVE_MS);
    switch (this.#options.keys.findForProgram(name)) {
      case "interrupt":
        if (this.#editedPlan) return this.#editedPlan(undefined);
        return this.#escape(since < TWICE_MS, now);
      case "tree":
        return void this.controller.runNamed("tree");
      case "exit":
        return this.#options.quit();
      case "takeBack":
        return void this.controller.takeBack();
      case "suspend":
        return void this.#suspend();
      case "externalEditor":
        return void this.#editOutside();
      case "paste":
        return void this.#paste();
      case "background":
        return this.#moveToBackground();
      case "expand":
        return this.#options.transcript.expand();
      case "nextMode":
        return this.#changeSetting((harness) => {
          const modes = MODES.filter((mode) => harness.modes?.includes(mode) ?? true);
          return harness.setMode(findNext(modes, harness.mode));
        });
      case "nextThinking":
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
        // The command says the same at its end.
        if (item.event.type === "compaction" && this.controller.task?.name === "/compact") {
          return undefined;
        }
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
        // What was typed meanwhile is another text. Both are among the earlier prompts once they were sent.
        if (this.#options.editorText() === "") {
          window.offer(item.text);
          this.#hint = "What you type replaces it; an arrow key has it stay.";
        }
        return this.#showError(item.reason);
      case "end":
        if (item.outcome) {
          const { durationMs, outcome } = item;
          transcript.showEnd({ durationMs, cost: outcome.usage.cost?.total });
        }
        transcript.resetCounts();
        return this.#notifyOfEnd(item.durationMs);
      case "expanded":
        return transcript.expectPrompt(item.text, item.typed);
      // The transcript and the rows above the editor show these.
      case "prompt":
      case "queued":
        return this.#options.editor.restoreStash();
      case "resumed":
        return undefined;
    }
  }

  async ask(
    request: ApprovalRequest,
    cwd: string,
    readText?: ReadText,
    asker?: string,
  ): Promise<ApprovalAnswer | undefined> {
    this.#notify("asks for permission");
    const { clock, theme, transcript, window } = this.#options;
    const { PermissionPanel } = await import("../panels/permission.ts");
    const { callId, signal } = request;
    if (signal?.aborted) return undefined;
    const rules = await rulesFor(request);
    const now = (): number => clock.now();
    const isKept = this.controller.harness?.keepsRules ?? false;
    const texts = readText && { readText };
    const options = { theme, cwd, now, isKept, asker, ...(rules && { rules }), ...texts };
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
    this.#notify("has a plan");
    const { transcript, window } = this.#options;
    const { reviewPlan } = await import("../panels/plan.ts");
    const answered = transcript.asks("plan");
    try {
      return await reviewPlan(plan, signal, {
        say: (markdown) => window.say(markdown),
        open: (panel) => window.open(panel),
        withdraw: (panel) => window.withdraw(panel),
        edit: (text) => this.#editPlan(text, signal),
        theme: this.#options.theme,
        modes: this.controller.harness?.modes ?? MODES,
      });
    } finally {
      answered();
    }
  }

  async answerServer(question: McpQuestion, signal: AbortSignal): Promise<McpAnswer> {
    this.#notify("asks something");
    const { io, theme, transcript, window } = this.#options;
    const { env } = io;
    const [{ answerInPanels }, { hasBrowser, openBrowser }] = await Promise.all([
      import("../panels/server-question.ts"),
      import("../../../core/open-browser.ts"),
    ]);
    const answered = transcript.asks("mcp");
    this.#showTitle("asking");
    try {
      return await answerInPanels(question, signal, {
        theme,
        open: (panel) => window.open(panel),
        withdraw: (panel) => window.withdraw(panel),
        ...(hasBrowser(env) && { openPage: (url) => void openBrowser(new URL(url), env) }),
      });
    } finally {
      this.#showTitle("working");
      answered();
    }
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
    this.#branch = harness && findBranch(harness);
    this.#showTitle(this.controller.isWorking ? "working" : "idle");
    if (this.controller.task || this.#connectionText !== undefined) this.#spinner.start();
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
    await this.#paster?.close();
  }

  #commandContext(signal: AbortSignal): CommandContext {
    const { theme, window } = this.#options;
    return this.#options.createContext({
      signal,
      help: [keyTable(this.#options.keys)],
      toggleVim: () => this.#toggleVim(),
      setTheme: this.#options.setTheme,
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
      askFor: async (request, { name, folder }) => this.ask(request, folder, undefined, name),
      showRows: (rows) => {
        this.#commandRows = rows;
        return () => {
          this.#commandRows = undefined;
        };
      },
      control: (sequence) => !signal.aborted && window.control(sequence),
    });
  }

  async #toggleVim(): Promise<boolean> {
    const { editor, setVim } = this.#options;
    const isOn = editor.mode === undefined;
    await setVim(isOn);
    return isOn;
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
  #watch(harness: ShownAgent): void {
    this.#watched = harness;
    harness.toolset.jobs.onChange(({ job, isNews }) => {
      if (isNews && this.#watched === harness) {
        this.#options.transcript.note(noticeOfJob(job).summary);
        this.#notify("a job has ended");
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

  #changeSetting(change: (harness: ShownAgent) => Promise<void>): void {
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
    const undo = this.#options.keys.label("undo");
    this.#hint = `There is no shell to go to.${undo === undefined ? "" : ` ${undo} undoes.`}`;
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

  async #paste(): Promise<void> {
    const { clock, editor, io, window } = this.#options;
    try {
      const { ClipboardPaster } = await import("./clipboard-paster.ts");
      this.#paster ??= new ClipboardPaster({
        env: io.env,
        clock,
        editor,
        ask: (question, onAnswer) => window.ask(question, onAnswer),
      });
      this.#hint = await this.#paster.paste();
      window.draw();
    } catch (error) {
      this.#showError(error);
    }
  }

  #showTitle(state: TitleState): void {
    const root = this.controller.harness?.toolset.env.workspace.root;
    if (root !== undefined) this.#title.show(state, basename(root));
  }

  /** A short run ends in sight, unless the terminal has lost the focus. */
  #notifyOfEnd(durationMs: number): void {
    const { setup, window } = this.#options;
    const { notifyAfter = NOTIFY_AFTER_S } = setup().settings;
    const isLong = durationMs > notifyAfter * MS_PER_SECOND;
    if (isLong || window.isFocused === false) this.#notify(`done in ${elapsed(durationMs)}`);
  }

  #notify(text: string): void {
    const { io, setup, window } = this.#options;
    const { notify = "off" } = setup().settings;
    if (notify === "off") return;
    // What has the focus needs no window of its own.
    const isShown = notify === "desktop" && window.isFocused !== true;
    const title = `gyre · ${basename(this.controller.harness?.toolset.env.workspace.root ?? "")}`;
    import("../terminal/notification.ts").then(
      ({ formatNotification }) =>
        window.control(formatNotification(io.env, isShown ? { title, text } : undefined)),
      (error: unknown) => this.#showError(error),
    );
  }

  #showError(error: unknown): void {
    const { theme, window } = this.#options;
    window.show(createErrorBlock(theme, errorMessage(error)));
  }
}

/** Of the repository that the agent works in, where it can be known. */
function findBranch({ remote, toolset }: ShownAgent): string | undefined {
  return remote ? remote.branch : readBranch(toolset.env.workspace.root);
}

/** The item after the current one; the first follows the last. */
function findNext<T>(all: readonly T[], current: T): T {
  return all[(all.indexOf(current) + 1) % all.length] ?? current;
}
