import type { FileHandle } from "node:fs/promises";

/**
 * The folder that an agent works in, and the only way in which our tools touch files.
 * A path is resolved component by component from the opened folder; what was checked
 * is what is used, whatever else changes meanwhile.
 */
export interface Workspace {
  /** The real path of the folder. */
  readonly root: string;
  /** Further folders that belong to it, real paths. Paths in them are from the workspace too: `../lib/a.ts`. */
  readonly folders: readonly string[];
  /** Places outside of it that may be read, real paths. */
  readonly readable: readonly string[];
  /**
   * Has one more folder belong to it. Gives its real path, or nothing where it belongs to it already.
   * Throws an error for people where it is no folder or cannot be one of the workspace.
   */
  addFolder(path: string): string | undefined;
  /**
   * Lets `stat`, `open`, `read` and `list` come to a place outside, as `resolve` gave it with `outside`. Whether
   * a call may read there is for permissions to decide, each time; `unasked` says that it may, always.
   */
  allowReading(absolute: string, options?: { unasked?: boolean }): void;
  /**
   * Where a path leads, for showing and for rules: links followed, `..` taken, nothing
   * opened. The file need not exist. Throws `PathError` where it leads out.
   */
  resolve(path: string, options?: ResolveOptions): Promise<ResolvedPath>;
  /** Whether tools may neither see nor change a place; the path is from the workspace. */
  isHidden(path: string): boolean;
  /** What is at a path. Throws `PathError` ("missing" with near names) where nothing is. */
  stat(path: string): Promise<FileInfo>;
  /** Opens a regular file for reading. The caller closes the handle. */
  open(path: string): Promise<OpenedFile>;
  /** The whole of a file, up to `maxBytes` (an error beyond that). */
  read(path: string, maxBytes?: number): Promise<ReadFile>;
  /** Entries of a folder, sorted by name; links are listed as links, not followed. */
  list(path: string): Promise<Entry[]>;
  /**
   * Replaces or makes a file, folders on the way included: a temporary file in the same
   * opened folder, synced, renamed. Mode and owner of what was there are kept; a link is
   * followed and stays. `expected`: fails with "changed" unless the file still is this one.
   */
  write(path: string, data: string | Uint8Array, options?: WriteOptions): Promise<FileInfo>;
  /** Removes a file, or a link itself and not what it leads to. Folders are refused. */
  remove(path: string): Promise<void>;
  /** Waits for what is under way. Handles that `open` gave stay the caller's. */
  close(): Promise<void>;
}

export interface ResolveOptions {
  /** A link at the very end is not followed: the path is what `remove` would take. */
  keepLink?: boolean;
  /** A path that leads out is no error: it is resolved for reading. Places with keys are refused. */
  outside?: boolean;
}

export interface WriteOptions {
  /** For a file that is new. Default 0o644 as the umask leaves it. */
  mode?: number;
  /** `null`: nothing may be there. */
  expected?: FileIdentity | null;
}

/** Which file it is, and in which state. */
export interface FileIdentity {
  dev: bigint;
  ino: bigint;
  size: number;
  mtimeNs: bigint;
}

/** What is at a path. */
export interface FileInfo extends FileIdentity {
  /** Relative to the workspace, links followed, with `/`. */
  path: string;
  kind: "file" | "folder" | "link" | "other";
  mode: number;
}

/** Where a path leads. */
export interface ResolvedPath {
  /** Relative to the workspace, links followed, with `/`; "" is the workspace itself. */
  path: string;
  absolute: string;
  exists: boolean;
  /** Tools may read it and never change it: version control's own files, agent config, ... */
  readOnly: boolean;
  /** It is neither in the workspace nor in a folder that was added. */
  outside?: true;
}

/** A file that is open for reading, and what it was when it was opened. */
export interface OpenedFile {
  handle: FileHandle;
  info: FileInfo;
}

/** The bytes of a file, and what it was when they were read. */
export interface ReadFile {
  bytes: Uint8Array;
  info: FileInfo;
}

/** What is in a folder. */
export interface Entry {
  name: string;
  kind: FileInfo["kind"];
}

/**
 * What is wrong with a path, for programs. `outside`: it leads out of the workspace.
 * `read_only`: tools may not change it. `changed`: it is not the file any more that was
 * expected.
 */
export type PathFault =
  | "outside"
  | "read_only"
  | "missing"
  | "not_a_file"
  | "not_a_folder"
  | "too_large"
  | "changed"
  | "invalid"
  | "denied";

/** A path that is not taken, with what to do instead. */
export class PathError extends Error {
  readonly fault: PathFault;
  /** As it was given. */
  readonly path: string;
  constructor(fault: PathFault, path: string, message: string) {
    super(message);
    this.name = "PathError";
    this.fault = fault;
    this.path = path;
  }
}

/** A folder that cannot be added to a workspace, with what to do instead. */
export class FolderError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "FolderError";
  }
}

export interface WorkspaceOptions {
  /**
   * Further places that tools may not change, relative to the workspace, as glob
   * patterns; added to those that are always protected.
   */
  readOnly?: readonly string[];
  /** Places that tools may neither see nor change, absolute. */
  hidden?: readonly string[];
  /** The user's home folder, whose own files are protected too. Default: what the system says. */
  home?: string;
  /** Further folders that belong to the workspace; see `Workspace.addFolder`. */
  folders?: readonly string[];
  /** Variables that name places with keys, which are not read outside. Default: those of this process. */
  environment?: Readonly<Record<string, string | undefined>>;
  /**
   * How a folder is held. `descriptor` (Linux): what was checked is open, and that is
   * used. `identity`: compared before and after, which leaves a window: see
   * `holdByIdentity`. Default: the first where `/proc` allows it.
   */
  hold?: "descriptor" | "identity";
}
