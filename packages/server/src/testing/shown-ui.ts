import type { ShownCall, ShownStep } from "./shown-run.ts";

/** A message of a page, as far as it is looked at here: of any version of the AI SDK. */
interface LooseMessage {
  readonly metadata?: unknown;
  readonly parts: readonly { readonly type: string }[];
}

const STATES: Readonly<Record<string, ShownCall["state"]>> = {
  "output-available": "ok",
  "output-error": "error",
  "output-denied": "denied",
};

/** What a message of a page shows. Calls that were cut off are on the page alone. */
export function showUIMessage(message: LooseMessage | undefined): ShownStep[] {
  const steps: ShownStep[] = [];
  for (const part of message?.parts ?? []) {
    const fields = part as Record<string, unknown>;
    const { type } = part;
    if (type === "step-start") steps.push({ text: "", thinking: "", calls: [] });
    const step = steps.at(-1);
    if (!step) continue;
    if (type === "text") step.text += String(fields["text"]);
    else if (type === "reasoning") step.thinking += String(fields["text"]);
    else if (type.startsWith("tool-") || type === "dynamic-tool") {
      if (fields["providerExecuted"] === true || isCutOff(fields)) continue;
      step.calls.push(showCall(type, fields));
    }
  }
  return steps;
}

function isCutOff({ state, errorText }: Record<string, unknown>): boolean {
  return state === "output-error" && String(errorText).startsWith("The call was cut off before");
}

function showCall(type: string, fields: Record<string, unknown>): ShownCall {
  const { toolCallId, toolName, input, preliminary, errorText, output } = fields;
  const state = preliminary === true ? "open" : (STATES[String(fields["state"])] ?? "open");
  const shown = state === "error" ? errorText : output;
  return {
    id: String(toolCallId),
    name: type === "dynamic-tool" ? String(toolName) : type.slice("tool-".length),
    input,
    state,
    ...((state === "ok" || state === "error") && { output: shown }),
  };
}
