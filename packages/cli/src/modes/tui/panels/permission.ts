import { present } from "@gyre/agent";
import { findPresentation } from "@gyre/coding/internal/core/presentations";
import type { ApprovalAnswer, ApprovalRequest, EffectsReport } from "@gyre/tools";
import { canKeep, summarizeEffects } from "../../../text/effects-text.ts";
import { listEditRules } from "../../../text/pending-question.ts";
import { measureWidth } from "../../../text/width.ts";
import type { Key, TerminalEvent } from "../terminal/key.ts";
import { fitAroundCursor, LineInput } from "../editor/line-input.ts";
import {
  fitMiddle,
  type Preview,
  createPreview,
  previewRows,
  reasonText,
  safeLine,
  type ReadText,
  createTextReader,
  cutMiddle,
} from "./permission-preview.ts";
import { pickRows } from "./effects-preview.ts";
import { QuietTime } from "./quiet-time.ts";
import { fitRow, type Row, row, span, widthOfRow } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";
import type { Panel, PanelAnswer, PanelView } from "../ui/ui.ts";
import { wrapText } from "../terminal/wrap.ts";

export { MAX_QUIET_MS, QUIET_MS } from "./quiet-time.ts";
/** Rows of the summary, and of the reason. */
const MAX_ABOUT_ROWS = 6;
const MAX_REASON_ROWS = 3;
const MAX_CONFLICT_ROWS = 3;
/** The question and two rows of its preview take precedence over choices on rows of their own. */
const MIN_ROWS_ABOVE = 3;
const SIGN = "› ";
const NO_SIGN = "  ";
const HOW = " (Ctrl+O shows all)";
const INTERRUPTED = "interrupted";
/** With less room than this for a rule, the label before it is one word. */
const MIN_RULE_COLUMNS = 24;
/** From this width on the rule is shown even where the choices share rows. */
const MIN_COLUMNS_WITH_RULE = 40;

export interface PermissionPanelOptions {
  theme: Theme;
  /** From `rulesFor`; without a rule there is no choice "from now on". */
  rules?: readonly string[];
  /** Whether rules can hold for the project and everywhere; the choice is then made in a second step. */
  isKept?: boolean;
  /** The folder to work in, absolute. */
  cwd: string;
  /** Whose call it is, where that is another agent than the one of the conversation: "rival 2 (Opus)". */
  asker?: string | undefined;
  /** Milliseconds. For tests; default: those of this process. */
  now?: () => number;
  /** For tests; default: the files of `cwd`. */
  readText?: ReadText;
}

interface PermissionChoice {
  key: string;
  label: string;
  /** Replaces the label where there is no room for it. */
  short: string;
  /** Follows the label; the middle of a long rule is left out. */
  rule?: string;
  /** Absent: a line is opened for the reason, or a list. */
  answer?: ApprovalAnswer;
  /** A list is opened, of what is to be kept. */
  picks?: true;
  /** How long its rules hold is asked next. */
  next?: readonly PermissionChoice[];
}

/**
 * Asks the user about a call: its effect, the reason for the question, and the answers. Text of models, files and
 * servers is sanitized and complete, and the end of a long command or change is always visible. Just after the first
 * drawing only Esc has an effect. Esc answers no, with the reason "interrupted".
 */
export class PermissionPanel implements Panel<ApprovalAnswer> {
  readonly #request: ApprovalRequest;
  readonly #theme: Theme;
  readonly #asker: string | undefined;
  readonly #quiet: QuietTime;
  readonly #preview: Preview;
  #choices: readonly PermissionChoice[];
  /** The choices before the second step. */
  #before: readonly PermissionChoice[] | undefined;
  #marked = 0;
  #line: LineInput | undefined;
  /** Which effects are to be kept, while they are chosen from. */
  #picking: { marked: number; picked: Set<number> } | undefined;
  /** The first visible row of the whole preview; absent: the middle is left out. */
  #top: number | undefined;
  #page = 1;
  #laidOut: { columns: number; rows: readonly Row[] } | undefined;

  constructor(request: ApprovalRequest, options: PermissionPanelOptions) {
    const { theme, rules, isKept = false, cwd, now = () => performance.now() } = options;
    this.#request = request;
    this.#theme = theme;
    this.#asker = options.asker;
    this.#quiet = new QuietTime(now);
    this.#preview = createPreview(request, options.readText ?? createTextReader(cwd));
    this.#choices = listChoices(request, rules, isKept);
  }

  rows(columns: number, rows: number): PanelView {
    if (rows < 1 || columns < 1) return { rows: [] };
    this.#quiet.begin();
    if (this.#picking) return { rows: this.#pickRows(columns, rows, this.#picking) };
    const foot = this.#line
      ? this.#lineRows(columns, rows)
      : { rows: this.#choiceRows(columns, rows) };
    const room = rows - foot.rows.length;
    const head = this.#head(columns, room);
    const above = [...head, ...this.#body(columns, room - head.length)];
    return {
      rows: [...above, ...foot.rows].map((each) => fitRow(each, columns)),
      ...("cursor" in foot && { cursor: { row: above.length, column: foot.cursor } }),
    };
  }

  take(event: TerminalEvent): PanelAnswer<ApprovalAnswer> {
    const isEscape = event.type === "key" && event.name === "escape";
    if (!isEscape && this.#quiet.isTooEarly()) return { type: "none" };
    if (this.#line) return this.#takeReason(event, this.#line);
    if (this.#picking) return this.#takePick(event, this.#picking);
    if (event.type === "key") return this.#key(event);
    return event.type === "text" ? this.#chooseByKey(event.text) : { type: "none" };
  }

  #takeReason(event: TerminalEvent, line: LineInput): PanelAnswer<ApprovalAnswer> {
    if (event.type === "key" && event.name === "escape") {
      this.#line = undefined;
      return { type: "redraw" };
    }
    if (event.type === "key" && event.name === "enter") {
      const reason = line.text.trim();
      return { type: "done", value: { allow: false, ...(reason !== "" && { reason }) } };
    }
    return line.take(event) ? { type: "redraw" } : { type: "none" };
  }

  #key({ name, ctrl }: Key): PanelAnswer<ApprovalAnswer> {
    const last = this.#choices.length - 1;
    switch (ctrl ? `ctrl+${name}` : name) {
      case "escape":
        if (this.#before) {
          [this.#choices, this.#before, this.#marked] = [this.#before, undefined, 0];
          return { type: "redraw" };
        }
        return { type: "done", value: { allow: false, reason: INTERRUPTED } };
      case "enter":
        return this.#choose(this.#marked);
      case "up":
      case "ctrl+p":
        this.#marked = this.#marked === 0 ? last : this.#marked - 1;
        return { type: "redraw" };
      case "down":
      case "ctrl+n":
        this.#marked = this.#marked === last ? 0 : this.#marked + 1;
        return { type: "redraw" };
      case "ctrl+o":
        this.#top = this.#top === undefined ? 0 : undefined;
        return { type: "redraw" };
      case "pageUp":
        this.#top = Math.max(0, (this.#top ?? 0) - this.#page);
        return { type: "redraw" };
      case "pageDown":
        this.#top = this.#top === undefined ? 0 : this.#top + this.#page;
        return { type: "redraw" };
      default:
        return { type: "none" };
    }
  }

  /** Only a single letter or digit is an answer; several at once were typed for something else. */
  #chooseByKey(text: string): PanelAnswer<ApprovalAnswer> {
    const index = this.#choices.findIndex(
      ({ key }, at) => key === text.toLowerCase() || String(at + 1) === text,
    );
    return index < 0 ? { type: "none" } : this.#choose(index);
  }

  #choose(index: number): PanelAnswer<ApprovalAnswer> {
    const choice = this.#choices[index];
    if (!choice) return { type: "none" };
    if (choice.next) {
      this.#before = this.#choices;
      this.#choices = choice.next;
      this.#marked = 0;
      return { type: "redraw" };
    }
    if (choice.answer) return { type: "done", value: choice.answer };
    this.#marked = index;
    if (choice.picks) this.#picking = { marked: 0, picked: new Set(this.#keepable()) };
    else this.#line = new LineInput();
    return { type: "redraw" };
  }

  #keepable(): number[] {
    return (this.#request.effects?.effects ?? []).filter(canKeep).map(({ id }) => id);
  }

  #takePick(
    event: TerminalEvent,
    picking: { marked: number; picked: Set<number> },
  ): PanelAnswer<ApprovalAnswer> {
    const effects = this.#request.effects?.effects ?? [];
    const last = effects.length - 1;
    const isSpace = event.type === "text" && event.text === " ";
    const key = isSpace ? "space" : event.type === "key" ? event.name : "";
    const effect = effects[picking.marked];
    const { picked } = picking;
    switch (key) {
      case "escape":
        this.#picking = undefined;
        return { type: "redraw" };
      case "enter": {
        const { fingerprint } = this.#request;
        return { type: "done", value: { allow: true, fingerprint, keep: [...picked] } };
      }
      case "up":
        picking.marked = picking.marked === 0 ? last : picking.marked - 1;
        return { type: "redraw" };
      case "down":
        picking.marked = picking.marked === last ? 0 : picking.marked + 1;
        return { type: "redraw" };
      case "space":
        if (!effect || !canKeep(effect)) return { type: "none" };
        if (!picked.delete(effect.id)) picked.add(effect.id);
        return { type: "redraw" };
      default:
        return { type: "none" };
    }
  }

  #pickRows(
    columns: number,
    rows: number,
    { marked, picked }: { marked: number; picked: ReadonlySet<number> },
  ): Row[] {
    const effects = this.#request.effects?.effects ?? [];
    const { dim, strong } = this.#theme;
    const title = row(`Keep which? ${picked.size} of ${effects.length}`, strong);
    const hint = row("↑↓ and Space · Enter keeps these and discards the rest · Esc goes back", dim);
    const all = [
      title,
      ...pickRows(effects, picked, marked, Math.max(1, rows - 2), this.#theme),
      hint,
    ];
    return all.slice(0, rows).map((each) => fitRow(each, columns));
  }

  /** The question, warnings, the summary and the reason. Leaves rows for the preview. */
  #head(columns: number, room: number): Row[] {
    const { access, danger } = this.#request;
    const { accent, dim, strong, warning, bad } = this.#theme;
    const title = row(this.#title(columns), strong);
    const problem = this.#preview.type === "diff" ? this.#preview.problem : undefined;
    const warnings = [
      ...listConflicts(this.#request.effects),
      ...(problem === undefined ? [] : [`! ${problem}`]),
      ...(access?.unsandboxed ? ["! It runs outside of the sandbox."] : []),
      ...(access?.destructive ? ["! It cannot be undone."] : []),
    ].flatMap((text) => wrapText(text, columns, warning));
    const isDestructive = danger?.kind === "destructive";
    if (isDestructive) warnings.push(...wrapText(`! ${safeLine(danger.why)}`, columns, bad));
    const about = this.#isSummaryInBody() ? [] : wrapText(safeLine(access?.summary ?? ""), columns);
    const { effects } = this.#request;
    const isWarned = isDestructive && this.#request.reason === danger.why;
    const reason = effects ? summarizeEffects(effects) : isWarned ? "" : reasonText(this.#request);
    const why = reason === "" ? [] : wrapText(safeLine(reason), columns, dim);
    const asker = this.#asker === undefined ? [] : [row(`${safeLine(this.#asker)} asks`, accent)];
    const all = [
      ...asker,
      title,
      ...warnings,
      ...(access ? cutMiddle(about, this.#theme, MAX_ABOUT_ROWS) : []),
      ...why.slice(0, MAX_REASON_ROWS),
    ];
    const needed =
      this.#preview.type === "none" ? 0 : Math.min(2, this.#layoutPreview(columns).length);
    // The name of the file matters more than one row of a change.
    const least = this.#preview.type === "diff" ? Math.min(1, room) : 0;
    return all.slice(0, Math.max(least, room - needed));
  }

  /** The question with the file that would change; the middle of a long path is left out. */
  #title(columns: number): string {
    const { args, effects, tool } = this.#request;
    if (effects) return "Keep what it did?";
    const asked = safeLine(`Allow ${tool}`);
    const path = args["path"];
    const purpose = safeLine(present(() => findPresentation(tool)?.purpose?.(args)) ?? "");
    if (purpose !== "") {
      return `${asked}: ${fitMiddle(purpose, Math.max(1, columns - measureWidth(`${asked}: ?`)))}?`;
    }
    if (this.#preview.type !== "diff" || typeof path !== "string") return `${asked}?`;
    const room = Math.max(1, columns - measureWidth(`${asked} ?`));
    return `${asked} ${fitMiddle(safeLine(path), room)}?`;
  }

  /** The summary of a plain command says no more than the command. */
  #isSummaryInBody(): boolean {
    const { access, args } = this.#request;
    const isElsewhere = args["cwd"] !== undefined || access?.unsandboxed === true;
    return ["command", "effects"].includes(this.#preview.type) && !isElsewhere;
  }

  #body(columns: number, room: number): Row[] {
    const all = this.#layoutPreview(columns);
    if (room < 1 || all.length === 0) return [];
    if (this.#top !== undefined && all.length > room) return this.#scroll(all, room);
    this.#page = Math.max(1, room - 1);
    return cutMiddle(all, this.#theme, room, 0, HOW);
  }

  #scroll(all: readonly Row[], room: number): Row[] {
    const shown = Math.max(1, room - 1);
    this.#page = shown;
    const top = Math.min(this.#top ?? 0, all.length - shown);
    this.#top = top;
    const place = `${top + 1}-${top + shown} of ${all.length} · PageUp and PageDown · Ctrl+O goes back`;
    return [...all.slice(top, top + shown), ...(room > 1 ? [row(place, this.#theme.dim)] : [])];
  }

  #layoutPreview(columns: number): readonly Row[] {
    if (this.#laidOut?.columns !== columns) {
      this.#laidOut = { columns, rows: previewRows(this.#preview, this.#theme, columns) };
    }
    return this.#laidOut.rows;
  }

  /** One row for each choice; with little room one row or two for all. */
  #choiceRows(columns: number, rows: number): Row[] {
    const spare = rows - this.#choices.length;
    const all = [...this.#choices.keys()];
    if (spare >= MIN_ROWS_ABOVE) {
      const choices = all.map((index) => this.#choiceRow(index, columns));
      const hint = row(
        "↑↓ and Enter, or its number or letter · Esc stops the agent",
        this.#theme.dim,
      );
      return spare > MIN_ROWS_ABOVE ? [...choices, hint] : choices;
    }
    const withRule = this.#choices.findIndex(({ rule }) => rule !== undefined) + 1;
    const hasRoom = columns >= MIN_COLUMNS_WITH_RULE && rows >= MIN_ROWS_ABOVE;
    if (withRule === 0 || !hasRoom) return [all.flatMap((index) => this.#shortChoice(index))];
    const [before, rest] = [all.slice(0, withRule), all.slice(withRule)];
    const room = columns - widthOfRow(before.flatMap((index) => this.#shortChoice(index)));
    return [
      before.flatMap((index) => this.#shortChoice(index, room)),
      rest.flatMap((index) => this.#shortChoice(index)),
    ];
  }

  #choiceRow(index: number, columns: number): Row {
    const { key: letter = "", label = "", rule, short = "" } = this.#choices[index] ?? {};
    const key = `${index + 1} ${letter}`;
    const room = columns - measureWidth(`${SIGN}${key} `);
    if (rule === undefined) return this.#renderChoice(index, key, label);
    const isLong =
      room - measureWidth(`${label}: `) >= Math.min(measureWidth(rule), MIN_RULE_COLUMNS);
    const lead = isLong ? label : short;
    return this.#renderChoice(
      index,
      key,
      `${lead}: ${fitMiddle(rule, room - measureWidth(`${lead}: `))}`,
    );
  }

  /** `room`: columns for a rule. */
  #shortChoice(index: number, room = 0): Row {
    const { key = "", rule, short = "" } = this.#choices[index] ?? {};
    const behind = rule === undefined || room === 0 ? "" : `: ${fitMiddle(rule, room - 2)}`;
    return this.#renderChoice(index, key, short + behind);
  }

  #renderChoice(index: number, key: string, text: string): Row {
    const { accent, dim, selected } = this.#theme;
    const isMarked = index === this.#marked;
    return [
      span(isMarked ? SIGN : NO_SIGN, accent),
      span(`${key} `, dim),
      span(text, isMarked ? selected : ""),
    ];
  }

  #lineRows(columns: number, rows: number): { rows: Row[]; cursor: number } {
    const { accent, dim } = this.#theme;
    const { before = "", text = "" } = this.#line ?? {};
    const shown = fitAroundCursor(before, text, Math.max(1, columns - SIGN.length));
    const hint = row("No, and what to do instead. Enter sends it · Esc goes back", dim);
    return {
      rows: [[span(SIGN, accent), span(shown.text)], ...(rows > MIN_ROWS_ABOVE ? [hint] : [])],
      cursor: Math.min(columns - 1, SIGN.length + shown.cursor),
    };
  }
}

/** What cannot be kept is in sight however long the command is. */
function listConflicts(report: EffectsReport | undefined): string[] {
  const conflicts = (report?.effects ?? []).filter(({ conflict }) => conflict !== undefined);
  const shown = conflicts.slice(0, MAX_CONFLICT_ROWS);
  const more = conflicts.length - shown.length;
  return [
    ...shown.map(({ path, conflict }) => `! Conflict: ${path} ${conflict}.`),
    ...(more > 0 ? [`! ${more} more conflicts`] : []),
  ];
}

/** Of a command that ran already. */
function listEffectChoices(
  fingerprint: string,
  { effects }: EffectsReport,
  rules: readonly string[] = [],
): PermissionChoice[] {
  const kept = effects.filter(canKeep);
  const isWhole = kept.length === effects.length;
  const keep = kept.map(({ id }) => id);
  const once = { allow: true, fingerprint, ...(!isWhole && { keep }) } as const;
  const label = isWhole ? "keep it" : `keep the other ${kept.length}`;
  const choices: PermissionChoice[] = [];
  if (kept.length > 0) choices.push({ key: "y", label, short: "keep", answer: once });
  const [rule, ...moreRules] = rules;
  if (rule !== undefined && isWhole) {
    const answer = { allow: "always", rule, ...(moreRules.length > 0 && { moreRules }) } as const;
    const always = "keep it, and run it directly from now on";
    choices.push({
      key: "a",
      label: always,
      short: "always",
      rule: safeLine(rules.join(", ")),
      answer,
    });
  }
  if (effects.length > 1 && kept.length > 0) {
    choices.push({ key: "p", label: "pick what to keep", short: "pick", picks: true });
  }
  const direct = { allow: true, fingerprint, direct: true } as const;
  return [
    ...choices,
    { key: "n", label: "discard it", short: "discard", answer: { allow: false } },
    { key: "r", label: "discard it, and run it directly", short: "run directly", answer: direct },
    { key: "t", label: "discard it, and type what to do instead", short: "type it" },
  ];
}

function listChoices(
  request: ApprovalRequest,
  rules: readonly string[] | undefined,
  isKept: boolean,
): PermissionChoice[] {
  const { fingerprint, effects } = request;
  if (effects) return listEffectChoices(fingerprint, effects, rules);
  const label = "yes, and from now on";
  const always = ([rule = "", ...moreRules]: readonly string[]): PermissionChoice => {
    const answer = { allow: "always", rule, ...(moreRules.length > 0 && { moreRules }) } as const;
    const shown = safeLine([rule, ...moreRules].join(", "));
    const common = { key: "a", label, short: "always", rule: shown };
    if (!isKept) return { ...common, answer };
    return {
      key: "a",
      label: "yes, from now on, and say for how long",
      short: "always",
      next: [
        { key: "s", label: "in this session", short: "session", rule: shown, answer },
        {
          key: "p",
          label: "in this project",
          short: "project",
          answer: { ...answer, scope: "project" },
        },
        {
          key: "e",
          label: "everywhere",
          short: "everywhere",
          answer: { ...answer, scope: "everywhere" },
        },
      ],
    };
  };
  /** With one key, as most answers that last are meant. */
  const forProject = ([rule = "", ...moreRules]: readonly string[]): PermissionChoice => ({
    key: "d",
    label: "yes, and do not ask again in this project",
    short: "don't ask again",
    rule: safeLine([rule, ...moreRules].join(", ")),
    answer: {
      allow: "always",
      rule,
      ...(moreRules.length > 0 && { moreRules }),
      scope: "project",
    },
  });
  const [rule, ...moreRules] = listEditRules(request) ?? [];
  const edits: PermissionChoice | undefined =
    rule === undefined
      ? undefined
      : {
          key: "e",
          label: "yes, and all edits in this session",
          short: "edits",
          answer: { allow: "always", rule, moreRules },
        };
  return [
    { key: "y", label: "yes, this once", short: "yes", answer: { allow: true, fingerprint } },
    ...(rules === undefined || rules.length === 0
      ? []
      : [...(isKept ? [forProject(rules)] : []), always(rules)]),
    ...(edits ? [edits] : []),
    { key: "n", label: "no", short: "no", answer: { allow: false } },
    { key: "t", label: "no, and type what to do instead", short: "type it" },
  ];
}
