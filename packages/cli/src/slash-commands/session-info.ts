import type { Session } from "@gyre/sessions";
import { asCode } from "../text/markdown-text.ts";
import { sizeText, timeText } from "../text/session-text.ts";
import { oneLine } from "@gyre/coding/internal/text/shown-text";
import { usageDetails } from "../text/usage-text.ts";
import type { SlashCommand, SlashContext } from "./command-context.ts";

/** `/session`: which one this is, and how much is in it. */
export const sessionCommand: SlashCommand = {
  name: "session",
  about: "show what is known of this session",
  allowWhileRunning: true,
  run: (_rest, context) =>
    context.harness.session
      ? sessionText(context.harness.session, context)
      : "Nothing is written to a file yet: a session begins with the first prompt.",
};

/** `/title NAME`: a name by which it is found again. */
export const titleCommand: SlashCommand = {
  name: "title",
  aliases: ["rename"],
  about: "give this session a name",
  hint: "NAME",
  async run(rest, { harness }) {
    const title = oneLine(rest).trim();
    if (title === "") throw new Error("/title needs a name: /title the parser rewrite");
    await harness.start();
    if (!harness.session) {
      throw new Error("There is no session to give a name to: this conversation is not saved.");
    }
    await harness.session.append({ type: "title", title });
    return `This session is called ${asCode(title)} now.`;
  },
};

/** The messages of a session but for those by which the program reports something to the model. */
async function findMessages(session: Session): Promise<ReadonlySet<number>> {
  const found = new Set<number>();
  for (const id of session.findIds("message")) {
    const entry = await session.read(id);
    if (entry.type === "message" && entry.message.role !== "notice") found.add(id);
  }
  return found;
}

async function sessionText(session: Session, { harness, setup }: SlashContext): Promise<string> {
  const { header, path } = session;
  const messages = await findMessages(session);
  const onBranch = session.findBranch().filter((id) => messages.has(id)).length;
  const bytes = session.entries.reduce((sum, entry) => sum + entry.bytes + 1, 0);
  const elsewhere = messages.size - onBranch;
  const origin = header.from?.session ?? header.from?.file;
  return [
    `- id: ${asCode(header.id)}`,
    path === undefined
      ? `- size: ${sizeText(bytes)}`
      : `- file: ${asCode(path)} (${sizeText(bytes)})`,
    `- folder: ${asCode(header.cwd || setup.cwd)}`,
    `- started: ${timeText(header.createdAt)}`,
    ...(origin === undefined ? [] : [`- made from: ${asCode(origin)}`]),
    `- messages: ${onBranch}${elsewhere > 0 ? `, and ${elsewhere} on other branches` : ""}`,
    `- tokens: ${usageDetails(harness.spending.session)}`,
    `- open it in a terminal: ${asCode(`gyre --resume ${header.id}`)}`,
  ].join("\n");
}
