import type { Model, ThinkingLevel, Usage } from "@gyre/ai";
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
  model?: Pick<Model, "id">;
  thinking: ThinkingLevel;
  /** What the model does where nothing is set. Default: off. */
  usualThinking?: ThinkingLevel;
  mode: PermissionMode;
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
}

/** The last row: the model and its settings on the left, its usage on the right. */
export function footerRow(facts: FooterFacts, columns: number, theme: Theme): Row {
  const whole = describeModel(facts, theme);
  const left =
    widthOfRow(whole) <= columns ? whole : describeModel({ ...facts, branch: undefined }, theme);
  // Without room for all, the least useful facts are left out first.
  const right = describeUsage(facts, theme);
  for (let count = right.length; count >= 0; count--) {
    const shown = joinParts(right.slice(0, count), theme);
    const gap = columns - widthOfRow(left) - widthOfRow(shown);
    if (gap >= 2) return [...left, span(" ".repeat(gap)), ...shown];
  }
  return fitRow(left, columns);
}

function describeModel(
  { model, thinking, usualThinking = "off", mode, branch, jobs = 0 }: FooterFacts,
  theme: Theme,
): Span[] {
  const parts = [
    span(model?.id ?? "no model yet", theme.dim),
    ...(thinking === usualThinking ? [] : [span(`thinking ${thinking}`, theme.dim)]),
    ...(mode === "ask" ? [] : [span(mode, mode === "full" ? theme.warning : theme.dim)]),
    ...(branch === undefined ? [] : [span(branch, theme.dim)]),
    ...(jobs === 0 ? [] : [span(counted(jobs, "job"), theme.accent)]),
  ];
  return joinParts(parts, theme);
}

function describeUsage({ usage, contextTokens, compactAt }: FooterFacts, theme: Theme): Span[] {
  const parts: Span[] = [];
  if (contextTokens !== undefined && compactAt !== undefined) {
    const percent = Math.round((contextTokens / compactAt) * PERCENT);
    parts.push(span(`${percent}% of context`, percent >= NEARLY_FULL ? theme.warning : theme.dim));
  }
  if (usage.cost) parts.push(span(dollars(usage.cost.total), theme.dim));
  const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0 } = usage;
  const asked = input + cacheRead + cacheWrite;
  if (asked + output > 0) {
    parts.push(span(`↑${formatTokens(asked)} ↓${formatTokens(output)}`, theme.dim));
    parts.push(span(`cache ${Math.round((cacheRead / Math.max(1, asked)) * PERCENT)}%`, theme.dim));
  }
  return parts;
}

function joinParts(parts: readonly Span[], theme: Theme): Span[] {
  return parts.flatMap((part, index) => (index > 0 ? [span(" · ", theme.dim), part] : [part]));
}

/** 950, 4.2k, 31k, 1.2M. */
export function formatTokens(count: number): string {
  if (count < THOUSAND) return String(count);
  const [value, unit] = count < MILLION ? [count / THOUSAND, "k"] : [count / MILLION, "M"];
  return `${value < 10 ? value.toFixed(1) : Math.round(value)}${unit}`;
}
