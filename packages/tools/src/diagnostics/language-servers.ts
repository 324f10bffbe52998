import { accessSync, constants } from "node:fs";
import { delimiter, extname, join } from "node:path";

/** A program that finds errors in files of some languages, by the Language Server Protocol. */
export interface LanguageServer {
  /** For people: who found an error. */
  name: string;
  /** The ids of its languages by the endings of files: `{ ".go": "go" }`. */
  files: Readonly<Record<string, string>>;
  /** Programs with their arguments: the first that is there is started. */
  commands: readonly (readonly string[])[];
  /** Named by the user's own settings: it runs where no sandbox is, too. */
  isChosen?: boolean;
}

const JAVASCRIPT = "javascript";
const TYPESCRIPT = "typescript";

/** Those that are used where they are installed. */
export const KNOWN_SERVERS: readonly LanguageServer[] = [
  {
    name: "typescript",
    files: {
      ...{ ".ts": TYPESCRIPT, ".mts": TYPESCRIPT, ".cts": TYPESCRIPT, ".tsx": "typescriptreact" },
      ...{ ".js": JAVASCRIPT, ".mjs": JAVASCRIPT, ".cjs": JAVASCRIPT, ".jsx": "javascriptreact" },
    },
    // From version 7 on the compiler is a server itself; before, it ends with an error at once.
    commands: [
      ["typescript-language-server", "--stdio"],
      ["tsc", "--lsp", "--stdio"],
    ],
  },
  {
    name: "pyright",
    files: { ".py": "python", ".pyi": "python" },
    commands: [
      ["pyright-langserver", "--stdio"],
      ["basedpyright-langserver", "--stdio"],
    ],
  },
];

/** The server for a file, and the language that the file is in; those named first come first. */
export function findServer(
  servers: readonly LanguageServer[],
  path: string,
): { server: LanguageServer; language: string } | undefined {
  const ending = extname(path).toLowerCase();
  for (const server of servers) {
    const language = Object.hasOwn(server.files, ending) ? server.files[ending] : undefined;
    if (language !== undefined) return { server, language };
  }
  return undefined;
}

/** The first of the programs that is in one of the folders, with its whole path. */
export function findCommand(
  commands: LanguageServer["commands"],
  folders: readonly string[],
): readonly string[] | undefined {
  for (const [name = "", ...args] of commands) {
    if (name.includes("/")) return [name, ...args];
    const found = folders.map((folder) => join(folder, name)).find(isExecutable);
    if (found !== undefined) return [found, ...args];
  }
  return undefined;
}

export function splitPath(path: string): string[] {
  return path.split(delimiter).filter(Boolean);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
