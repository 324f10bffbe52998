import { type ChildProcess, spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createSandbox, type Sandbox, type SandboxPolicy } from "./sandbox.ts";
import { openWorkspace } from "../workspace/workspace.ts";

const POLL_MS = 10;
const DEADLINE_MS = 60_000;

let sandbox: Sandbox;

beforeAll(async () => {
  sandbox = await createSandbox({ kind: "bubblewrap" });
});

/** A home with a key, a workspace with a repository, and a neighbor. */
let folder: string;
let workspace: string;
let policy: SandboxPolicy;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "gyre-test-")));
  workspace = join(folder, "ws");
  for (const name of ["ws/.git/hooks", "ws/.gyre", "home/.ssh", "outside"]) {
    mkdirSync(join(folder, name), { recursive: true });
  }
  writeFileSync(join(workspace, ".git/config"), "[core]\n");
  writeFileSync(join(workspace, ".env"), "KEY=hunter22");
  writeFileSync(join(folder, "home/.ssh/id"), "hunter22");
  writeFileSync(join(folder, "outside/file"), "mine");
  policy = {
    writable: [workspace],
    // The folder too: else all of it but the workspace would be behind the sandbox's own /tmp.
    readOnly: [
      folder,
      ...[".git/config", ".git/hooks", ".gyre"].map((name) => join(workspace, name)),
    ],
    hidden: [join(folder, "home/.ssh"), join(workspace, ".env"), join(folder, "home/.aws")],
    network: false,
  };
});

afterEach(() => {
  if (folder) rmSync(folder, { recursive: true, force: true });
});

interface End {
  code: number | null;
  stdout: string;
  stderr: string;
}

function start(
  argv: readonly string[],
  changes: Partial<SandboxPolicy> = {},
  env: Record<string, string> = {},
): ChildProcess {
  const program = {
    argv,
    cwd: workspace,
    env: { PATH: "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", ...env },
  };
  const wrapped = sandbox.wrap(program, { ...policy, ...changes });
  const [command = "", ...args] = wrapped.argv;
  return spawn(command, args, {
    cwd: wrapped.cwd,
    env: { ...wrapped.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

function ended(child: ChildProcess): Promise<End> {
  return new Promise((resolve, reject) => {
    const end: End = { code: null, stdout: "", stderr: "" };
    child.stdout?.setEncoding("utf8").on("data", (text: string) => (end.stdout += text));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (end.stderr += text));
    child.once("error", reject);
    child.once("close", (code) => resolve({ ...end, code }));
  });
}

const sh = (
  script: string,
  changes: Partial<SandboxPolicy> = {},
  env: Record<string, string> = {},
): Promise<End> => ended(start(["/bin/sh", "-c", script], changes, env));

const node = (script: string, changes: Partial<SandboxPolicy> = {}): Promise<End> =>
  ended(start([process.execPath, "-e", script], changes));

/** Each of the commands fails, and the shell goes on. */
async function expectAllFail(...commands: readonly string[]): Promise<void> {
  const script = commands.map((command, index) => `(${command}) && echo "worked: ${index}"`);
  const { stdout } = await sh(`${script.join("\n")}\ntrue`);
  const worked = stdout.split("\n").filter((line) => line.startsWith("worked: "));
  expect(worked.map((line) => commands[Number(line.slice("worked: ".length))])).toEqual([]);
}

async function until(holds: () => boolean): Promise<void> {
  const deadline = Date.now() + DEADLINE_MS;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error("It did not come to hold.");
    await new Promise((next) => setTimeout(next, POLL_MS));
  }
}

describe("bubblewrap and files", { tags: "bubblewrap" }, () => {
  it("lets a program work in its folders, and passes its end on", async () => {
    const end = await sh(
      "pwd; echo hi >new && mv new dir-entry && cat dir-entry; echo e >&2; exit 7",
    );
    expect(end).toEqual({ code: 7, stdout: `${workspace}\nhi\n`, stderr: "e\n" });
    expect(readFileSync(join(workspace, "dir-entry"), "utf8")).toBe("hi\n");
  });

  it("lets what is outside be read, and nothing of it be changed", async () => {
    const outside = join(folder, "outside");
    expect((await sh(`cat ${outside}/file`)).stdout).toBe("mine");
    await expectAllFail(
      `echo x >${outside}/file`,
      `echo x >${outside}/new`,
      `rm ${outside}/file`,
      `mkdir ${folder}/new`,
      "echo x >/etc/gyre-test",
      "echo x >/usr/gyre-test",
      "echo x >$HOME/gyre-test",
      "chmod 777 /etc",
      "echo x >/sys/kernel/uevent_helper",
    );
    expect(readdirSync(outside)).toEqual(["file"]);
    expect(readFileSync(join(outside, "file"), "utf8")).toBe("mine");
  });

  it("lets protected places inside be read, and changed in no way", async () => {
    expect((await sh("cat .git/config")).stdout).toBe("[core]\n");
    await expectAllFail(
      "echo x >.git/config",
      "rm .git/config",
      "mv .git/config .git/old",
      "echo x >n && mv -f n .git/config",
      "ln .git/config hard && echo x >hard",
      "echo x >.git/hooks/pre-commit",
      "rmdir .git/hooks",
      "mv .git/hooks .git/h",
      "echo x >.gyre/policy.json",
      "rm -rf .gyre && mkdir .gyre && echo x >.gyre/a",
      "mv .gyre old",
      "chmod 777 .git/config",
    );
    expect(readFileSync(join(workspace, ".git/config"), "utf8")).toBe("[core]\n");
  });

  it("does not let the folder around a protected place be moved away", async () => {
    await expectAllFail("mv .git old", "rm -rf .git");
    await sh("mv .git old; mkdir .git; echo evil >.git/config");
    expect(readFileSync(join(workspace, ".git/config"), "utf8")).toBe("[core]\n");
    expect((await sh("echo x >.git/HEAD && mkdir .git/objects")).code).toBe(0);
  });

  it("does not let a missing folder be made that is named with a slash", async () => {
    const missingPlace = `${workspace}/.codex/`;
    const readOnly = [...policy.readOnly, missingPlace];
    const { code } = await sh("echo x >.codex/config.toml", { readOnly });
    expect(code).not.toBe(0);
    expect((await sh("mv .codex x || rmdir .codex", { readOnly })).code).not.toBe(0);
    expect(readdirSync(missingPlace)).toEqual([]);
  });

  it("does not protect by a link, which could be replaced: it refuses to start", () => {
    const link = join(workspace, ".claude");
    symlinkSync(join(folder, "outside"), link);
    const withLink = { readOnly: [link] };
    expect(() => start(["true"], withLink)).toThrow(`cannot protect "${link}"`);
    symlinkSync(join(folder, "nowhere"), join(workspace, ".codex"));
    expect(() => start(["true"], { readOnly: [join(workspace, ".codex/")] })).toThrow("link");
    expect(() => start(["true"], { readOnly: [join(link, "hooks")] })).toThrow("link");
  });

  it("hides keys", async () => {
    const { stdout } = await sh(
      `cat ${folder}/home/.ssh/id .env; ls -a ${folder}/home/.ssh; ls ${folder}/home; cp .env copy; cat copy; ln .env hard; cat hard; grep -r hunter22 . ${folder}`,
    );
    expect(stdout).not.toContain("hunter22");
    await expectAllFail(
      `ls ${folder}/home/.ssh`,
      "mv .env moved",
      `echo x >${folder}/home/.ssh/id`,
    );
    expect(readFileSync(join(workspace, ".env"), "utf8")).toBe("KEY=hunter22");
  });

  it("hides what a link leads to", async () => {
    symlinkSync(join(folder, "home/.ssh"), join(folder, "home/keys"));
    const show = `cat ${folder}/home/.ssh/id`;
    expect((await sh(show, { hidden: [] })).stdout).toBe("hunter22");
    expect((await sh(show, { hidden: [join(folder, "home/keys")] })).stdout).toBe("");
  });

  it("gives each path the rule of the nearest place around it", async () => {
    const changes = {
      hidden: [folder],
      readOnly: [join(workspace, ".git")],
      writable: [workspace, join(workspace, ".git/hooks")],
    };
    const { stdout } = await sh(
      `ls ${folder} || echo hidden; echo x >a && echo writable; echo x >.git/b || echo read-only; echo x >.git/hooks/c && echo writable; cat ${folder}/outside/file || echo hidden`,
      changes,
    );
    expect(stdout).toBe("hidden\nwritable\nread-only\nwritable\nhidden\n");
  });

  it("has a /tmp of its own, gone with it", async () => {
    const { stdout } = await sh(
      "echo $TMPDIR; echo x >/tmp/gyre-own && ls /tmp/gyre-own; touch /var/tmp/gyre-own && echo ok",
      {},
      { TMPDIR: "/elsewhere" },
    );
    expect(stdout).toBe("/tmp\n/tmp/gyre-own\nok\n");
    expect(existsSync("/tmp/gyre-own")).toBe(false);
    expect(existsSync("/var/tmp/gyre-own")).toBe(false);
  });

  it("keeps programs from sockets that others listen on, wherever they are", async () => {
    const connect = (path: string): string =>
      `require("net").connect(${JSON.stringify(path)}).on("connect", () => { console.log("connected"); process.exit() }).on("error", (error) => console.log(error.code))`;
    const outside = join(folder, "outside", "docker of me.sock");
    const inside = join(workspace, "own.sock");
    const servers = [outside, inside].map((path) => createServer().listen(path));
    await Promise.all(
      servers.map((server) => new Promise((done) => server.once("listening", done))),
    );
    try {
      expect((await node(connect(outside))).stdout).toBe("ECONNREFUSED\n");
      expect((await node(connect(outside), { network: true })).stdout).toBe("ECONNREFUSED\n");
      expect((await node(connect(inside))).stdout).toBe("connected\n");
    } finally {
      for (const server of servers) server.close();
    }
    const own = `const path = "/tmp/mine.sock"; require("net").createServer().listen(path, () => ${connect("/tmp/mine.sock")})`;
    expect((await node(own)).stdout).toBe("connected\n");
  });

  it("hides /run, with the sockets of services", async () => {
    await expectAllFail("ls /run", "ls /run/user", "ls /var/run/docker.sock", "touch /run/x");
  });

  it("makes a link that our workspace does not follow out afterwards", async () => {
    await sh(`ln -s ${folder}/outside/file out; ln -s ${folder}/outside dir; ln -s / root`);
    const opened = await openWorkspace(workspace);
    try {
      for (const path of ["out", "dir/file", "dir/new", `root${folder}/outside/file`]) {
        await expect(opened.write(path, "evil"), path).rejects.toMatchObject({ fault: "outside" });
        await expect(opened.read(path), path).rejects.toMatchObject({ fault: "outside" });
      }
    } finally {
      await opened.close();
    }
    expect(readFileSync(join(folder, "outside/file"), "utf8")).toBe("mine");
    expect(readdirSync(join(folder, "outside"))).toEqual(["file"]);
  });
});

describe("bubblewrap and the kernel", { tags: "bubblewrap" }, () => {
  it("denies namespaces, mounts and settings", async () => {
    await expectAllFail(
      "unshare -U true",
      "unshare -Ur mount -t tmpfs none /mnt",
      "unshare -m true",
      "mount -t tmpfs none /mnt",
      "mount -o remount,rw /",
      "umount /tmp",
      `umount ${workspace}/.git/config`,
      "chroot / true",
      "cat /proc/sys/kernel/core_pattern >/proc/sys/kernel/core_pattern",
      "echo h >/proc/sysrq-trigger",
      "mknod dev b 8 0",
    );
  });

  it("has no capabilities and can get none", async () => {
    const { stdout } = await sh("cat /proc/self/status");
    for (const name of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) {
      expect(stdout).toContain(`${name}:\t0000000000000000`);
    }
    expect(stdout).toContain("NoNewPrivs:\t1");
  });

  it("sees and signals no process but its own", async () => {
    const bystander = spawn("sleep", ["60"], { stdio: "ignore" });
    try {
      const { stdout } = await sh(
        `kill -0 ${bystander.pid}; kill -9 ${bystander.pid}; kill -9 -1; ls -d /proc/[0-9]* | wc -l; cat /proc/*/cmdline | tr '\\0' ' '`,
      );
      expect(Number(stdout.split("\n")[0])).toBeLessThan(8);
      expect(stdout).not.toContain("sleep 60");
      expect(stdout).not.toContain("vitest");
      expect([bystander.exitCode, bystander.signalCode]).toEqual([null, null]);
    } finally {
      bystander.kill("SIGKILL");
    }
  });

  it("has no terminal to type into", async () => {
    await expectAllFail("echo x >/dev/tty");
  });

  it("gives the program its own variables and no others", async () => {
    const { stdout } = await ended(start(["/usr/bin/env"], {}, { A: "1 '\"\n2", LD_X: "y" }));
    expect(stdout).toContain("A=1 '\"\n2\n");
    const names = [...stdout.matchAll(/^([A-Z_]+)=/gm)].map((match) => match[1]);
    expect(names.sort()).toEqual(["A", "LD_X", "PATH", "PWD", "TMPDIR"]);
  });

  it("starts bwrap itself with no variables: a library to preload is loaded inside alone", () => {
    const program = { argv: ["true"], cwd: "/", env: { LD_PRELOAD: "/ws/evil.so" } };
    expect(sandbox.wrap(program, policy).env).toEqual({});
  });

  it("ends all that is inside when bwrap is killed", async () => {
    const script =
      "setsid sh -c 'trap \"\" TERM HUP; echo ready >ready; while :; do date +%N >beat; done' & wait";
    const child = start(["/bin/sh", "-c", script]);
    const end = ended(child);
    await until(() => existsSync(join(workspace, "ready")));
    const inside = processesNaming(workspace);
    expect(inside.length).toBeGreaterThan(1);
    child.kill("SIGKILL");
    await end;
    await until(() => processesNaming(workspace).length === 0);
  });
});

/** Processes that have the path in their command line or as their folder. */
function processesNaming(path: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid) || pid === String(process.pid)) return false;
    try {
      const commandLine = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      return commandLine.includes(path) || realpathSync(`/proc/${pid}/cwd`).startsWith(path);
    } catch {
      // It has ended meanwhile.
      return false;
    }
  });
}

/** Numbers of add_key and keyctl. */
const KEY_CALLS = { x64: [248, 250], arm64: [217, 219] }[process.arch as "x64" | "arm64"];

describe.runIf(KEY_CALLS && existsSync("/usr/bin/perl"))(
  "bubblewrap and the keys of the session",
  { tags: "bubblewrap" },
  () => {
    const [addKey, keyctl] = KEY_CALLS ?? [];
    /** Prints whether a key of the session that sandboxed programs inherit can be found, and one be added. */
    const names = `my ($user, $secret, $planted, $text) = ("user", "gyre-secret", "gyre-planted", "hunter22");`;
    const look = `${names}
      print syscall(${keyctl}, 10, -3, $user, $secret, 0) > 0 ? "found" : "none", " ";
      print syscall(${addKey}, $user, $planted, $text, 8, -3) > 0 ? "added" : "not added", "\n";
      open(F, "/proc/keys") && print <F>;`;
    const plant = `${names}
      syscall(${keyctl}, 1, 0);
      syscall(${addKey}, $user, $secret, $text, 8, -3);
      exec @ARGV;`;

    const lookAfterPlanting = async (argv: readonly string[]): Promise<End> =>
      ended(spawn("/usr/bin/perl", ["-e", plant, ...argv], { stdio: ["ignore", "pipe", "pipe"] }));

    it("neither reads them nor adds to them", async () => {
      const argv = ["/usr/bin/perl", "-e", look];
      // So that the test shows something: outside they are there.
      expect((await lookAfterPlanting(argv)).stdout).toMatch(/^found added\n/);
      const program = { argv, cwd: workspace, env: {} };
      const inside = await lookAfterPlanting(sandbox.wrap(program, policy).argv);
      expect(inside).toEqual({ code: 0, stdout: "none not added\n", stderr: "" });
    });
  },
);

describe("bubblewrap and what its program inherits", { tags: "bubblewrap" }, () => {
  it("is its three streams, and no handle of the filter", async () => {
    const { stdout } = await sh("ls /proc/$$/fd; true");
    // A shell keeps its script or terminal at 10 or above.
    expect(stdout.split("\n").filter((handle) => handle !== "" && Number(handle) < 10)).toEqual([
      "0",
      "1",
      "2",
    ]);
    const { stdout: status } = await sh(
      "grep -E '^(Seccomp|NoNewPrivs|CapEff):' /proc/self/status",
    );
    expect(status).toMatch(/CapEff:\t0+\nNoNewPrivs:\t1\nSeccomp:\t2\n/);
  });
});

describe("bubblewrap and a proxy", { tags: "bubblewrap" }, () => {
  it("is the only way out, which a program can neither replace nor close to others", async () => {
    const proxy = join(folder, "proxy");
    const server = createServer((socket) => socket.end("HTTP/1.1 204 No Content\r\n\r\n"));
    await new Promise<void>((done) => server.listen(proxy, done));
    try {
      const { stdout } = await sh(
        `for change in "rm -f" "chmod 000" "mv -t /tmp" "ln -sf /dev/null"; do $change /dev/gyre-proxy 2>/dev/null && echo "$change"; done; [ -S ${proxy} ] && echo seen; echo $HTTPS_PROXY`,
        { proxy },
      );
      expect(stdout).toBe("http://127.0.0.1:61128\n");
      const got = await node(
        `require("http").get({ port: 61128, path: "http://a.invalid/" }, (r) => console.log(r.statusCode))`,
        { proxy },
      );
      expect(got.stdout).toBe("204\n");
      expect((await sh("echo $HTTPS_PROXY; [ -e /dev/gyre-proxy ] || echo none")).stdout).toBe(
        "\nnone\n",
      );
    } finally {
      server.close();
    }
  });
});

describe("bubblewrap and the network", { tags: "bubblewrap" }, () => {
  it("reaches nothing: not this machine, not a name", async () => {
    const heard: string[] = [];
    const server = createServer((socket) => {
      heard.push("tcp");
      socket.destroy();
    });
    const port = await new Promise<number>((done) => {
      server.listen(0, "127.0.0.1", () => {
        const address = server.address();
        done(typeof address === "object" && address ? address.port : 0);
      });
    });
    const names = createSocket("udp4", () => heard.push("udp"));
    await new Promise<void>((done) => names.bind(port, "127.0.0.1", done));
    try {
      const script = `
        const dns = require("dns");
        dns.setServers(["127.0.0.1:${port}"]);
        require("net").connect(${port}, "127.0.0.1")
          .on("connect", () => console.log("connected"))
          .on("error", (error) => console.log("tcp", error.code));
        dns.resolve4("example.test", (error) => console.log("dns", error ? "failed" : "worked"));
        console.log(Object.values(require("os").networkInterfaces()).flat().every((i) => i.internal));`;
      const { stdout } = await node(script);
      expect(stdout.trim().split("\n").sort()).toEqual(["dns failed", "tcp ECONNREFUSED", "true"]);
      expect(heard).toEqual([]);

      const allowed = await node(script.replace(/dns\.resolve4.*/, ""), { network: true });
      expect(allowed.stdout).toContain("connected");
    } finally {
      server.close();
      names.close();
    }
  });
});
