import { listenMcp, type ListenMcpOptions, type McpListener } from "../serve/listen.ts";
import type { McpOffer, ServedPrompt, ServedTool } from "../serve/offer.ts";

/** A server of tea, with something of all that a server can have. */
export interface TeaServer extends McpListener {
  tools: ServedTool[];
  prompts: ServedPrompt[];
  /** What its tools noted. */
  notes: string[];
}

export type Era = "legacy" | "modern";

export async function teaServer(
  options: Partial<ListenMcpOptions> & { era?: Era } = {},
): Promise<TeaServer> {
  const notes: string[] = [];
  const offer = teaOffer(notes);
  const { era, ...more } = options;
  const listener = await listenMcp({
    ...offer,
    // A server of before has no answer to what it does not know.
    ...(era === "legacy" && {
      check: (request: Request) =>
        request.headers.get("mcp-protocol-version") === "2026-07-28"
          ? new Response("Bad Request", { status: 400 })
          : undefined,
    }),
    ...more,
  });
  return Object.assign(listener, { notes, tools: offer.tools, prompts: offer.prompts });
}

export function teaOffer(notes: string[] = []): McpOffer & {
  tools: ServedTool[];
  prompts: ServedPrompt[];
} {
  return {
    name: "tea",
    version: "7",
    instructions: "Ask for tea.",
    tools: [
      {
        name: "brew",
        description: "Brews tea.",
        parameters: {
          type: "object",
          properties: { kind: { type: "string" } },
          required: ["kind"],
        },
        async call(args, { progress }) {
          await progress({ progress: 1, total: 2, message: "heating" });
          await progress({ progress: 2, total: 2 });
          return `Brewed ${String(args["kind"])}.`;
        },
      },
      {
        name: "order",
        description: "Orders tea, and asks for what it needs.",
        parameters: { type: "object" },
        async call(_args, { ask }) {
          notes.push("started");
          const { kind } = await ask({
            kind: {
              kind: "form",
              message: "Which tea?",
              schema: {
                type: "object",
                properties: {
                  name: { type: "string", enum: ["green", "black"] },
                  cups: { type: "integer", default: 2 },
                },
                required: ["name"],
              },
            },
          });
          if (kind.action !== "accept") return `Not ordered: ${kind.action}.`;
          const { pay } = await ask({
            pay: { kind: "url", message: "Pay here.", url: "https://pay.example/1" },
          });
          notes.push("done");
          return `${String(kind.content?.["cups"])} cups of ${String(kind.content?.["name"])}: ${pay.action}.`;
        },
      },
      {
        name: "wait",
        description: "Waits.",
        parameters: { type: "object" },
        call: (_args, { signal }) =>
          new Promise((_resolve, reject) => {
            notes.push("waiting");
            signal.addEventListener("abort", () => {
              notes.push("aborted");
              reject(new Error("aborted"));
            });
          }),
      },
      {
        name: "spill",
        description: "Fails.",
        parameters: { type: "object" },
        call() {
          throw new Error("The tea is on the floor.");
        },
      },
    ],
    resources: [
      {
        uri: "tea://menu",
        name: "menu",
        description: "What there is.",
        mimeType: "text/plain",
        read: () => "green, black",
      },
      {
        uri: "tea://leaf",
        name: "leaf",
        read: () => [{ uri: "tea://leaf", mimeType: "image/gif", blob: "R0lGODlhAQABAAAAACw=" }],
      },
    ],
    resourceTemplates: [
      {
        uriTemplate: "tea://kinds/{kind}",
        name: "kind",
        read: ({ kind }) => (kind === "coffee" ? undefined : `${kind} is a tea.`),
        complete: (_name, value) => ["green", "black"].filter((one) => one.startsWith(value)),
      },
    ],
    prompts: [
      {
        name: "recommend",
        description: "Recommends a tea.",
        arguments: [{ name: "mood", description: "How you are", required: true }],
        get: ({ mood }) => `Recommend a tea for a guest who is ${mood}.`,
      },
    ],
  };
}
