import type { PlanAnswer } from "@gyre/coding/internal/conversation/plan";
import { MODES } from "@gyre/coding/internal/text/choices";
import type { PermissionMode } from "@gyre/tools";
import type { Theme } from "../terminal/theme.ts";
import type { Panel } from "../ui/ui.ts";
import { SelectPanel } from "./select.ts";
import { TextPanel } from "./text.ts";

/** The modes that a plan can be carried out in. */
const OFFERED: readonly PermissionMode[] = ["auto", "auto-edit", "ask"];

/** What the question works with. */
export interface PlanPlace {
  theme: Theme;
  /** The modes that may be chosen. */
  modes: readonly PermissionMode[];
  say(markdown: string): void;
  open<T>(panel: Panel<T>): Promise<T | undefined>;
  withdraw(panel: Panel<unknown>): void;
  /** Has the user edit the plan. Undefined: it stays as it was. */
  edit(plan: string): Promise<string | undefined>;
}

type Choice = PermissionMode | "edit" | "revise";

/** Shows a plan, and asks whether it is carried out. Undefined: the question was left. */
export async function reviewPlan(
  given: string,
  signal: AbortSignal,
  place: PlanPlace,
): Promise<PlanAnswer | undefined> {
  let plan = given;
  place.say(plan);
  for (;;) {
    const choice = await ask(place, signal);
    if (choice === undefined) return undefined;
    if (choice === "revise") {
      const title = "What is missing in the plan?";
      const reason = await openUntil(new TextPanel({ title }, place.theme), place, signal);
      if (reason !== undefined && reason.trim() !== "") return { approve: false, reason };
    } else if (choice === "edit") {
      const edited = await place.edit(plan);
      if (edited !== undefined && edited.trim() !== "" && edited !== plan) {
        plan = edited;
        place.say(plan);
      }
    } else return { approve: true, mode: choice, plan };
  }
}

function ask(place: PlanPlace, signal: AbortSignal): Promise<Choice | undefined> {
  const panel = new SelectPanel<Choice>(
    {
      title: "Carry out this plan?",
      choices: [
        ...OFFERED.filter((mode) => place.modes.includes(mode)).map((mode) => ({
          value: mode,
          label: `Yes, in mode ${mode}`,
          detail: MODES[mode].description,
        })),
        { value: "edit", label: "Edit the plan" },
        { value: "revise", label: "Not yet: say what is missing" },
      ],
      requiresConfirmation: true,
    },
    place.theme,
  );
  return openUntil(panel, place, signal);
}

/** Opens a panel, which is withdrawn where its answer does not matter any more. */
async function openUntil<T>(
  panel: Panel<T>,
  place: PlanPlace,
  signal: AbortSignal,
): Promise<T | undefined> {
  if (signal.aborted) return undefined;
  const withdraw = (): void => place.withdraw(panel);
  signal.addEventListener("abort", withdraw, { once: true });
  try {
    return await place.open(panel);
  } finally {
    signal.removeEventListener("abort", withdraw);
  }
}
