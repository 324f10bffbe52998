import { ANSWER_TOOL, type Decision, type Middleware, type ToolInvocation } from "@gyre/agent";
import {
  type ApprovalAnswer,
  type ApprovalRequest,
  type Confinement,
  getConfinement,
  permissions,
  RuleError,
  TOOLS,
  type Toolset,
} from "@gyre/tools";
import { CodingAgentError } from "../core/errors.ts";
import type { DoubtfulCall } from "@gyre/tools/taint";
import type { TaintWatch } from "../permissions/taint-watch.ts";
import { readHostRule } from "../permissions/rule-book.ts";
import type { SessionLog } from "./session/session-log.ts";
import type { HarnessOptions, ModeState, Parts } from "./types.ts";

/** Decides which calls run, as the settings say; what is denied is noted. */
export function permissionsFor(
  { options, settings, mode, denied, extensions, ruleBook }: Parts,
  toolset: Toolset,
  log: Pick<SessionLog, "ask" | "decide">,
  taint?: TaintWatch,
): Middleware {
  const { approvals, warn, explicit, ceilings, ownTools = [] } = options;
  const { policy, nameOption, rehearse = false } = options;
  const { allow = [], ask = [], deny = [] } = settings;
  let isReported = false;
  const findConfinement = async (): Promise<Confinement> => {
    const sandbox = await toolset.env.sandbox();
    const { missing } = sandbox;
    if (missing !== undefined && !isReported) {
      isReported = true;
      const denied = policy?.guards.confinedOnly;
      warn(`${denied ?? "Commands run without a sandbox, and are asked about."} ${missing}`);
    }
    return getConfinement(sandbox);
  };
  const guard = asUsage(
    () =>
      permissions({
        mode: () => mode.now,
        rules: {
          allow: [...allow, ...ruleBook.all.map(({ rule }) => rule)].filter(isCallRule),
          ask: [...new Set([...(policy?.rules.ask ?? []), ...ask])],
          deny: [...new Set([...(policy?.rules.deny ?? []), ...deny])],
        },
        givenRules: () => ruleBook.all.map(({ rule }) => rule).filter(isCallRule),
        isRevoked: (rule) => ruleBook.isRevoked(rule),
        sandboxed: findConfinement,
        workspace: toolset.env.workspace,
        ...(ceilings && { confinedOnly: !ceilings.unsandboxed }),
        ...policy?.guards,
        ...(taint && { doubt: (about: DoubtfulCall) => taint.doubt(about) }),
        ...((extensions || ownTools.length > 0) && {
          tools: [...TOOLS, ...ownTools, ...(extensions?.tools ?? [])],
        }),
        ...(extensions && {
          advice: (call: ToolInvocation) => extensions.advice(call),
        }),
        rehearse: rehearse && settings.effects !== false,
        ...(approvals === "deny" && { headless: true, outsideHint: nameFolderOption(nameOption) }),
        ...(typeof approvals === "function" && {
          async ask(request: ApprovalRequest): Promise<ApprovalAnswer> {
            const { callId, reason, access, fingerprint } = request;
            // After a crash the same is asked again.
            await log.ask(callId, {
              reason,
              fingerprint,
              ...(access && { access: { ...access } }),
            });
            const answer = await approvals(request);
            // What a command did in a layer is gone after a crash: it is asked about again.
            const approved = request.effects ? `effects of ${fingerprint}` : fingerprint;
            await log.decide({ [callId]: toDecision(answer, approved) });
            if (answer.allow === "always") {
              const { rule, moreRules = [], scope = "session" } = answer;
              for (const each of [rule, ...moreRules]) {
                await ruleBook.add(each, scope);
                await taint?.addRule(each);
              }
            }
            return answer;
          },
        }),
        onDecision: ({ callId, effect, reason, tool, summary, rule, asked }) => {
          if (effect !== "suspend") taint?.decide(callId, asked && effect === "allow");
          if (effect !== "deny") return;
          const more = {
            ...(summary !== undefined && { summary }),
            ...(rule !== undefined && { rule }),
          };
          denied.push({ toolCallId: callId, tool, reason, ...more });
        },
      }),
    ({ effect, rule }) => {
      if (effect !== "allow" && policy?.rules[effect]?.includes(rule)) {
        return `the policy ${policy.path}`;
      }
      // Rules that were asked for just now are added to those of the files.
      const option = nameOption?.(effect) ?? `--${effect}`;
      const setting = `"${effect}" in the settings`;
      return explicit?.has(effect) ? `${option}, or of ${setting}` : setting;
    },
  );
  return {
    ...guard,
    async tool(call, next) {
      // The tool that gives a typed answer is the agent's own, and has no effect.
      const isAnswer = call.tool.name === ANSWER_TOOL && !toolset.registry.has(ANSWER_TOOL);
      if (isAnswer || !guard.tool) return next();
      // What only reads is allowed in every mode, and does not wait for a sandbox to be tried out.
      // That there is none is reported where a command is about to run.
      if (!READS.has(call.tool.presentation?.kind)) {
        await settleMode(mode, async () => getConfinement(await toolset.env.sandbox()));
      }
      return guard.tool(call, next);
    },
  };
}

function nameFolderOption(nameOption: HarnessOptions["nameOption"]): string {
  const option = nameOption ? "The option `addDirs`" : "`--add-dir FOLDER`";
  return `${option} adds a folder to the workspace.`;
}

const READS: ReadonlySet<string | undefined> = new Set(["read", "search"]);

/** Rules for hosts are not about calls. */
function isCallRule(rule: string): boolean {
  return readHostRule(rule) === undefined;
}

/** Mode `auto` is a default only where a sandbox holds: elsewhere it is `ask` from the first call on. */
export async function settleMode(
  mode: ModeState,
  findConfinement: () => Promise<Confinement>,
): Promise<void> {
  if (!mode.isAssumed) return;
  const confinement = await findConfinement();
  // A person may have chosen one meanwhile.
  if (mode.isAssumed && confinement !== true) mode.now = "ask";
  mode.isAssumed = false;
}

/** A rule that is wrong is an error in what the user wrote. */
function asUsage<T>(make: () => T, findPlace: (error: RuleError) => string): T {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof RuleError)) throw error;
    const { problem, rule } = error;
    const message = `A rule of ${findPlace(error)}, ${JSON.stringify(rule)}, is wrong: ${problem}`;
    throw new CodingAgentError("bad_option", message, { cause: error });
  }
}

function toDecision(answer: ApprovalAnswer, fingerprint: string): Decision {
  if (answer.allow !== false) return { type: "approve", fingerprint };
  const { reason } = answer;
  return { type: "deny", ...(reason !== undefined && { reason }) };
}
