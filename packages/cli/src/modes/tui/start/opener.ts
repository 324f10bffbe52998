import type { Clock } from "@gyre/ai";
import type {
  Command,
  CommandContext,
  OpenRequest,
} from "@gyre/coding/internal/conversation/command";
import type { ConversationController } from "@gyre/coding/internal/conversation/controller";
import type { ShownAgent } from "@gyre/coding/internal/conversation/types";
import type { Setup } from "../../../core/setup.ts";
import type { ViewContext } from "../../../slash-commands/command-context.ts";
import type { Ui } from "../ui/ui.ts";
import type { FolderTrust } from "./banner.ts";

/** The conversation that an agent is opened for. */
export interface OpenedConversation {
  readonly controller: Pick<
    ConversationController<ShownAgent>,
    "answerServer" | "approve" | "reviewPlan" | "harness" | "isWorking" | "use"
  >;
  close(): Promise<void>;
}

/** What opens an agent gets of the program at the terminal. */
export interface OpenerPlace {
  ui: Ui;
  clock: Clock;
  view: "terminal" | "screen reader";
  conversation: () => OpenedConversation | undefined;
  /** Asks for a secret. Undefined where the user leaves the question. */
  askSecret: (title: string) => Promise<string | undefined>;
  /** Draws what is known of the agent again. */
  update: () => void;
  /** Shows the messages of the agent from here on, after a note. */
  replay: (harness: ShownAgent, note: string) => void;
}

/** What was opened in place of another session or place. */
export interface Reopened {
  harness?: ShownAgent | undefined;
  /** Of the session; absent where it is a new one. */
  id?: string | undefined;
  edit?: string;
}

export type CreateOpener = (place: OpenerPlace) => ConversationOpener;

/** Opens the agents of a program at a terminal, one after the other, wherever they run, and closes them. */
export interface ConversationOpener {
  readonly setup: Setup;
  readonly trust: FolderTrust;
  /** Of the agent that is open. */
  readonly commands: readonly Command[];
  /** What is said at the end of how to come back; undefined where there is nothing to come back to. */
  readonly resumeHint: string | undefined;
  /** What is said before that of what goes on without the program. */
  readonly leaveNote?: string | undefined;
  /** Asks what has to be known first. False: the user wants to leave. */
  prepare(): Promise<boolean>;
  /** The agent that the command line asks for. */
  openFirst(): Promise<ShownAgent | undefined>;
  /** Another session or place. Returns its agent, the id of a session that was there, and a text for the editor. */
  reopen(request: OpenRequest): Promise<Reopened>;
  /** What slash commands get. */
  createContext(own: ViewContext): CommandContext;
  /** Finds files of the folder for the editor; see `FileFinder`. */
  findFiles(query: string, signal: AbortSignal): Promise<readonly string[]>;
  /** Closes the agent and the session soon. `begun` is an opening that may still run. */
  closeSoon(begun: Promise<void>): Promise<void>;
}
