import {
  type McpAnswer,
  type McpField,
  type McpFieldValue,
  type McpFormQuestion,
  type McpQuestion,
  type McpUrlQuestion,
  parseField,
} from "@gyre/mcp";
import { errorMessage } from "@gyre/ai";
import type { Choice, Question } from "./command.ts";

/** How a view asks. Undefined: the question was left. */
export interface QuestionUi {
  choose<T>(question: Question<T>): Promise<T | undefined>;
  /** Asks for one line. */
  line(question: LineQuestion): Promise<string | undefined>;
  /** Opens a page in the user's browser; absent where there is none. */
  openPage?: (url: string) => void;
}

export interface LineQuestion {
  title: string;
  /** Lines between the title and what is typed. */
  about?: readonly string[];
  initial?: string;
}

const CANCELED: McpAnswer = { action: "cancel" };
const DECLINED: McpAnswer = { action: "decline" };

/**
 * Asks the user what an MCP server wants to know. Nothing is sent before the user has seen all of it;
 * a question that is left is canceled.
 */
export function answerServer(question: McpQuestion, ui: QuestionUi): Promise<McpAnswer> {
  return question.kind === "url" ? answerPage(question, ui) : answerForm(question, ui);
}

async function answerPage(
  { server, message, url }: McpUrlQuestion,
  ui: QuestionUi,
): Promise<McpAnswer> {
  const { openPage } = ui;
  const chosen = await ui.choose<"open" | "done" | "decline">({
    title: `The MCP server "${server}" asks you to open a page`,
    about: [...message.split("\n"), url],
    choices: [
      ...(openPage ? [{ value: "open" as const, label: "Open it in the browser" }] : []),
      { value: "done", label: "I open it myself" },
      { value: "decline", label: "Decline" },
    ],
  });
  if (chosen === undefined) return CANCELED;
  if (chosen === "decline") return DECLINED;
  if (chosen === "open") openPage?.(url);
  return { action: "accept" };
}

async function answerForm(question: McpFormQuestion, ui: QuestionUi): Promise<McpAnswer> {
  const { fields, message, server } = question;
  const title = `The MCP server "${server}" asks`;
  const isWanted = await ui.choose<boolean>({
    title,
    about: message.split("\n"),
    choices: [
      { value: true, label: fields.length === 0 ? "Accept" : "Answer" },
      { value: false, label: "Decline" },
    ],
  });
  if (isWanted === undefined) return CANCELED;
  if (!isWanted) return DECLINED;
  if (fields.length === 0) return { action: "accept", content: {} };
  for (;;) {
    const content = await fillIn(fields, ui);
    if (!content) return CANCELED;
    const next = await ui.choose<"send" | "change" | "decline">({
      title: `Send this to "${server}"?`,
      about: fields.map(({ name, label }) => `${label}: ${formatValue(content[name])}`),
      choices: [
        { value: "send", label: "Send" },
        { value: "change", label: "Change it" },
        { value: "decline", label: "Decline" },
      ],
    });
    if (next === undefined) return CANCELED;
    if (next === "decline") return DECLINED;
    if (next === "send") return { action: "accept", content };
  }
}

async function fillIn(
  fields: readonly McpField[],
  ui: QuestionUi,
): Promise<Record<string, McpFieldValue> | undefined> {
  const content: Record<string, McpFieldValue> = {};
  for (const field of fields) {
    const value = await askField(field, ui);
    if (value === undefined) return undefined;
    if (value !== NOTHING) content[field.name] = value;
  }
  return content;
}

/** An optional field that stays empty. */
const NOTHING = Symbol("nothing");

async function askField(
  field: McpField,
  ui: QuestionUi,
): Promise<McpFieldValue | typeof NOTHING | undefined> {
  const { type, options = [], description, isRequired } = field;
  const about = description === undefined ? [] : [description];
  const title = `${field.label}${isRequired ? "" : " (optional)"}`;
  const listed: readonly Choice<McpFieldValue>[] | undefined =
    type === "boolean"
      ? [
          { value: true, label: "Yes" },
          { value: false, label: "No" },
        ]
      : type === "choice"
        ? options.map(({ value, label }) => ({ value, label }))
        : undefined;
  if (listed) {
    const start = listed.findIndex(({ value }) => value === field.default);
    const empty: Choice<typeof NOTHING>[] = isRequired
      ? []
      : [{ value: NOTHING, label: "Leave it empty" }];
    return ui.choose<McpFieldValue | typeof NOTHING>({
      title,
      about,
      choices: [...listed, ...empty],
      ...(start >= 0 && { start }),
      ...(listed.length > MANY_CHOICES && { filter: true }),
    });
  }
  const choices = options.map(({ value, label }) =>
    value === label ? value : `${value} (${label})`,
  );
  const hint = choices.length > 0 ? [`Some of these, with commas: ${choices.join(", ")}`] : [];
  let initial = formatValue(field.default, "");
  for (let problem: string[] = []; ;) {
    const typed = await ui.line({ title, about: [...about, ...hint, ...problem], initial });
    if (typed === undefined) return undefined;
    if (typed.trim() === "" && !isRequired) return NOTHING;
    try {
      return parseField(field, typed);
    } catch (error) {
      problem = [errorMessage(error)];
      initial = typed;
    }
  }
}

/** A longer list is searched by typing. */
const MANY_CHOICES = 9;

function formatValue(value: McpFieldValue | undefined, nothing = "(nothing)"): string {
  if (value === undefined) return nothing;
  if (typeof value === "boolean") return value ? "yes" : "no";
  return Array.isArray(value) ? value.join(", ") : String(value);
}
