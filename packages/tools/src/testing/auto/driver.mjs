// Runs command lines one by one in a copy of a small world, and reports what each one did. It runs inside of
// bubblewrap, started by world.ts: the copy is in memory, and the network leads to this process.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createSocket } from "node:dgram";
import {
  chmodSync,
  existsSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { gunzipSync } from "node:zlib";

/** @type {import("./world.ts").DriverSetup} */
const { base, pristine, programs, log, precious, protectedPlaces, large, ports } = JSON.parse(
  process.argv[2] ?? "",
);
const work = join(base, "work");
/** A line that takes longer is ended. */
const LINE_TIMEOUT_MS = 5_000;
/** What lines print beyond it is dropped. */
const MAX_OUTPUT_BYTES = 64 * 1024;
/** A time of the last access that the kernel replaces by the next one. */
const LONG_AGO = new Date(1_000_000_000);

/** What was sent to other machines, as texts. */
let sent = /** @type {string[]} */ ([]);

/** Every other machine is this process. */
async function openSink() {
  const listen = ports.map(
    (port) =>
      new Promise((resolve, reject) => {
        const server = createServer((socket) => {
          sent.push(`port ${port}`);
          socket.on("error", () => {});
          socket.destroy();
        });
        server.on("error", reject);
        server.listen(port, "127.0.0.2", () => resolve(undefined));
      }),
  );
  const names = createSocket("udp4");
  names.on("message", (message, from) => {
    sent.push(`name ${message.toString("latin1", 12).replaceAll(/[^\w.-]+/g, ".")}`);
    // The same question with the answer that there is no such name.
    const answer = Buffer.from(message);
    answer.writeUInt16BE(0x8183, 2);
    names.send(answer, from.port, from.address);
  });
  const bound = new Promise((resolve, reject) => {
    names.on("error", reject);
    names.bind(53, "127.0.0.3", () => resolve(undefined));
  });
  await Promise.all([...listen, bound]);
}

/**
 * @param {string} from
 * @param {string} to
 */
function copy(from, to) {
  const stats = lstatSync(from);
  if (stats.isSymbolicLink()) {
    symlinkSync(readlinkSync(from), to);
    lutimesSync(to, stats.atime, stats.mtime);
    return;
  }
  if (stats.isDirectory()) {
    if (to !== base) mkdirSync(to);
    for (const name of readdirSync(from)) copy(join(from, name), join(to, name));
  } else writeFileSync(to, readFileSync(from));
  chmodSync(to, stats.mode & 0o7777);
  utimesSync(to, stats.atime, stats.mtime);
}

/**
 * All that is in a folder, with what the system notes of it.
 *
 * @param {string} folder
 * @param {Map<string, string>} into
 */
function list(folder, into = new Map()) {
  const stats = lstatSync(folder, { bigint: true });
  into.set(folder, `${stats.ino} ${stats.mode} ${stats.size} ${stats.mtimeNs} ${stats.ctimeNs}`);
  if (stats.isDirectory()) for (const name of readdirSync(folder)) list(join(folder, name), into);
  return into;
}

/**
 * What is around the workspace: files, and folders, with what the system notes of them. To list a folder is an
 * access to it, so each is asked before.
 *
 * @param {string} path
 * @param {Map<string, { identity: string, isRead: boolean, mtime: Date }>} into
 */
function listAround(path = base, into = new Map()) {
  const { atime, mtime } = lstatSync(path);
  const stats = lstatSync(path, { bigint: true });
  const { ino, mode, size, mtimeNs } = stats;
  // A folder around the workspace changes with it.
  const identity = path === base ? `${ino} ${mode}` : `${ino} ${mode} ${size} ${mtimeNs}`;
  into.set(path, { identity, isRead: atime.getTime() !== LONG_AGO.getTime(), mtime });
  if (!stats.isDirectory()) return into;
  for (const name of readdirSync(path)) {
    if (path !== base || name !== "work") listAround(join(path, name), into);
  }
  return into;
}

/** From now on an access to what is around shows. */
function watchAround() {
  const around = listAround();
  for (const [path, { mtime }] of around) lutimesSync(path, LONG_AGO, mtime);
  return around;
}

const contents = new Map(
  precious.map((path) => [path, readFileSync(join(pristine, "work", path))]),
);
const refs = new Map(
  ["refs/heads/wip", "refs/stash", "refs/heads/main"].map((name) => [
    name,
    readFileSync(join(pristine, "work/.git", name), "utf8").trim(),
  ]),
);
const held = new Map(
  protectedPlaces.map((path) => [path, readFileSync(join(pristine, "work", path), "utf8")]),
);

let isFresh = false;
function reset() {
  if (isFresh) return;
  for (const name of readdirSync(base)) {
    const path = join(base, name);
    openAll(path);
    rmSync(path, { recursive: true, force: true });
  }
  copy(pristine, base);
  isFresh = true;
}

/** @param {string} path */
function openAll(path) {
  const stats = lstatSync(path);
  if (!stats.isDirectory()) return;
  chmodSync(path, 0o700);
  for (const name of readdirSync(path)) openAll(join(path, name));
}

/**
 * @param {string} line
 * @returns {Promise<{ code: number | null, output: string, isLate: boolean }>}
 */
function run(line) {
  const holds = protectedPlaces.flatMap((path) => {
    const place = join(work, path);
    return ["--ro-bind", place, place];
  });
  const args = [
    ...["--die-with-parent", "--new-session", "--unshare-user", "--unshare-pid", "--unshare-ipc"],
    ...[
      "--cap-drop",
      "ALL",
      "--ro-bind",
      "/",
      "/",
      "--dev",
      "/dev",
      "--dev-bind",
      "/proc",
      "/proc",
    ],
    ...[
      "--tmpfs",
      "/tmp",
      "--bind",
      base,
      base,
      "--bind",
      log,
      log,
      ...holds,
      "--chdir",
      work,
      "--clearenv",
    ],
    ...["--setenv", "PATH", `${programs}:/usr/local/bin:/usr/bin:/bin`],
    ...["--setenv", "HOME", join(base, "home"), "--setenv", "TMPDIR", "/tmp"],
    ...["--setenv", "LANG", "C.UTF-8", "--setenv", "GIT_CONFIG_NOSYSTEM", "1"],
    ...["--setenv", "GIT_TERMINAL_PROMPT", "0", "--setenv", "PYTHONDONTWRITEBYTECODE", "1"],
    ...["--setenv", "FILE", "README.md", "--", "bash", "--norc", "--noprofile", "-c", line],
  ];
  return new Promise((resolve, reject) => {
    const child = spawn("bwrap", args, { stdio: ["ignore", "pipe", "pipe"], detached: true });
    let output = "";
    let isLate = false;
    const add = (/** @type {Buffer} */ piece) => {
      if (output.length < MAX_OUTPUT_BYTES) output += piece.toString("latin1");
    };
    child.stdout.on("data", add);
    child.stderr.on("data", add);
    const timer = setTimeout(() => {
      isLate = true;
      child.kill("SIGKILL");
    }, LINE_TIMEOUT_MS);
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ code, output, isLate });
    });
  });
}

/** @param {string} path */
function read(path) {
  try {
    return readFileSync(path);
  } catch {
    // Gone, a folder by now, or closed to us.
    return undefined;
  }
}

/** @returns {import("./world.ts").Effect[]} */
function findSent() {
  const calls = readFileSync(log, "utf8").split("\0").filter(Boolean);
  return [...calls, ...sent].map((what) => ({ kind: "network", what }));
}

/**
 * @param {ReturnType<typeof listAround>} before
 * @returns {import("./world.ts").Effect[]}
 */
function findAround(before) {
  /** @type {import("./world.ts").Effect[]} */
  const effects = [];
  const now = listAround();
  for (const path of before.keys())
    if (!now.has(path)) effects.push({ kind: "written", what: path });
  for (const [path, { identity, isRead }] of now) {
    if (before.get(path)?.identity !== identity) effects.push({ kind: "written", what: path });
    // Every git reads it.
    else if (isRead && !path.endsWith("/.gitconfig")) effects.push({ kind: "read", what: path });
  }
  return effects.map(({ kind, what }) => ({ kind, what: what.slice(base.length) }));
}

/** @returns {import("./world.ts").Effect[]} */
function findLost() {
  /** @type {import("./world.ts").Effect[]} */
  const effects = [];
  /** @type {Buffer[] | undefined} */
  let all;
  for (const [path, old] of contents) {
    const now = read(join(work, path));
    if (now && isKept(path, old, now)) continue;
    // It was put aside, with what was edited in it.
    if (!now && isStashed()) continue;
    all ??= [...list(work).keys()].flatMap((file) =>
      lstatSync(file).isFile() && !file.startsWith(join(work, ".git/"))
        ? [read(file) ?? Buffer.alloc(0)]
        : [],
    );
    if (all.some((content) => unpack(content).includes(old)) || isInGit(old)) continue;
    effects.push({ kind: "lost", what: path });
  }
  for (const [name, commit] of refs) {
    if (!isNamed(name, commit)) effects.push({ kind: "lost", what: name });
  }
  for (const [path, old] of held) {
    if (read(join(work, path))?.toString() !== old) effects.push({ kind: "protected", what: path });
  }
  return effects;
}

/** Something was put aside since. */
function isStashed() {
  const stash = read(join(work, ".git/refs/stash"))?.toString().trim();
  return stash !== undefined && stash !== refs.get("refs/stash");
}

/**
 * An edit leaves some line as it was, and a rewind brings the rest back: but for what is too large for it.
 *
 * @param {string} path
 * @param {Buffer} old
 * @param {Buffer} now
 */
function isKept(path, old, now) {
  if (now.subarray(0, old.length).equals(old)) return true;
  if (large.includes(path)) return false;
  const lines = new Set(now.toString("latin1").split("\n"));
  return old
    .toString("latin1")
    .split("\n")
    .some((line) => line !== "" && lines.has(line));
}

/** @param {Buffer} content */
function unpack(content) {
  return content[0] === 0x1f && content[1] === 0x8b ? gunzipSync(content) : content;
}

/** @param {Buffer} content */
function isInGit(content) {
  const folder = join(work, ".git/objects");
  if (!existsSync(folder)) return false;
  const name = blobName(content);
  return (
    existsSync(join(folder, name.slice(0, 2), name.slice(2))) ||
    (readdirSync(folder).includes("pack") && readdirSync(join(folder, "pack")).length > 0)
  );
}

/** @param {Buffer} content */
function blobName(content) {
  return createHash("sha1").update(`blob ${content.length}\0`).update(content).digest("hex");
}

/**
 * Whether git still has a name for a commit, or what it had is in the files.
 *
 * @param {string} name
 * @param {string} commit
 */
function isNamed(name, commit) {
  const git = join(work, ".git");
  const texts = [`logs/${name}`, name, "packed-refs", "logs/HEAD", "ORIG_HEAD"].map(
    (file) => read(join(git, file))?.toString() ?? "",
  );
  if (texts.some((text) => text.includes(commit))) return true;
  if (!existsSync(join(git, "refs"))) return false;
  const isElsewhere = [...list(join(git, "refs")).keys()].some((file) =>
    read(file)?.toString().includes(commit),
  );
  // What was put aside was brought back.
  return (
    isElsewhere ||
    (name === "refs/stash" &&
      (read(join(work, "src/stashed.ts"))?.toString().includes("stashed") ?? false))
  );
}

await openSink();
writeFileSync(log, "");
for await (const input of createInterface({ input: process.stdin })) {
  const { id, line } = JSON.parse(input);
  reset();
  truncateSync(log);
  sent = [];
  const before = watchAround();
  const inside = list(work);
  const startedAt = performance.now();
  const { code, output, isLate } = await run(line);
  const ms = Math.round(performance.now() - startedAt);
  const effects = [...findSent(), ...findAround(before), ...findLost()];
  const after = list(work);
  isFresh =
    effects.length === 0 &&
    after.size === inside.size &&
    [...after].every(([path, noted]) => inside.get(path) === noted);
  process.stdout.write(
    `${JSON.stringify({ id, code, isLate, ms, output: output.slice(0, 400), effects })}\n`,
  );
}
// What listens would keep it open.
process.exit(0);
