import { basename } from "node:path";
import type { Model, ThinkingLevel, Usage } from "@gyre/ai";
import { version } from "@gyre/coding/internal/core/version";
import type { StatusField } from "@gyre/coding/internal/settings/terminal/status-line";
import { shownLine } from "@gyre/coding/internal/text/shown-text";
import type { PermissionMode } from "@gyre/tools";
import { dollars } from "../../../text/dollars.ts";
import { counted } from "../../../text/tool-text.ts";
import { fitRow, type Row, type Span, span, widthOfRow } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";

const PERCENT = 100;
const THOUSAND = 1000;
const MILLION = 1_000_000;
/** From this percentage on the context is about to be compacted. */
const NEARLY_FULL = 80;

/** The facts of the last row. */
export interface FooterFacts {
  model?: Pick<Model, "id"> & Partial<Pick<Model, "name">>;
  thinking: ThinkingLevel;
  /** What the model does where nothing is set. Default: off. */
  usualThinking?: ThinkingLevel;
  mode: PermissionMode;
  /** How keys are taken, as in vim: `NORMAL`, `INSERT`. */
  keyMode?: string | undefined;
  /** Of the repository. */
  branch?: string | undefined;
  /** Background jobs that run. */
  jobs?: number;
  /** Of the whole session. */
  usage: Usage;
  /** Tokens of the last request and its answer, with which the next request begins. */
  contextTokens?: number;
  /** The tokens at which the context is compacted. */
  compactAt?: number;
  /** The folder that is worked in. */
  folder?: string | undefined;
  /** The id of the session. */
  session?: string | undefined;
}

const LEFT: readonly StatusField[] = ["model", "thinking", "mode", "branch", "jobs"];
const RIGHT: readonly StatusField[] = ["context", "cost", "tokens", "cache"];

/** The last row: the model and its settings on the left, its usage on the right. */
export function footerRow(facts: FooterFacts, columns: number, theme: Theme): Row {
  const list = (fields: readonly StatusField[], from: FooterFacts): Span[] =>
    fields.flatMap((field) => describeField(field, from, theme) ?? []);
  const keys = keyModeSpans(facts, theme);
  const whole = joinParts([...keys, ...list(LEFT, facts)], theme);
  const left =
    widthOfRow(whole) <= columns
      ? whole
      : joinParts([...keys, ...list(LEFT, { ...facts, branch: undefined })], theme);
  // Without room for all, the least useful facts are left out first.
  const right = list(RIGHT, facts);
  for (let count = right.length; count >= 0; count--) {
    const shown = joinParts(right.slice(0, count), theme);
    const gap = columns - widthOfRow(left) - widthOfRow(shown);
    if (gap >= 2) return [...left, span(" ".repeat(gap)), ...shown];
  }
  return fitRow(left, columns);
}

/** How keys are taken, where that is not as in most programs. */
export function keyModeSpans({ keyMode }: FooterFacts, theme: Theme): Span[] {
  return keyMode === undefined ? [] : [span(keyMode, theme.strong)];
}

/** A fact as it is shown; undefined where there is nothing to show. */
export function describeField(
  field: StatusField,
  facts: FooterFacts,
  theme: Theme,
): Span | undefined {
  const { usage } = facts;
  const dim = (text: string | undefined): Span | undefined =>
    text === undefined ? undefined : span(text, theme.dim);
  switch (field) {
    case "model":
      return dim(facts.model?.id ?? "no model yet");
    case "thinking":
      return facts.thinking === (facts.usualThinking ?? "off")
        ? undefined
        : dim(`thinking ${facts.thinking}`);
    case "mode":
      if (facts.mode === "ask") return undefined;
      return span(facts.mode, facts.mode === "full" ? theme.warning : theme.dim);
    case "branch":
      return dim(facts.branch);
    case "jobs":
      return facts.jobs ? span(counted(facts.jobs, "job"), theme.accent) : undefined;
    case "context": {
      const percent = contextPercent(facts);
      if (percent === undefined) return undefined;
      return span(`${percent}% of context`, percent >= NEARLY_FULL ? theme.warning : theme.dim);
    }
    case "cost":
      return dim(usage.cost && dollars(usage.cost.total));
    case "tokens": {
      const { asked, answered } = countTokens(usage);
      if (asked + answered === 0) return undefined;
      return dim(`↑${formatTokens(asked)} ↓${formatTokens(answered)}`);
    }
    case "cache": {
      const { asked, answered } = countTokens(usage);
      if (asked + answered === 0) return undefined;
      return dim(`cache ${Math.round(((usage.cacheRead ?? 0) / Math.max(1, asked)) * PERCENT)}%`);
    }
    case "folder":
      return dim(facts.folder && shownLine(basename(facts.folder)));
    case "session":
      return dim(facts.session);
    case "version":
      return dim(version());
  }
}

/** How full the context is: 100 is when it is compacted. */
export function contextPercent({ contextTokens, compactAt }: FooterFacts): number | undefined {
  if (contextTokens === undefined || compactAt === undefined) return undefined;
  return Math.round((contextTokens / compactAt) * PERCENT);
}

/** Tokens to the model and from it. */
export function countTokens(usage: Usage): { asked: number; answered: number } {
  const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0 } = usage;
  return { asked: input + cacheRead + cacheWrite, answered: output };
}

export function joinParts(parts: readonly Span[], theme: Theme): Span[] {
  return parts.flatMap((part, index) => (index > 0 ? [span(" · ", theme.dim), part] : [part]));
}

/** 950, 4.2k, 31k, 1.2M. */
export function formatTokens(count: number): string {
  if (count < THOUSAND) return String(count);
  const [value, unit] = count < MILLION ? [count / THOUSAND, "k"] : [count / MILLION, "M"];
  return `${value < 10 ? value.toFixed(1) : Math.round(value)}${unit}`;
}
