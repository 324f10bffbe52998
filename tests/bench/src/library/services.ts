import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { ApiProvider } from "@gyre/ai";
import { createProviders } from "@gyre/ai/providers";
import { anthropicMessages } from "@gyre/ai/providers/anthropic-messages";
import { openaiCompletions } from "@gyre/ai/providers/openai-completions";
import { openaiResponses } from "@gyre/ai/providers/openai-responses";
import { type Case, createRatio, formatShare, type Line } from "../measure/lines.ts";
import { interleaved } from "../measure/measure.ts";
import { readBare } from "./bare-read.ts";
import { measureImport } from "./cases.ts";
import { benchModel } from "./models.ts";
import { expect } from "./works.ts";
import { streamedChars } from "./stream-bodies.ts";

const DELTAS = 20_000;
const ROUNDS = 15;

/** Runs `work` with a server of made-up streams in a process of its own. */
async function withServer<T>(work: (origin: string) => Promise<T>): Promise<T> {
  const child = fork(fileURLToPath(new URL("./stream-server.js", import.meta.url)));
  const { port } = await new Promise<{ port: number }>((resolve) => child.once("message", resolve));
  try {
    return await work(`http://127.0.0.1:${port}`);
  } finally {
    child.disconnect();
  }
}

async function bare(url: string, isDelta: (event: never) => boolean): Promise<number> {
  let deltas = 0;
  await readBare(url, (event) => {
    if (isDelta(event)) deltas++;
  });
  return deltas;
}

async function gyre(provider: ApiProvider, baseUrl: string): Promise<number> {
  const model = { ...benchModel, api: provider.api, baseUrl };
  const messages = [{ role: "user", content: "go", timestamp: 0 }] as const;
  const stream = await provider.stream(model, { messages }, { apiKey: "key" });
  let chars = 0;
  for await (const event of stream) if (event.type === "text_delta") chars += event.delta.length;
  const { errorMessage, stopReason } = await stream.result();
  if (stopReason !== "stop") throw new Error(`The response failed: ${errorMessage}`);
  return chars;
}

const CHARS = streamedChars(DELTAS);

/** The formats, and how the bare reader of each knows a delta. */
const FORMATS: readonly [ApiProvider, (event: never) => boolean][] = [
  [anthropicMessages(), (event: { type?: string }) => event.type === "content_block_delta"],
  [
    openaiCompletions(),
    (event: { choices?: { delta?: { content?: string } }[] }) =>
      (event.choices?.[0]?.delta?.content ?? "") !== "",
  ],
  [openaiResponses(), (event: { type?: string }) => event.type === "response.output_text.delta"],
];

const decode: Case = {
  name: "services",
  run: () =>
    withServer(async (origin) => {
      const lines: Line[] = [];
      for (const [provider, isDelta] of FORMATS) {
        const url = `${origin}/${provider.api}/${DELTAS}`;
        const times = await interleaved(ROUNDS, {
          floor: async () => expect("deltas", await bare(url, isDelta), DELTAS),
          gyre: async () => expect("characters", await gyre(provider, url), CHARS),
        });
        const what = `${provider.api}: ${DELTAS} deltas over loopback, decoded and accumulated`;
        lines.push(createRatio(what, times, formatShare(DELTAS), 1.25));
      }
      return lines;
    }),
};

const LONG_MB = 16;
const SHORT_MB = 4;

const longLine: Case = {
  name: "line",
  run: () =>
    withServer(async (origin) => {
      const read = async (mb: number): Promise<void> => {
        const chars = await gyre(anthropicMessages(), `${origin}/line/${mb}`);
        expect("characters", chars, mb * 1_000_000);
      };
      const times = await interleaved(ROUNDS, {
        floor: () => read(SHORT_MB),
        gyre: () => read(LONG_MB),
      });
      const aMb = { floor: times.floor / SHORT_MB, gyre: times.gyre / LONG_MB };
      const what = `one line of ${LONG_MB} MB: a byte against one of ${SHORT_MB} MB`;
      return [createRatio(what, aMb, (ms) => `${ms.toFixed(1)} ms a MB`, 1.5)];
    }),
};

const importing: Case = {
  name: "import-formats",
  run: () =>
    Promise.resolve(
      createProviders()
        .list()
        .map(({ api }) => {
          const code = `await import(${JSON.stringify(import.meta.resolve(`@gyre/ai/providers/${api}`))})`;
          return measureImport(`importing the format ${api}, CPU over bare node`, code, 15);
        }),
    ),
};

export const serviceCases: readonly Case[] = [decode, longLine, importing];
