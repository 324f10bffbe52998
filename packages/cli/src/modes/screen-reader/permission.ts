import type { ApprovalAnswer, ApprovalRequest } from "@gyre/tools";
import { counted } from "../../text/tool-text.ts";
import { QUIET_MS } from "../tui/panels/permission.ts";
import {
  MAX_PREVIEW_ROWS,
  type Preview,
  createPreview,
  reasonText,
  safeLine,
  safeText,
  type ReadText,
  createTextReader,
} from "../tui/panels/permission-preview.ts";
import type { LineTerminal, ReadLine } from "./line-terminal.ts";
import { changeLines, MAX_CHANGED_LINES } from "./tool.ts";

/** Of what a call would do, so many lines are shown before all of it is asked for. */
const MAX_SHOWN_LINES = 20;
/** Of a longer line, its beginning and its end are shown. */
const MAX_LINE_CHARS = 1_000;
const INTERRUPTED = "interrupted";

export interface LinePermissionOptions {
  terminal: Pick<LineTerminal, "line" | "question">;
  /** What `ruleFor` gives for the request; without it there is no "always". */
  rule?: string;
  /** The folder to work in, absolute. */
  cwd: string;
  /** Milliseconds. */
  now: () => number;
  /** For tests; default: the files of `cwd`. */
  textNow?: ReadText;
}

/**
 * Asks about a call in words. Nothing that a model, a file or a server wrote is obeyed, and
 * the end of a long command is always shown. A yes that was typed before the question could be
 * heard is not taken. Left, or withdrawn, it is no, with the reason "interrupted".
 */
export function askPermission(
  request: ApprovalRequest,
  options: LinePermissionOptions,
): Promise<ApprovalAnswer> {
  return options.terminal.question((read) => asked(read, request, options));
}

async function asked(
  read: ReadLine,
  request: ApprovalRequest,
  { terminal, rule, cwd, now, textNow = createTextReader(cwd) }: LinePermissionOptions,
): Promise<ApprovalAnswer> {
  const { access, signal, tool } = request;
  const left: ApprovalAnswer = { allow: false, reason: INTERRUPTED };
  if (signal?.aborted) return left;
  const preview = createPreview(request, textNow);
  const all = previewLines(preview, MAX_PREVIEW_ROWS);
  const short = shortened(previewLines(preview, MAX_CHANGED_LINES));
  terminal.line(`It asks for permission: ${safeLine(tool)}.`);
  if (access && !isShownByPreview(request, preview)) terminal.line(safeLine(access.summary));
  for (const line of short) terminal.line(line);
  if (access?.unsandboxed) terminal.line("Careful: it runs outside of the sandbox.");
  if (access?.destructive) terminal.line("Careful: it cannot be undone.");
  terminal.line(safeLine(reasonText(request)));
  if (preview.type === "diff" && preview.problem !== undefined) {
    terminal.line(safeLine(preview.problem));
  }
  const isShort = short.join("\n") !== all.join("\n");
  const always = rule === undefined ? "" : `always (${safeLine(rule)}), `;
  const hint = `Answer yes, ${always}no, or no: and what to do instead.${isShort ? " Answer all to hear all of it." : ""}`;
  terminal.line(hint);
  for (let isAsked = now(); ; isAsked = now()) {
    const typed = await read("Answer: ", signal);
    if (typed === undefined || typed.trim() === "/stop") return left;
    const answer = parseAnswer(typed, request, rule);
    if (typed.trim().toLowerCase() === "all") for (const line of all) terminal.line(line);
    else if (!answer) terminal.line(`That is no answer. ${hint}`);
    else if (answer.allow !== false && now() - isAsked < QUIET_MS) {
      terminal.line(`That came before the question could be heard. ${hint}`);
    } else return answer;
  }
}

function parseAnswer(
  typed: string,
  { fingerprint }: ApprovalRequest,
  rule: string | undefined,
): ApprovalAnswer | undefined {
  const [, word = "", reason = ""] = /^\s*(\w+)\s*(?:[:,]\s*([^]*))?$/.exec(typed) ?? [];
  const instead = reason.trim();
  const isBare = instead === "";
  switch (word.toLowerCase()) {
    case "y":
    case "yes":
      return isBare ? { allow: true, fingerprint } : undefined;
    case "a":
    case "always":
      return isBare && rule !== undefined ? { allow: "always", rule } : undefined;
    case "n":
    case "no":
      return { allow: false, ...(!isBare && { reason: instead }) };
    default:
      return undefined;
  }
}

/** A plain command is all that its summary says. */
function isShownByPreview({ access, args }: ApprovalRequest, { type }: Preview): boolean {
  const isElsewhere = args["cwd"] !== undefined || access?.unsandboxed === true;
  return type === "command" && !isElsewhere;
}

/** What a call would do; of files, at most so many lines that change. */
function previewLines(preview: Preview, most: number): string[] {
  switch (preview.type) {
    case "command":
      return `It would run: ${safeText(preview.text)}`.split("\n");
    case "diff":
      return changeLines(preview.files, safeLine, "It would change", most);
    case "patch":
      return ["It would apply this patch:", ...safeText(preview.text).split("\n")];
    case "arguments":
      return ["Its arguments:", ...safeText(preview.text).split("\n")];
    case "none":
      return [];
    default:
      return preview satisfies never;
  }
}

/** Without the middle: the end is what a long beginning may draw the mind from. */
function shortened(lines: readonly string[]): string[] {
  const shown = lines.map((line) => {
    if (line.length <= MAX_LINE_CHARS) return line;
    const half = MAX_LINE_CHARS / 2;
    const hidden = line.length - MAX_LINE_CHARS;
    return `${line.slice(0, half)} (${counted(hidden, "character")} left out) ${line.slice(-half)}`;
  });
  // A change has its own count, and a sentence for the file.
  if (shown.length <= MAX_SHOWN_LINES + 2) return shown;
  const half = MAX_SHOWN_LINES / 2;
  const hidden = shown.length - MAX_SHOWN_LINES;
  return [...shown.slice(0, half), `(${counted(hidden, "line")} left out)`, ...shown.slice(-half)];
}
