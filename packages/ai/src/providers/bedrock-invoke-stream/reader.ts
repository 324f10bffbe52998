import type { Accumulator } from "../../stream/accumulate.ts";
import { Reader as AnthropicReader } from "../anthropic-messages/reader.ts";
import { decodeBase64, Reader as ConverseReader } from "../bedrock-converse-stream/reader.ts";
import { decodeUtf8 } from "../../stream/sse.ts";
import type { ResponseReader } from "../http/format.ts";
import { parseObject } from "../http/json.ts";

/** What the service adds to a model's own events. */
const ADDED = "amazon-bedrock-";

/** Unwraps the model's own events, and has them read by who knows them. */
export class Reader implements ResponseReader {
  readonly #out: Accumulator;
  readonly #anthropic: AnthropicReader;
  readonly #converse: ConverseReader;

  constructor(out: Accumulator) {
    this.#out = out;
    this.#anthropic = new AnthropicReader(out);
    this.#converse = new ConverseReader(out);
  }

  get finished(): boolean {
    return this.#converse.finished;
  }

  read(data: string, event?: string): void {
    if (event !== "chunk") return this.#converse.read(data, event);
    const { bytes } = parseObject(data);
    const packed = decodeBase64(typeof bytes === "string" ? bytes : "");
    const json = decodeUtf8(Uint8Array.from(packed, (char) => char.charCodeAt(0)));
    const inner = parseObject(json);
    for (const [name, value] of Object.entries(inner)) {
      if (name.startsWith(ADDED)) (this.#out.report.details ??= {})[name] = value;
    }
    if (typeof inner["type"] === "string") return this.#anthropic.read(json);
    const [name, value] = Object.entries(inner).find(([each]) => !each.startsWith(ADDED)) ?? [];
    if (name === undefined || typeof value !== "object" || value === null) {
      return this.#out.unknown("chunk");
    }
    this.#converse.take(name, value as Record<string, unknown>);
  }

  end(): void {
    this.#converse.end();
  }
}
