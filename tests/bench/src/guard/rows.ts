import {
  createAgentsWork,
  createArgumentsWork,
  createTextWork,
  createTurnsWork,
  type Work,
} from "../library/works.ts";

/** Ratios differ between versions of the engine, by more than the margin. */
export const NODE_MAJOR = 20;

/** Two counts of the same code differ by less than 0.1 %: a tenth more is code, not noise. */
export const MARGIN = 1.1;

export interface Row {
  what: string;
  /** Gyre's instructions to the floor's, as measured. A row fails at `MARGIN` times of it. */
  ratio: number;
  /** What Gyre does that the floor does not. */
  reason: string;
}

export interface LibraryRow extends Row {
  work: Work;
}

export interface ProgramRow extends Row {
  /** What follows `gyre`. The floor is `node -e 0`. */
  args: readonly string[];
}

/**
 * All ratios of the guard. They are higher than those of `npm run bench`, where the engine
 * optimizes most of what the floor does not do. Only a feature that is worth it raises one.
 */
export const LIBRARY_ROWS: Readonly<Record<string, LibraryRow>> = {
  text: {
    what: "1,000 text deltas",
    ratio: 3.1,
    reason: "a live message, abort, a watchdog and a queue for readers that lag",
    work: createTextWork(1_000),
  },
  arguments: {
    what: "20 KB of arguments in 16-byte deltas",
    ratio: 4.6,
    reason: "the same, and a value that is up to date after each delta",
    work: createArgumentsWork(20_000),
  },
  turns: {
    what: "50 turns, a tool call each",
    ratio: 5.2,
    reason: "validation, middleware, limits, timeouts and contained errors",
    work: createTurnsWork(50),
  },
  agent: {
    what: "50 agents, each made for one answer",
    ratio: 6.1,
    reason: "state, queues, listeners, handoffs, the models and the options of an agent",
    work: createAgentsWork(50),
  },
};

/** The row that Gyre does a second time with twice the work, to show that the guard notices. */
export const CONTROL = "text";

export const PROGRAM_ROWS: readonly ProgramRow[] = [
  {
    what: "start of the program, --version",
    ratio: 2.1,
    reason: "modules that are loaded before the options are known",
    args: ["--version"],
  },
  {
    what: "start of the program, one answer without a terminal",
    ratio: 9.4,
    reason:
      "settings, policy, rules, tools, facts of the folder, what agents wrote, a session file, its mark and the client of a service",
    args: ["-p", "Say hello."],
  },
];
