import { listCalls, isLlmMessage } from "@gyre/agent";
import {
  errorMessage,
  type AssistantContent,
  type AssistantMessage,
  describeFile,
  type FileContent,
  type ImageContent,
  isImage,
  isStored,
  loadContent,
  type Message,
  outcomeOf,
  toFile,
  toRecord,
  type ToolCall,
  type ToolResultMessage,
  type UserContent,
} from "@gyre/ai";
import { CitedSources } from "@gyre/ai/service-tools";
import type { Entry, Session } from "@gyre/sessions";
import { listCitedSources, serviceToolText } from "../../../text/service-tool-text.ts";
import { timeText } from "../../../text/session-text.ts";
import { callText } from "../../../text/tool-text.ts";
import { usageDetails } from "../../../text/usage-text.ts";
import { diffLines } from "../transcript/diff-view.ts";
import { EXPORT_STYLE } from "./style.ts";
import { hideSecrets } from "./hide-secrets.ts";
import { htmlText } from "./html-text.ts";
import { markdownHtml, plainHtml } from "./markdown-html.ts";
import { promptText, sentOutputText } from "@gyre/coding/internal/conversation/prompt-text";
import { exitText, type UserCommandMessage } from "@gyre/coding/internal/conversation/user-command";
import { readSpending } from "@gyre/coding/internal/harness/session/spending";
import { oneLine } from "@gyre/coding/internal/text/shown-text";
import { toolView } from "../transcript/tool-view.ts";

/** The mark of a page is within this many bytes of its beginning. */
export const MARK_BYTES = 2_048;
const SHOWN_IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** Marks a page as the export of a session. */
export function exportMark(sessionId: string): string {
  return `<meta name="gyre-session" content="${htmlText(oneLine(sessionId))}">`;
}

/**
 * The conversation of a session as one page, piece by piece: the current branch, with the messages that a compaction
 * has replaced. The page has no scripts and loads nothing; all content is escaped, and what may be a key is redacted.
 */
export async function* sessionHtml(session: Session): AsyncGenerator<string, void> {
  yield await head(session);
  let open: AnswerWithResults | undefined;
  for (const id of listShownIds(session)) {
    const entry = await readEntry(session, id);
    if (entry instanceof Error) {
      yield `<p class="lost">${htmlText(entry.message)}</p>\n`;
      continue;
    }
    const message =
      entry.type === "message" && isLlmMessage(entry.message)
        ? await withImages(entry.message, session)
        : null;
    if (message?.role === "toolResult" && open?.waiting.delete(message.toolCallId)) {
      open.results.set(message.toolCallId, message);
      continue;
    }
    if (open) yield answerHtml(open);
    open = undefined;
    if (entry.type === "message" && entry.message.role === "userCommand") {
      yield section("user", `<h2>You</h2>${userCommandHtml(entry.message)}`);
    } else if (entry.type === "compaction" && entry.message) {
      const inside = contentHtml(entry.message.content, plainHtml);
      yield section(
        "compaction",
        `<details><summary>Summary that the model reads in place of the messages above</summary>${inside}</details>`,
      );
    } else if (message?.role === "user") {
      yield section("user", `<h2>You</h2>${contentHtml(message.content, promptHtml)}`);
    } else if (message?.role === "toolResult") {
      yield section("result", resultHtml(message));
    } else if (message?.role === "assistant") {
      const waiting = new Set(listCalls(message).map((call) => call.id));
      open = { message, results: new Map(), waiting };
    }
  }
  if (open) yield answerHtml(open);
  // Summaries, side questions and other branches were paid for too.
  const { session: paid } = await readSpending(session, undefined);
  yield `<footer><p>Tokens: ${htmlText(usageDetails(paid))}</p></footer>\n</body>\n</html>\n`;
}

/** The message with the contents of its images, where these are in the store of the session. */
async function withImages<M extends Message>(message: M, { files }: Session): Promise<M> {
  const { content } = message;
  if (!files || typeof content === "string") return message;
  const blocks: readonly (UserContent | AssistantContent)[] = content;
  const load = async (block: UserContent | AssistantContent): Promise<typeof block> =>
    isStored(block) && isImage(block) ? ((await loadContent([block], files))[0] ?? block) : block;
  return { ...message, content: await Promise.all(blocks.map(load)) };
}

/** An answer with the results of its calls so far. */
interface AnswerWithResults {
  message: AssistantMessage;
  results: Map<string, ToolResultMessage>;
  waiting: Set<string>;
}

async function head(session: Session): Promise<string> {
  const { createdAt, cwd, id } = session.header;
  const title = htmlText(await findTitle(session));
  // The page may not load anything, whatever its content is.
  const policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
${exportMark(id)}
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<style>${EXPORT_STYLE}</style>
</head>
<body>
<header>
<h1>${title}</h1>
<p>Session ${htmlText(oneLine(id))}, begun ${htmlText(timeText(createdAt))}</p>
<p>${htmlText(oneLine(cwd))}</p>
</header>
`;
}

async function findTitle(session: Session): Promise<string> {
  const titles = new Set(session.findIds("title"));
  const last = session.findBranch().findLast((id) => titles.has(id));
  const entry = last === undefined ? undefined : await readEntry(session, last);
  return entry && !(entry instanceof Error) && entry.type === "title"
    ? oneLine(entry.title)
    : "A session of gyre";
}

function listShownIds(session: Session): number[] {
  const shown = new Set(session.findIds("message", "compaction"));
  return session.findBranch().filter((id) => shown.has(id));
}

/** Without keys: a page is made to be given to others. */
function readEntry(session: Session, id: number): Promise<Entry | Error> {
  return session
    .read(id)
    .then(hideSecrets)
    .catch((error: unknown) => new Error(errorMessage(error)));
}

function section(kind: string, inside: string): string {
  return `<section class="${kind}">${inside}</section>\n`;
}

/** A command of the user. Output that the model does not see is left out. */
function userCommandHtml(ran: UserCommandMessage): string {
  const head = `<p><code>! ${htmlText(oneLine(ran.command))}</code></p>`;
  const output = ran.aside || ran.output === "" ? "" : plainHtml(ran.output);
  return `${head}${foldHtml(exitText(ran), output)}`;
}

/** The prompt of the user, and the names of the commands whose output was sent with it. */
function promptHtml(text: string): string {
  const prompt = promptText({ content: text });
  const below = sentOutputText(text);
  return below === ""
    ? plainHtml(prompt)
    : `${plainHtml(prompt)}<p class="with">${htmlText(oneLine(below))}</p>`;
}

function answerHtml({ message, results }: AnswerWithResults): string {
  const { model, provider, usage } = message;
  const sources = new CitedSources();
  const parts = message.content.map((block) =>
    block.type === "text"
      ? markdownHtml(sources.mark(block.text, block.citations))
      : blockHtml(block, results),
  );
  if (sources.list.length > 0) parts.push(plainHtml(listCitedSources(message.content).join("\n")));
  const error = message.errorMessage;
  if (error !== undefined) parts.push(`<p class="failed">${htmlText(error)}</p>`);
  const name = htmlText(oneLine(`${provider}/${model}`));
  const used = `<p class="usage">${htmlText(usageDetails(usage))}</p>`;
  return section("assistant", `<h2>${name}</h2>${parts.join("")}${used}`);
}

function blockHtml(
  block: AssistantContent,
  results: ReadonlyMap<string, ToolResultMessage>,
): string {
  switch (block.type) {
    case "text":
      return markdownHtml(block.text);
    case "image":
    case "file":
      return fileHtml(block);
    case "thinking":
      return block.redacted ? "" : foldHtml("Thinking", plainHtml(block.thinking));
    case "toolCall":
      return callHtml(block, results.get(block.id));
    case "serviceTool": {
      const { lines, title } = serviceToolText(block);
      const inside = [plainHtml(lines.join("\n")), ...[block.input, block.output].map(jsonHtml)];
      return foldHtml(`<b>${htmlText(title)}</b> (run by the service)`, inside.join(""));
    }
  }
}

function callHtml(call: ToolCall, result: ToolResultMessage | undefined): string {
  const diffs = findDiffs(result?.details);
  const failed = result?.isError ? ` ${endHtml(call.name, result)}` : "";
  const name = `<b>${htmlText(oneLine(call.name))}</b>`;
  const summary = `${name} ${htmlText(oneLine(callText(call.name, call.arguments).about))}${failed}`;
  // A diff shows the same as the arguments and is easier to read.
  const asked = diffs.length > 0 ? "" : argumentsHtml(call);
  const given = result ? contentHtml(result.content, outputHtml) : `<p>There is no result.</p>`;
  const inside = diffs.length > 0 ? diffs.map(diffHtml).join("") : asked + given;
  return foldHtml(summary, inside, diffs.length > 0);
}

/** A denied call is not shown as failed. */
function endHtml(tool: string, result: ToolResultMessage): string {
  const { reason } = result;
  const view = toolView(tool, { result, outcome: outcomeOf(result), reason });
  if (view.end !== "refused") return `<span class="failed">failed</span>`;
  return `<span class="refused">${htmlText(oneLine(view.facts.join(", ")))}</span>`;
}

function resultHtml({ toolName, content }: ToolResultMessage): string {
  return foldHtml(
    `A result of <b>${htmlText(oneLine(toolName))}</b>`,
    contentHtml(content, outputHtml),
  );
}

function argumentsHtml({ arguments: given, rawArguments }: ToolCall): string {
  if (rawArguments !== undefined) return outputHtml(rawArguments);
  const lines = Object.entries(given).map(
    ([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  return lines.length === 0 ? "" : outputHtml(lines.join("\n"));
}

/** The unified diffs in the details of tools that change files. */
function findDiffs(details: unknown): string[] {
  const { diff, files } = toRecord(details);
  if (typeof diff === "string") return [diff];
  return Array.isArray(files) ? files.flatMap(findDiffs) : [];
}

function diffHtml(diff: string): string {
  const lines = diffLines(diff).map(({ kind, text }) =>
    kind === undefined ? htmlText(text) : `<span class="${kind}">${htmlText(text)}</span>`,
  );
  return `<pre>${lines.join("\n")}</pre>`;
}

function foldHtml(summary: string, inside: string, isOpen = false): string {
  return `<details${isOpen ? " open" : ""}><summary>${summary}</summary>${inside}</details>`;
}

function contentHtml(
  content: string | readonly UserContent[],
  textHtml: (text: string) => string,
): string {
  if (typeof content === "string") return textHtml(content);
  return content
    .map((block) => (block.type === "text" ? textHtml(block.text) : fileHtml(block)))
    .join("");
}

function outputHtml(text: string): string {
  return `<pre>${htmlText(text)}</pre>`;
}

function jsonHtml(value: unknown): string {
  if (value === undefined) return "";
  return outputHtml(typeof value === "string" ? value : JSON.stringify(value, null, 2));
}

/** An image with its contents is shown; of any other file its name, type and size. */
function fileHtml(block: ImageContent | FileContent): string {
  const { mediaType: mimeType, source } = toFile(block);
  if (block.type === "image" || (source.type === "base64" && isImage(block))) {
    const data = source.type === "base64" ? source.data : "";
    return imageHtml({ data, mimeType });
  }
  return `<p class="file">${htmlText(oneLine(describeFile(block)))}</p>`;
}

/** Only formats that cannot contain scripts are shown. */
function imageHtml({ data, mimeType }: Pick<ImageContent, "data" | "mimeType">): string {
  if (!SHOWN_IMAGES.has(mimeType) || !BASE64.test(data)) {
    return `<p>(a picture that is not shown: ${htmlText(oneLine(mimeType))})</p>`;
  }
  return `<img alt="" src="data:${mimeType};base64,${data}">`;
}
