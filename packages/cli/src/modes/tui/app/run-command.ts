import type { CommandWorld, TerminalCommand, Ui } from "../ui/ui.ts";
import { orStopped } from "./work.ts";

/**
 * Runs a command until it is done, or until the signal of its world fires, and tells which.
 * What is stopped is let go of at once, whatever it does about that: nothing that it does to
 * the screen or the program later has an effect, and its failure is none. Only a session that
 * is being opened already is waited for.
 */
export async function runCommand(
  command: TerminalCommand,
  rest: string,
  world: CommandWorld,
): Promise<"done" | "stopped"> {
  const { harness, signal } = world;
  const moving: { now?: Promise<void> } = {};
  const reopen: CommandWorld["reopen"] = async (request) => {
    signal.throwIfAborted();
    moving.now = world.reopen(request);
    await moving.now;
  };
  const prompt = (text: string): void => {
    if (!signal.aborted) world.prompt(text);
  };
  const run = async (): Promise<"done"> => {
    await command.run(rest, { ...world, ui: stoppableUi(world.ui, signal), reopen, prompt });
    return "done";
  };
  const isDone = await orStopped(run(), signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  if (isDone) return isDone;
  await moving.now;
  // What it had the agent do ends soon: the next prompt needs it.
  if (!moving.now) await harness.agent.waitForIdle();
  return "stopped";
}

/** The same screen until the signal fires, and none from then on. */
function stoppableUi(ui: Ui, signal: AbortSignal): Ui {
  const ifGoing =
    <A extends unknown[]>(work: (...args: A) => void) =>
    (...args: A): void => {
      if (!signal.aborted) work(...args);
    };
  return {
    get columns() {
      return ui.columns;
    },
    get theme() {
      return ui.theme;
    },
    draw: ifGoing(() => ui.draw()),
    say: ifGoing((markdown: string) => ui.say(markdown)),
    warn: ifGoing((text: string) => ui.warn(text)),
    show: ifGoing((block) => ui.show(block)),
    edit: ifGoing((text: string) => ui.edit(text)),
    control: (sequence) => !signal.aborted && ui.control(sequence),
    async open(panel) {
      signal.throwIfAborted();
      return ui.open(panel);
    },
    async choose(question) {
      signal.throwIfAborted();
      return ui.choose(question);
    },
    async suspend(work) {
      signal.throwIfAborted();
      return ui.suspend(work);
    },
  };
}
