import { createHash } from "node:crypto";
import { isAbsolute, join, posix, sep } from "node:path";
import {
  type AgentTool,
  DeniedError,
  type Middleware,
  type PendingCall,
  Suspend,
  type SuspendQuestion,
  type ToolInvocation,
} from "@gyre/agent";
import { errorMessage, validateToolArguments } from "@gyre/ai";
import { type Access, isGuarded } from "../contract/access.ts";
import type { CommandParts } from "./command/parts.ts";
import type { EffectsReport, Rehearsal, ShownEffect } from "../contract/rehearsal.ts";
import { type RanCall, Rehearsals } from "./rehearsals.ts";
import type { DoubtfulCall } from "./taint/taint.ts";
import type { Danger } from "./danger/explain.ts";
import { ruleFor } from "./rule-for.ts";
import { type Verdict, type RuleList, Rules, type Subject, type RuleTool } from "./rules.ts";
import { sanitize } from "@gyre/ai/text";
import type { Confinement } from "../sandbox/sandbox.ts";
import { isBeside } from "../workspace/added.ts";
import { addReadRule, type ReadRule } from "../workspace/read-rules.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { addRedirectRule, type RedirectRule } from "../web/fetch/redirect-rules.ts";
import { grantNetwork } from "../web/proxy/grants.ts";

/**
 * How much an agent may do without being asked about:
 *
 * | access                        | ask   | auto-edit | auto  | plan  | full  |
 * |-------------------------------|-------|-----------|-------|-------|-------|
 * | none, read, agent             | allow | allow     | allow | allow | allow |
 * | read outside of the workspace | ask   | ask       | ask   | ask   | ask   |
 * | write inside of the workspace | ask   | allow     | allow | deny  | allow |
 * | run what only shows something | allow | allow     | allow | allow | allow |
 * | run in a sandbox              | ask   | ask       | allow | deny  | allow |
 * | the same, with a danger       | ask   | ask       | ask   | deny  | allow |
 * | run where none can be had     | ask   | ask       | ask   | deny  | ask   |
 * | network                       | ask   | ask       | ask   | ask   | allow |
 * | destructive                   | ask   | ask       | ask   | deny  | allow |
 * | outside of the sandbox        | ask   | ask       | ask   | deny  | ask   |
 * | a tool without `access`       | ask   | ask       | ask   | deny  | allow |
 *
 * What `doubt` objects to is asked about in all modes but `full`.
 * A danger of a command: it needs the network, names something outside of the workspace, or
 * cannot be undone.
 * A rule that denies or asks takes precedence over this table. A rule that allows turns "ask" into
 * "allow", but for what is destructive. What leaves the sandbox is allowed in `full` alone, and
 * only by a rule that says so: `shell(unsandboxed: ...)`.
 * A command is allowed by rules only if every part of it is and nothing about it is
 * unclear; without a sandbox, only by rules without wildcards.
 */
export type PermissionMode = "ask" | "auto-edit" | "auto" | "plan" | "full";

const MODES: ReadonlySet<unknown> = new Set<PermissionMode>([
  "ask",
  "auto-edit",
  "auto",
  "plan",
  "full",
]);

/** A call that a person is to decide on. `access` and `reason` are safe to show; `args` are not. */
export interface ApprovalRequest {
  callId: string;
  tool: string;
  args: Record<string, unknown>;
  /** What it would do, links followed. Absent for a tool without `access`. */
  access?: Access;
  /** Why it is asked about. */
  reason: string;
  /** The parts of `reason`, where the mode alone asks. */
  byMode?: QuestionOfMode;
  /** What is delicate about a command. */
  danger?: Danger;
  /** A sandbox is around the command: rules with wildcards can allow it. */
  isConfined?: boolean;
  /** Of tool, arguments and all that `access` says: what is approved is exactly this. */
  fingerprint: string;
  /** Fires when the answer does not matter any more. */
  signal?: AbortSignal;
  /** The call that this one is made for. */
  parentId?: string;
  /** It ran already, in a layer over the workspace: an approval keeps what it did, a denial discards it. */
  effects?: EffectsReport;
}

/** A mode does not allow what a call does, and no rule does. */
export interface QuestionOfMode {
  mode: PermissionMode;
  /** The kind of access, or the tool where that is not known. */
  about: string;
  /** What makes it more delicate: sentences that are safe to show. */
  notes: readonly string[];
}

/** How long a rule of an answer holds, where the program keeps such rules. Default: "session". */
export type RuleScope = "session" | "project" | "everywhere";

/** What a person says to an `ApprovalRequest`. */
export type ApprovalAnswer =
  /**
   * This once. `fingerprint` is that of the request. Of a call that has `effects`, `keep` names those that are
   * kept, all without it; with `direct` they are discarded, and it runs without a layer.
   */
  | { allow: true; fingerprint: string; keep?: readonly number[]; direct?: boolean }
  /** This once, and from now on whatever the rules allow: as long as the process lives, unless the program keeps them. */
  | { allow: "always"; rule: string; moreRules?: readonly string[]; scope?: RuleScope }
  | { allow: false; reason?: string };

/** What became of a call, for a log. */
export interface PermissionDecision {
  callId: string;
  tool: string;
  effect: "allow" | "deny" | "suspend";
  /** The rule, the mode or the person's words. */
  reason: string;
  /** A person was asked, or had been. */
  asked: boolean;
  /** What it would do, on one line that is safe to show. Absent where that is not known. */
  summary?: string;
  /** A rule that would allow a call which was denied because no person can be asked. */
  rule?: string;
}

/** What a hook says of one call. It counts as a rule of that effect would. */
export interface Advice {
  effect: "allow" | "ask" | "deny";
  /** For people, as a sentence. */
  reason: string;
}

/** What decides on a call: mode, rules, and a person to ask. */
export interface PermissionSetup {
  /** Default "ask". A function is called for each call, and may change its mind. */
  mode?: PermissionMode | (() => PermissionMode);
  rules?: RuleList;
  /**
   * Asks a person. Without it the run is suspended, and the approval comes with
   * `continue({decisions})`: see `approvalRequest`.
   */
  ask?: (request: ApprovalRequest) => Promise<ApprovalAnswer>;
  /**
   * Commands that would be asked about run in a layer over the workspace first, where that is possible, and `ask`
   * gets what they did, or `access.question.effects` of the pending call; harmless effects that mode or rules
   * allow are kept without a question. Default false.
   */
  rehearse?: boolean;
  /** No person can be asked, now or later: what would be asked about is denied. */
  headless?: boolean;
  /**
   * Whether commands run in a sandbox; "waived" says that they do not because the user chose so,
   * and mode `full` then allows them. A function is called when one is to be decided on.
   */
  sandboxed: Confinement | (() => Confinement | Promise<Confinement>);
  /** How the user lets it read outside of the workspace, as a sentence, for a denial where no person can be asked. */
  outsideHint?: string;
  /** Commands that no sandbox confines are denied, whatever the mode, a rule or a person says. A text says why. */
  confinedOnly?: boolean | string;
  /** Why a call is denied for what it would do, whatever the mode, a rule or a person says. */
  forbids?: (tool: AgentTool, access: Access | undefined) => string | undefined;
  /** The tools that there are: a rule for another one is an error. */
  tools: Iterable<RuleTool>;
  /** Where redirections of commands are resolved. Without it those to files are asked about. */
  workspace?: PathResolver | (() => PathResolver);
  /** Asked about each call; a hook, say. Neither deny nor ask rules are gone past by it. */
  advice?: (call: ToolInvocation) => Advice | undefined;
  /** Rules that allow calls as well, and may become more: asked for each call. */
  givenRules?: () => readonly string[];
  /**
   * Why a call is asked about although the mode, a rule with a wildcard or a hook allows it, in all modes but `full`: its
   * address comes from a page, say. Called for what does not only show the workspace.
   */
  doubt?: (about: DoubtfulCall) => Promise<string | undefined>;
  /** Rules that a person gave and has taken back: they do not hold any more. */
  isRevoked?: (rule: string) => boolean;
  /** Called with each decision before it takes effect. If it throws, the call is denied. */
  onDecision?: (decision: PermissionDecision) => void;
}

/** Finds where a path leads, and lets what was allowed to read outside come there. */
export type PathResolver = Pick<Workspace, "resolve"> &
  Partial<Pick<Workspace, "root" | "allowReading">>;

/** Asked about again this often when a call turns out to be another one each time. */
const MAX_ASKS = 3;
/** Calls that wait for an approval, remembered to know what they were. */
const MAX_REMEMBERED = 1000;

/**
 * Decides which calls run: by rules, then by mode, then by asking. Give it as the last of
 * an agent's middleware, so that nothing changes a call after it was approved, and to
 * sub-agents as well. Whatever goes wrong on the way to a decision is a denial. Throws
 * `RuleError` at once where a rule is wrong.
 */
export function createPermissions(options: PermissionSetup): Middleware {
  const { mode = "ask", tools, onDecision } = options;
  if (typeof mode !== "function" && !MODES.has(mode)) throw unknownMode(mode);
  const guard = new Guard(options, new Rules(options.rules ?? {}, [...tools]));
  return {
    run: () => guard.noteRun(),
    async tool(call, next) {
      await guard.rehearsals.settled();
      try {
        const about = { callId: call.toolCall.id, tool: call.tool.name };
        const { question, ...outcome } = await guard.decide(call);
        try {
          onDecision?.({ ...about, ...outcome });
        } catch (error) {
          throw new DeniedError(`the decision could not be recorded: ${errorMessage(error)}`);
        }
        if (outcome.effect === "suspend") throw new Suspend(outcome.reason, question);
        if (outcome.effect === "deny") throw new DeniedError(outcome.reason);
        return await next();
      } finally {
        await guard.rehearsals.end(call);
      }
    },
  };
}

/**
 * The request for a call that a suspended run left pending, in whichever process: show it,
 * then go on with `{type: "approve", fingerprint}`. An approval of something else than what
 * the call is by then leaves it pending again.
 */
export async function approvalRequest(
  tool: AgentTool,
  { toolCall, reason }: PendingCall,
): Promise<ApprovalRequest> {
  const checked = await validateToolArguments(tool, structuredClone(toolCall.arguments));
  if (!checked.ok) throw new Error(checked.error);
  const args = checked.value;
  const access = isGuarded(tool) ? await tool.access(args) : undefined;
  return createRequest({ callId: toolCall.id, tool: tool.name, args, reason }, access);
}

interface Outcome extends Omit<PermissionDecision, "callId" | "tool"> {
  /** What a person who is asked later gets to see. */
  question?: SuspendQuestion;
}

/** Of a question that is asked later, what `ApprovalRequest` has beside the call and its access. Safe to show. */
export type QuestionFacts = Pick<
  ApprovalRequest,
  "reason" | "byMode" | "danger" | "isConfined" | "effects"
>;

class Guard {
  readonly #options: PermissionSetup;
  readonly #rules: Rules;
  readonly #forbidsReading: ReadRule = (tool, path) => {
    const root = this.#workspace()?.root;
    if (root === undefined) return this.#rules.forbidsReading(tool, path);
    const absolute = toSlashes(join(root, path));
    return this.#rules.forbidsReading(tool, isBeside(path) ? absolute : path, absolute);
  };
  readonly #coversRedirect: RedirectRule = (...redirect) => this.#rules.coversRedirect(...redirect);
  readonly rehearsals: Rehearsals = new Rehearsals();
  /** Rules of `givenRules` that hold. */
  readonly #given = new Set<string>();
  /** What calls were when the run was suspended for them. */
  readonly #suspended = new Map<string, string>();
  /** Those that go on. */
  #runs = 0;
  /** Files that are younger are the agent's own. */
  readonly #since = Date.now();

  constructor(options: PermissionSetup, rules: Rules) {
    this.#options = options;
    this.#rules = rules;
  }

  async decide(call: ToolInvocation): Promise<Outcome> {
    const seen: { inspected?: InspectedCall } = {};
    const outcome = await this.#decide(call, seen);
    if (!seen.inspected) return outcome;
    const { access } = seen.inspected;
    const shown = access && showAccess(access);
    const { about, fingerprint = seen.inspected.fingerprint } = outcome;
    const question = { fingerprint, ...(shown && { access: { ...shown, question: about } }) };
    const rule = outcome.effect === "deny" ? this.#suggestRule(call, seen.inspected) : undefined;
    if (outcome.effect === "allow") {
      await this.#grantNetwork(call, seen.inspected);
      const failure = this.#allowReading(access);
      if (failure !== undefined) return { effect: "deny", reason: failure, asked: outcome.asked };
    }
    const { about: _about, fingerprint: _fingerprint, ...rest } = outcome;
    return {
      ...rest,
      ...(shown && { summary: shown.summary }),
      ...(outcome.effect === "suspend" && { question }),
      ...(rule !== undefined && { rule }),
    };
  }

  /** Lets the tool come to the places outside that it was allowed to read. Why not, where they are others by now. */
  #allowReading(access: Access | undefined): string | undefined {
    try {
      for (const path of access?.outside ?? []) this.#workspace()?.allowReading?.(path);
      return undefined;
    } catch (error) {
      return errorMessage(error);
    }
  }

  /** A command that a person or a rule has allowed, and not the mode alone, may use the network if it needs it. */
  async #grantNetwork(
    { toolCall }: ToolInvocation,
    { access, subject, sandboxed, danger, isShown }: InspectedCall,
  ): Promise<void> {
    const workspace = this.#workspace();
    const mode = this.#mode();
    if (!workspace || sandboxed !== true || access?.unsandboxed || isShown || mode === "full")
      return;
    if (danger === undefined) return;
    const { listHosts } = await import("./danger/hosts.ts");
    grantNetwork(workspace, toolCall.id, listHosts(subject.commands));
  }

  /** A rule that would allow a call which no person can be asked about, if there is one. */
  #suggestRule(call: ToolInvocation, inspected: InspectedCall): string | undefined {
    if (!this.#options.headless) return undefined;
    const { access } = inspected;
    const rule = ruleFor({ tool: call.tool.name, access });
    if (rule === undefined) return undefined;
    try {
      const isAllowed =
        this.#evaluate(inspected, this.#heldRules().with("allow", rule)).effect === "allow";
      return isAllowed && this.#evaluate(inspected).effect === "ask" ? rule : undefined;
    } catch {
      // A name that no rule can have, or what made it a denial: that is reported already.
      return undefined;
    }
  }

  async #decide(
    call: ToolInvocation,
    seen: { inspected?: InspectedCall },
  ): Promise<Outcome & Pick<Asked, "about" | "fingerprint">> {
    let asked = false;
    try {
      let approved = this.#decidedBefore(call);
      for (let asks = 0; ; asks++) {
        // Looked at again after each answer: a link may lead elsewhere by now.
        const inspected = await this.#inspect(call);
        seen.inspected = inspected;
        const { effect, reason, byMode, isTriable } = this.#evaluate(inspected);
        const { fingerprint } = inspected;
        asked ||= approved !== undefined;
        if (asks === 0) {
          const settled = await this.#settle(call, inspected, approved, effect);
          if (settled) return { ...settled, asked };
        }
        if (effect !== "ask") return { effect, reason, asked };
        if (approved?.fingerprint === fingerprint) {
          return { effect: "allow", reason: approved.reason, asked };
        }
        if (asks >= MAX_ASKS) {
          return { effect: "deny", reason: "what it would do changes all the time.", asked };
        }
        const why = approved
          ? {
              reason: `It has changed since it was approved. ${reason}`,
              ...(isTriable && { isTriable }),
            }
          : { reason, ...(byMode && { byMode }), ...(isTriable && { isTriable }) };
        const answer = await this.#ask(call, inspected, why);
        if ("effect" in answer) return { ...answer, asked: asked || answer.effect === "deny" };
        approved = answer;
      }
    } catch (error) {
      if (error instanceof KnownFailure) throw error;
      const reason =
        error instanceof InvalidCallError
          ? error.message
          : `it could not be decided whether it may run: ${errorMessage(error)}`;
      return { effect: "deny", reason, asked };
    }
  }

  /** An approval that came with the run, for this very call. */
  #decidedBefore({ decision, toolCall, parentId }: ToolInvocation): Approved | undefined {
    // What a tool calls in its turn is handed the decision on the tool itself.
    if (decision?.type !== "approve" || parentId !== undefined) return undefined;
    const fingerprint = decision.fingerprint ?? this.#suspended.get(toolCall.id) ?? "";
    this.#suspended.delete(toolCall.id);
    const { keep, direct } = decision;
    return {
      fingerprint,
      reason: "A person approved it.",
      ...(keep && { keep }),
      ...(direct && { direct }),
    };
  }

  /** Acts on the decision on a call that ran in a layer before its run was suspended, if it is for what it did. */
  async #settle(
    call: ToolInvocation,
    { fingerprint }: InspectedCall,
    approved: Approved | undefined,
    effect: Verdict["effect"],
  ): Promise<Pick<Outcome, "effect" | "reason"> | undefined> {
    const { id } = call.toolCall;
    const waiting = call.parentId === undefined ? this.rehearsals.find(id) : undefined;
    if (!waiting) return undefined;
    const isMeant = waiting.call === fingerprint && approved?.fingerprint === waiting.asked;
    if (!isMeant || approved.direct || effect === "deny") {
      await this.rehearsals.discard(id);
      return isMeant && effect !== "deny"
        ? { effect: "allow", reason: approved.reason }
        : undefined;
    }
    await this.rehearsals.resume(call, waiting);
    const failure = this.#choose(waiting.tried, approved.keep);
    if (failure !== undefined) return { effect: "deny", reason: failure };
    return { effect: "allow", reason: approved.reason };
  }

  /** Takes effects of a call for those that are kept. Why not, where a rule forbids one of them. */
  #choose(tried: RanCall, keep: readonly number[] | undefined): string | undefined {
    const { report } = tried;
    const wanted =
      keep ?? report.effects.filter((effect) => this.#canKeep(effect)).map(({ id }) => id);
    const forbidden = report.effects.find(
      (effect) => wanted.includes(effect.id) && this.#forbidsEffect(effect),
    );
    if (forbidden) return `a rule forbids to change "${forbidden.path}".`;
    tried.choose(wanted);
    return undefined;
  }

  /** What stands in the way of others is left out; what a rule forbids is refused. */
  #canKeep(effect: ShownEffect): boolean {
    if (effect.kind === "special") return false;
    return effect.conflict === undefined || this.#forbidsEffect(effect);
  }

  /** When a run has ended, layers of calls that do not wait any more are thrown away. */
  noteRun(): (end: { pending: readonly PendingCall[] } | undefined) => void {
    this.#runs++;
    return (end) => {
      // Runs of sub-agents are inside of others.
      if (--this.#runs > 0) return;
      this.rehearsals.retain(new Set(end?.pending.map(({ toolCall }) => toolCall.id)));
    };
  }

  async #inspect(call: ToolInvocation): Promise<InspectedCall> {
    const { tool, args } = call;
    const access = await askForAccess(tool, args);
    const fingerprint = computeFingerprint(tool.name, args, access);
    const asked = ASKED.flatMap((name) => args[name]).filter((value) => typeof value === "string");
    const isRun = access?.kind === "run";
    const isFile = access?.kind === "read" || access?.kind === "write";
    const root = this.#workspace()?.root;
    const named = access?.targets ?? [];
    const targets = isFile ? named.map((path) => placeTarget(path, root)) : named;
    const cwd = typeof args["cwd"] === "string" ? args["cwd"] : "";
    const subject: Subject = {
      tool: tool.name,
      ...(access && { kind: access.kind }),
      targets,
      asked,
      ...(isFile && root !== undefined && { absolute: locateTargets(named, root) }),
      commands: isRun ? await splitCommands(targets, access.language === "sh") : [],
      folder: placeTarget(access?.folder ?? normalizeFolder(cwd), root),
      unsandboxed: access?.unsandboxed === true,
    };
    const workspace = this.#workspace();
    if (workspace && this.#rules.forbidsFiles) addReadRule(workspace, this.#forbidsReading);
    if (workspace && access?.kind === "network") addRedirectRule(workspace, this.#coversRedirect);
    const files = await findOpenedFiles(subject.commands, cwd, workspace);
    const sandboxed = isRun && (await this.#confinement());
    const isShown =
      isRun &&
      !subject.unsandboxed &&
      access.concern === undefined &&
      (await this.#onlyShows(subject, { cwd, isConfined: sandboxed === true }, workspace));
    const danger =
      isRun && !isShown ? await this.#explainDanger(subject, cwd, workspace) : undefined;
    const advice = this.#options.advice?.(call);
    const forbidden = this.#options.forbids?.(tool, access);
    const isLocal = isRun && sandboxed === true && !subject.unsandboxed && danger === undefined;
    const { commands } = subject;
    const doubt = isShown
      ? undefined
      : await this.#options.doubt?.({ call, access, commands, isLocal });
    const isFetch = tool.presentation?.kind === "fetch";
    if (access?.reads) {
      const read: Subject = {
        ...subject,
        kind: "read",
        targets: access.reads.map((path) => placeTarget(path, root)),
        ...(root !== undefined && { absolute: locateTargets(access.reads, root) }),
        asked: [],
      };
      files.push({ subject: read, isProtected: false, shown: access.reads.join(", ") });
    }
    const isInside = access?.kind === "write" && (await areInside(named, workspace));
    return {
      access,
      subject,
      files,
      fingerprint,
      sandboxed,
      danger,
      isShown,
      advice,
      isFetch,
      isInside,
      ...(forbidden !== undefined && { forbidden }),
      ...(doubt !== undefined && { doubt }),
    };
  }

  async #explainDanger(
    { targets }: Subject,
    cwd: string,
    workspace: PathResolver | undefined,
    isUndoable = false,
  ): Promise<Danger | undefined> {
    const root = (await workspace?.resolve("."))?.absolute ?? "/";
    const { explainDanger } = await import("./danger/explain.ts");
    const ground = { cwd, workspace, isConfined: true, root, since: this.#since, isUndoable };
    return explainDanger(targets, ground);
  }

  async #onlyShows(
    { commands }: Subject,
    place: { cwd: string; isConfined: boolean },
    workspace: PathResolver | undefined,
  ): Promise<boolean> {
    const { onlyShows } = await import("./only-shows.ts");
    const forbids = (path: string): boolean => this.#forbidsReading("read", path);
    const options = { ...place, ...(this.#rules.forbidsFiles && { forbids }) };
    return onlyShows(commands, options, workspace);
  }

  #workspace(): PathResolver | undefined {
    const { workspace } = this.#options;
    return typeof workspace === "function" ? workspace() : workspace;
  }

  async #confinement(): Promise<Confinement> {
    const { sandboxed } = this.#options;
    const answer: unknown = typeof sandboxed === "function" ? await sandboxed() : sandboxed;
    return answer === "waived" || answer === true ? answer : false;
  }

  #mode(): PermissionMode {
    const { mode = "ask" } = this.#options;
    const now = typeof mode === "function" ? mode() : mode;
    if (!MODES.has(now)) throw unknownMode(now);
    return now;
  }

  /** The rules, with those that were given since, and without those that were taken back. */
  #heldRules(): Rules {
    const { isRevoked, givenRules } = this.#options;
    for (const rule of givenRules?.() ?? []) {
      if (this.#given.has(rule)) continue;
      this.#rules.add("allow", rule, "A rule of an answer");
      this.#given.add(rule);
    }
    return isRevoked ? this.#rules.without("allow", isRevoked) : this.#rules;
  }

  #evaluate(inspected: InspectedCall, rules: Rules = this.#heldRules()): Verdict & Why {
    const { access, subject, files, advice, isFetch, forbidden: why } = inspected;
    if (why !== undefined) return deny(why);
    const mode = this.#mode();
    const { kind } = subject;
    const objections = [subject, ...files.flatMap((file) => file.subject ?? [])].flatMap(
      (each) => rules.objection(each) ?? [],
    );
    if (advice && advice.effect !== "allow") objections.push(advice);
    const forbidden = objections.find(({ effect }) => effect === "deny");
    if (forbidden) return forbidden;
    const locked = files.find(({ isProtected }) => isProtected);
    if (locked) return deny(`"${locked.shown}" is read-only for tools, and it would write there.`);
    const { isShown } = inspected;
    const runs = kind === "run" && !isShown;
    const changes = kind === undefined || kind === "write" || runs || access?.destructive;
    if (mode === "plan" && (changes || access?.unsandboxed)) {
      return deny('In mode "plan" nothing is changed and nothing is run. Plan it instead.');
    }
    const isConfined = kind !== "run" || (inspected.sandboxed === true && !access?.unsandboxed);
    if (this.#options.confinedOnly && !isConfined) {
      return deny(
        typeof this.#options.confinedOnly === "string"
          ? this.#options.confinedOnly
          : "Commands outside of the sandbox are denied here, and no person can be asked.",
      );
    }
    const doubtful = objections[0];
    if (doubtful) return doubtful;
    const { doubt, danger } = inspected;
    if (doubt !== undefined && mode !== "full" && !rules.permission(subject, true, true)) {
      return ask([doubt, ...(danger ? [danger.why] : [])].join(" "));
    }
    if (isShown && !access?.destructive) return evaluateUnasked(subject, rules, mode);
    const permission = this.#permission(inspected, mode, rules);
    if (access?.unsandboxed) {
      if (mode === "full" && permission) return permission;
      return ask("It would run outside of the sandbox.");
    }
    if (access?.outside && access.outside.length > 0) {
      // A rule without a pattern is for the workspace.
      const named =
        advice?.effect === "allow" ? permission : rules.permission(subject, false, true);
      return named ?? ask(explainOutside(access.outside));
    }
    if (access?.concern !== undefined && mode !== "full") {
      return permission ?? ask(access.concern);
    }
    if (mode === "full") {
      if (kind === "run" && inspected.sandboxed === false) {
        return permission ?? ask("There is no sandbox around it.");
      }
      return evaluateUnasked(subject, rules, mode);
    }
    if (access?.destructive) return ask("It cannot be undone.");
    if (kind === "none" || kind === "read" || kind === "agent") {
      return allow(`In every mode "${kind}" is allowed.`);
    }
    // The plan may be to push: only what fetches is known to leave things as they are.
    if (mode === "plan" && !isFetch) return ask('In mode "plan" it is asked about.');
    if (permission) return permission;
    const isEditing = mode === "auto-edit" || mode === "auto";
    if (isEditing && kind === "write" && inspected.isInside) {
      return allow(`In mode "${mode}" files of the workspace are changed.`);
    }
    if (mode === "auto" && kind === "run" && inspected.sandboxed === true) {
      return inspected.danger === undefined
        ? evaluateUnasked(subject, rules, mode)
        : { ...ask(inspected.danger.why), isTriable: true };
    }
    return { effect: "ask", ...explainQuestion(inspected, mode), isTriable: true };
  }

  /** What rules allow: the call, and the files that the shell itself would open for it. */
  #permission(inspected: InspectedCall, mode: PermissionMode, rules: Rules): Verdict | undefined {
    const { subject, files, sandboxed, advice } = inspected;
    const isHidden = subject.commands.some(({ unclear }) => unclear !== undefined);
    const isSuspect = rules.suspicion(subject) !== undefined;
    if (advice?.effect === "allow") {
      // What cannot be taken apart may be what a rule forbids.
      return (isHidden && rules.forbidsCommands) || isSuspect ? undefined : advice;
    }
    // What a wildcard stands for is not what destroys something.
    const isDestructive = inspected.danger?.kind === "destructive";
    const exact = subject.kind === "run" && (sandboxed !== true || isDestructive);
    const found = rules.permission(subject, exact, isSuspect);
    const all = files.every(({ subject: file }) => {
      if (!file) return false;
      return file.kind === "read" || mode.startsWith("auto") || rules.permission(file);
    });
    return all ? found : undefined;
  }

  async #ask(call: ToolInvocation, inspected: InspectedCall, why: Why): Promise<Approved | Asked> {
    const { reason } = why;
    const { ask, headless } = this.#options;
    const { toolCall, tool, parentId, signal } = call;
    const { fingerprint } = inspected;
    if (headless) {
      const { outsideHint } = this.#options;
      const hint = inspected.access?.outside && outsideHint ? ` ${outsideHint}` : "";
      return {
        effect: "deny",
        reason: `it needs an approval, and no person can be asked here. ${reason}${hint} Go on without it, or say what is needed.`,
      };
    }
    await this.#checkBeforeAsking(call, inspected);
    if (!ask && parentId !== undefined) {
      return {
        effect: "deny",
        reason: `it needs an approval, which cannot be waited for inside of another call. ${reason}`,
      };
    }
    const tried = why.isTriable ? await this.#rehearse(call, inspected) : undefined;
    if (signal.aborted) return { effect: "deny", reason: "the run was stopped meanwhile." };
    if (tried?.type === "ran" && (await this.#mayKeep(call, inspected, tried.report))) {
      tried.choose(tried.report.effects.map(({ id }) => id));
      return { fingerprint, reason: "It ran in a layer, and what it changed is allowed." };
    }
    const facts = describeQuestion(inspected, explainTrial(why, tried));
    if (!ask) return this.#suspend(call, inspected, facts, tried);
    const about = {
      callId: toolCall.id,
      tool: tool.name,
      args: structuredClone(call.args),
      ...facts,
      signal,
      ...(parentId !== undefined && { parentId }),
      ...(tried?.type === "ran" && { effects: tried.report }),
    };
    const request = { ...createRequest(about, inspected.access), fingerprint };
    const answer = await ask(request);
    if (signal.aborted) return { effect: "deny", reason: "the run was stopped meanwhile." };
    if (answer.allow === false) {
      const words = answer.reason ? `: ${answer.reason}` : ".";
      const verb = tried?.type === "ran" ? DISCARDED : "said no";
      return { effect: "deny", reason: `a person ${verb}${words}` };
    }
    if (tried?.type === "ran") {
      const direct = answer.allow === true && answer.direct === true;
      const keep = answer.allow === true ? answer.keep : undefined;
      if (direct) await this.rehearsals.end(call);
      else {
        const failure = this.#choose(tried, keep);
        if (failure !== undefined) return { effect: "deny", reason: failure };
      }
    }
    if (answer.allow === "always") {
      for (const rule of [answer.rule, ...(answer.moreRules ?? [])]) {
        this.#rules.add("allow", rule, "The rule of the answer");
      }
      return { fingerprint, reason: `A person approved it, and ${answer.rule} from now on.` };
    }
    // An answer may come from a program that was never checked.
    const answered: unknown = answer.allow;
    if (answered !== true || answer.fingerprint !== fingerprint) {
      return { effect: "deny", reason: "the approval was for another call than this one." };
    }
    return { fingerprint, reason: "A person approved it." };
  }

  /** Leaves a call to a decision that comes with another run, with what it did in a layer. */
  async #suspend(
    call: ToolInvocation,
    { fingerprint }: InspectedCall,
    facts: QuestionFacts,
    tried: Rehearsal | undefined,
  ): Promise<Asked> {
    const { toolCall, tool } = call;
    const effects = tried?.type === "ran" ? showReport(tried.report) : undefined;
    const asked = effects
      ? computeFingerprint(tool.name, { fingerprint, effects }, undefined)
      : fingerprint;
    if (tried?.type === "ran") {
      await this.rehearsals.suspend(call, { tried, call: fingerprint, asked });
    }
    this.#remember(toolCall.id, asked);
    return {
      effect: "suspend",
      reason: sanitize(`Tool "${tool.name}" needs approval. ${facts.reason}`, SHOWN),
      about: { ...facts, ...(effects && { effects }) },
      fingerprint: asked,
    };
  }

  /** Runs a call in a layer, where nothing but files can be what it changes. */
  async #rehearse(call: ToolInvocation, inspected: InspectedCall): Promise<Rehearsal | undefined> {
    const { tool, args, toolCall, signal } = call;
    const { access, subject, sandboxed } = inspected;
    if (!this.#options.rehearse || !isGuarded(tool) || !tool.rehearse) return undefined;
    if (access?.unsandboxed || access?.destructive || sandboxed !== true) return undefined;
    // What it prints is read by the model.
    const unasked = evaluateUnasked(subject, this.#rules, this.#mode());
    if (unasked.effect !== "allow") return undefined;
    if (this.#rules.forbidsFiles && this.#mode() !== "auto") {
      return { type: "impossible", why: "Rules forbid to read some files, and it may show them." };
    }
    const cwd = typeof args["cwd"] === "string" ? args["cwd"] : "";
    const { explainService } = await import("./services.ts");
    const why =
      explainService(subject.commands) ??
      (await this.#explainDanger(subject, cwd, this.#workspace(), true))?.why;
    if (why !== undefined) return { type: "impossible", why };
    const tried = await this.rehearsals.begin(call, () =>
      tool.rehearse?.(structuredClone(args), { id: toolCall.id, signal }),
    );
    if (tried?.type !== "ran") return tried;
    const effects = tried.report.effects.map((effect) =>
      this.#forbidsEffect(effect) ? { ...effect, conflict: "is forbidden by a rule" } : effect,
    );
    const isHarmless = tried.report.isHarmless && effects.every(({ conflict }) => !conflict);
    return { ...tried, report: { ...tried.report, effects, isHarmless } };
  }

  /** Whether what a call did is kept without a question. */
  async #mayKeep(
    { args }: ToolInvocation,
    { subject }: InspectedCall,
    { isHarmless, effects }: EffectsReport,
  ): Promise<boolean> {
    const cwd = typeof args["cwd"] === "string" ? args["cwd"] : "";
    if (!isHarmless) return false;
    if ((await this.#explainDanger(subject, cwd, this.#workspace())) !== undefined) return false;
    const mode = this.#mode();
    return effects.every(({ target }) => {
      if (target === undefined) return false;
      const subject = writeSubject(target);
      if (this.#rules.objection(subject)) return false;
      return mode.startsWith("auto") || this.#rules.permission(subject) !== undefined;
    });
  }

  #forbidsEffect({ target }: ShownEffect): boolean {
    return target !== undefined && this.#rules.objection(writeSubject(target))?.effect === "deny";
  }

  /** Throws where the call is known to fail, unless that would show what is not to be read. */
  async #checkBeforeAsking(
    { tool, args }: ToolInvocation,
    { files }: InspectedCall,
  ): Promise<void> {
    if (!isGuarded(tool) || !tool.check) return;
    if (files.some(({ subject }) => subject && this.#rules.objection(subject))) return;
    try {
      await tool.check(structuredClone(args));
    } catch (error) {
      throw new KnownFailure(errorMessage(error), { cause: error });
    }
  }

  #remember(callId: string, fingerprint: string): void {
    this.#suspended.set(callId, fingerprint);
    for (const [oldest] of this.#suspended) {
      if (this.#suspended.size <= MAX_REMEMBERED) break;
      this.#suspended.delete(oldest);
    }
  }
}

const DISCARDED = "discarded what it did: it ran in a layer, and nothing was changed";

/** A file that a call would write. */
function writeSubject(path: string): Subject {
  return { tool: "write", kind: "write", targets: [path], asked: [path], commands: [] };
}

function describeQuestion(
  { danger, sandboxed }: InspectedCall,
  { reason, byMode }: Pick<ApprovalRequest, "reason" | "byMode">,
): QuestionFacts {
  return {
    reason: sanitize(reason, SHOWN),
    ...(byMode && { byMode }),
    ...(danger && { danger }),
    ...(sandboxed === true && { isConfined: true }),
  };
}

/** The reason of a question, with that for which a call could not run in a layer before. */
function explainTrial(
  { reason, byMode }: Why,
  tried: Rehearsal | undefined,
): Pick<ApprovalRequest, "reason" | "byMode"> {
  // A mode that names the danger has said it.
  if (tried?.type !== "impossible" || !byMode) return { reason, ...(byMode && { byMode }) };
  const notes = [...byMode.notes, sanitize(tried.why, SHOWN)];
  return { reason: `${reason} ${tried.why}`, byMode: { ...byMode, notes } };
}

/** A call that its own tool refuses, in the words of the tool. */
class InvalidCallError extends Error {}

/** A call that would fail, whatever a person says: it is not decided on, and the model gets the error. */
class KnownFailure extends Error {}

async function askForAccess(
  tool: AgentTool,
  args: Record<string, unknown>,
): Promise<Access | undefined> {
  if (!isGuarded(tool)) return undefined;
  try {
    return await tool.access(args);
  } catch (error) {
    throw new InvalidCallError(errorMessage(error), { cause: error });
  }
}

/** Arguments that say where a call goes, as the model wrote it. */
const ASKED = ["path", "paths", "files", "cwd", "url"] as const;

/** A call as it is right now. */
interface InspectedCall {
  access: Access | undefined;
  subject: Subject;
  files: readonly OpenedByShell[];
  fingerprint: string;
  /** Known of what runs a command. */
  sandboxed: Confinement;
  /** Why a command is asked about although a sandbox confines it. */
  danger: Danger | undefined;
  /** A command that only shows what is in the workspace. */
  isShown: boolean;
  advice: Advice | undefined;
  /** The tool only gets things from elsewhere. */
  isFetch: boolean;
  /** It writes files of the workspace and of folders that were added, and no others. */
  isInside: boolean;
  /** Why it is denied, whatever anything else says. */
  forbidden?: string;
  /** Why it is asked about, unless a rule names it. */
  doubt?: string;
}

interface Why extends Pick<ApprovalRequest, "reason" | "byMode"> {
  /** It may run in a layer before it is asked about: the mode alone asks. */
  isTriable?: boolean;
}

interface Approved {
  fingerprint: string;
  reason: string;
  /** As in `ApprovalAnswer`. */
  keep?: readonly number[];
  direct?: boolean;
}

interface Asked {
  effect: "deny" | "suspend";
  reason: string;
  about?: QuestionFacts;
  /** What exactly is asked about, where that is more than the call. */
  fingerprint?: string;
}

/** A file that a command line opens itself, by a redirection. */
interface OpenedByShell {
  /** Absent where it is not known which file it is, or it is not in the workspace. */
  subject?: Subject;
  isProtected: boolean;
  shown: string;
}

/** Written to without a trace. */
const SINKS = new Set(["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"]);

async function findOpenedFiles(
  commands: readonly CommandParts[],
  cwd: string,
  workspace: PathResolver | undefined,
): Promise<OpenedByShell[]> {
  const files: OpenedByShell[] = [];
  for (const { parts, moves } of commands) {
    for (const { kind, target } of parts.flatMap((part) => part.redirects)) {
      if (kind === "input" || (target.literal && SINKS.has(target.text))) continue;
      const unknown = { isProtected: false, shown: target.text };
      const isKnown = target.literal && (!moves || isAbsolute(target.text));
      if (!isKnown || !workspace) {
        files.push(unknown);
        continue;
      }
      const path = isAbsolute(target.text) ? target.text : join(cwd, target.text);
      // Where it leads out of the workspace it is none of the files that rules are about.
      const resolved = await workspace.resolve(path).catch(() => undefined);
      if (!resolved) {
        files.push(unknown);
        continue;
      }
      const place = isBeside(resolved.path) ? toSlashes(resolved.absolute) : resolved.path;
      const absolute = [toSlashes(resolved.absolute)];
      const subject = { tool: kind, kind, targets: [place], asked: [path], absolute, commands: [] };
      files.push({ ...unknown, subject, isProtected: kind === "write" && resolved.readOnly });
    }
  }
  return files;
}

/** What the mode allows, unless it may be something that a rule forbids. */
function evaluateUnasked(subject: Subject, rules: Rules, mode: PermissionMode): Verdict {
  const unclear = subject.commands.find((line) => line.unclear !== undefined)?.unclear;
  if (unclear !== undefined && rules.forbidsCommands) {
    return ask(`${unclear} Some commands are forbidden, and it may be one of them.`);
  }
  return rules.suspicion(subject) ?? allow(`In mode "${mode}" it is allowed.`);
}

/** A folder as the model wrote it, for a tool that does not say where it leads. */
function normalizeFolder(path: string): string {
  return posix.join(path.replaceAll("\\", "/"), ".").replace(/(?<=.)\/$/, "");
}

/** A path for rules: relative in the workspace's own folder, absolute in others. */
function placeTarget(path: string, root: string | undefined): string {
  return root !== undefined && isBeside(path) ? toSlashes(join(root, path)) : path;
}

function locateTargets(paths: readonly string[], root: string): string[] {
  return paths.map((path) => toSlashes(isAbsolute(path) ? path : join(root, path)));
}

function toSlashes(path: string): string {
  return path.replaceAll(sep, "/");
}

/** Whether files are in the workspace or in a folder that was added to it. */
async function areInside(
  paths: readonly string[],
  workspace: PathResolver | undefined,
): Promise<boolean> {
  for (const path of paths) {
    if (isAbsolute(path)) return false;
    if (!isBeside(path)) continue;
    const resolved = await workspace?.resolve(path, { keepLink: true }).catch(() => undefined);
    if (resolved?.path !== path) return false;
  }
  return true;
}

function explainOutside(places: readonly string[]): string {
  const [first = ""] = places;
  return `${JSON.stringify(first)} is outside of the workspace.`;
}

/** What each command line would run. Most runs of an agent have other calls first. */
async function splitCommands(
  commands: readonly string[],
  isPosix: boolean,
): Promise<CommandParts[]> {
  const { commandParts } = await import("./command/parts.ts");
  return commands.map((command) => commandParts(command, { isPosix }));
}

/** Why a call is asked about that no rule allows. */
function explainQuestion({ subject, files, sandboxed }: InspectedCall, mode: PermissionMode): Why {
  const { kind, commands } = subject;
  const about = kind ?? subject.tool;
  const base = `In mode "${mode}" "${about}" is asked about.`;
  if (kind !== "run") return { reason: base, byMode: { mode, about, notes: [] } };
  const unclear = commands.find((line) => line.unclear !== undefined)?.unclear;
  const escape = commands.flatMap(({ parts }) => parts).flatMap(({ escapes }) => escapes)[0]?.why;
  const file = files.find((each) => !each.subject)?.shown;
  const notes = [
    ...(unclear === undefined ? [] : [unclear]),
    ...(escape === undefined ? [] : [`${escape}.`]),
    ...(file === undefined ? [] : [`It opens "${file}".`]),
    ...(sandboxed === true ? [] : ["There is no sandbox around it."]),
  ];
  const safe = notes.map((note) => sanitize(note, SHOWN));
  return { reason: [base, ...notes].join(" "), byMode: { mode, about, notes: safe } };
}

const SHOWN = { keepNewlines: false, exact: true } as const;

/** Of what a call did, in a question that is written down and sent. The rest is counted. */
const MAX_SENT_EFFECTS = 200;
/** Of texts before and after it, all together. */
const MAX_SENT_CHARS: number = 64 * 1024;

/** What a call did, for a question that is written down and sent: safe to show. */
function showReport({ effects, ...report }: EffectsReport): EffectsReport {
  let left = MAX_SENT_CHARS;
  const shown = effects.slice(0, MAX_SENT_EFFECTS).map(({ target: _target, texts, ...effect }) => {
    const length = texts ? texts.before.length + texts.after.length : 0;
    if (!texts || length > left) return effect;
    left -= length;
    const clean = (text: string): string => sanitize(text, { exact: true });
    return { ...effect, texts: { before: clean(texts.before), after: clean(texts.after) } };
  });
  const omitted = effects.length - shown.length;
  return { ...report, effects: shown, ...(omitted > 0 && { omitted }) };
}

function createRequest(
  about: Omit<ApprovalRequest, "access" | "fingerprint">,
  access: Access | undefined,
): ApprovalRequest {
  const fingerprint = computeFingerprint(about.tool, about.args, access);
  const reason = sanitize(about.reason, SHOWN);
  if (!access) return { ...about, reason, fingerprint };
  return { ...about, reason, fingerprint, access: showAccess(access) };
}

/** Safe to show. */
function showAccess(access: Access): Access {
  const targets = access.targets.map((target) => sanitize(target, { exact: true }));
  return { ...access, targets, summary: sanitize(access.summary, SHOWN) };
}

/** The same for the same call, and for no other. */
function computeFingerprint(
  tool: string,
  args: Record<string, unknown>,
  access: Access | undefined,
): string {
  return createHash("sha256")
    .update(canonical([tool, args, access ?? null]))
    .digest("hex");
}

/** JSON with keys in order. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

function allow(reason: string): Verdict {
  return { effect: "allow", reason };
}

function ask(reason: string): Verdict {
  return { effect: "ask", reason };
}

function deny(reason: string): Verdict {
  return { effect: "deny", reason };
}

function unknownMode(mode: unknown): Error {
  return new Error(
    `There is no mode ${JSON.stringify(mode)}. Available: ${[...MODES].join(", ")}.`,
  );
}
