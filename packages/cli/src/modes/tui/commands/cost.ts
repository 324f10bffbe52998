import { type AgentMessage, isLlmMessage } from "@gyre/agent";
import { addUsage, totalTokens, type Usage } from "@gyre/ai";
import {
  cacheShare,
  COMMAND_ABOUTS,
  costOf,
  count,
  usageText,
} from "../../../text/command-text.ts";
import type { TerminalCommand } from "../ui/ui.ts";
import { codeCell, table } from "./markdown-text.ts";

/** What the answers of a conversation have used. */
export interface Spending {
  session: Usage;
  /** Since the user said something last. */
  prompt: Usage;
  /** By service/id, in the order in which they were asked first. */
  models: ReadonlyMap<string, Usage>;
}

/** `/cost`: what the session and the last prompt have used, by model. */
export const costCommand: TerminalCommand = {
  name: "cost",
  about: COMMAND_ABOUTS.cost,
  anytime: true,
  run(_rest, { harness, ui }) {
    const { session, prompt, models } = spendingOf(harness.agent.state.messages);
    const rows = [...models].map(([name, usage]) => [
      codeCell(name),
      count(totalTokens(usage)),
      costOf(usage),
      cacheText(usage),
    ]);
    ui.say(
      [
        `The session: ${usageText(session)}${cached(session)}`,
        `Since your last message: ${usageText(prompt)}${cached(prompt)}`,
        ...(rows.length > 1 ? [table(["model", "tokens", "cost", "from the cache"], rows)] : []),
      ].join("\n\n"),
    );
  },
};

/** What was used, by the answers of a transcript. */
export function spendingOf(messages: readonly AgentMessage[]): Spending {
  const models = new Map<string, Usage>();
  let session: Usage = {};
  let prompt: Usage = {};
  for (const message of messages) {
    if (!isLlmMessage(message)) continue;
    if (message.role === "user") prompt = {};
    if (message.role !== "assistant") continue;
    const { provider, model, usage } = message;
    const name = `${provider}/${model}`;
    session = addUsage(session, usage);
    prompt = addUsage(prompt, usage);
    models.set(name, addUsage(models.get(name) ?? {}, usage));
  }
  return { session, prompt, models };
}

function cached(usage: Usage): string {
  return cacheShare(usage) === undefined ? "" : ` ${cacheText(usage)} of the input was cached.`;
}

function cacheText(usage: Usage): string {
  const share = cacheShare(usage);
  return share === undefined ? "-" : `${Math.round(share * 100)} %`;
}
