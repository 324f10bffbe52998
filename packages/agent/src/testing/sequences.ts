import { answer, asks, injected, ran } from "./render.ts";

// The events of whole runs and turns, as the recorder renders them.

type Lines = string | readonly string[];

/** The prompt of a run that is given none. */
export const GO: readonly string[] = injected("Go");

/** A run that ends for this reason, with its turns and what comes between them. */
export function run(stop: string, ...turns: readonly Lines[]): string[] {
  return ["agent_start", ...turns.flat(), `agent_end ${stop}`];
}

/** A turn that ends with this stop reason and the results of these calls. */
export function turn(end: string, ...parts: readonly Lines[]): string[] {
  return ["turn_start", ...parts.flat(), `turn_end ${end}`];
}

/** A turn that is answered with a text. */
export function textTurn(text: string, ...before: readonly Lines[]): string[] {
  return turn("stop", ...before, answer(text));
}

/** A turn that is answered with calls (`name#id`), which run one after the other, each with its outcome. */
export function toolTurn(
  outcomes: Readonly<Record<string, string>>,
  ...before: readonly Lines[]
): string[] {
  const calls = Object.keys(outcomes);
  const results = Object.entries(outcomes).map(([call, outcome]) => ran(call, outcome));
  return turn(`toolUse ${calls.join(" ")}`, ...before, asks(calls), ...results);
}

/** A run of one turn: a prompt, and a text. */
export function oneTurn(text: string): string[] {
  return run("done", textTurn(text, GO));
}
