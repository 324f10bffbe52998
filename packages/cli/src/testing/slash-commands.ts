import {
  type Choice,
  type CommandPart,
  type CommandResult,
  findCommand,
  type OpenRequest,
  type Question,
} from "@gyre/coding/internal/conversation/command";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import type { Setup } from "../core/setup.ts";
import { builtinCommands } from "../slash-commands/builtin.ts";
import type { Copied, SlashCommand, SlashContext } from "../slash-commands/command-context.ts";
import { KeyBindings } from "../core/key-bindings.ts";
import { keyTable } from "../slash-commands/help.ts";
import { partsMarkdown } from "../text/markdown-text.ts";

export interface FakeViewOptions {
  harness: Harness;
  cwd: string;
  env: Readonly<Record<string, string | undefined>>;
  layers?: Setup["layers"];
  settings?: Setup["settings"];
  /** What a view or a program has beside the rest. */
  more?: Partial<SlashContext>;
  commands?: readonly SlashCommand[];
}

/** Runs slash commands as a view does, and notes what they want done. */
export class FakeView {
  /** What each step showed, as Markdown. */
  readonly output: string[] = [];
  readonly warned: string[] = [];
  readonly edited: string[] = [];
  readonly sent: string[] = [];
  readonly opened: OpenRequest[] = [];
  readonly copied: string[] = [];
  readonly questions: Question<unknown>[] = [];
  /** Sessions whose tree was shown. */
  readonly trees: string[] = [];
  /** What is chosen in the tree; undefined: it is left. */
  place: OpenRequest | undefined;
  readonly stop = new AbortController();
  quits = 0;
  /** What is typed where a secret is asked for; undefined: the question is left. */
  secret: string | undefined;
  /** The labels, the beginnings of some, or the places in the list, to choose; without one a question is left. */
  answers: (string | { at: number })[] = [];
  readonly #options: FakeViewOptions;

  constructor(options: FakeViewOptions) {
    this.#options = options;
  }

  get harness(): Harness {
    return this.#options.harness;
  }

  get commands(): readonly SlashCommand[] {
    return this.#options.commands ?? builtinCommands;
  }

  get context(): SlashContext {
    const { cwd, env, harness, layers, more, settings } = this.#options;
    return {
      harness,
      env,
      signal: this.stop.signal,
      setup: { cwd, ...(settings && { settings }), ...(layers && { layers }) },
      commands: () => this.commands,
      help: [keyTable(new KeyBindings())],
      models: () => Promise.resolve([]),
      show: (...parts) => this.#show(parts),
      choose: (question) => Promise.resolve(this.#choose(question)),
      chooseEntry: () => {
        this.trees.push(harness.session?.header.id ?? "");
        return Promise.resolve(this.place);
      },
      askSecret: () => Promise.resolve(this.secret),
      copy: (text): Promise<Copied> => {
        this.copied.push(text);
        return Promise.resolve({ terminal: true });
      },
      ...more,
    };
  }

  /** `name rest`. */
  async run(line: string): Promise<void> {
    const [name = "", ...rest] = line.split(" ");
    const command = findCommand(name, this.commands);
    if (!command) throw new Error(`There is no command ${name}.`);
    const result = await command.run(rest.join(" "), this.context);
    if (typeof result === "string") this.output.push(result);
    else if (result) this.#take(result);
  }

  #take({ edit, open, prompt, quit, show }: CommandResult): void {
    if (open) this.opened.push(open);
    if (show) this.#show(show);
    if (edit !== undefined) this.edited.push(edit);
    if (prompt !== undefined) this.sent.push(prompt);
    if (quit) this.quits++;
  }

  #show(parts: readonly CommandPart[]): void {
    const texts = parts.filter(({ type }) => type !== "warning");
    if (texts.length > 0) this.output.push(partsMarkdown(texts, 80));
    for (const part of parts) if (part.type === "warning") this.warned.push(part.text);
  }

  #choose<T>(question: Question<T>): T | undefined {
    this.questions.push(question);
    const wanted = this.answers.shift();
    if (typeof wanted === "object") return question.choices[wanted.at]?.value;
    const found = (choice: Choice<T>): boolean =>
      wanted !== undefined && choice.label.startsWith(wanted);
    return question.choices.find(found)?.value;
  }
}
