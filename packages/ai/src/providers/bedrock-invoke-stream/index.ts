import type { Accumulator } from "../../stream/accumulate.ts";
import type { ApiProvider } from "../../client/registry.ts";
import { Reader as AnthropicReader } from "../anthropic-messages/reader.ts";
import { writeRequest as writeAnthropic } from "../anthropic-messages/index.ts";
import {
  awsFraming,
  fromBase64,
  Reader as ConverseReader,
} from "../bedrock-converse-stream/index.ts";
import { sentTo, writeRequest as writeConverse } from "../aws/bedrock-request.ts";
import { decodeUtf8 } from "../../stream/sse.ts";
import {
  createProvider,
  parseObject,
  type ProviderConfig,
  type Wire,
  type WireJob,
  type WireReader,
  type WireRequest,
} from "../http/wire.ts";

const OPERATION = "invoke-with-response-stream";
const CLAUDE_VERSION = "bedrock-2023-05-31";
const NOVA_SCHEMA = "messages-v1";
/** What the service adds to a model's own events. */
const ADDED = "amazon-bedrock-";

/**
 * The InvokeModelWithResponseStream operation of Amazon Bedrock, which speaks to each
 * model in the model's own format: Anthropic's to Claude, Nova's to all others. For what
 * Converse does not pass on; keys and quirks are those of `bedrock-converse-stream`.
 */
export function bedrockInvokeStream(config: ProviderConfig = {}): ApiProvider {
  return createProvider(WIRE, config);
}

const WIRE: Wire = {
  api: "bedrock-invoke-stream",
  request: writeRequest,
  reader: (out) => new Reader(out),
  framing: awsFraming,
};

function writeRequest(job: WireJob): WireRequest {
  if (!job.model.id.includes("claude")) {
    // Nova marks what is to be cached in another way than Converse does.
    const options = { ...job.options, cacheRetention: "none" } as const;
    const { body } = writeConverse({ ...job, options });
    return sentTo(job, OPERATION, { schemaVersion: NOVA_SCHEMA, ...body });
  }
  const { body, headers } = writeAnthropic(job);
  const { model: _, stream: __, ...own } = body;
  const beta = headers["anthropic-beta"];
  return sentTo(job, OPERATION, {
    anthropic_version: CLAUDE_VERSION,
    ...(beta !== undefined && { anthropic_beta: [beta] }),
    ...own,
  });
}

/** Unwraps the model's own events, and has them read by who knows them. */
class Reader implements WireReader {
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
    const packed = fromBase64(typeof bytes === "string" ? bytes : "");
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
