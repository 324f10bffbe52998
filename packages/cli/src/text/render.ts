import type { AgentEvent, AgentToolResult } from "@gyre/agent";
import type { AssistantMessageEvent } from "@gyre/ai";
import { sanitise } from "@gyre/tools";
import { plainText } from "./plain-text.ts";
import { fit, type Style, type Terminal, wrap, Wrapper } from "../core/terminal.ts";
import {
  aboutOf,
  detailsOf,
  duration,
  exitOf,
  linesOf,
  listedName,
  resultText,
  roundTimes,
  shownText,
  tellingLines,
  verdictOf,
} from "./tool-text.ts";

export { aboutOf, duration, MAX_SHOWN_LINES, shownText } from "./tool-text.ts";

const INDENT = "  ";
const DEEPER = "    ";
const CLEAR_LINE = "\r\x1b[2K";

interface DiffLine {
  sign: "+" | "-";
  text: string;
}

/** What a person is shown of a result. */
type ToolView =
  | { type: "summary"; text: string }
  | { type: "diff"; lines: DiffLine[] }
  | { type: "output"; text: string; exit?: string };

type FallbackEvent = Extract<AgentEvent, { type: "fallback" }>;

interface RunningCall {
  name: string;
  about: string;
  lastLine: string;
}

/**
 * Writes a run to a terminal as it happens: pass it each event, in order. A thought is
 * dim, a tool call is a line with its result below. While a call runs it has the last
 * line of a live terminal; elsewhere it appears when it has ended. Whatever a tool or a
 * model says is stripped of what a terminal would obey.
 */
export class Renderer {
  readonly #terminal: Terminal;
  readonly #running = new Map<string, RunningCall>();
  #block: { wrapper: Wrapper; paint: (text: string) => string } | undefined;
  #liveLine = false;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  handle(event: AgentEvent): void {
    switch (event.type) {
      case "message_start":
        if (event.message.role === "user") this.#prompt(event.message.content);
        break;
      case "message_update":
        this.#update(event.assistantMessageEvent);
        break;
      case "message_end":
        this.#closeBlock();
        if (event.message.role === "assistant" && event.message.stopReason === "error") {
          this.paragraph(event.message.errorMessage ?? "The model failed.", this.#style.red);
        }
        break;
      case "tool_execution_start":
        this.#running.set(event.toolCallId, {
          name: event.toolName,
          about: aboutOf(event.args),
          lastLine: "",
        });
        this.#drawRunning();
        break;
      case "tool_execution_update":
        this.#noteOutput(event.toolCallId, event.partialResult);
        this.#drawRunning();
        break;
      case "tool_execution_end":
        this.#call(event.toolCallId, event);
        this.#drawRunning();
        break;
      case "fallback":
        this.paragraph(fallbackText(event), this.#style.dim);
        break;
      default:
        break;
    }
  }

  /** A wrapped paragraph, with an empty line before it. */
  paragraph(text: string, paint: (text: string) => string = same): void {
    this.#closeBlock();
    this.#line("");
    this.#line(paint(wrap(shownText(text), this.#textColumns, INDENT)));
  }

  /** A line below the paragraph, whole: a path that was broken up could not be copied. */
  line(text: string, paint: (text: string) => string = same): void {
    this.#line(text && INDENT + paint(shownText(text)));
  }

  get #style(): Style {
    return this.#terminal.style;
  }

  get #textColumns(): number {
    return this.#terminal.columns - INDENT.length;
  }

  #prompt(content: string | { type: string; text?: string }[]): void {
    const text =
      typeof content === "string" ? content : content.map((block) => block.text ?? "").join("");
    const wrapped = wrap(shownText(text), this.#textColumns, DEEPER).trimStart();
    this.#line("");
    this.#line(`${INDENT}${this.#style.cyan("›")} ${this.#style.bold(wrapped)}`);
  }

  #update(event: AssistantMessageEvent): void {
    switch (event.type) {
      case "text_start":
        this.#openBlock(codeHighlighter(this.#style.cyan));
        break;
      case "thinking_start":
        this.#openBlock(this.#style.dim);
        break;
      case "text_delta":
      case "thinking_delta":
        this.#write(this.#block?.wrapper.feed(plainText(event.delta)));
        break;
      case "text_end":
      case "thinking_end":
        this.#closeBlock();
        break;
      default:
        break;
    }
  }

  #openBlock(paint: (text: string) => string): void {
    this.#closeBlock();
    this.#line("");
    this.#block = { wrapper: new Wrapper(this.#textColumns, INDENT), paint };
  }

  #closeBlock(): void {
    if (!this.#block) return;
    this.#write(this.#block.wrapper.end());
    this.#block = undefined;
    this.#line("");
  }

  #write(text: string | undefined): void {
    // Here and not before: a piece may end in the middle of a character, a word does not.
    if (text && this.#block) this.#terminal.write(this.#block.paint(sanitise(text)));
  }

  #line(text: string): void {
    this.#clearLiveLine();
    this.#terminal.write(`${text}\n`);
  }

  #noteOutput(id: string, partial: AgentToolResult): void {
    const call = this.#running.get(id);
    if (call) call.lastLine = linesOf(resultText(partial)).at(-1)?.trim() ?? "";
  }

  #drawRunning(): void {
    const call = [...this.#running.values()].at(-1);
    if (!this.#terminal.live || !call) return;
    const { dim } = this.#style;
    const said = call.lastLine && `  ${call.lastLine}`;
    const text = fit(`○ ${call.name}  ${call.about}${said}`, this.#textColumns - INDENT.length);
    // The empty line that the finished call begins with: the text stays where it is.
    if (!this.#liveLine) this.#line("");
    this.#terminal.write(CLEAR_LINE + INDENT + dim(text));
    this.#liveLine = true;
  }

  #clearLiveLine(): void {
    if (this.#liveLine) this.#terminal.write(CLEAR_LINE);
    this.#liveLine = false;
  }

  #call(id: string, end: { result: AgentToolResult; isError: boolean; durationMs: number }): void {
    const call = this.#running.get(id);
    if (!call) return;
    this.#running.delete(id);
    const { bold, dim, green, red } = this.#style;
    const view = viewOf(call.name, end.result);
    const exit = view.type === "output" ? view.exit : undefined;
    const facts = [...(exit ? [exit] : []), duration(end.durationMs)].join(" · ");
    const room = this.#textColumns - INDENT.length - call.name.length - facts.length - 6;
    const mark = end.isError ? red("✗") : green("●");

    if (!this.#liveLine) this.#line("");
    const about = fit(call.about, Math.max(room, 1));
    this.#line(`${INDENT}${mark} ${bold(call.name)}  ${about}  ${dim(facts)}`);
    for (const line of this.#linesOfView(view)) this.#line(DEEPER + line);
  }

  #linesOfView(view: ToolView): string[] {
    const { dim, green, red } = this.#style;
    const columns = this.#textColumns - DEEPER.length;
    if (view.type === "summary") {
      return wrap(shownText(view.text), columns, "").split("\n").map(dim);
    }
    if (view.type === "diff") {
      return dedent(view.lines).flatMap(({ sign, text }) => {
        const wrapped = wrapCode(`${sign} ${text}`, columns);
        return wrapped.map(sign === "+" ? green : red);
      });
    }
    const all = linesOf(view.text);
    const shown = tellingLines(all);
    const hidden = all.length - shown.length;
    return [
      ...shown.map((line) => verdictPaint(line, this.#style)(fit(roundTimes(line), columns))),
      ...(hidden > 0 ? [dim(`… ${hidden} more lines`)] : []),
    ];
  }
}

/** The lines without the indent that they share. */
function dedent(lines: readonly DiffLine[]): DiffLine[] {
  const plain = lines.map(({ sign, text }) => ({ sign, text: shownText(text) }));
  const indents = plain
    .filter(({ text }) => text.trim() !== "")
    .map(({ text }) => text.search(/\S/));
  const shared = indents.length > 0 ? Math.min(...indents) : 0;
  return plain.map(({ sign, text }) => ({ sign, text: text.slice(shared) }));
}

/** A line of a diff: where it does not fit, it goes on below, further in. */
function wrapCode(line: string, columns: number): string[] {
  const lead = /^. */.exec(line)?.[0] ?? "";
  const [first = "", ...more] = wrap(
    line.slice(lead.length),
    columns - INDENT.length,
    " ".repeat(lead.length),
  ).split("\n");
  return [lead + first.slice(lead.length), ...more.map((text) => INDENT + text)];
}

function verdictPaint(line: string, style: Style): (text: string) => string {
  const verdict = verdictOf(line);
  if (verdict === undefined) return style.dim;
  return verdict === "good" ? style.green : style.red;
}

/** From the details of the tools that are known here; of others, what the model is told. */
function viewOf(tool: string, result: AgentToolResult): ToolView {
  const details = detailsOf(result);
  const { diff, stderr, stdout, totalEntries, totalLines } = details;
  const text = resultText(result);
  if (tool === "read" && typeof totalLines === "number") {
    return { type: "summary", text: totalLines === 1 ? "1 line" : `${totalLines} lines` };
  }
  if (tool === "ls" && typeof totalEntries === "number") {
    const names = text.split("\n").map(listedName);
    return { type: "summary", text: names.join("  ") };
  }
  if (tool === "edit" && typeof diff === "string") {
    return { type: "diff", lines: changedLines(diff) };
  }
  if (tool === "shell" && typeof stdout === "string" && typeof stderr === "string") {
    return { type: "output", text: `${stdout}\n${stderr}`, exit: exitOf(details) };
  }
  return { type: "output", text };
}

/** Of a unified diff, what was removed and added. */
function changedLines(diff: string): DiffLine[] {
  const rows = diff.split(/\r?\n/);
  // The two lines before the first place begin with these signs too.
  const places = rows.slice(rows.findIndex((row) => row.startsWith("@@")));
  return places.flatMap((row) => {
    const sign = row.charAt(0);
    return sign === "+" || sign === "-" ? [{ sign, text: row.slice(1) }] : [];
  });
}

function fallbackText({ from, to, errorMessage }: FallbackEvent): string {
  return `${from.provider}/${from.id} cannot answer; asking ${to.provider}/${to.id}. ${errorMessage}`;
}

/** Paints what stands between back-ticks, which may come in pieces, and takes them away. */
function codeHighlighter(paint: (text: string) => string): (text: string) => string {
  // Without colours the back-ticks are all there is to see.
  if (paint("x") === "x") return same;
  let inCode = false;
  return (text) => {
    const pieces = text.split("`");
    return pieces
      .map((piece, index) => {
        if (index > 0) inCode = !inCode;
        return inCode ? paint(piece) : piece;
      })
      .join("");
  };
}

function same(text: string): string {
  return text;
}
