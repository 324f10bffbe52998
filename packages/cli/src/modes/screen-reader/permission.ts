import type { ApprovalAnswer, ApprovalRequest, EffectsReport } from "@gyre/tools";
import { canKeep, effectText, summarizeEffects } from "../../text/effects-text.ts";
import { diffTexts } from "../tui/transcript/diff-view.ts";
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
  const { effects } = request;
  if (effects) terminal.line(`It ran ${safeLine(tool)}, and asks whether to keep what it did.`);
  else terminal.line(`It asks for permission: ${safeLine(tool)}.`);
  if (access && !isShownByPreview(request, preview)) terminal.line(safeLine(access.summary));
  for (const line of short) terminal.line(line);
  if (access?.unsandboxed) terminal.line("Careful: it runs outside of the sandbox.");
  if (access?.destructive) terminal.line("Careful: it cannot be undone.");
  terminal.line(safeLine(effects ? summarizeEffects(effects) : reasonText(request)));
  if (preview.type === "diff" && preview.problem !== undefined) {
    terminal.line(safeLine(preview.problem));
  }
  const isShort = short.join("\n") !== all.join("\n");
  const always = rule === undefined ? "" : `always (${safeLine(rule)}), `;
  const more = isShort ? " Answer all to hear all of it." : "";
  const hint = effects
    ? `Answer keep, ${always}pick and numbers, discard, discard: and what to do instead, or directly to discard it and run it without a layer.${more}`
    : `Answer yes, ${always}no, or no: and what to do instead.${more}`;
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

const KEPT_WORDS: ReadonlyMap<string, string> = new Map([
  ["keep", "yes"],
  ["discard", "no"],
]);

function parseAnswer(
  typed: string,
  { fingerprint, effects }: ApprovalRequest,
  rule: string | undefined,
): ApprovalAnswer | undefined {
  const picked = effects && parsePick(typed, effects);
  if (picked) return { allow: true, fingerprint, keep: picked };
  const keepable = effects?.effects.filter(canKeep).map(({ id }) => id);
  const keep = keepable?.length === effects?.effects.length ? undefined : keepable;
  const [, word = "", reason = ""] = /^\s*(\w+)\s*(?:[:,]\s*([^]*))?$/.exec(typed) ?? [];
  const instead = reason.trim();
  const isBare = instead === "";
  // Of what ran already, yes is to keep it.
  const meant = effects ? KEPT_WORDS.get(word.toLowerCase()) : undefined;
  switch (meant ?? word.toLowerCase()) {
    case "y":
    case "yes":
      return isBare ? { allow: true, fingerprint, ...(keep && { keep }) } : undefined;
    case "directly":
      return isBare && effects ? { allow: true, fingerprint, direct: true } : undefined;
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

/** "pick 1 3": the numbers of the list that is read out. */
function parsePick(typed: string, { effects }: EffectsReport): number[] | undefined {
  const [, list] = /^\s*pick((?:[\s,]+\d+)+)\s*$/i.exec(typed) ?? [];
  const numbers = list?.match(/\d+/g)?.map(Number);
  const picked = numbers?.map((number) => effects[number - 1]);
  if (!picked?.every((effect) => effect !== undefined && canKeep(effect))) return undefined;
  return picked.flatMap((effect) => effect?.id ?? []);
}

/** A plain command is all that its summary says. */
function isShownByPreview({ access, args }: ApprovalRequest, { type }: Preview): boolean {
  const isElsewhere = args["cwd"] !== undefined || access?.unsandboxed === true;
  return (type === "command" || type === "effects") && !isElsewhere;
}

/** What a call would do; of files, at most so many lines that change. */
function previewLines(preview: Preview, most: number): string[] {
  switch (preview.type) {
    case "command":
      return `It would run: ${safeText(preview.text)}`.split("\n");
    case "effects":
      return effectLines(preview.command, preview.report, most);
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

/** Each effect with its number, what stands in the way of keeping it, and its change. */
function effectLines(command: string, { effects }: EffectsReport, most: number): string[] {
  const lines = effects.flatMap((effect, index) => {
    const { conflict, notes, path, texts, kind } = effect;
    const warnings = [
      ...(conflict === undefined ? [] : [`Conflict: ${path} ${conflict}.`]),
      ...notes,
    ];
    const files = [{ path, lines: texts ? diffTexts(texts.before, texts.after) : [] }];
    return [
      [`${index + 1}: ${effectText(effect).slice(2)}.`, ...warnings].join(" "),
      ...(texts && kind !== "delete" ? changeLines(files, safeLine, "It changed", most) : []),
    ];
  });
  return [...`It ran: ${safeText(command)}`.split("\n"), ...lines];
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
