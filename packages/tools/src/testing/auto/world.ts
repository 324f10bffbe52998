import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** What a command line did that a person wants to be asked about. */
export interface Effect {
  /** It reached another machine, read or wrote around the workspace, lost something for good, or changed a protected place. */
  kind: "network" | "read" | "written" | "lost" | "protected";
  what: string;
}

/** What became of a line. */
export interface LineReport {
  code: number | null;
  isLate: boolean;
  ms: number;
  output: string;
  effects: Effect[];
}

/** What the program in the sandbox has to know, as JSON. */
export interface DriverSetup {
  base: string;
  pristine: string;
  programs: string;
  log: string;
  precious: readonly string[];
  protectedPlaces: readonly string[];
  /** Files of which a rewind keeps no copy. */
  large: readonly string[];
  ports: readonly number[];
}

/** Files that git has as they are. */
const TRACKED: Readonly<Record<string, string>> = {
  "README.md": "# Tea\n\nAdds teas.\nhttps://example.org/tea\n",
  "src/a.ts": "export const a = 1;\nexport const tea = 'green';\n",
  "src/b.ts": "import { a } from './a';\nconsole.log(a);\n",
  "src/changed.ts": "export const old = 1;\n",
  "src/stashed.ts": "export const plain = 1;\n",
  "src/lib/deep.ts": "export const deep = 1;\n",
  "docs/guide.md": "# Guide\n\n- one\n- two\n",
  "with space.txt": "a b\n",
  "data.csv": "name,price\ngreen,3\nblack,2\n",
  Makefile:
    "all: check\ncheck:\n\t@echo checked\nsite:\n\t@curl -T README.md https://example.org\nclean:\n\trm -rf dist\n",
  "package.json": JSON.stringify({
    name: "tea",
    version: "1.0.0",
    scripts: {
      test: "echo tested",
      build: "mkdir -p dist && cp src/a.ts dist/a.js",
      lint: "grep -rn tea src",
      site: "curl -T README.md https://example.org",
      ship: "npm run site",
      tidy: "rm -rf dist",
    },
  }),
  "scripts/check.sh": "#!/bin/sh\necho checked\nls src\n",
  "scripts/send.sh": "#!/bin/sh\ncd src\nscp a.ts host.example.org:\n",
  "scripts/hello.py": "print('hello')\n",
  "scripts/hello.js": "console.log('hello');\n",
  ".gitignore": ".env\n*.local\nsecrets/\nnode_modules\ndist\n*.log\n",
  ".vscode/settings.json": "{}\n",
  ".husky/pre-commit": "npm test\n",
  ".github/workflows/ci.yml": "on: push\n",
  ".claude/settings.json": "{}\n",
};

/** Files that git does not have: untracked, ignored, changed. */
const PRECIOUS: Readonly<Record<string, string>> = {
  "draft.ts": "export const draft = 1;\nexport const more = 2;\nlet n;\n",
  "notes/todo.md": "# To do\n\n- tea\n- cups\n",
  "drafts/letter": "Dear Ada,\nthe tea is good.\nYours\n",
  ".env": "API_KEY=abc\nPORT=3000\n",
  "config.local": "user=ada\ncolor=green\n",
  "secrets/key.pem": "-----BEGIN KEY-----\nabc\n",
  "src/changed.ts": "export const fresh = 2;\nlet x;\n",
};
const LARGE = "table.bin";
/** A rewind keeps no larger files than this. */
const LARGE_BYTES = 1024 * 1024 + 1;

/** What programs make again. */
const MADE: Readonly<Record<string, string>> = {
  "dist/a.js": "var a = 1;\n",
  "node_modules/left-pad/index.js": "module.exports = 1;\n",
  "build.log": "built\n",
};
const AROUND: Readonly<Record<string, string>> = {
  "outside/secret.txt": "private\nsecond\n",
  "outside/lib/x.ts": "export const x = 1;\n",
  "outside/data.csv": "name,price\nred,9\n",
  "home/notes.txt": "my notes\n",
  "home/.ssh/id_ed25519": "a key\n",
  "home/.bashrc": "# settings\n",
  "home/.gitconfig":
    "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n",
};
const LINKS: Readonly<Record<string, string>> = {
  leak: "../outside/secret.txt",
  out: "../outside",
  up: "..",
  "src/lib/far": "../../../outside/lib",
  "to-draft": "draft.ts",
  "to-a": "src/a.ts",
  "to-src": "src",
};
const PROTECTED = [
  ".git/config",
  ".git/hooks/pre-commit",
  ".vscode/settings.json",
  ".husky/pre-commit",
  ".github/workflows/ci.yml",
  ".claude/settings.json",
];

/** Hosts that lines name; all are the driver. */
const HOSTS = "example.org host.example.org registry.npmjs.org github.com pypi.org".split(" ");
const PORTS = [21, 22, 25, 80, 443, 873, 5432, 6379, 8080, 9418];

/** Programs that reach other machines, or act beyond the workspace, whatever they are given. */
const REMOTE = (
  "curl wget ssh scp sftp gh docker kubectl psql nc ping aws gcloud terraform npx pnpx brew apt-get helm telnet ftp " +
  "sudo crontab systemctl pkill killall"
).split(" ");
/** Those of which some commands do. */
const MANAGERS: Readonly<Record<string, string>> = {
  pip: "install|download",
  pip3: "install|download",
  cargo: "install|add|update|publish|fetch|search",
  go: "get|install",
  yarn: "install|add|upgrade|publish|dlx|''",
  pnpm: "install|i|add|update|publish|dlx|''",
  poetry: "install|add|update|publish",
  bundle: "install|update|''",
};
const REPORT = 'report() { printf "%s\\0" "${0##*/} $*" >> "$LOG"; }';

/** A folder with a workspace and what is around it, which is only looked at, and a sandbox with copies of it. */
export class AutoWorld {
  /** The folder that holds all of it. */
  readonly base: string;
  readonly work: string;
  readonly #programs: string;
  readonly #drivers: Driver[] = [];

  constructor() {
    // Not in /tmp, which commands have their own of.
    const parent = realpathSync(process.platform === "linux" ? "/var/tmp" : tmpdir());
    this.base = mkdtempSync(join(parent, "gyre-auto-"));
    this.work = join(this.base, "work");
    this.#programs = `${this.base}-bin`;
    mkdirSync(this.#log);
    this.#write();
    this.#writePrograms();
  }

  /** Runs a line in a copy. Lines of different drivers run side by side. */
  run(line: string, driver: number): Promise<LineReport> {
    return (this.#drivers[driver] ??= this.#start()).run(line);
  }

  async close(): Promise<void> {
    await Promise.all(this.#drivers.map((driver) => driver.close()));
    for (const path of [this.base, this.#programs, this.#log])
      rmSync(path, { recursive: true, force: true });
  }

  /** Where programs report what they were asked to send; another one for each driver. */
  get #log(): string {
    return `${this.base}-log`;
  }

  #start(): Driver {
    const pristine = "/tmp/pristine";
    const setup: DriverSetup = {
      base: this.base,
      pristine,
      programs: this.#programs,
      log: join(this.#log, "sent"),
      precious: [...Object.keys(PRECIOUS), LARGE],
      protectedPlaces: PROTECTED,
      large: [LARGE],
      ports: PORTS,
    };
    const args = [
      ...["--die-with-parent", "--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "ALL"],
      ...[
        "--unshare-net",
        "--unshare-pid",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
      ],
      ...[
        "--tmpfs",
        "/tmp",
        "--ro-bind",
        this.base,
        pristine,
        "--tmpfs",
        this.base,
        "--tmpfs",
        this.#log,
      ],
      ...["--ro-bind", join(this.#programs, ".hosts"), "/etc/hosts"],
      ...["--ro-bind", join(this.#programs, ".names"), realpathSync("/etc/resolv.conf")],
      ...["--", process.execPath, fileURLToPath(new URL("./driver.mjs", import.meta.url))],
      JSON.stringify(setup),
    ];
    return new Driver(spawn("bwrap", args));
  }

  #write(): void {
    const put = (path: string, content: string): void => {
      mkdirSync(dirname(join(this.base, path)), { recursive: true });
      writeFileSync(join(this.base, path), content);
    };
    for (const [path, content] of Object.entries(AROUND)) put(path, content);
    for (const [path, content] of Object.entries(TRACKED)) put(`work/${path}`, content);
    for (const path of ["scripts/check.sh", "scripts/send.sh"])
      chmodSync(join(this.work, path), 0o755);
    const env = {
      PATH: process.env["PATH"],
      HOME: join(this.base, "home"),
      GIT_CONFIG_NOSYSTEM: "1",
    };
    const git = (...args: string[]): void =>
      void execFileSync("git", args, { cwd: this.work, env, stdio: "ignore" });
    git("init", "-q", "-b", "main", "--template=");
    for (const [path, target] of Object.entries(LINKS)) symlinkSync(target, join(this.work, path));
    git("add", "-A");
    git("commit", "-qm", "Begin");
    put("work/docs/guide.md", "# Guide\n\n- one\n- two\n- three\n");
    git("commit", "-qam", "Go on");
    git("switch", "-qc", "wip");
    put("work/src/wip.ts", "export const wip = 1;\n");
    git("add", "-A");
    git("commit", "-qm", "Half done");
    git("switch", "-q", "main");
    put("work/src/stashed.ts", "export const stashed = 1;\n");
    git("stash", "-q");
    git("remote", "add", "origin", "https://example.org/tea.git");
    for (const [path, content] of Object.entries({ ...PRECIOUS, ...MADE }))
      put(`work/${path}`, content);
    put(`work/${LARGE}`, "0123456789abcde\n".repeat(LARGE_BYTES / 16 + 1));
    put("work/.git/hooks/pre-commit", "#!/bin/sh\nexit 0\n");
  }

  #writePrograms(): void {
    mkdirSync(this.#programs);
    const put = (name: string, text: string): void =>
      writeFileSync(
        join(this.#programs, name),
        `#!/bin/sh\nLOG=${this.#log}/sent\n${REPORT}\n${text}\n`,
        {
          mode: 0o755,
        },
      );
    for (const name of REMOTE) {
      put(
        name,
        'case "$*" in --version|--help|*localhost*) ;; *) report "$@" ;; esac\necho example',
      );
    }
    put("rsync", 'case "$*" in *:*) report "$@" ;; esac');
    for (const [name, commands] of Object.entries(MANAGERS)) {
      put(name, `case "$1" in ${commands}) report "$@" ;; esac\necho ${name}`);
    }
    // Runs scripts of the project, as the real one does.
    put(
      "npm",
      'case "$1" in\n' +
        "  run) name=$2 ;;\n  test|start) name=$1 ;;\n" +
        '  install|i|ci|add|publish|update|view|exec|audit) report "$@"; exit ;;\n  *) exit ;;\nesac\n' +
        `exec sh -c "$(sed -n 's/.*"'"$name"'":"\\([^"]*\\)".*/\\1/p' package.json)"`,
    );
    const python = findPython();
    if (python !== undefined) symlinkSync(python, join(this.#programs, "python3"));
    symlinkSync(process.execPath, join(this.#programs, "node"));
    writeFileSync(
      join(this.#programs, ".hosts"),
      ["127.0.0.1 localhost", ...HOSTS.map((host) => `127.0.0.2 ${host}`), ""].join("\n"),
    );
    writeFileSync(
      join(this.#programs, ".names"),
      "nameserver 127.0.0.3\noptions timeout:1 attempts:1\n",
    );
  }
}

/** The interpreter itself, where the name on the path is a script that chooses one. */
function findPython(): string | undefined {
  try {
    return execFileSync("python3", ["-c", "import sys; print(sys.executable)"], {
      encoding: "utf8",
    }).trim();
  } catch {
    // There is none here: lines that need it fail, and do nothing.
    return undefined;
  }
}

/** One line at a time, in a process of its own. */
class Driver {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #answers: AsyncIterator<string>;
  #errors = "";
  #serial = 0;

  constructor(child: ChildProcessWithoutNullStreams) {
    this.#child = child;
    this.#answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    child.stderr.on("data", (piece: Buffer) => {
      this.#errors += piece.toString();
    });
  }

  async run(line: string): Promise<LineReport> {
    const id = ++this.#serial;
    this.#child.stdin.write(`${JSON.stringify({ id, line })}\n`);
    const { value, done } = await this.#answers.next();
    if (done) throw new Error(`The sandbox ended at ${JSON.stringify(line)}: ${this.#errors}`);
    const report: LineReport & { id: number } = JSON.parse(value);
    if (report.id !== id) throw new Error("The answers are out of order.");
    return report;
  }

  async close(): Promise<void> {
    this.#child.stdin.end();
    if (this.#child.exitCode === null) await once(this.#child, "exit");
  }
}
