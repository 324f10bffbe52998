import type {
  SessionConfigOption,
  SessionConfigSelectOption,
  SessionModeState,
} from "@agentclientprotocol/sdk";
import {
  type ModelChoice,
  MODES,
  modelValue,
  THINKING,
  withCurrentModel,
} from "@gyre/coding/internal/text/choices";
import type { Harness } from "@gyre/coding/internal/harness/harness";

export type ConfigId = "model" | "mode" | "thinking";

/** What can be set, with what is set now. */
export function configOptions(
  harness: Pick<Harness, "agent" | "mode" | "modes" | "model">,
  choices: readonly ModelChoice[],
): SessionConfigOption[] {
  const models = withCurrentModel(choices, harness.model);
  const modes = harness.modes.map((value) => ({ value, ...MODES[value] }));
  const levels = Object.entries(THINKING).map(([value, name]) => ({ value, name }));
  return [
    select("mode", "Mode", "mode", harness.mode, modes),
    select("model", "Model", "model", modelValue(harness.model), models),
    select("thinking", "Thinking", "thought_level", harness.agent.state.thinkingLevel, levels),
  ];
}

/** The same for editors that know modes only. */
export function modeState({ mode, modes }: Pick<Harness, "mode" | "modes">): SessionModeState {
  const availableModes = modes.map((id) => ({ id, ...MODES[id] }));
  return { currentModeId: mode, availableModes };
}

function select(
  id: ConfigId,
  name: string,
  category: string,
  currentValue: string,
  options: readonly SessionConfigSelectOption[],
): SessionConfigOption {
  return { type: "select", id, name, category, currentValue, options: [...options] };
}
