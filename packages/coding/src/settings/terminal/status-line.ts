import { nearNames } from "@gyre/ai";

/** What a template of the status line can name. */
export const STATUS_FIELDS = [
  "model",
  "thinking",
  "mode",
  "branch",
  "jobs",
  "context",
  "cost",
  "tokens",
  "cache",
  "folder",
  "session",
  "version",
] as const;

export type StatusField = (typeof STATUS_FIELDS)[number];

/** A program that prints the status line: for a shell, or with its arguments. */
export interface StatusCommandSetting {
  /** As other agents have it. */
  readonly type?: "command";
  readonly command: string | readonly string[];
}

/** A template with fields in braces, or a program. */
export type StatusLineSetting = string | StatusCommandSetting;

/** Moves what follows it to the right. */
export const FILL = "fill";

/** A piece of a template: a text as it is, or the name of a field. */
export type TemplatePiece = { readonly text: string } | { readonly field: string };

/** The pieces of a template: `{model} · {mode}`. */
export function parseTemplate(template: string): TemplatePiece[] {
  return template
    .split(/(\{[^{}]*\})/)
    .filter((piece) => piece !== "")
    .map((piece) => (/^\{.*\}$/.test(piece) ? { field: piece.slice(1, -1) } : { text: piece }));
}

export function isStatusField(name: string): name is StatusField {
  return STATUS_FIELDS.some((field) => field === name);
}

/** What is wrong with a status line of the right type, each without its end. */
export function statusLineProblems(value: StatusLineSetting): readonly string[] {
  if (typeof value !== "string") {
    const [first = ""] =
      typeof value.command === "string" ? value.command.split(/\s/, 1) : value.command;
    // A path from the folder that is worked in would run what the project has there.
    return /^(?!~\/|\/|[A-Za-z]:).*\//.test(first)
      ? [`the program ${JSON.stringify(first)} must be a name, or a path that begins with / or ~/`]
      : [];
  }
  return parseTemplate(value).flatMap((piece) => {
    if ("text" in piece || piece.field === FILL || isStatusField(piece.field)) return [];
    const known = [...STATUS_FIELDS, FILL];
    const near = nearNames(piece.field, known);
    const hint =
      near.length > 0 ? `may "${near.join('" or "')}" be meant` : `there are ${known.join(", ")}`;
    return [`there is no field ${JSON.stringify(piece.field)}; ${hint}`];
  });
}
