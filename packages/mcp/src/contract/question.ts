import { cutText, sanitize } from "@gyre/ai/text";
import { type Fields, isFields, isTextList } from "./fields.ts";

/** What a server asks the person for, in the middle of a call. Its texts are the server's, made safe to show. */
export type McpQuestion = McpFormQuestion | McpUrlQuestion;

/** Values to fill in. */
export interface McpFormQuestion {
  kind: "form";
  server: string;
  message: string;
  fields: readonly McpField[];
}

/** A page to open: what is entered there does not pass through us. */
export interface McpUrlQuestion {
  kind: "url";
  server: string;
  message: string;
  url: string;
}

export type McpFieldValue = string | number | boolean | string[];

/** One value of a form. */
export interface McpField {
  /** As the server calls it. */
  name: string;
  /** For people. */
  label: string;
  description?: string;
  isRequired: boolean;
  type: "text" | "number" | "integer" | "boolean" | "choice" | "choices";
  /** Of `choice` and `choices`. */
  options?: readonly { value: string; label: string }[];
  default?: McpFieldValue;
  /** Of a text: the least number of characters; of numbers the least value; of choices the least count. */
  least?: number;
  most?: number;
  /** Of a text: "email", "uri", "date" or "date-time". */
  format?: string;
}

/** `decline`: the person does not want to. `cancel`: the person did not decide. */
export type McpAnswer =
  | { action: "accept"; content?: Readonly<Record<string, McpFieldValue>> }
  | { action: "decline" | "cancel" };

/** Has a person answer. The signal aborts when the question is not open any more. */
export type AskQuestion = (question: McpQuestion, signal: AbortSignal) => Promise<McpAnswer>;

const MAX_FIELDS = 50;
const MAX_OPTIONS = 200;
const MAX_MESSAGE_CHARS = 4_000;
const MAX_LABEL_CHARS = 300;
const MAX_URL_CHARS = 4_000;

/** Undefined where it cannot be asked: an address that is not one of the web, a form beyond all measure. */
export function toQuestion(server: string, params: Fields): McpQuestion | undefined {
  const { message: given } = params;
  const message = sanitize(cutText(typeof given === "string" ? given : "", MAX_MESSAGE_CHARS));
  if (params["mode"] === "url") {
    const url = toWebAddress(params["url"]);
    return url === undefined ? undefined : { kind: "url", server, message, url };
  }
  const { requestedSchema: schema } = params;
  if (!isFields(schema) || !isFields(schema["properties"])) return undefined;
  const required = isTextList(schema["required"]) ? schema["required"] : [];
  const named = Object.entries(schema["properties"]);
  const fields = named.map(([name, one]) => toField(name, one, required.includes(name)));
  const usable = fields.filter((field) => field !== undefined);
  if (named.length > MAX_FIELDS || usable.length < fields.length) return undefined;
  return { kind: "form", server, message, fields: usable };
}

/** What is wrong with a value, as the end of a sentence that begins with its name; undefined if nothing is. */
export function fieldProblem(field: McpField, value: unknown): string | undefined {
  const { type, least = Number.NEGATIVE_INFINITY, most = Number.POSITIVE_INFINITY } = field;
  const values = field.options?.map((option) => option.value) ?? [];
  const outside = (size: number, what: string): string | undefined => {
    if (size < least) return `needs at least ${least}${what}`;
    return size > most ? `may have at most ${most}${what}` : undefined;
  };
  switch (type) {
    case "boolean":
      return typeof value === "boolean" ? undefined : "has to be yes or no";
    case "number":
    case "integer":
      if (typeof value !== "number" || !Number.isFinite(value)) return "has to be a number";
      if (type === "integer" && !Number.isInteger(value)) return "has to be a whole number";
      return outside(value, "");
    case "choice":
      return values.some((one) => one === value) ? undefined : `is one of: ${values.join(", ")}`;
    case "choices":
      if (!isTextList(value) || !value.every((one) => values.includes(one))) {
        return `takes some of: ${values.join(", ")}`;
      }
      return outside(value.length, " of them");
    default:
      if (typeof value !== "string") return "has to be a text";
      return outside([...value].length, " characters") ?? formatProblem(value, field.format);
  }
}

/** The value that a person typed for a field. Throws with what is wrong with it. */
export function parseField(field: McpField, typed: string): McpFieldValue {
  const value = readTyped(field, typed.trim());
  const problem = fieldProblem(field, value);
  if (problem !== undefined) throw new Error(`${field.label} ${problem}.`);
  return value;
}

/** The answer as it may be sent: with the fields that were asked for, all of them valid. Throws. */
export function checkAnswer(question: McpQuestion, answer: McpAnswer): McpAnswer {
  if (answer.action !== "accept") return { action: answer.action };
  if (question.kind === "url") return { action: "accept" };
  const content: Record<string, McpFieldValue> = {};
  for (const field of question.fields) {
    const value = answer.content?.[field.name] ?? field.default;
    if (value === undefined) {
      if (field.isRequired) throw new Error(`${field.label} is missing.`);
      continue;
    }
    const problem = fieldProblem(field, value);
    if (problem !== undefined) throw new Error(`${field.label} ${problem}.`);
    content[field.name] = value;
  }
  return { action: "accept", content };
}

/** The fields as JSON Schema, as the protocol writes forms: for others that show such. */
export function toFormSchema(fields: readonly McpField[]): McpFormSchema {
  return {
    type: "object",
    properties: Object.fromEntries(fields.map((field) => [field.name, toProperty(field)])),
    required: fields.filter(({ isRequired }) => isRequired).map(({ name }) => name),
  };
}

/** A form as JSON Schema. */
export interface McpFormSchema {
  type: "object";
  properties: Record<string, McpFormProperty>;
  required: string[];
}

type McpTitledOptions = { const: string; title: string }[];

/** A value of a form as JSON Schema. */
export type McpFormProperty = { title: string; description?: string } & (
  | { type: "boolean"; default?: boolean }
  | { type: "number" | "integer"; default?: number; minimum?: number; maximum?: number }
  | { type: "string"; default?: string; oneOf: McpTitledOptions }
  | {
      type: "array";
      default?: string[];
      items: { anyOf: McpTitledOptions };
      minItems?: number;
      maxItems?: number;
    }
  | {
      type: "string";
      default?: string;
      format?: McpTextFormat;
      minLength?: number;
      maxLength?: number;
    }
);

type McpTextFormat = "email" | "uri" | "date" | "date-time";

function toProperty(field: McpField): McpFormProperty {
  const {
    label: title,
    description,
    type,
    options = [],
    default: value,
    least,
    most,
    format,
  } = field;
  const about = { title, ...(description !== undefined && { description }) };
  const titled = options.map((option) => ({ const: option.value, title: option.label }));
  switch (type) {
    case "boolean":
      return { ...about, type, ...(typeof value === "boolean" && { default: value }) };
    case "number":
    case "integer":
      return {
        ...{ ...about, type },
        ...(typeof value === "number" && { default: value }),
        ...(least !== undefined && { minimum: least }),
        ...(most !== undefined && { maximum: most }),
      };
    case "choice":
      return {
        ...about,
        type: "string",
        oneOf: titled,
        ...(typeof value === "string" && { default: value }),
      };
    case "choices":
      return {
        ...{ ...about, type: "array", items: { anyOf: titled } },
        ...(isTextList(value) && { default: value }),
        ...(least !== undefined && { minItems: least }),
        ...(most !== undefined && { maxItems: most }),
      };
    default:
      return {
        ...{ ...about, type: "string" },
        ...(typeof value === "string" && { default: value }),
        ...(isTextFormat(format) && { format }),
        ...(least !== undefined && { minLength: least }),
        ...(most !== undefined && { maxLength: most }),
      };
  }
}

function isTextFormat(value: string | undefined): value is McpTextFormat {
  return value === "email" || value === "uri" || value === "date" || value === "date-time";
}

function toField(name: string, given: unknown, isRequired: boolean): McpField | undefined {
  if (!isFields(given)) return undefined;
  const { title, description, default: value, minimum, maximum } = given;
  const { minLength, maxLength, minItems, maxItems, format } = given;
  const common = {
    name,
    label: oneLine(typeof title === "string" && title !== "" ? title : name),
    isRequired,
    ...(typeof description === "string" && { description: oneLine(description) }),
  };
  const bounds = (least: unknown, most: unknown): Pick<McpField, "least" | "most"> => ({
    ...(typeof least === "number" && { least }),
    ...(typeof most === "number" && { most }),
  });
  const made = (more: Omit<McpField, keyof typeof common>): McpField => {
    const field: McpField = { ...common, ...more };
    const isValid = value !== undefined && fieldProblem(field, value) === undefined;
    return isValid ? { ...field, default: value as McpFieldValue } : field;
  };
  const { type } = given;
  if (type === "boolean") return made({ type });
  if (type === "number" || type === "integer") return made({ type, ...bounds(minimum, maximum) });
  if (type === "array") {
    const options = isFields(given["items"]) ? readOptions(given["items"]) : undefined;
    return options && made({ type: "choices", options, ...bounds(minItems, maxItems) });
  }
  if (type !== "string") return undefined;
  const options = readOptions(given);
  if (options) return made({ type: "choice", options });
  return made({
    type: "text",
    ...bounds(minLength, maxLength),
    ...(typeof format === "string" && { format: oneLine(format) }),
  });
}

/** Those of a field that has a list of values, in any of the ways that the protocol has for it. */
function readOptions(given: Fields): McpField["options"] | undefined {
  const { enum: values, enumNames: names, oneOf, anyOf } = given;
  if (isTextList(values) && values.length > 0 && values.length <= MAX_OPTIONS) {
    const labels = isTextList(names) ? names : [];
    return values.map((value, index) => ({ value, label: oneLine(labels[index] ?? value) }));
  }
  const titled = oneOf ?? anyOf;
  if (!Array.isArray(titled) || titled.length === 0 || titled.length > MAX_OPTIONS)
    return undefined;
  const options = titled.flatMap((one: unknown) => {
    if (!isFields(one) || typeof one["const"] !== "string") return [];
    const { const: value, title } = one;
    return [{ value, label: oneLine(typeof title === "string" ? title : value) }];
  });
  return options.length === titled.length ? options : undefined;
}

function readTyped({ type, options = [] }: McpField, typed: string): McpFieldValue {
  const find = (text: string): string =>
    options.find(({ value, label }) => value === text || label === text)?.value ?? text;
  switch (type) {
    case "boolean":
      if (/^(?:y|yes|true)$/i.test(typed)) return true;
      return /^(?:n|no|false)$/i.test(typed) ? false : typed;
    case "number":
    case "integer":
      return typed === "" ? Number.NaN : Number(typed);
    case "choice":
      return find(typed);
    case "choices":
      return typed === "" ? [] : typed.split(",").map((one) => find(one.trim()));
    default:
      return typed;
  }
}

function formatProblem(value: string, format: string | undefined): string | undefined {
  switch (format) {
    case "email":
      return /^[^\s@]+@[^\s@]+$/.test(value) ? undefined : "has to be an email address";
    case "uri":
      return URL.canParse(value) ? undefined : "has to be an address such as https://host/path";
    case "date":
      return isDate(value) ? undefined : "has to be a date such as 2026-07-28";
    case "date-time": {
      const [, day = ""] = /^(\d{4}-\d{2}-\d{2})[Tt ]\d{2}:\d{2}:\d{2}/.exec(value) ?? [];
      return isDate(day) ? undefined : "has to be a time such as 2026-07-28T12:00:00Z";
    }
    default:
      return undefined;
  }
}

function isDate(text: string): boolean {
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text) && text.length === 10;
}

function toWebAddress(value: unknown): string | undefined {
  if (typeof value !== "string" || value.length > MAX_URL_CHARS || !URL.canParse(value)) {
    return undefined;
  }
  const { protocol, href, username, password } = new URL(value);
  const isWeb = (protocol === "https:" || protocol === "http:") && username + password === "";
  return isWeb ? href : undefined;
}

function oneLine(text: string): string {
  return sanitize(cutText(text, MAX_LABEL_CHARS), { keepNewlines: false });
}
