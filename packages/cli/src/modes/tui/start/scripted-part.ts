import { type Context, type Message, outcomeOf, textOf } from "@gyre/ai";
import { call, say, type ScriptAnswer, type ScriptFunction, think } from "@gyre/ai/testing";
import { PROVENANCE_NOTE } from "@gyre/tools";
import { FIXED_CODE, TASK, TEST_COMMAND } from "../../demo/project.ts";
import { demoScript } from "../../demo/script.ts";
import { restoreDemo } from "./demo-folder.ts";

/** The most that is quoted of a prompt. */
const MAX_QUOTED_CHARS = 200;
const MAX_QUOTED_LINES = 3;
/** The tools that the demo calls. */
const NEEDED_TOOLS = ["read", "edit", "shell"];

export interface PartOptions {
  /** Where the demo's project is. Absent: the demo is not played. */
  folder?: string;
  /** Keys of the last messages of aborted requests, which end a demo. */
  cutShort: ReadonlySet<string>;
}

/**
 * The script of the scripted model. It finds its step in the conversation, so that it continues after steering and
 * begins again after an abort. The first prompt, and any with the word "demo", plays the demo; other prompts get an
 * explanation and how to use a real model.
 */
export function createScriptedPart({ cutShort, folder }: PartOptions): ScriptFunction {
  return async (context) => {
    // A request outside of the conversation asks for a summary.
    if (!context.systemPrompt?.includes(PROVENANCE_NOTE)) return summarize(context);
    const { asked, isFirst, played, steering } = readScene(context.messages, cutShort);
    const isDemo = wantsDemo(asked);
    const obstacle = played === undefined ? undefined : findObstacle(context, folder);
    if (isDemo && obstacle !== undefined) return obstacle;
    if (played === undefined || obstacle !== undefined)
      return `${introduceModel(asked)}\n\n${WAYS}`;
    if (steering !== undefined && /^\s*(?:stop|enough|cancel)\b/i.test(steering)) {
      return "Stopped, as you said. The folder stays as it is; say `demo` to begin again.";
    }
    const heard = steering === undefined ? [] : [say(answerToSteering(steering))];
    if (played === 0 && folder !== undefined) {
      const isRestored = await restoreDemo(folder);
      return [...heard, ...openDemo(context, asked, isFirst, isRestored)];
    }
    const step = played < demoScript.length - 1 ? demoScript[played] : summarizeDemo;
    const next = await step?.(context, {}, played);
    return [...heard, ...toParts(next ?? "")];
  };
}

interface Scene {
  /** The prompt to answer, without steering messages. */
  asked: string;
  /** It is the first prompt. */
  isFirst: boolean;
  /** Finished steps of the demo; undefined where it is not played. */
  played: number | undefined;
  /** The steering message since the last step. */
  steering: string | undefined;
}

function readScene(messages: readonly Message[], cutShort: PartOptions["cutShort"]): Scene {
  const scene: Scene = { asked: "", isFirst: true, played: undefined, steering: undefined };
  let isAnswered = false;
  // While the model works on a prompt, a user message is steering.
  let isAtWork = false;
  let isOver = true;
  for (const message of messages) {
    if (message.role === "user") {
      const text = textOf(message);
      if (isAtWork && !isOver) {
        scene.steering = text;
      } else {
        // Several messages in a row are one prompt: the output of a command, and a question about it.
        scene.asked = isOver ? text : `${scene.asked}\n${text}`;
        scene.isFirst = !isAnswered;
        scene.played = scene.isFirst || wantsDemo(scene.asked) ? 0 : undefined;
        scene.steering = undefined;
        isAtWork = false;
        isOver = false;
      }
    } else if (message.role === "assistant") {
      const isCalling = message.content.some(({ type }) => type === "toolCall");
      if (isCalling && scene.played !== undefined) scene.played++;
      isAnswered = true;
      isAtWork = true;
      isOver = !isCalling && message.stopReason !== "redirected";
      scene.steering = undefined;
    } else if (message.role === "toolResult" && outcomeOf(message) === "aborted") isOver = true;
    if (cutShort.has(computeMessageKey(message))) isOver = true;
  }
  return scene;
}

/** Identifies a message of a conversation: each request may have another copy of it. */
export function computeMessageKey(message: Message): string {
  const { role, timestamp } = message;
  return role === "toolResult" ? `${role} ${message.toolCallId}` : `${role} ${timestamp}`;
}

function wantsDemo(text: string): boolean {
  return /\bdemo\b/i.test(text);
}

/** Why the demo cannot be played here. */
function findObstacle({ systemPrompt = "", tools = [] }: Context, folder: string | undefined) {
  if (folder === undefined || !systemPrompt.includes(folder)) {
    return "The demo has a folder of its own, and this is another one: here it would change your files. `gyre demo` plays it.";
  }
  const missing = NEEDED_TOOLS.filter((name) => !tools.some((tool) => tool.name === name));
  if (missing.length === 0) return undefined;
  return `The demo needs tools that are not there: ${missing.join(", ")}. Start without --tools to see it.`;
}

function openDemo(
  { tools = [] }: Context,
  asked: string,
  isFirst: boolean,
  isRestored: boolean,
): Part[] {
  const has = (name: string): boolean => tools.some((tool) => tool.name === name);
  const look = has("ls")
    ? [call("ls", { path: "." })]
    : has("find")
      ? [call("find", { pattern: "*" })]
      : [];
  const whatever = isFirst && !wantsDemo(asked) ? `${introduceModel(asked)}\n\n` : "";
  const again = isRestored ? " I have put the bug back first." : "";
  return [
    think("I know nothing of this project yet. What is in it, and what do its tests say?"),
    say(
      `${whatever}Here is the part that I can play, as if you had asked: *${TASK}*${again}\n\nI'll look around and run the tests.`,
    ),
    ...look,
    call("shell", { command: TEST_COMMAND }),
  ];
}

async function summarizeDemo(context: Context): Promise<ScriptAnswer> {
  const run = context.messages.findLast(
    (message) => message.role === "toolResult" && message.toolName === "shell",
  );
  const closing = await demoScript.at(-1)?.(context, {}, demoScript.length - 1);
  if (!run || (run.role === "toolResult" && run.isError)) return closing ?? "";
  return `${typeof closing === "string" ? closing : ""}

| bill | people | before | now |
|---:|---:|---|---|
| 900 | 3 | 300 + 300 + 300 | the same |
| 1000 | 3 | 333 + 333 + 333 = **999** | 334 + 333 + 333 = **1000** |

What is different in \`splitBill\`:

\`\`\`js
${FIXED_CODE.replace(/^ {2}/gm, "").trimEnd()}
\`\`\`

That was my part. ${WAYS}`;
}

const WAYS = `For a real model:

- \`gyre login anthropic\` stores a key, or another service's
- \`gyre --model ollama/NAME\` asks a server on this machine

Say \`demo\` to see me fix a small project with the real tools.`;

function introduceModel(asked: string): string {
  return `I am a scripted model: I play a small part, and no service is asked. So I cannot answer this:\n\n${quote(asked)}`;
}

function answerToSteering(text: string): string {
  return `I have heard you, and cannot weigh it, being scripted; "stop" I understand:\n\n${quote(text)}\n\n`;
}

/** Quotes a part of the prompt, so that it is not mistaken for an answer. */
function quote(text: string): string {
  const short = text.length > MAX_QUOTED_CHARS ? `${text.slice(0, MAX_QUOTED_CHARS)}…` : text;
  const lines = short.trim().split("\n");
  const shown = lines.slice(0, MAX_QUOTED_LINES);
  return [...shown, ...(lines.length > shown.length ? ["…"] : [])]
    .map((line) => `> ${line}`)
    .join("\n");
}

/** Enough to continue: a scripted model needs no memory. */
function summarize({ messages }: Context): string {
  const first = messages.find(({ role }) => role === "user");
  return `A summary by the scripted model, which only knows how the text began:\n\n${quote(first ? textOf(first) : "")}`;
}

type Part = Exclude<ScriptAnswer, readonly unknown[]>;

function toParts(answer: ScriptAnswer): Part[] {
  return isList(answer) ? answer.flat() : [answer];
}

function isList<T, U>(value: T | readonly U[]): value is readonly U[] {
  return Array.isArray(value);
}
