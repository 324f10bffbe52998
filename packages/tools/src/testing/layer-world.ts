import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readable } from "../effects/byte-path.ts";
import type { Effect } from "../effects/effect.ts";
import { Layer, type LayerHome, openLayers } from "../effects/layers.ts";
import { removeFolder } from "../process/remove-folder.ts";
import { withoutInherited } from "@gyre/ai/programs";
import { createSandbox, type Sandbox } from "../sandbox/sandbox.ts";

/** A workspace with layers over it: real mounts, real bubblewrap. */
export interface LayerWorld {
  folder: string;
  root: string;
  stateFolder: string;
  sandbox: Sandbox;
  home: LayerHome;
  /** Runs a command in a layer of its own. */
  run: (command: string) => Promise<LayerRun>;
  /** A hash of all names, contents, rights and links of the workspace. */
  hash: () => string;
  remove: () => Promise<void>;
}

export interface LayerRun {
  code: number | null;
  stdout: string;
  stderr: string;
  layer: Layer;
  effects: Effect[];
  /** Kind and path of each effect, in order of the paths. */
  shown: string[];
}

/** `name`: of the workspace. `fill` makes what is in it before anything else is there. */
export async function openLayerWorld(
  name = "ws",
  fill: (root: string) => void = () => {},
): Promise<LayerWorld> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "gyre-layer-")));
  mkdirSync(join(folder, name));
  fill(join(folder, name));
  return openLayerWorldIn(folder, name);
}

/** The same in a folder that is there, with its workspace. */
export async function openLayerWorldIn(folder: string, name = "ws"): Promise<LayerWorld> {
  const root = join(folder, name);
  const stateFolder = join(folder, "state");
  mkdirSync(stateFolder, { mode: 0o700, recursive: true });
  const sandbox = await createSandbox({ kind: "bubblewrap" });
  const home = await openLayers({ root, stateFolder, sandbox });
  if ("why" in home) throw new Error(home.why);
  return {
    folder,
    root,
    stateFolder,
    sandbox,
    home,
    async run(command) {
      const layer = await Layer.create(home);
      const end = await runIn(layer, sandbox, command);
      const effects = await layer.findEffects();
      const shown = effects.map(({ kind, path }) => `${kind} ${readable(path)}`).toSorted();
      return { ...end, layer, effects, shown };
    },
    hash: () => hashFolder(root),
    remove: () => removeFolder(folder),
  };
}

function runIn(
  layer: Layer,
  sandbox: Sandbox,
  command: string,
): Promise<Pick<LayerRun, "code" | "stdout" | "stderr">> {
  const { root } = layer.home;
  const program = {
    argv: ["/bin/bash", "-c", command],
    cwd: root,
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: "/nonexistent", LC_ALL: "C" },
  };
  const policy = { writable: [root], readOnly: [], hidden: [], network: false };
  const { argv, cwd, env } = sandbox.wrap(program, layer.cover(policy));
  const [file = "", ...args] = argv;
  return new Promise((done, fail) => {
    const child = withoutInherited((further) =>
      spawn(file, args, { cwd, env, stdio: ["ignore", "pipe", "pipe", ...further] }),
    );
    let [stdout, stderr] = ["", ""];
    child.stdout?.setEncoding("utf8").on("data", (piece: string) => (stdout += piece));
    child.stderr?.setEncoding("utf8").on("data", (piece: string) => (stderr += piece));
    child.on("error", fail);
    child.on("close", (code) => done({ code, stdout, stderr }));
  });
}

/** Names, contents, rights and links of all that is in a folder, whatever the encoding of its names. */
export function hashFolder(root: string): string {
  const hash = createHash("sha256");
  const visit = (path: Buffer): void => {
    const stats = lstatSync(path);
    hash
      .update(path)
      .update(
        `\0${stats.mode.toString(8)} ${stats.nlink > 1 && stats.isFile() ? stats.ino : ""}\0`,
      );
    if (stats.isSymbolicLink()) hash.update(readlinkSync(path, { encoding: "buffer" }));
    else if (stats.isFile()) hash.update(readFileSync(path));
    if (!stats.isDirectory()) return;
    const names = readdirSync(path, { encoding: "buffer" }).toSorted((one, other) =>
      one.compare(other),
    );
    for (const name of names) visit(Buffer.concat([path, Buffer.from("/"), name]));
  };
  visit(Buffer.from(root));
  return hash.digest("hex");
}
