import type { Choice } from "@gyre/coding/internal/conversation/command";
import { type ModelChoice, modelValue, withCurrentModel } from "@gyre/coding/internal/text/choices";
import type { ShownCommand, ShownContext } from "./command-context.ts";

/** Shown where a change makes the next requests begin differently. */
export const CACHE_NOTE = "The service's cache starts over: the next request is paid in full.";

const THOUSAND = 1_000;
const MILLION = 1_000_000;
const ABOUT = "Window in tokens · US dollars for a million tokens, in / out";

/** `/model [NAME]`: takes another model, from a list where none is named. */
export const modelCommand: ShownCommand = {
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

async function chooseModel(context: ShownContext, current: string): Promise<string | undefined> {
  const models = await listModels(context);
  const choices = models.map((model): Choice<string> => {
    const choice = toChoice(model);
    return model.value === current ? { ...choice, detail: `${choice.detail} · now` } : choice;
  });
  const start = models.findIndex(({ value }) => value === current);
  return context.choose({
    title: "Which model?",
    about: [ABOUT],
    choices,
    start,
    filter: true,
  });
}

async function listModels({ harness, models }: ShownContext): Promise<readonly ModelChoice[]> {
  return withCurrentModel(await models(), harness.model);
}

function toChoice(model: ModelChoice): Choice<string> & { detail: string } {
  const { value, name, contextWindow, price } = model;
  const facts = [
    name,
    ...(contextWindow === undefined ? [] : [formatWindow(contextWindow)]),
    ...(price ? [`${formatPrice(price.input)} / ${formatPrice(price.output)}`] : []),
  ];
  return { value, label: value, detail: facts.join(" · ") };
}

/** `200k`, `1M`. */
function formatWindow(tokens: number): string {
  const [value, unit] = tokens < MILLION ? [tokens / THOUSAND, "k"] : [tokens / MILLION, "M"];
  return `${Number(value.toFixed(1))}${unit}`;
}

function formatPrice(price: number | undefined): string {
  return price === undefined ? "?" : `$${price}`;
}
