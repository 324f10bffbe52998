/**
 * Says what a service would refuse in a request, by the service's documented rules and
 * not by our code. No problems: it would be taken. `model` is for services that get
 * the model in the address.
 */
export type RequestCheck = (body: unknown, model?: string) => string[];

export type Fields = Record<string, unknown>;

/** The problems of one request, each with the place where it is. */
export class Problems {
  readonly list: string[] = [];

  /** Notes a problem unless `holds`, and gives it back. */
  must(holds: boolean, at: string, what: string): boolean {
    if (!holds) this.list.push(`${at}: ${what}`);
    return holds;
  }

  /** An object; anything else is a problem and has no fields. */
  fields(value: unknown, at: string): Fields {
    this.must(isFields(value), at, "must be an object");
    return isFields(value) ? value : {};
  }

  /** A list with something in it. */
  filled(value: unknown, at: string): unknown[] {
    const list = Array.isArray(value) ? value : [];
    this.must(list.length > 0, at, "must be a list that is not empty");
    return list;
  }

  text(value: unknown, at: string): string {
    this.must(typeof value === "string", at, "must be a string");
    return typeof value === "string" ? value : "";
  }

  matches(value: unknown, pattern: RegExp, at: string): string {
    const text = this.text(value, at);
    this.must(pattern.test(text), at, `"${text}" does not match ${pattern.source}`);
    return text;
  }

  mustBeIn(value: unknown, allowed: readonly unknown[], at: string): void {
    this.must(allowed.includes(value), at, `${JSON.stringify(value)} is none of ${allowed.join()}`);
  }

  onlyKeys(fields: Fields, allowed: ReadonlySet<string>, at: string): void {
    for (const key of Object.keys(fields)) this.must(allowed.has(key), at, `unknown key "${key}"`);
  }

  /** What no JSON parser, or no service behind one, takes. */
  values(value: unknown, at: string): void {
    if (typeof value === "string") {
      this.must(!LONE_SURROGATE.test(value), at, "has half of a surrogate pair");
    } else if (typeof value === "number") {
      this.must(Number.isFinite(value), at, "is no finite number");
    } else if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) this.values(item, `${at}[${index}]`);
    } else if (isFields(value)) {
      for (const [key, item] of Object.entries(value)) {
        this.values(key, `${at} key`);
        this.values(item, `${at}.${key}`);
      }
    } else {
      this.must(value === null || typeof value === "boolean", at, `is ${typeof value}`);
    }
  }

  base64(value: unknown, at: string): void {
    const text = this.text(value, at);
    this.must(BASE64.test(text) && text !== "", at, "is no base64");
  }

  /** A schema of arguments, which are always an object. `refused`: what may not be at its top. */
  objectSchema(value: unknown, at: string, refused: readonly string[] = REFUSED_AT_TOP): void {
    const schema = this.fields(value, at);
    this.must(schema["type"] === "object", at, 'must have type "object"');
    if (refused.length > 0) this.must(isFields(schema["properties"]), at, "must have properties");
    for (const keyword of refused) this.must(!(keyword in schema), at, `must not have ${keyword}`);
  }

  /** Arguments of a call where they go as JSON within JSON: what is inside counts as well. */
  argumentsJson(value: unknown, at: string): void {
    let given: unknown;
    try {
      given = JSON.parse(this.text(value, at));
    } catch {
      // Below, with all else that is no object.
    }
    if (this.must(isFields(given), at, "must be the JSON of an object")) this.values(given, at);
  }

  distinct(values: readonly unknown[], at: string): void {
    for (const [index, value] of values.entries()) {
      this.must(values.indexOf(value) === index, at, `${String(value)} comes twice`);
    }
  }
}

// With the u flag a pair counts as one character, so that only lone halves are of this class.
const LONE_SURROGATE = /\p{Surrogate}/u;
/** Keywords that OpenAI and Anthropic refuse at the top of a tool's schema. */
const REFUSED_AT_TOP = ["anyOf", "oneOf", "allOf", "not", "enum", "$ref"];
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const DATA_URL = /^data:([^;,]+);base64,(.*)$/s;

export const IMAGE_TYPES: readonly string[] = [
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
];

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The fields of an object; of anything else, none. */
export function toFields(value: unknown): Fields {
  return isFields(value) ? value : {};
}

export function toList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export function isBlank(value: unknown): boolean {
  return typeof value !== "string" || value.trim() === "";
}

/** An image as OpenAI and those after it take it: an address, or the image itself in one. */
export function checkImageUrl(problems: Problems, value: unknown, at: string): void {
  const url = problems.text(value, at);
  if (/^https?:\/\//.test(url)) return;
  const [, type, data] = DATA_URL.exec(url) ?? [];
  problems.mustBeIn(type, IMAGE_TYPES, at);
  problems.base64(data, at);
}

/** A check made of one that notes problems; every string and number is looked at first. */
export function requestCheck(
  check: (problems: Problems, body: Fields, model: string) => void,
): RequestCheck {
  return (body, model) => {
    const problems = new Problems();
    problems.values(body, "body");
    const fields = problems.fields(body, "body");
    const named = fields["model"];
    check(problems, fields, model ?? (typeof named === "string" ? named : ""));
    return problems.list;
  };
}
