import { needsNetwork } from "./network.ts";
import { hasOption, listOperands } from "./options.ts";

/** Destroy data, or act as another user, whatever they are given. */
const DESTROYERS =
  /^(?:shred|wipe|wipefs|fdisk|sfdisk|parted|mkswap|mkfs(?:\..+)?|sudo|doas|su|pkexec|runas|shutdown|reboot|halt|poweroff|srm|dropdb|mysqladmin)$/;

/** Commands of frameworks that empty a database. */
const EMPTIES =
  /^(?:db:(?:drop|reset|wipe|purge)|migrate:(?:fresh|reset)|ecto\.(?:drop|reset)|schema:drop|dropAll|reset_db)$/;

/** Whether a program is known to destroy, with these arguments, what no undo of files brings back. */
export function destroys(program: string, args: readonly string[]): boolean {
  if (DESTROYERS.test(program) || args.some((arg) => EMPTIES.test(arg))) return true;
  const [first, second] = [program, ...listOperands(program, args)].slice(-2);
  if (first === "manage.py" && second === "flush") return true;
  switch (program) {
    case "git":
      return gitDestroys(args);
    case "hg":
      return (
        /^(?:purge|strip|rollback)$/.test(listOperands(program, args)[0] ?? "") ||
        hasOption(args, "--clean", /C/)
      );
    case "jj":
      return listOperands(program, args)[0] === "abandon";
    case "svn":
      return listOperands(program, args)[0] === "revert";
    case "dd":
      return args.some((arg) => arg.startsWith("of="));
    case "rsync":
      return hasOption(args, "--delete");
    case "chmod":
      // What may not be read is lost to git as well.
      return (
        args.some((arg) => /(?:^|\/)\.git(?:\/|$)/.test(arg)) ||
        (hasOption(args, "--recursive", /R/) && args.some((arg) => /^0+$|^0?[0-3]000$/.test(arg)))
      );
    case "sqlite3":
    case "duckdb":
      return args.some((arg) => /\b(?:drop|delete\s+from|truncate)\b/i.test(arg));
    case "prisma":
      return args.includes("reset") || hasOption(args, "--force-reset");
    default:
      return false;
  }
}

/** Whether all that a program destroys is files of the folder that it runs in. */
export function destroysFilesAlone(program: string, args: readonly string[]): boolean {
  return !DESTROYERS.test(program) && !needsNetwork(program, args);
}

function gitDestroys(args: readonly string[]): boolean {
  const [subcommand, next] = listOperands("git", args);
  const rest = args.slice(args.indexOf(subcommand ?? "") + 1);
  const has = (long: string, short?: RegExp): boolean => hasOption(rest, long, short);
  switch (subcommand) {
    case "reset":
      return has("--hard") || has("--merge") || has("--keep");
    case "clean":
      return !has("--dry-run", /n/);
    case "checkout":
      return has("--force", /[fBp]/) || has("--patch") || rest.includes("--") || rest.includes(".");
    case "switch":
      return has("--force", /[fC]/) || has("--discard-changes") || has("--force-create");
    case "restore":
      return !has("--staged", /S/) || has("--worktree", /W/);
    case "stash":
      return next === "drop" || next === "clear";
    case "branch":
      return has("--force", /[DMCf]/);
    case "tag":
      return has("--delete", /[df]/) || has("--force");
    case "push":
      return (
        has("--force", /[fd]/) ||
        rest.some((arg) => /^--(?:force|mirror|delete|prune)|^\+|^:/.test(arg))
      );
    case "reflog":
      return next === "expire" || next === "delete";
    case "worktree":
      return next === "remove" && has("--force", /f/);
    case "submodule":
      return next === "deinit" && has("--force", /f/);
    case "rm":
      return has("--force", /f/) && !has("--cached");
    case "update-ref":
    case "filter-branch":
    case "filter-repo":
    case "prune":
    case "read-tree":
    case "checkout-index":
      return true;
    case "replace":
    case "notes":
      return next === "remove" || next === "prune" || has("--delete", /d/);
    case "remote":
      return next === "remove" || next === "rm";
    case "gc":
      return rest.some((arg) => arg.startsWith("--prune"));
    default:
      return false;
  }
}
