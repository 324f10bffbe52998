import { homedir } from "node:os";
import { relative } from "node:path";
import type { Values } from "../../../core/options.ts";
import { readFlags } from "../../../core/flag-settings.ts";
import { oneLine, shownText } from "@gyre/coding/internal/text/shown-text";
import {
  findClaudeFiles,
  findProjectFile,
  MCP_FILE,
  realPath,
} from "@gyre/coding/internal/settings/project-file";
import type { TrustOffer } from "@gyre/coding/internal/settings/trust-offer";
import type { Trust } from "@gyre/coding/internal/settings/trust";
import type { Environment } from "../../../core/io.ts";
import { type Block, cacheRows } from "../ui/block.ts";
import { type Row, row, span } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";
import type { Choice, PanelQuestion } from "../ui/ui.ts";
import { wrapRows, wrapText } from "../terminal/wrap.ts";
import type { FolderTrust } from "./banner.ts";

/**
 * `always`: from now on, until a file changes. `leave`: the folder's files are not used. `never`: nor is it asked again,
 * until a file changes.
 */
export type TrustAnswer = "always" | "once" | "never" | "leave";

export interface TrustPlace {
  env: Environment;
  /** The folder to work in, absolute. */
  cwd: string;
  /** The base of relative paths on the command line. Default: `cwd`. */
  start?: string;
  flags: Values;
  /** Why projects are not trusted, as a sentence; nothing where they may be. */
  refusal?: string | undefined;
  theme: Theme;
  columns: number;
  /** Default: the user's. */
  home?: string;
}

/** The files of a folder that are used only if they are trusted. */
export interface TrustFinding {
  /** The trust before the question. */
  trust: FolderTrust;
  /** Absent where there is nothing to decide. */
  question?: PanelQuestion<TrustAnswer>;
  /** What each file sets and starts, as `gyre trust --show` prints it: shown above the question. */
  listing?: Block;
  /** A sentence for each broken file that is not used. */
  notes: readonly string[];
  /** The files of the question. */
  offers: readonly TrustOffer[];
}

/** The effect of an answer. */
export interface TrustApplied {
  /** The same as `--trust`: for `readSetup`. */
  trustOnce: boolean;
  trust: FolderTrust;
  /** A sentence for each file that was stored. */
  messages: readonly string[];
}

/**
 * Finds the settings, with their plugins and hooks, and the MCP servers that the folder or the project around it would
 * load. Files are read and compared with the trusted ones; nothing of them is used or run.
 */
export async function askAboutTrust(place: TrustPlace): Promise<TrustFinding> {
  const { cwd, env, flags, home = homedir() } = place;
  const project = findProjectFile(cwd, home);
  const servers = findProjectFile(cwd, home, MCP_FILE);
  const nothing: TrustFinding = { trust: "nothing to trust", notes: [], offers: [] };
  const hasClaude = findClaudeFiles({ cwd, env, home }).some((file) => file.project !== undefined);
  if (!project && !servers && !hasClaude) return nothing;
  if (place.refusal !== undefined) {
    return { ...nothing, trust: "not trusted", notes: [place.refusal] };
  }
  const options = await readFlags(flags, {
    env,
    cwd,
    home,
    ...(place.start !== undefined && { start: place.start }),
  });
  const found: TrustOffer[] = [];
  if (project) {
    const { userSettings } = await import("@gyre/coding/internal/settings/load");
    const { settingsOffer } = await import("@gyre/coding/internal/settings/trust-offer");
    const { file } = await userSettings(options);
    // A file that is named on the command line needs no question.
    const isNamed = realPath(file.path) === realPath(project.path);
    if (!isNamed) found.push(await settingsOffer(project, options));
  }
  if (servers) found.push((await import("@gyre/coding/internal/mcp/trust")).mcpOffer(servers, cwd));
  if (hasClaude) {
    const { findClaudeOffer } = await import("@gyre/coding/internal/settings/claude-settings");
    const offer = await findClaudeOffer({ cwd, env, home });
    if (offer) found.push(offer);
  }
  if (found.length === 0) return nothing;
  if (flags.trust) return { ...nothing, trust: "trusted once" };
  return buildFinding(found, place, home);
}

async function buildFinding(
  found: readonly TrustOffer[],
  place: TrustPlace,
  home: string,
): Promise<TrustFinding> {
  const { readTrustFile, TrustFileError, trustFile, findTrust } =
    await import("@gyre/coding/internal/settings/trust");
  let folders: ReturnType<typeof readTrustFile> = new Map();
  let problem: string | undefined;
  try {
    folders = readTrustFile(trustFile(place.env, home));
  } catch (error) {
    if (!(error instanceof TrustFileError)) throw error;
    problem = `${shownText(error.message)}.`;
  }
  const open = found
    .map((offer) => ({ offer, was: findTrust(folders, offer.key, offer.files) }))
    .filter(({ was }) => was !== "trusted");
  if (open.length === 0) return { trust: "trusted", notes: [], offers: [] };
  const { isLeftOut } = await import("@gyre/coding/internal/settings/trust-offer");
  const notes = open.flatMap(({ offer }) => offer.refusal ?? []);
  const asked = open.filter(
    ({ offer }) => offer.refusal === undefined && !isLeftOut(folders, offer),
  );
  const offers = asked.map(({ offer }) => offer);
  const trust = "not trusted";
  if (offers.length === 0) return { trust, notes, offers };
  const choices = listChoices(offers.length, {
    isWritable: problem === undefined,
    isSound: notes.length === 0,
  });
  return {
    trust,
    notes,
    offers,
    listing: buildListing(offers, place.theme),
    question: {
      title: `Trust what ${oneLine(place.cwd)} brings along?`,
      about: describeFiles(asked, problem, place),
      choices,
      requiresConfirmation: true,
      // Enter without reading must not trust anything.
      start: choices.length - 1,
    },
  };
}

/** "This once" would use broken files too, so it is only offered without them. */
function listChoices(
  count: number,
  { isWritable, isSound }: { isWritable: boolean; isSound: boolean },
): Choice<TrustAnswer>[] {
  const them = count === 1 ? "it" : "them";
  const until = count === 1 ? "until it changes" : "until one of them changes";
  const choices: Choice<TrustAnswer>[] = [
    { value: "always", label: `Trust ${them} from now on`, detail: until, key: "y" },
    { value: "once", label: "This once", detail: "as with --trust", key: "o" },
    {
      value: "never",
      label: `Leave ${them} out, and do not ask again`,
      detail: until,
      key: "d",
    },
    { value: "leave", label: `Leave ${them} out`, detail: "and go on without", key: "n" },
  ];
  const isOffered = { always: isWritable, once: isSound, never: isWritable, leave: true };
  return choices.filter(({ value }) => isOffered[value]);
}

/** The files, each with its powers. */
function describeFiles(
  asked: readonly { offer: TrustOffer; was: Trust }[],
  problem: string | undefined,
  { columns, cwd, theme }: TrustPlace,
): Row[] {
  const from = realPath(cwd);
  const files = asked.flatMap(({ offer, was }) => {
    const name = oneLine(relative(from, offer.path));
    const spans = [
      span(name, theme.strong),
      ...(was === "changed" ? [span(" (changed)", theme.warning)] : []),
      span(`: ${offer.powers.join(", ")}`),
    ];
    return wrapRows(spans, columns, { rest: row("  ") });
  });
  return [...files, ...(problem === undefined ? [] : wrapText(problem, columns, theme.warning))];
}

function buildListing(offers: readonly TrustOffer[], theme: Theme): Block {
  const lines = offers.flatMap(({ notes, shown }) => [
    ...shownText(shown)
      .trimEnd()
      .split("\n")
      .map((text) => ({ text, style: "" })),
    ...notes.map((text) => ({ text: shownText(text), style: theme.warning })),
  ]);
  return cacheRows((columns) => lines.flatMap(({ text, style }) => wrapText(text, columns, style)));
}

/**
 * Applies an answer; without one nothing is trusted. Only the content that was shown becomes trusted: a file that has
 * changed since needs another answer. Throws `TrustFileError`.
 */
export async function applyTrust(
  answer: TrustAnswer | undefined,
  { offers, trust }: Pick<TrustFinding, "offers" | "trust">,
  { env, home = homedir() }: Pick<TrustPlace, "env" | "home">,
): Promise<TrustApplied> {
  if (answer === "once") return { trustOnce: true, trust: "trusted once", messages: [] };
  if (answer === "never") {
    const { storeLeftOut } = await import("@gyre/coding/internal/settings/trust-offer");
    for (const offer of offers) storeLeftOut(offer, env, home);
  }
  if (answer !== "always") return { trustOnce: trust === "trusted once", trust, messages: [] };
  const { storeTrust } = await import("@gyre/coding/internal/settings/trust-offer");
  const messages = offers.map((offer) => storeTrust(offer, env, home));
  return { trustOnce: false, trust: "trusted", messages };
}
