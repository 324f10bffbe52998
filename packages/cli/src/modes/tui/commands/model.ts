import { type ModelChoice, modelValue } from "../../../text/choices.ts";
import { COMMAND_ABOUTS, COMMAND_HINTS, takeModel } from "../../../text/command-text.ts";
import type { Choice, CommandWorld, TerminalCommand } from "../ui/ui.ts";

/** Said where what is set changes the beginning of the requests to come. */
export const CACHE_NOTE = "The service's cache starts anew: the next request is paid in full.";

/** `/model [NAME]`: takes another model, from a list where none is named. */
export const modelCommand: TerminalCommand = {
  name: "model",
  about: COMMAND_ABOUTS.model,
  hint: COMMAND_HINTS.model,
  anytime: true,
  async run(rest, world) {
    const { harness, ui } = world;
    const before = modelValue(harness.model);
    const name = rest === "" ? await chosenModel(world, before) : rest;
    if (name === undefined) return;
    const said = await takeModel(name, harness);
    const isOther = modelValue(harness.model) !== before;
    ui.say(isOther && harness.agent.state.messages.length > 0 ? `${said} ${CACHE_NOTE}` : said);
  },
  async complete(_rest, world) {
    return (await modelsOf(world)).map(choiceOf);
  },
};

async function chosenModel(world: CommandWorld, current: string): Promise<string | undefined> {
  const models = await modelsOf(world);
  const choices = models.map((model): Choice<string> => {
    const choice = choiceOf(model);
    return model.value === current ? { ...choice, detail: `${choice.detail} · now` } : choice;
  });
  const start = models.findIndex(({ value }) => value === current);
  return world.ui.choose({ title: "Which model?", choices, start, filter: true });
}

/** Those that there is a key for, and the one that is set. */
async function modelsOf({ harness, io, setup }: CommandWorld): Promise<readonly ModelChoice[]> {
  const { usableModels } = await import("../../../models/usable-models.ts");
  const models = await usableModels(setup.settings, io.env);
  const value = modelValue(harness.model);
  const isListed = models.some((model) => model.value === value);
  return isListed ? models : [{ value, name: harness.model.name }, ...models];
}

function choiceOf({ value, name }: ModelChoice): Choice<string> & { detail: string } {
  return { value, label: value, detail: name };
}
