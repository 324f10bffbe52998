import { randomBytes } from "node:crypto";
import type {
  CompleteRequestParams,
  GetPromptResult,
  ReadResourceResult,
  RequestStateCodec,
  Resource,
  Server,
  ServerCapabilities,
  ServerContext,
} from "@modelcontextprotocol/server";
import { errorMessage, nearNames, type ToolCall } from "@gyre/ai";
import { type Fields, isFields } from "../contract/fields.ts";
import { callTool, describeTool, failed } from "./agent-tools.ts";
import { type CarriedState, InputNeeded, runAsking } from "./context.ts";
import type { McpOffer, ServeContext, ServedRead, ServedResource } from "./offer.ts";

const KEY_BYTES = 32;
/** A person may take a day for an answer. */
const STATE_SECONDS = 86_400;
/** Of one answer, as the protocol has it. */
const MAX_COMPLETIONS = 100;
/** Addresses that one client watches. */
const MAX_WATCHED = 1_000;

/** Makes servers that all offer the same: one for each connection, or for each request. */
export interface ServerMaker {
  create(era: "legacy" | "modern"): Server;
  /** Addresses that the client of a server watches. */
  watchedBy(server: Server): ReadonlySet<string>;
}

/** Loads the library of the protocol. */
export async function createServerMaker(offer: McpOffer): Promise<ServerMaker> {
  const sdk = await import("@modelcontextprotocol/server");
  const key = offer.stateKey ?? randomBytes(KEY_BYTES);
  const codec = sdk.createRequestStateCodec<CarriedState>({ key, ttlSeconds: STATE_SECONDS });
  const watched = new WeakMap<Server, Set<string>>();
  return {
    create(era) {
      const { name = "gyre", version, instructions } = offer;
      const server = new sdk.Server(
        { name, version },
        {
          capabilities: listCapabilities(offer, era),
          ...(instructions !== undefined && { instructions }),
          requestState: { verify: (state, context) => codec.verify(state, context) },
        },
      );
      const uris = new Set<string>();
      watched.set(server, uris);
      new Handlers(server, offer, codec, sdk).register(era, uris);
      return server;
    },
    watchedBy: (server) => watched.get(server) ?? new Set(),
  };
}

function hasResources({ resources, resourceTemplates }: McpOffer): boolean {
  return resources !== undefined || resourceTemplates !== undefined;
}

function listCapabilities(offer: McpOffer, era: "legacy" | "modern"): ServerCapabilities {
  const { tools, prompts, resourceTemplates } = offer;
  const completes = [...(prompts ?? []), ...(resourceTemplates ?? [])].some((one) => one.complete);
  return {
    ...(tools && { tools: { listChanged: true } }),
    ...(prompts && { prompts: { listChanged: true } }),
    ...(hasResources(offer) && { resources: { listChanged: true, subscribe: true } }),
    ...(completes && { completions: {} }),
    // The newer era has deprecated it.
    ...(era === "legacy" && { logging: {} }),
  };
}

/** What a server answers. */
class Handlers {
  readonly #server: Server;
  readonly #offer: McpOffer;
  readonly #codec: RequestStateCodec<CarriedState>;
  readonly #sdk: typeof import("@modelcontextprotocol/server");
  #calls = 0;

  constructor(
    server: Server,
    offer: McpOffer,
    codec: RequestStateCodec<CarriedState>,
    sdk: typeof import("@modelcontextprotocol/server"),
  ) {
    this.#server = server;
    this.#offer = offer;
    this.#codec = codec;
    this.#sdk = sdk;
  }

  register(era: "legacy" | "modern", watched: Set<string>): void {
    const { tools, prompts } = this.#offer;
    if (tools) this.#registerTools();
    if (prompts) this.#registerPrompts();
    if (hasResources(this.#offer)) this.#registerResources();
    if (listCapabilities(this.#offer, era).completions) {
      this.#server.setRequestHandler("completion/complete", async ({ params }) => {
        const all = await this.#complete(params);
        const values = all.slice(0, MAX_COMPLETIONS);
        return { completion: { values, total: all.length, hasMore: all.length > values.length } };
      });
    }
    // In the newer era a client listens on a stream of its own.
    if (era === "legacy" && hasResources(this.#offer)) {
      this.#server.setRequestHandler("resources/subscribe", ({ params }) => {
        if (watched.size >= MAX_WATCHED) {
          throw this.#invalid(`At most ${MAX_WATCHED} resources can be watched.`);
        }
        watched.add(params.uri);
        return {};
      });
      this.#server.setRequestHandler("resources/unsubscribe", ({ params }) => {
        watched.delete(params.uri);
        return {};
      });
    }
  }

  #registerTools(): void {
    const list = () => this.#offer.tools ?? [];
    this.#server.setRequestHandler("tools/list", () => ({ tools: list().map(describeTool) }));
    this.#server.setRequestHandler("tools/call", async ({ params }, request) => {
      const { name, arguments: args = {} } = params;
      const tool = list().find((one) => one.name === name);
      if (!tool) return failed(`There is no tool "${name}".${this.#near(name, list())}`);
      const id = `mcp-${++this.#calls}`;
      const call: ToolCall = { type: "toolCall", id, name, arguments: args };
      return this.#asking(request, `tool ${name}`, async (context) => {
        try {
          return await callTool(tool, call, this.#offer, context);
        } catch (error) {
          // A question to the client, or a refusal in the words of the protocol.
          if (!(error instanceof Error) || isForClient(error, this.#sdk)) throw error;
          return failed(errorMessage(error));
        }
      });
    });
  }

  #registerPrompts(): void {
    const list = () => this.#offer.prompts ?? [];
    this.#server.setRequestHandler("prompts/list", () => ({
      prompts: list().map(({ name, title, description, arguments: args }) => ({
        name,
        ...(title !== undefined && { title }),
        ...(description !== undefined && { description }),
        ...(args && { arguments: args.map((one) => ({ ...one })) }),
      })),
    }));
    this.#server.setRequestHandler("prompts/get", async ({ params }, request) => {
      const { name, arguments: args = {} } = params;
      const prompt = list().find((one) => one.name === name);
      if (!prompt) throw this.#invalid(`There is no prompt "${name}".${this.#near(name, list())}`);
      for (const { name: wanted, required } of prompt.arguments ?? []) {
        if (required === true && args[wanted] === undefined) {
          throw this.#invalid(`The prompt "${name}" needs the argument "${wanted}".`);
        }
      }
      return this.#asking(request, `prompt ${name}`, async (context): Promise<GetPromptResult> => {
        const given = await prompt.get(args, context);
        if (typeof given !== "string") return given;
        return { messages: [{ role: "user", content: { type: "text", text: given } }] };
      });
    });
  }

  #registerResources(): void {
    const { resources = [], resourceTemplates = [] } = this.#offer;
    this.#server.setRequestHandler("resources/list", () => ({
      resources: resources.map((one) => ({ uri: one.uri, ...describe(one) })),
    }));
    this.#server.setRequestHandler("resources/templates/list", () => ({
      resourceTemplates: resourceTemplates.map((one) => ({
        uriTemplate: one.uriTemplate,
        ...describe(one),
      })),
    }));
    this.#server.setRequestHandler("resources/read", ({ params: { uri } }, request) =>
      this.#asking(request, `resource ${uri}`, (context) => this.#read(uri, context)),
    );
  }

  async #read(uri: string, context: ServeContext): Promise<ReadResourceResult> {
    const { resources = [], resourceTemplates = [] } = this.#offer;
    const found = resources.find((one) => one.uri === uri);
    if (found) return toContents(uri, found.mimeType, await found.read(context));
    for (const template of resourceTemplates) {
      const variables = new this.#sdk.UriTemplate(template.uriTemplate).match(uri);
      if (!variables) continue;
      const texts = Object.entries(variables).map(([name, value]) => [name, String(value)]);
      const read = await template.read(Object.fromEntries(texts), context);
      if (read !== undefined) return toContents(uri, template.mimeType, read);
    }
    throw new this.#sdk.ResourceNotFoundError(uri);
  }

  async #complete({ ref, argument, context }: CompleteRequestParams): Promise<readonly string[]> {
    const one =
      ref.type === "ref/prompt"
        ? this.#offer.prompts?.find(({ name }) => name === ref.name)
        : this.#offer.resourceTemplates?.find(({ uriTemplate }) => uriTemplate === ref.uri);
    if (!one) throw this.#invalid("There is nothing of that name to complete.");
    return (await one.complete?.(argument.name, argument.value, context?.arguments ?? {})) ?? [];
  }

  #asking<T>(request: ServerContext, of: string, handler: (context: ServeContext) => Promise<T>) {
    // In the newer era each request says what its client can.
    const envelope: Fields = request.mcpReq.envelope ?? {};
    const declared = envelope[this.#sdk.CLIENT_CAPABILITIES_META_KEY];
    const capabilities = isFields(declared)
      ? declared
      : (this.#server.getClientCapabilities() ?? {});
    const { warn = () => {} } = this.#offer;
    const seal = (state: CarriedState) => this.#codec.mint(state);
    return runAsking({ request, of, capabilities, seal, warn }, handler);
  }

  #near(name: string, all: readonly { name: string }[]): string {
    const near = nearNames(
      name,
      all.map((one) => one.name),
    );
    return near.length > 0 ? ` Did you mean ${near.join(" or ")}?` : "";
  }

  #invalid(text: string): Error {
    return new this.#sdk.ProtocolError(this.#sdk.ProtocolErrorCode.InvalidParams, text);
  }
}

/** What is said of a resource in a list. */
function describe({
  name,
  title,
  description,
  mimeType,
}: Omit<ServedResource, "uri" | "read">): Omit<Resource, "uri"> {
  return {
    name,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(mimeType !== undefined && { mimeType }),
  };
}

function toContents(
  uri: string,
  mimeType: string | undefined,
  read: ServedRead,
): ReadResourceResult {
  if (typeof read !== "string") return { contents: [...read] };
  return { contents: [{ uri, ...(mimeType !== undefined && { mimeType }), text: read }] };
}

/** Whether an error is an answer of the protocol, and not a failure of a tool. */
function isForClient(error: Error, sdk: typeof import("@modelcontextprotocol/server")): boolean {
  return error instanceof sdk.ProtocolError || error instanceof InputNeeded;
}
