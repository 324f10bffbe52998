import {
  FILL,
  isStatusField,
  parseTemplate,
  type TemplatePiece,
} from "@gyre/coding/internal/settings/terminal/status-line";
import { shownLine } from "@gyre/coding/internal/text/shown-text";
import { describeField, type FooterFacts, keyModeSpans } from "./footer.ts";
import { fitRow, type Row, type Span, span, widthOfRow } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";

const SEPARATOR = " · ";

/** The row of a template. What is between two separators is left out where its fields have nothing to show. */
export function templateRow(
  template: string,
  facts: FooterFacts,
  columns: number,
  theme: Theme,
): Row {
  const [left = "", ...rest] = template.split(`{${FILL}}`);
  const before = keyModeSpans(facts, theme);
  const first = fillPart(left, facts, theme);
  const start = before.length > 0 && first.length > 0 ? [span(SEPARATOR, theme.dim)] : [];
  const parts = [
    [...before, ...start, ...first],
    ...rest.map((part) => fillPart(part, facts, theme)),
  ];
  const used = parts.reduce((sum, part) => sum + widthOfRow(part), 0);
  const gaps = parts.length - 1;
  const room = Math.max(gaps, columns - used);
  const row = parts.flatMap((part, index) => {
    if (index === 0) return part;
    const width = Math.floor(room / gaps) + (index === gaps ? room % gaps : 0);
    return [span(" ".repeat(width)), ...part];
  });
  return fitRow(row, columns);
}

function fillPart(template: string, facts: FooterFacts, theme: Theme): Span[] {
  const shown = template.split(SEPARATOR).flatMap((text) => {
    const pieces = parseTemplate(text);
    const spans = pieces.map((piece) => fillPiece(piece, facts, theme));
    const fields = pieces.flatMap((piece, index) => ("field" in piece ? [spans[index]] : []));
    const isEmpty = fields.length > 0 && fields.every((field) => field === undefined);
    const filled = spans.filter((each) => each !== undefined);
    return isEmpty || filled.length === 0 ? [] : [filled];
  });
  return shown.flatMap((spans, index) =>
    index > 0 ? [span(SEPARATOR, theme.dim), ...spans] : spans,
  );
}

function fillPiece(piece: TemplatePiece, facts: FooterFacts, theme: Theme): Span | undefined {
  if ("text" in piece) return span(shownLine(piece.text), theme.dim);
  return isStatusField(piece.field) ? describeField(piece.field, facts, theme) : undefined;
}
