import type { Choice } from "@gyre/coding/internal/conversation/command";
import { type ModelChoice, modelValue, withCurrentModel } from "@gyre/coding/internal/text/choices";
import type { SlashCommand, SlashContext } from "./command-context.ts";

/** Shown where a change makes the next requests begin differently. */
export const CACHE_NOTE = "The service's cache starts over: the next request is paid in full.";

/** `/model [NAME]`: takes another model, from a list where none is named. */
export const modelCommand: SlashCommand = {
  name: "model",
  aliases: ["models"],
  about: "show the models, or take another one",
  hint: "name of a model; name:level",
  allowWhileRunning: true,
  async run(rest, context) {
    const { harness } = context;
    const before = modelValue(harness.model);
    const { thinkingLevel: levelBefore } = harness.agent.state;
    const name = rest === "" ? await chooseModel(context, before) : rest;
    if (name === undefined) return undefined;
    const now = modelValue(await harness.setModel(name));
    const { thinkingLevel } = harness.agent.state;
    const level = thinkingLevel === levelBefore ? "" : ` Thinking is ${thinkingLevel}.`;
    const isPaid = now !== before && harness.agent.state.messages.length > 0;
    return `The model is ${now} now.${level}${isPaid ? ` ${CACHE_NOTE}` : ""}`;
  },
  complete: async (_rest, context) => (await listModels(context)).map(toChoice),
};

async function chooseModel(context: SlashContext, current: string): Promise<string | undefined> {
  const models = await listModels(context);
  const choices = models.map((model): Choice<string> => {
    const choice = toChoice(model);
    return model.value === current ? { ...choice, detail: `${choice.detail} · now` } : choice;
  });
  const start = models.findIndex(({ value }) => value === current);
  return context.choose({ title: "Which model?", choices, start, filter: true });
}

async function listModels({ harness, models }: SlashContext): Promise<readonly ModelChoice[]> {
  return withCurrentModel(await models(), harness.model);
}

function toChoice({ value, name }: ModelChoice): Choice<string> & { detail: string } {
  return { value, label: value, detail: name };
}
