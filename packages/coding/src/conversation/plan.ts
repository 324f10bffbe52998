import type { AgentMessage } from "@gyre/agent";
import type { GuardedTool, PermissionMode, Todo } from "@gyre/tools";
import { planPresentation } from "@gyre/tools/catalog";
import type { NoticeMessage } from "./notice.ts";

/** The tool by which a model shows its plan. It is there in mode `plan`, where a person can be asked. */
export const PLAN_TOOL = "plan";
/** The tool by which it keeps the list of steps while it carries a plan out. */
export const TODO_TOOL = "todo";
/** A person may read it tomorrow. */
const REVIEW_TIMEOUT_MS = 7 * 24 * 3_600_000;
/** Of a step, in the list. */
const MAX_STEP_CHARS = 120;
const MAX_STEPS = 30;
const STEP = /^ {0,3}(?:\d+[.)]|[-*] \[[ x]\])\s+(.+)$/gm;

/** What a person says to a plan. */
export type PlanAnswer =
  /** It is carried out in this mode, as `plan` says, which the person may have edited. */
  | { approve: true; mode: PermissionMode; plan: string }
  /** It needs more work. */
  | { approve: false; reason: string };

/** Asks a person. Undefined: the question was left. */
export type ReviewPlan = (plan: string, signal: AbortSignal) => Promise<PlanAnswer | undefined>;

/** `carryOut` is called with an approved plan before the model gets to know of it. */
export function planTool(
  review: ReviewPlan,
  carryOut: (answer: Extract<PlanAnswer, { approve: true }>) => Promise<void>,
): GuardedTool {
  return {
    name: PLAN_TOOL,
    label: "Plan",
    description: "Show the user your plan for approval.",
    parameters: {
      type: "object",
      properties: { plan: { type: "string", description: "Markdown, numbered steps" } },
      required: ["plan"],
    },
    presentation: planPresentation,
    timeoutMs: REVIEW_TIMEOUT_MS,
    access: () => ({ kind: "none", targets: [], summary: "Shows a plan." }),
    async execute({ plan }, { signal }) {
      const given = String(plan);
      const answer = await review(given, signal);
      if (!answer) throw new Error("The user has not decided on it. Wait for what they say.");
      if (!answer.approve) return `Not approved: ${answer.reason} Go on planning.`;
      await carryOut(answer);
      const edited =
        answer.plan === given ? "" : `\nThe user has edited it. This is the plan:\n${answer.plan}`;
      return `Approved. The mode is ${answer.mode} now: carry it out, and keep the list of steps with the tool ${TODO_TOOL}.${edited}`;
    },
  };
}

/** The numbered steps of a plan, to be done. */
export function listSteps(plan: string): Todo[] {
  return [...plan.matchAll(STEP)].slice(0, MAX_STEPS).map(([, text = ""]) => ({
    content: text.replaceAll(/[*`_]/g, "").slice(0, MAX_STEP_CHARS),
    status: "pending",
  }));
}

/** What the model has to know of the mode, if it does not: only plan is unlike the others. */
export function noticeOfMode(
  mode: PermissionMode,
  announced: string | undefined,
  hasTool: boolean,
): NoticeMessage | undefined {
  if ((mode === "plan") === (announced === "plan")) return undefined;
  const end = hasTool
    ? `call the tool ${PLAN_TOOL} with it: it is carried out once the user has approved it`
    : "write it as your answer";
  const text =
    mode === "plan"
      ? `The mode is plan. Look at whatever you need: files, ls, git log. Change nothing. When you have a plan, ${end}.`
      : `The mode is ${mode}: you may make changes again.`;
  return { role: "notice", text, summary: `mode ${mode}`, mode, timestamp: Date.now() };
}

/** The mode that the conversation states last. */
export function findAnnounced(messages: readonly AgentMessage[]): string | undefined {
  const last = messages.findLast(
    (message) => message.role === "notice" && message.mode !== undefined,
  );
  return last?.role === "notice" ? last.mode : undefined;
}
