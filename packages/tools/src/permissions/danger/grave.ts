import { homedir } from "node:os";
import { isAbsolute, join, relative } from "node:path";
import type { CommandPart } from "../command/parts.ts";
import type { Word } from "../command/parse.ts";
import { hasOption, listOperands } from "./options.ts";

/** What is lost with one of the commands that people regret most. */
export interface Grave {
  /** A sentence that says what is destroyed. */
  loss: string;
  /** Only files of the workspace. */
  isFilesAlone: boolean;
}

const ROOTS = /^(?:sudo|doas|su|pkexec|runas)$/;

/** What a command destroys, where that is more than a person may expect of it. */
export function findGrave(
  { words }: Pick<CommandPart, "words">,
  place: { root: string; cwd: string },
): Grave | undefined {
  const [first, ...rest] = words;
  if (!first) return undefined;
  const program = first.text.slice(first.text.lastIndexOf("/") + 1);
  const args = rest.map(({ text }) => text);
  const beyond = (loss: string): Grave => ({ loss, isFilesAlone: false });
  if (ROOTS.test(program))
    return beyond(
      "It runs with the rights of another user, and can destroy anything on this machine.",
    );
  if (/^mkfs(?:\.|$)/.test(program))
    return beyond(`It formats "${args.at(-1) ?? ""}": all data there is lost.`);
  switch (program) {
    case "rm": {
      const isRecursive = args.some((arg) => /^-[a-zA-Z]*[rR]|^--r/.test(arg));
      const whole = isRecursive ? findWhole(rest, place) : undefined;
      return whole && { ...whole, loss: `It deletes ${whole.loss}, also what git ignores.` };
    }
    case "chmod":
    case "chown":
    case "chgrp": {
      const whole = hasOption(args, "--recursive", /R/)
        ? findWhole(rest.slice(1), place)
        : undefined;
      return whole && !whole.isFilesAlone
        ? { ...whole, loss: `It changes the rights of ${whole.loss}: programs may stop to work.` }
        : undefined;
    }
    case "dd": {
      const device = args.find((arg) => /^of=\/dev\/(?!null$|zero$|std|tty)/.test(arg));
      return device === undefined
        ? undefined
        : beyond(`It overwrites "${device.slice(3)}": all data there is lost.`);
    }
    case "git":
      return findGitGrave(args);
    default:
      return undefined;
  }
}

function findGitGrave(args: readonly string[]): Grave | undefined {
  const [subcommand] = listOperands("git", args);
  const rest = args.slice(args.indexOf(subcommand ?? "") + 1);
  switch (subcommand) {
    case "push": {
      const isForced =
        hasOption(rest, "--force", /f/) ||
        rest.some((arg) => /^--(?:force|mirror|delete|prune)|^-d$|^\+|^:./.test(arg));
      return isForced
        ? {
            loss: "It replaces or deletes commits on the server that others may need.",
            isFilesAlone: false,
          }
        : undefined;
    }
    case "clean": {
      if (hasOption(rest, "--dry-run", /n/)) return undefined;
      const ignored = rest.some((arg) => /^-\w*[xX]/.test(arg));
      const loss = `It deletes files that git does not have${ignored ? ", also ignored ones as .env" : ""}.`;
      return { loss, isFilesAlone: true };
    }
    case "reset":
      return hasOption(rest, "--hard")
        ? { loss: "It throws away all changes that are not committed.", isFilesAlone: true }
        : undefined;
    default:
      return undefined;
  }
}

/** What a recursive command is about, if that is all of the machine, of the home folder or of the workspace. */
function findWhole(
  words: readonly Word[],
  { root, cwd }: { root: string; cwd: string },
): Grave | undefined {
  const home = homedir();
  for (const { text } of words.filter((word) => !/^-./.test(word.text))) {
    const path = text
      .replaceAll(/["']/g, "")
      .replace(/^(?:~|\$\{?HOME\}?)(?=\/|$)/, home)
      .replace(/^\$\{?PWD\}?(?=\/|$)/, join(root, cwd))
      .replace(/(?<=^|\/)\.?\*$/, "");
    if (/[$`*?[]/.test(path)) continue;
    const absolute = isAbsolute(path) ? join(path, ".") : join(root, cwd, path, ".");
    const isAbove = (folder: string): boolean =>
      !relative(absolute, folder).startsWith("..") && !isAbsolute(relative(absolute, folder));
    if (absolute === "/") return { loss: "all files of this machine", isFilesAlone: false };
    if (isAbove(home) && !isAbove(root)) return { loss: "your home folder", isFilesAlone: false };
    if (absolute === home) return { loss: "your home folder", isFilesAlone: false };
    if (isAbove(root)) {
      const isOwn = absolute === root;
      return {
        loss: isOwn ? "all files of the workspace" : `all of "${absolute}"`,
        isFilesAlone: isOwn,
      };
    }
  }
  return undefined;
}
