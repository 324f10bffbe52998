/** A guard taken out of the built core on purpose: the simulation has to notice. */
export interface Fault {
  name: string;
  /** The rule that is no longer guarded. */
  rule: string;
  /** Built file, from `packages`. */
  file: string;
  /** What stands there, exactly once. */
  find: string;
  replace: string;
  /** Needs more seeds than the short check has; left out of it. */
  slow?: true;
}

function inFile(
  file: string,
  faults: Readonly<
    Record<string, readonly [rule: string, find: string, replace: string, slow?: "slow"]>
  >,
): Fault[] {
  return Object.entries(faults).map(([name, [rule, find, replace, slow]]) => ({
    name,
    rule,
    file,
    find,
    replace,
    ...(slow && { slow: true }),
  }));
}

const LOOP = inFile("agent/dist/loop/loop.js", {
  "no turn_end after an error": [
    "R1",
    'const ended = run.emit({ type: "turn_end", message, toolResults: [...answered.results] });',
    'const ended = message.stopReason !== "error" && run.emit({ type: "turn_end", message, toolResults: [...answered.results] });',
  ],
  "agent_end twice": ["R1", "await run.emit(end);", "await run.emit(end); await run.emit(end);"],
  "no limit event": ["R23", 'await run.emit({ type: "limit", ...reached });', ""],
  "terminate ignored": ["R28", "if (terminate)", "if (false)"],
  "follow-up after calls": ["R18", "!mustContinue && !steered && (await", "!steered && (await"],
  "follow-up before steering": [
    "R17",
    'const steered = alreadySteered || (await run.poll("steering"));',
    'const steered = alreadySteered || (mustContinue && (await run.poll("steering")));',
  ],
  "pause ends the run": ["R7", 'message.stopReason === "pause" ||', ""],
  "prepareTurn not applied": [
    "R28",
    'run.applyChanges(await run.hook("prepareTurn", () => prepareTurn(summary)));',
    'await run.hook("prepareTurn", () => prepareTurn(summary));',
  ],
  "shouldStopAfterTurn ignored": ["R28", 'return "stopped";', ""],
  "steering not polled at the start": [
    "R15",
    "isFirst && !run.config.skipInitialSteeringPoll",
    "false",
  ],
  "a limit ends the run as done": [
    "R23",
    'mustContinue || config.hasQueuedMessages?.() ? "limit" : "done"',
    '"done"',
  ],
  "limits checked after the queues": [
    "R23",
    "if (run.limitReached())",
    'if ((await run.poll("steering"), run.limitReached()))',
  ],
  "queued messages injected after an abort": ["R16", "(only || run.canceled)", "only"],
  "prompt lost when a hook throws": [
    "R5",
    'await inject(run, "prompt");\n        return { message: await',
    "return { message: await",
  ],
  "an error after the turn is lost": ["R5", "return takeFailedTurn(run, error);", 'return "done";'],
  "a queue's error is lost": ["R5", "if (answered.thrown)", "if (false)"],
  "calls left open are not repaired": [
    "R19",
    "isFirst ? await repairTranscript(run) : undefined",
    "undefined",
  ],
  "what is in flight is forgotten": [
    "R16",
    "run.record.toEnd(stop, run.inbox.returnToQueues())",
    "run.record.toEnd(stop, [])",
  ],
});

const CALLS = inFile("agent/dist/loop/tool-calls.js", {
  "no result for calls that were not started": [
    "R8",
    "for (const call of calls.slice(started)) {",
    "for (const call of []) {",
  ],
  "steering polled before the first call": ["R15", "started > 0 && policy", "policy"],
  "after-batch skips": ["R15", 'policy !== "after-batch" && ', ""],
  "steering skips nothing": ["R15", 'refuse = () => errorResult(SKIPPED_TEXT, "skipped");', ""],
  "one result terminates for all": [
    "R28",
    "this.#terminating === results.length",
    "this.#terminating > 0",
  ],
  "steering not polled after the last call": [
    "R15",
    'if (!steered && (await run.poll("steering")))',
    "if (false)",
  ],
  "results in reverse order": [
    "R13",
    "of running.entries()) {",
    "of [...running.entries()].toReversed()) {",
  ],
  "one call too many at once": ["tools", "return this.#left < 1;", "return this.#left < 0;"],
  "lonely tools run together": ["tools", "run.findTool(call.name)?.concurrent === true", "true"],
  "sequential ignored": ["tools", 'mode === "auto" && run.findTool', "run.findTool"],
  "a suspended call gets a result": [
    "R27",
    "this.#run.record.addPending({ toolCall: call, reason: outcome.suspended });",
    'await this.#publish(call, errorResult(`Tool "${call.name}" waits.`));',
  ],
  "calls run after length": ["R10", ' && message.stopReason !== "length"', ""],
  "calls of an incomplete message run": ["R6", "!isIncomplete(message) && message", "message"],
  "no tool_execution_end": [
    "R2",
    "const ended = emitEnd(run, call, outcome.result, durationMs);",
    "const ended = undefined;",
  ],
  "an empty result stays empty": [
    "R8",
    "result.content.length > 0 ? result.content :",
    "true ? result.content :",
  ],
});

const TOOLS = inFile("agent/dist/loop/tool-execution.js", {
  "abort does not reach tools": [
    "R21",
    "abort(execution);\n            const graceMs",
    "const graceMs",
  ],
  "no grace time": [
    "R21",
    "stopGrace = run.clock.after(graceMs,",
    "stopGrace = run.clock.after(0,",
  ],
  "grace without end": [
    "R21",
    "stopGrace = run.clock.after(graceMs,",
    "stopGrace = run.clock.after(1e6,",
  ],
  "a tool's own grace time ignored": [
    "R21",
    "tool.abortGraceMs ?? run.config.abortGraceMs",
    "run.config.abortGraceMs",
  ],
  "no timeout": ["tools", "reject(new TimedOut(tool.name, timeoutMs));", ""],
  "a tool's own timeout ignored": [
    "tools",
    "tool.timeoutMs ?? run.config.toolTimeoutMs",
    "run.config.toolTimeoutMs",
  ],
  "a timeout does not reach the tool": ["tools", "abort(own);", ""],
  "arguments not validated": [
    "R12",
    "checked.ok ? { tool, args: checked.value }",
    "true ? { tool, args: checked.value ?? call.arguments }",
  ],
  "broken arguments run": ["R11", "if (call.argumentsError !== undefined) {", "if (false) {"],
  "coercion changes the transcript": [
    "R12",
    "{ tool, args: checked.value }",
    "{ tool, args: Object.assign(call.arguments, checked.value) }",
  ],
  "updates after the tool has settled": ["R14", "if (!isSettled)", "if (true)", "slow"],
  "updates after the call is answered": [
    "R14",
    "update: (partialResult) => {",
    "update: (partialResult) => { const answered = false;",
    "slow",
  ],
  "late results dropped": ["R21", "if (late && depth === 0)", "if (false)"],
  "timers of left tools stay": [
    "idle",
    "for (const stopTimer of execution.timers)",
    "for (const stopTimer of [])",
  ],
  "tools start after an abort": [
    "R21",
    "return Promise.resolve(notStartedResult(run, toolCall));",
    "",
  ],
  "middleware skipped": ["R14", "if (!middleware)", "if (true)"],
  "middleware skipped for nested calls": [
    "R14",
    "if (!middleware)",
    "if (!middleware || depth > 0)",
  ],
  "hung middleware hangs the run": [
    "R14",
    "run.clock.after(middlewareTimeoutMs, abandon)",
    "() => {}",
  ],
  "suspension is an error": ["R27", "if (error instanceof Suspend)", "if (false)"],
  "rubbish passed on": ["R9", "if (Array.isArray(value?.content))", "if (true)"],
  "the same call again and again": ["R23", "run.gauge.refuses(call)", "false"],
});

const REPAIR = inFile("agent/dist/loop/repair.js", {
  "tools that may not be repeated are": [
    "R19",
    "run.findTool(call.name)?.idempotent",
    "run.findTool(call.name)",
  ],
  "tools that may be repeated are not": ["R19", " || run.findTool(call.name)?.idempotent", ""],
  "decisions ignored": ["R27", "run.config.decisions?.[call.id]", "undefined"],
  "denied calls run": ["R27", 'if (decision?.type === "deny") {', "if (false) {"],
  "undecided calls are answered": ["R27", 'if (decision?.type === "wait") {', "if (false) {"],
  "journalled results ignored": ["R19", "run.config.recordedResult?.(call.id)", "undefined"],
  "cut off calls run after a crash": ["R10", "if (!mayRun(message))", "if (false)"],
});

const RETRY = inFile("agent/dist/loop/retry.js", {
  "retry after content": ["R22", "!failure || outcome.shown ||", "!failure ||"],
  "Retry-After ignored": ["R22", "if (failure.retryAfterMs !== undefined)", "if (false)"],
  "one retry too many": ["R22", "tries > maxRetries", "tries > maxRetries + 1"],
  "one retry too few": ["R22", "tries > maxRetries", "tries >= maxRetries"],
  "waits of any length": ["R22", "if (delayMs > longest) {", "if (false) {"],
  "delays without a cap": ["R22", "Math.min(cap, base * 2 ** (tries - 1))", "base * 4 ** tries"],
  "no wait before a retry": ["R22", "await policy.wait(delayMs)", "true"],
  "no retry event": ["R22", "await policy.onRetry({", "void ({"],
});

const MODEL_CALL = inFile("agent/dist/loop/model-call.js", {
  "fallback after content": ["fallback", "if (shown || run.canceled ||", "if (run.canceled ||"],
  "the old model is asked after a fallback": ["fallback", "run.useModel(fallback);", ""],
  "a model that is not available is waited for": ["fallback", "fallback !== undefined", "false"],
  "the watchdog's timer stays": ["idle", "watchdog.stop();", ""],
  "unfinished calls kept": ["R26", "finished.includes(index)", "true"],
  "a redirected message keeps its calls": ["R15", "!dropAll && finished", "finished"],
  "the partial is lost on abort": [
    "R21",
    "return withAbort(run, copyMessage(base));",
    "return withAbort(run, { ...base, content: [] });",
  ],
  "an abort while streaming is ignored": [
    "R21",
    'run.cancellation.onCancel(() => interruption.raise("canceled"))',
    "() => {}",
  ],
  "empty answers accepted": [
    "R7",
    "const emptiness = explainEmptiness(final);",
    "const emptiness = undefined;",
  ],
  "an early end is a success": [
    "R4",
    'return withFailure(copyMessage(base), "The response ended early.", { kind: "incomplete" });',
    "return base;",
  ],
  "requests after an abort": ["R21", "if (interruption.reason)", "if (false)"],
  "unknown prices accepted": ["R23", "if (objection)", "if (false)"],
  "message_start doubled": [
    "grammar",
    "const events = shown ? [] :",
    "const events = false ? [] :",
  ],
});

const RESPONSE = [
  ...inFile("agent/dist/loop/watchdog.js", {
    "the watchdog sleeps": ["R22", "this.#onTimeout();", ";"],
  }),
  ...inFile("agent/dist/loop/call-ids.js", {
    "doubled ids kept": ["R8", "own.has(id) || run.history.hasCallId(id)", "false"],
    "ids of earlier messages kept": ["R8", " || run.history.hasCallId(id)", ""],
  }),
  ...inFile("agent/dist/loop/message-reader.js", {
    "start before content": ["R22", "if (hasContent(event))", "if (true)"],
    "what comes before start is shown": ["R4", "else if (this.#live) {", "else {"],
    "what had arrived is not emitted": ["R21", "await this.#passRest(this.#stream);", ";"],
    "joined rest loses a delta": [
      "replay",
      "delta: last.delta + event.delta",
      "delta: event.delta",
    ],
    "the rest overtakes a slow sink": ["grammar", "if (this.#passing)", "if (false)"],
    "no yield to the event loop": [
      "R21",
      "const yielded = this.#run.eventLoop.afterEvent();",
      "const yielded = undefined;",
    ],
  }),
];

const RUN = [
  ...inFile("agent/dist/run/run.js", {
    "prepareTurn does not reset the fallbacks": ["fallback", "this.fallbacks.reset();", ""],
    "the deadline's timer stays": ["idle", "this.#stopDeadline();", ""],
    "the signal's listener stays": ["idle", "this.cancellation.release();", ""],
    "no deadline": [
      "R23",
      'this.clock.after(limits.maxDurationMs, () => this.cancellation.cancel("limit"))',
      "() => {}",
    ],
    "a repaired result at the end": [
      "R19",
      "this.history.insertResult(message);",
      "this.history.append(message);",
    ],
  }),
  ...inFile("agent/dist/run/inbox.js", {
    "nothing is handed back": [
      "R16",
      'contain("requeue threw", () => this.#config.requeue?.(queue, messages));',
      ";",
    ],
  }),
  ...inFile("agent/dist/run/hooks.js", {
    "late polls are lost": ["R16", "() => late?.(value)", "() => {}"],
    "a hung hook hangs the run": [
      "R5",
      "() => leave(new Error(`${name} did not settle within ${ms} ms.`))",
      "() => {}",
    ],
    "hooks ignore an abort": [
      "R21",
      "unlink = this.#cancellation.onCancel(() => leave(new Canceled()));",
      "",
    ],
    "a wait ignores an abort": [
      "R21",
      "unlink = this.#cancellation.onCancel(() => end(false));",
      "",
    ],
    "a hung sink hangs the run": [
      "R25",
      "reject(new Error(`${what} did not settle within ${ms} ms.`));",
      "",
    ],
  }),
  ...inFile("agent/dist/run/record.js", {
    "usage not added up": ["R3", "addUsage(this.#usage, message.usage)", "message.usage"],
    "an answer missing from agent_end": [
      "R3",
      "addAnswer(message) {\n        this.#messages.push(message);",
      "addAnswer(message) {",
    ],
  }),
];

const EMITTER = inFile("agent/dist/run/emitter.js", {
  "the sink is called after it failed": [
    "R25",
    "emit(event) {\n        if (this.#failure)",
    "emit(event) {\n        if (false)",
  ],
  "the sink is not waited for": [
    "R25",
    "return this.#tail\n            ? this.#enqueue(() => this.#deliver(event))\n            : this.#track(this.#deliver(event));",
    "return this.#deliver(event);",
  ],
  "listeners before the sink": [
    "R25",
    "taken = this.#sink(event);",
    "taken = this.#sink(event); if (isThenable(taken)) this.#listeners?.(event);",
  ],
  "tools go on after the sink failed": ["R25", "this.#onFailure(this.#failure);", ""],
});

const AGENT = inFile("agent/dist/agent.js", {
  "a listener's error kills the run": [
    "R20",
    'this.#report(error, `listener of "${event.type}"`);',
    "throw error;",
  ],
  "a hung listener hangs the run": [
    "R20",
    "the run goes on without it.`), where);\n                resolve();",
    "the run goes on without it.`), where);",
  ],
  "listeners are not waited for": [
    "R20",
    "return this.#notifyRest(event, given, listeners.slice(index + 1));",
    "void this.#notifyRest(event, given, listeners.slice(index + 1)); return undefined;",
  ],
  "a throwing listener starves the others": [
    "R20",
    "await this.#settleListener(given, event);",
    "await given;",
  ],
  "setModel without effect": ["R28", "changes.model = this.#requireModel();", ";"],
  "a prompt does not answer what waits": [
    "R27",
    "decisions: Object.fromEntries(denied)",
    "decisions: {}",
  ],
  "continue answers what waits": [
    "R27",
    'decisions[toolCall.id] ??= { type: "wait", reason };',
    "",
  ],
  "two runs at once": [
    "R20",
    "if (this.isRunning)\n            throw",
    "if (false)\n            throw",
  ],
  "steering does not wake": [
    "R15",
    "for (const wake of [...(this.#wakes ?? [])])",
    "for (const wake of [])",
  ],
  "idle before the listeners are": [
    "R20",
    "return this.#notify(event);",
    'const told = this.#notify(event); return event.type === "agent_end" ? undefined : told;',
  ],
});

const REST = [
  ...inFile("agent/dist/agent-state.js", {
    "state keeps no results": [
      "R3",
      "return { ...state, messages: withResult(messages, message) };",
      "return state;",
    ],
  }),
  ...inFile("ai/dist/messages/failure.js", {
    "final failures retried": ["R22", 'typeof byKind === "boolean"', "byKind === true"],
    "empty answers not retried": ["R7", "empty: true,", "empty: false,"],
  }),
  ...inFile("agent/dist/queue.js", {
    "handed back at the wrong end": [
      "R16",
      "[...items, ...this.#items]",
      "[...this.#items, ...items]",
    ],
    "one at a time takes all": [
      "R17",
      'this.mode === "all" ? this.#items.length : 1',
      "this.#items.length",
    ],
    "all takes one": ["R17", 'this.mode === "all" ? this.#items.length : 1', "1"],
  }),
  ...inFile("agent/dist/run/limits.js", {
    "one turn too many": ["R23", "this.#turns >= maxTurns", "this.#turns > maxTurns"],
    "tokens not counted": ["R23", "this.#tokens += countTokens(message);", ";"],
    "money not counted": ["R23", "this.#cost += usage.cost?.total ?? 0;", ""],
    "pauses without end": ["R7", "this.#pauses > MAX_PAUSES_IN_A_ROW", "false"],
    "cut off turns without end": [
      "R10",
      "this.#truncated >= MAX_TRUNCATED_TURNS_IN_A_ROW",
      "false",
    ],
    "identical calls off by one": [
      "R23",
      "last.times < this.#maxIdentical",
      "last.times <= this.#maxIdentical",
    ],
    "refused twice and going on": ["R23", "if (this.#refusals > 1)", "if (false)"],
    "key order makes calls differ": [
      "R23",
      "isSameValue(one.arguments, other.arguments)",
      "JSON.stringify(one.arguments) === JSON.stringify(other.arguments)",
    ],
  }),
  ...inFile("agent/dist/transcript/history.js", {
    "empty messages sent": ["R26", "if (!hasContent(message))", "if (false)"],
    "half an answer sent last": [
      "R26",
      "if (isIncomplete(message) && callsOf(message).length === 0) {",
      "if (false) {",
    ],
    "results out of place": [
      "R19",
      "return messages.toSpliced(place, 0, result);",
      "return [...messages, result];",
    ],
  }),
  ...inFile("agent/dist/run/cancellation.js", {
    "an abort comes twice": ["R21", "if (this.#reason)\n            return;", "", "slow"],
    "earlier waiters are not notified": [
      "R21",
      "for (const run of waiting)",
      "for (const run of waiting.slice(1))",
    ],
    "a waiter that comes after the abort is not notified": [
      "R21",
      "            run();\n            return () => { };",
      "            return () => { };",
      "slow",
    ],
  }),
  ...inFile("ai/dist/stream/assistant-stream.js", {
    "joined deltas lost": [
      "replay",
      "const delta = last.delta + next.delta;",
      "const delta = next.delta;",
    ],
  }),
  ...inFile("ai/dist/stream/event-stream.js", {
    "result() never settles": ["R5", "this.#result?.settle(outcome);", ""],
  }),
  ...inFile("ai/dist/stream/accumulate.js", {
    "broken JSON repaired": [
      "R11",
      "if (!end.ok)",
      "if (!end.ok && isRecord(parser.value)) return { arguments: parser.value };\n    if (!end.ok)",
    ],
    "written to after the end": [
      "replay",
      'if (open?.type !== "text" || delta === "" || this.#stream.closed)',
      'if (open?.type !== "text" || delta === "")',
    ],
  }),
];

/** At the least one for each rule of the loop that the simulation checks. */
export const FAULTS: readonly Fault[] = [
  ...LOOP,
  ...CALLS,
  ...TOOLS,
  ...REPAIR,
  ...RETRY,
  ...MODEL_CALL,
  ...RESPONSE,
  ...RUN,
  ...EMITTER,
  ...AGENT,
  ...REST,
];
