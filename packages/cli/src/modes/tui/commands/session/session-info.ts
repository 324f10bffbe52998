import { isLlmMessage } from "@gyre/agent";
import { addUsage, type Usage } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import { sizeText, timeText } from "../../../../text/session-text.ts";
import { dollars } from "../../../../text/dollars.ts";
import { oneLine } from "../../panels/text.ts";
import type { CommandWorld, TerminalCommand } from "../../ui/ui.ts";
import { asCode } from "../session-words.ts";

/** `/session`: which one this is, and how much is in it. */
export const sessionCommand: TerminalCommand = {
  name: "session",
  about: "what is known of this session",
  anytime: true,
  run(_rest, world) {
    const { session } = world.harness;
    world.ui.say(
      session
        ? sessionText(session, world)
        : "Nothing is written down yet: a session begins with the first prompt.",
    );
  },
};

/** `/title NAME`: a name by which it is found again. */
export const titleCommand: TerminalCommand = {
  name: "title",
  about: "give this session a name",
  hint: "NAME",
  async run(rest, { harness, ui }) {
    const title = oneLine(rest).trim();
    if (title === "") throw new Error("/title needs a name: /title the parser rewrite");
    await harness.start();
    if (!harness.session) {
      throw new Error("There is no session to give a name to: nothing is written down here.");
    }
    await harness.session.append({ type: "title", title });
    ui.say(`This session is called ${asCode(title)} now.`);
  },
};

function sessionText(session: Session, { harness, setup }: CommandWorld): string {
  const { header, path } = session;
  const messages = new Set(session.findIds("message"));
  const onBranch = session.findBranch().filter((id) => messages.has(id)).length;
  const bytes = session.entries.reduce((sum, entry) => sum + entry.bytes + 1, 0);
  const elsewhere = messages.size - onBranch;
  const origin = header.from?.session ?? header.from?.file;
  return [
    `- id: ${asCode(header.id)}`,
    `- file: ${asCode(path)} (${sizeText(bytes)})`,
    `- folder: ${asCode(header.cwd || setup.cwd)}`,
    `- begun: ${timeText(header.createdAt)}`,
    ...(origin === undefined ? [] : [`- made from: ${asCode(origin)}`]),
    `- messages: ${onBranch}${elsewhere > 0 ? `, and ${elsewhere} on other branches` : ""}`,
    `- tokens: ${usageText(usageIn(harness))}`,
  ].join("\n");
}

/** What the answers that the model still sees have used. */
function usageIn({ agent }: CommandWorld["harness"]): Usage {
  let usage: Usage = {};
  for (const message of agent.state.messages) {
    if (isLlmMessage(message) && message.role === "assistant") {
      usage = addUsage(usage, message.usage);
    }
  }
  return usage;
}

/** Tokens and cost for people: what is not known is not told. */
export function usageText(usage: Usage): string {
  const { cacheRead, cacheWrite, cost, input, output } = usage;
  const parts = [
    [input, "in"],
    [output, "out"],
    [cacheRead, "read from the cache"],
    [cacheWrite, "written to the cache"],
  ] as const;
  const told = parts.flatMap(([count, what]) =>
    count ? [`${count.toLocaleString("en")} ${what}`] : [],
  );
  if (cost) told.push(dollars(cost.total));
  return told.length === 0 ? "not known" : told.join(" · ");
}
