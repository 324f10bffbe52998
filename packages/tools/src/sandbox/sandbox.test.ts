import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { secretPlaces } from "./places.ts";
import { bubblewrapArguments } from "./bubblewrap.ts";
import {
  createSandbox,
  joinSearchPath,
  noSandbox,
  SandboxMissingError,
  SYSTEM_PATH,
} from "./sandbox.ts";

let folder: string;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "gyre-test-")));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

async function findProblem(options: Parameters<typeof createSandbox>[0]): Promise<string> {
  try {
    await createSandbox(options);
  } catch (error) {
    expect(error).toBeInstanceOf(SandboxMissingError);
    expect(error).toMatchObject({ code: "sandbox_missing" });
    return String(error);
  }
  throw new Error("There was a sandbox.");
}

describe("createSandbox", () => {
  it("confines nothing if asked to, on any system", async () => {
    expect(await createSandbox({ kind: "none", platform: "win32" })).toBe(noSandbox);
  });

  it("fails where there is no bwrap, and says how to get it and how to do without", async () => {
    const problem = await findProblem({ platform: "linux", path: folder });
    expect(problem).toContain("apt install bubblewrap");
    expect(problem).toContain('"none"');
  });

  it("fails where bwrap does not work, with what it said", async () => {
    const bwrap = join(folder, "bwrap");
    writeFileSync(bwrap, "#!/bin/sh\necho no namespaces for you >&2\nexit 1\n", { mode: 0o755 });
    const problem = await findProblem({ platform: "linux", path: folder });
    expect(problem).toContain(`${bwrap} fails: no namespaces for you`);
    expect(problem).toContain("0.8 or later");
  });

  it("falls back to none if any will do, and says why", async () => {
    const { kind, missing } = await createSandbox({ kind: "any", platform: "win32" });
    expect(kind).toBe("none");
    expect(missing).toBe(
      "There is no sandbox for win32: bubblewrap needs Linux, Seatbelt needs macOS.",
    );
    writeFileSync(join(folder, "bwrap"), "#!/bin/sh\n", { mode: 0o755 });
    const found = await createSandbox({ kind: "any", platform: "linux", path: folder });
    expect(found).toMatchObject({ kind: "bubblewrap" });
    expect(found.missing).toBeUndefined();
  });

  it("tries bwrap out once", async () => {
    const bwrap = join(folder, "bwrap");
    const count = join(folder, "count");
    writeFileSync(bwrap, `#!/bin/sh\necho x >>${count}\n`, { mode: 0o755 });
    const options = { kind: "bubblewrap", platform: "linux", path: folder } as const;
    await Promise.all([createSandbox(options), createSandbox(options)]);
    expect((await createSandbox(options)).kind).toBe("bubblewrap");
    const counted = await new Promise((done) => {
      execFile("cat", [count], (_error, stdout) => done(stdout));
    });
    expect(counted).toBe("x\n");
  });

  it("never takes the workspace's own bwrap", async () => {
    const [workspace, other] = [join(folder, "clone"), join(folder, "other")];
    const bin = join(workspace, "node_modules/.bin");
    for (const made of [bin, other]) mkdirSync(made, { recursive: true });
    writeFileSync(join(bin, "bwrap"), "#!/bin/sh\n", { mode: 0o755 });
    vi.stubEnv("PATH", `${bin}:${other}`);
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(joinSearchPath(workspace)).toBe(`${SYSTEM_PATH}:${other}`);
    // A bwrap of the system comes first: without it, there is none.
    const path = joinSearchPath(workspace).replace(SYSTEM_PATH, "");
    expect(await findProblem({ platform: "linux", path })).toContain("there is no bwrap");
  });

  it("does not take a bwrap from a folder that depends on where it is started", async () => {
    expect(await findProblem({ platform: "linux", path: ".::bin" })).toContain("there is no bwrap");
  });

  it.each([
    ["win32", "auto", "no sandbox for win32"],
    ["win32", "bubblewrap", '"bubblewrap" is not for win32'],
    ["linux", "seatbelt", '"seatbelt" is not for linux'],
    ["darwin", "bubblewrap", '"bubblewrap" is not for darwin'],
  ] as const)("fails on %s for %s", async (platform, kind, words) => {
    expect(await findProblem({ platform, kind })).toContain(words);
  });
});

describe("secretPlaces", () => {
  it("names the keys of a home folder and the sockets of the environment", () => {
    const places = secretPlaces("/home/me", {
      SSH_AUTH_SOCK: "/opt/agent.sock",
      DOCKER_HOST: "unix:///opt/docker.sock",
      DBUS_SESSION_BUS_ADDRESS: "unix:path=/opt/bus,guid=1",
      CONTAINER_HOST: "tcp://somewhere",
    });
    for (const name of [".ssh", ".aws", ".gnupg", ".config/gyre", ".netrc", ".git-credentials"]) {
      expect(places).toContain(`/home/me/${name}`);
    }
    expect(places.slice(-3)).toEqual(["/opt/agent.sock", "/opt/docker.sock", "/opt/bus"]);
  });

  it("names keys, sessions and logins where the environment moves them", () => {
    const places = secretPlaces("/home/me", {
      XDG_CONFIG_HOME: "/data/config",
      XDG_STATE_HOME: "/data/state",
      XDG_DATA_HOME: "/data/share",
      XDG_CACHE_HOME: "/data/cache",
      GNUPGHOME: "/data/gnupg",
      AWS_SHARED_CREDENTIALS_FILE: "/data/aws",
      KUBECONFIG: "/data/kube:/data/kube2",
      DOCKER_CONFIG: "/data/docker",
      GH_CONFIG_DIR: "/data/gh",
      CLOUDSDK_CONFIG: "/data/gcloud",
      CARGO_HOME: "/data/cargo",
      NETRC: "/home/me",
    });
    for (const place of [
      "/data/config/gyre",
      "/data/state/gyre",
      "/data/share/gyre",
      "/data/config/gh",
      "/data/cache/huggingface/token",
      "/data/gnupg",
      "/data/aws",
      "/data/kube",
      "/data/kube2",
      "/data/docker",
      "/data/gh",
      "/data/gcloud",
      "/data/cargo/credentials.toml",
      "/home/me/.config/gyre",
    ]) {
      expect(places).toContain(place);
    }
    // The registry is needed, and a whole home is not to be hidden.
    expect(places).not.toContain("/data/cargo");
    expect(places).not.toContain("/home/me");
  });

  it.each([
    ".config/github-copilot",
    ".cache/huggingface/token",
    ".kaggle",
    ".m2/settings.xml",
    ".pulumi",
    ".databrickscfg",
    ".s3cfg",
    ".config/age",
    ".config/Code/User/globalStorage",
    ".config/Cursor/User/globalStorage",
    ".config/Slack",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".local/share/fish/fish_history",
    ".pi",
    ".local/share/opencode",
    ".config/goose",
  ])("names %s in a home folder", (name) => {
    expect(secretPlaces("/home/me")).toContain(`/home/me/${name}`);
  });
});

describe("the arguments of bwrap", () => {
  const policy = { writable: [], readOnly: [], hidden: [], network: false };

  it("end before the program, whatever that is called", () => {
    const program = { argv: ["--bind", "/", "/"], cwd: "/", env: {} };
    const args = bubblewrapArguments(program, policy);
    expect(args.slice(-4)).toEqual(["--", "--bind", "/", "/"]);
  });

  it("share the network only if asked", () => {
    const program = { argv: ["true"], cwd: "/", env: {} };
    expect(bubblewrapArguments(program, policy)).toContain("--unshare-net");
    expect(bubblewrapArguments(program, { ...policy, network: true })).not.toContain(
      "--unshare-net",
    );
  });
});
