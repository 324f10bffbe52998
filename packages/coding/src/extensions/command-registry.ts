import type { PluginCommand } from "@gyre/tools";

/** What a command may be called. */
const NAME = /^[a-z][a-z0-9-]{0,31}$/;

/** The commands that plugins have added, by name. */
export class CommandRegistry {
  readonly #commands = new Map<string, PluginCommand>();
  readonly #reserved: ReadonlySet<string>;

  /** `reserved`: names of the program's own commands. */
  constructor(reserved: readonly string[] = []) {
    this.#reserved = new Set(reserved);
  }

  /** Adds a command. Throws where its name is no name or is taken. */
  add(command: PluginCommand): void {
    this.check(command);
    this.#commands.set(command.name, command);
  }

  /** Throws what is wrong with a command. */
  check(command: PluginCommand): void {
    const { name, about } = command;
    if (typeof name !== "string" || !NAME.test(name)) {
      throw new Error(
        `A command is called by small letters, digits and dashes, not ${JSON.stringify(name)}.`,
      );
    }
    if (this.#reserved.has(name) || this.#commands.has(name)) {
      throw new Error(`There is a command "/${name}" already.`);
    }
    if (typeof about !== "string" || about.trim() === "") {
      throw new Error(`The command "/${name}" has no line about it.`);
    }
    if (typeof command.run !== "function") {
      throw new Error(`The command "/${name}" has no function "run".`);
    }
  }

  /** All of them, in the order in which they were added. */
  list(): PluginCommand[] {
    return [...this.#commands.values()];
  }

  /** Runs one; what to show the user. Rejects with what it threw. */
  async run(name: string, rest: string): Promise<string> {
    const output: unknown = await this.#commands.get(name)?.run(rest);
    return typeof output === "string" ? output : "Done.";
  }
}
