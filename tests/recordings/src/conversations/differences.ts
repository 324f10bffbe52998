import { isDeepStrictEqual } from "node:util";
import type { Model } from "@gyre/ai";
import { resolveService } from "@gyre/ai/providers";
import { measure } from "../responses/compare.ts";
import { isRecord, type Json, record, records, string } from "./parts.ts";
import type { Case, ExpectedCall } from "../responses/manifest.ts";
import type { ModelRequest } from "./request-transcript.ts";

/** One place at which a request of ours says something else than the recorded one. */
export interface Difference {
  /** Fields and places, with dots between them. */
  path: string;
  recorded: unknown;
  ours: unknown;
}

/** A difference, and all that may be needed to judge it. */
export interface Situation extends Difference {
  one: Case;
  /** All that the recorded request says, and all that ours does. */
  request: ModelRequest;
  ourRequest: ModelRequest;
  model: Model;
  /** The responses that this conversation has had since it began. */
  answers: readonly Case[];
}

/** Asked for or kept, but not sent to a model. */
const NOT_COMPARED = new Set(["raw", "thinks"]);

/** All places at which two values differ, down to the smallest. */
export function findDifferences(path: string, recorded: unknown, ours: unknown): Difference[] {
  if (Array.isArray(recorded) && Array.isArray(ours)) {
    const length = Math.max(recorded.length, ours.length);
    return Array.from({ length }, (_, at) => at).flatMap((at) =>
      findDifferences(join(path, `${at}`), recorded[at], ours[at]),
    );
  }
  if (isRecord(recorded) && isRecord(ours)) {
    const fields = new Set([...Object.keys(recorded), ...Object.keys(ours)]);
    return [...fields].flatMap((field) =>
      NOT_COMPARED.has(field)
        ? []
        : findDifferences(join(path, field), recorded[field], ours[field]),
    );
  }
  return recorded === ours ? [] : [{ path, recorded, ours }];
}

function join(path: string, field: string): string {
  return path === "" ? field : `${path}.${field}`;
}

/** A difference that is the other client's own way, or ours, and changes nothing for the model. */
export interface AllowedDifference {
  name: string;
  why: string;
  applies: (situation: Situation) => boolean;
}

// Of a whole conversation, and reported by its player.
export const GAP = "gap in the recording";
export const NO_START = "start without words";

const THINKING = /^turns\.\d+\.thinking\.\d+$/;

/** Each as narrow as it can be. One that no recording needs any more is to be taken out. */
export const ALLOWED: readonly AllowedDifference[] = [
  {
    name: GAP,
    why: "requests in between were not recorded: a new agent goes on from the next one",
    applies: () => false,
  },
  {
    name: NO_START,
    why: "the loop does not go on from a half answer, and has no blocks for documents alone",
    applies: () => false,
  },
  {
    name: "address not recorded",
    why: "it was made unreadable",
    applies: ({ path, recorded }) => path === "address" && recorded === "",
  },
  {
    name: "beta flag in the address",
    why: "the service reads its header; only its own client says it twice",
    applies: ({ path, recorded, ours }) =>
      path === "address" && recorded === `${String(ours)}?beta=true`,
  },
  {
    name: "array instead of events",
    why: "without this the service answers with one array; events come as they are made",
    applies: ({ path, recorded, ours }) =>
      path === "address" && ours === `${String(recorded)}?alt=sse`,
  },
  {
    name: "another operation",
    why: "text completions and raw predictions are asked for as chat and Messages",
    applies: ({ path, recorded, one }) =>
      path === "address" &&
      (one.api === "openai-completions-legacy" || String(recorded).endsWith(":streamRawPredict")),
  },
  {
    name: "chat under a shorter name",
    why: "a service that calls its endpoint so has to be configured with an address that fits",
    applies: ({ path, recorded, ours }) =>
      path === "address" &&
      String(recorded).endsWith("/chat") &&
      ours === `${String(recorded)}/chat/completions`,
  },
  {
    name: "place of the system prompt",
    why: "a field or a message, of the system or of the developer: all are read alike",
    applies: ({ path, recorded, ours }) => path === "systemAs" && recorded !== "" && ours !== "",
  },
  {
    name: "tools that are no functions",
    why: "tools that the service runs are not asked for; what they did is read and sent back",
    applies: ({ path, ours }) => /^serviceTools\.\d+$/.test(path) && ours === undefined,
  },
  {
    name: "content without a block",
    why: "a transcript has texts and images, no documents and no marks for a guardrail",
    applies: ({ path, ours }) => /^turns\.\d+\.other\.\d+$/.test(path) && ours === undefined,
  },
  {
    name: "texts cut otherwise",
    why: "an empty text is left out, since most services refuse it; texts side by side may be one",
    applies: ({ path, request, ourRequest }) => {
      const [, turn = ""] = /^turns\.(\d+)\.texts\./.exec(path) ?? [];
      return (
        turn !== "" &&
        joinTurnTexts(request, Number(turn)) === joinTurnTexts(ourRequest, Number(turn))
      );
    },
  },
  {
    name: "thinking sent back",
    why: "what the service thought it may read again, which the other client left out",
    applies: ({ path, recorded, ours, answers }) =>
      THINKING.test(path) && recorded === undefined && isThought(answers, ours),
  },
  {
    name: "thinking as it was answered",
    why: "the other client lost words or marks of it on the way; what is sealed is the same",
    applies: ({ path, recorded, ours, ourRequest, answers }) =>
      path.endsWith(".seal") &&
      isThought(answers, valueAt(ourRequest, dropLastSegment(path))) &&
      isDeepStrictEqual(sealedIn(recorded), sealedIn(ours)),
  },
  {
    name: "thinking that is not read",
    why: "thinking without a seal goes back only to chat services that document a field for it",
    applies: ({ path, recorded, ours, model }) =>
      THINKING.test(path) &&
      ours === undefined &&
      record(recorded)["seal"] === undefined &&
      model.api === "openai-completions" &&
      resolveService(model).quirks?.["reasoningBack"] === undefined,
  },
  {
    name: "thinking that has to be there",
    why: "DeepSeek may insist on the field beside a call, whatever is in it",
    applies: ({ path, recorded, ours, model }) =>
      THINKING.test(path) &&
      recorded === undefined &&
      record(ours)["text"] === " " &&
      model.provider === "deepseek",
  },
  {
    name: "ids that the service never gave",
    why: "Gemini before its third generation knows calls by their names and order",
    applies: ({ path, ours, model }) =>
      /^turns\.\d+\.(calls|results)\.\d+\.id$/.test(path) &&
      ours === "" &&
      model.api === "google-generative-ai",
  },
  {
    name: "arguments as they were answered",
    why: "the other client wrote them down wrongly",
    applies: ({ path, ourRequest, answers }) => {
      const [call] = /^turns\.\d+\.calls\.\d+(?=\.arguments)/.exec(path) ?? [];
      const { id, arguments: given } = record(call && valueAt(ourRequest, call));
      return answered(answers).some(
        (expected) => expected.id === id && isDeepStrictEqual(expected.arguments, given),
      );
    },
  },
  {
    name: "name beside a result",
    why: "most services know the tool by the call's id; some want to hear its name as well",
    applies: ({ path, recorded, ours, ourRequest }) =>
      /^turns\.\d+\.results\.\d+\.name$/.test(path) &&
      (recorded === undefined || ours === undefined) &&
      ourRequest.turns.some(({ calls }) => calls.some(({ name }) => name === (ours ?? recorded))),
  },
  {
    name: "block of the service as it came",
    why: "it is sent back whole, where the other client left out what it did not know",
    applies: ({ path, recorded }) =>
      /^turns\.\d+\.service\.\d+\./.test(path) && recorded === undefined,
  },
  {
    name: "keyword that Nova refuses",
    why: "Nova takes a schema with type, properties and required at its top, and nothing else",
    applies: ({ path, ours, model }) =>
      /^tools\.\d+\.parameters\.\w+$/.test(path) &&
      ours === undefined &&
      model.id.includes("amazon.nova"),
  },
];

/** All that is ourRequest in a turn. */
function joinTurnTexts({ turns }: ModelRequest, at: number): string | undefined {
  const texts = turns[at]?.texts.map(({ text }) => text).filter((text) => text.trim() !== "");
  return texts?.join("\n\n");
}

function answered(answers: readonly Case[]): ExpectedCall[] {
  return answers.flatMap(({ expected }) => expected.tool_calls ?? []);
}

/** Whether a response held just this thinking; one without words is known by its seal alone. */
function isThought(answers: readonly Case[], thinking: unknown): boolean {
  const { text, seal } = record(thinking);
  const words =
    string(text) ||
    detailsIn(seal)
      .map((detail) => string(detail["text"] ?? detail["summary"]))
      .join("");
  const measured = measure(words);
  return answers.some(({ expected: { encrypted = 0, reasoning, reasoning_summary } }) =>
    measured
      ? [reasoning, reasoning_summary].some((part) => part?.sha256 === measured.sha256)
      : seal !== undefined && encrypted > 0,
  );
}

/** Thinking that a service seals as a list. */
function detailsIn(seal: unknown): Json[] {
  return typeof seal === "string" && seal.startsWith("[") ? records(JSON.parse(seal)) : [];
}

/** What only the service can read. A seal that is no list is all of it. */
function sealedIn(seal: unknown): unknown[] {
  const details = detailsIn(seal);
  if (details.length === 0) return [seal];
  return details.flatMap(({ data, signature }) => [data, signature].filter(Boolean));
}

function dropLastSegment(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf(".")));
}

function valueAt(value: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((inner, field) => {
    if (Array.isArray(inner)) return inner[Number(field)];
    return record(inner)[field];
  }, value);
}
