import { dirname } from "node:path";
import { orderedPlaces, type Place, placeAround } from "./places.ts";
import type { Sandbox, SandboxPolicy } from "./sandbox.ts";

/** Part of macOS. */
export const SEATBELT = "/usr/bin/sandbox-exec";

/** Programs start, see and signal their own kind, and ask the system what it is like. */
const BASE = `(version 1)
(deny default)
(allow process-exec*)
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow pseudo-tty)
(allow mach-lookup
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.bsd.dirhelper"))
(allow file-read*)
(allow file-write-data file-ioctl
  (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty")
  (regex #"^/dev/ttys[0-9]+$") (regex #"^/dev/fd/[0-9]+$"))`;

const NETWORK = `(allow network*)
(allow system-socket)
(allow mach-lookup
  (global-name "com.apple.mDNSResponder")
  (global-name "com.apple.dnssd.service")
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.SystemConfiguration.DNSConfiguration")
  (global-name "com.apple.trustd.agent"))`;

/**
 * A sandbox by Seatbelt. `temporary`, a real path, takes the place of /tmp: of all
 * temporary folders programs may write to this one alone.
 */
export function seatbeltSandbox(temporary: string): Sandbox {
  return {
    kind: "seatbelt",
    temporary,
    wrap: (program, policy) => {
      const profile = seatbeltProfile({ ...policy, writable: [...policy.writable, temporary] });
      return {
        argv: [SEATBELT, "-p", profile, "--", ...program.argv],
        cwd: program.cwd,
        env: { ...program.env, TMPDIR: temporary },
      };
    },
  };
}

/**
 * A policy as a profile of Seatbelt: all is denied but what is named, and of several rules
 * for a path the last holds. Made and compared as text; it was not run on a Mac.
 */
export function seatbeltProfile(policy: SandboxPolicy): string {
  const places = orderedPlaces(policy);
  const rules = places.map(formatRule);
  const held = heldFolders(places).map(
    (folder) => `(deny file-write-unlink (literal ${quoted(folder)}))`,
  );
  return [BASE, ...(policy.network ? [NETWORK] : []), ...rules, ...held, ""].join("\n");
}

function formatRule(place: Place): string {
  const path = `(subpath ${quoted(place.path)})`;
  switch (place.rule) {
    case "writable":
      return `(allow file-read* file-write* ${path})`;
    case "readOnly":
      return `(allow file-read* ${path})\n(deny file-write* ${path})`;
    case "hidden":
      // A socket is reached by its path, with the network or without.
      return `(deny file-read* file-write* network-outbound ${path})`;
    default:
      return place.rule satisfies never;
  }
}

/** Folders on the way to a read-only place: moved away, they would take it with them. */
function heldFolders(places: readonly Place[]): string[] {
  const held = new Set<string>();
  for (const { path } of places.filter((place) => place.rule === "readOnly")) {
    for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder)) {
      if (placeAround(places, folder)?.rule === "writable") held.add(folder);
    }
  }
  return [...held];
}

function quoted(path: string): string {
  return `"${path.replace(/["\\]/g, String.raw`\$&`)}"`;
}
