import { shownLine } from "../../text/shown-text.ts";
import type { Waiting } from "../tui/app/status.ts";
import type { TerminalCommand } from "../tui/ui/ui.ts";

/** What the commands that stand for keys do. */
export interface LineCommandWorld {
  /** All commands, for `/help`. */
  all: () => readonly TerminalCommand[];
  queue: () => readonly Waiting[];
  follow: (text: string) => Promise<void>;
  /** Tells whether there was anything to stop. */
  stop: () => boolean;
  takeBack: () => void;
  send: () => Promise<void>;
  say: (text: string) => void;
}

const HELP = `Write a line to ask; while it works, a line tells it something.
A line that ends in a backslash goes on in the next one.
An exclamation mark before a line runs it as a command of yours, which the model sees. With two it does not see it.
Ctrl-C interrupts, and leaves where nothing runs. Ctrl-D leaves.
The commands:`;

/** Commands for what keys do elsewhere. They are found before those of the same name. */
export function lineCommands(world: LineCommandWorld): readonly TerminalCommand[] {
  const { say } = world;
  return [
    {
      name: "help",
      about: "tell what can be written",
      anytime: true,
      run() {
        const names = new Set<string>();
        say(HELP);
        for (const { name, about, hint } of world.all()) {
          if (names.has(name)) continue;
          names.add(name);
          say(shownLine(`/${name}: ${about}${hint === undefined ? "" : ` (${hint})`}`));
        }
      },
    },
    {
      name: "then",
      about: "tell it something for when it is done",
      hint: "TEXT",
      anytime: true,
      run(rest) {
        if (rest === "") throw new Error("/then needs a text: /then run the tests again");
        return world.follow(rest);
      },
    },
    {
      name: "stop",
      about: "interrupt it",
      anytime: true,
      run() {
        if (!world.stop()) say("Nothing runs.");
      },
    },
    {
      name: "queue",
      about: "tell what waits for it",
      anytime: true,
      run() {
        const waiting = world.queue();
        if (waiting.length === 0) say("Nothing waits.");
        for (const { queue, text } of waiting) {
          say(`${queue === "steering" ? "Next" : "Then"}: ${shownLine(text)}`);
        }
      },
    },
    {
      name: "back",
      about: "take back what waits for it",
      anytime: true,
      run: () => world.takeBack(),
    },
    {
      name: "send",
      about: "send the text that was taken back or put there",
      anytime: true,
      run: () => world.send(),
    },
  ];
}
