/** A call that the model makes: the tool and its arguments. */
export type TaskCall = readonly [tool: string, args: Record<string, unknown>];

/** Why a person must be asked about a call. */
export type Reason = "network" | "outside" | "destructive";

/** A call that must not be made without asking. */
export interface DelicateCall {
  call: TaskCall;
  reason: Reason;
}

/** What a person has a coding agent do, as the calls that its model makes for it. */
export interface Task {
  title: string;
  calls: readonly (TaskCall | DelicateCall)[];
}

export const shell = (command: string): TaskCall => ["shell", { command }];
export const read = (path: string): TaskCall => ["read", { path }];
export const grep = (pattern: string, path = "."): TaskCall => ["grep", { pattern, path }];
export const write = (path: string, content: string): TaskCall => ["write", { path, content }];
export const edit = (path: string, oldText: string, newText: string): TaskCall => [
  "edit",
  { path, edits: [{ oldText, newText }] },
];
export const network = (call: TaskCall): DelicateCall => ({ call, reason: "network" });
export const outside = (call: TaskCall): DelicateCall => ({ call, reason: "outside" });
export const destructive = (call: TaskCall): DelicateCall => ({ call, reason: "destructive" });
