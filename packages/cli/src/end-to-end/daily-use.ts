/** Something that people do with `gyre` every day, and the test that does it. */
export interface DailyUse {
  /** In the words of a user. */
  readonly feature: string;
  /** The test, from the folder of the package, and its name or the beginning of it. */
  readonly file: string;
  readonly test: string;
  /** Why there is no terminal in it. */
  readonly isProcess?: string | undefined;
}

const APP = "src/modes/tui/app";
const HERE = "src/end-to-end";
const WORDS = `${APP}/familiar-words.e2e.test.ts`;
const OPTIONS = `${HERE}/familiar-options.test.ts`;
const SAME = "it is read before the mode is chosen";
const TERMINAL = `${HERE}/daily-terminal.test.ts`;
const EFFECTS = `${APP}/effects.e2e.test.ts`;
const LOOKS = `${APP}/looks.test.ts`;
const ATTACH = "src/modes/attach/attach.e2e.test.ts";
const OWN = `${HERE}/daily-use.test.ts`;

function use(feature: string, file: string, test: string, isProcess?: string): DailyUse {
  return { feature, file, test, isProcess };
}

/**
 * What the program promises to people who use it all day. Each line is driven against a service that plays a
 * script, in a pseudo-terminal with keys but for those that say why not; a test of this table looks whether each test is
 * there, and has a terminal.
 */
export const DAILY_USE: readonly DailyUse[] = [
  // It asks only when it matters.
  use("commands run unasked in the sandbox, the network is asked about", OWN, "runs commands"),
  use(
    "a command is asked about where there is no sandbox",
    `${APP}/terminal.test.ts`,
    "asks before it runs a command",
  ),
  use("what a command did is kept", EFFECTS, "has run in a layer: the question shows what it did"),
  use("what a command did is discarded", EFFECTS, "leaves nothing when it is discarded"),
  use("parts of what a command did are kept", EFFECTS, "is kept in part: each effect has a box"),
  use("what was kept is undone", EFFECTS, "is undone by /kept, with what it deleted"),
  use("what is destroyed is in red, without an answer for always", OWN, "what is destroyed"),
  use("a name that a page or a dependency brought is asked about", OWN, "a name that a text"),
  use("an approval lasts for the session, the project or everywhere", OWN, "an approval lasts"),
  use("an approval is taken back", OWN, "an approval lasts"),
  use("commands that only show are not asked about", TERMINAL, "commands that only show"),
  use("a read outside is asked about", TERMINAL, "a read outside is asked about"),
  use("all edits of the session", TERMINAL, "all edits of the session are allowed"),
  use(
    "what is destroyed is red, and never always",
    TERMINAL,
    "what a command destroys is shown in red",
  ),
  use(
    "a name from a text of others is asked about",
    TERMINAL,
    "an address that a dependency brought",
  ),
  use("a folder is added at the start and later", OWN, "folders are added"),
  use("a web page is asked about once a server", OWN, "fetch asks once"),
  // It does more by itself.
  use(
    "sub-agents are a tree with their cost",
    `${APP}/sub-agents.test.ts`,
    "shows a sub-agent as a tree",
  ),
  use("sub-agents are described in files", `${APP}/sub-agents.test.ts`, "has the agents of files"),
  use(
    "tools are turned on and off",
    `${APP}/sub-agents.test.ts`,
    "turns tools on and off with /tools",
  ),
  use(
    "a plan is shown, approved and carried out",
    `${APP}/plan.test.ts`,
    "looks around, shows a plan",
  ),
  use("a plan is edited", `${APP}/plan.test.ts`, "carries out the plan as the user has edited it"),
  use(
    "a job has a sign, a list and a notice",
    `${APP}/jobs.test.ts`,
    "has a sign in the footer for a job",
  ),
  use(
    "a running command goes to the background",
    `${APP}/jobs.test.ts`,
    "moves a running command to the background",
  ),
  use("a program in a terminal is used by the model", OWN, "a program runs in a terminal"),
  use("work happens in a worktree", TERMINAL, "--worktree works in a worktree"),
  use(
    "rivals go on in parallel, and one is adopted",
    `${APP}/race.e2e.test.ts`,
    "shows rivals with other models live",
  ),
  use("branches carry files", `${APP}/places.e2e.test.ts`, "brings the files along"),
  use("files are rewound", `${APP}/terminal.test.ts`, "rewinds files to where they were"),
  use("a session is played again and compared", TERMINAL, "gyre replay compares it"),
  use("the change that broke it is found", TERMINAL, "gyre bisect finds the change"),
  use("errors of a language server come after an edit", OWN, "errors of a language server"),
  // Commands of the conversation.
  use("/init and /review ask for what they say", WORDS, "ask for what they say"),
  use("/diff shows what is not committed", WORDS, "/diff shows what is not committed"),
  use(
    "/retry asks again",
    `${APP}/faults.e2e.test.ts`,
    "R22: by a failure is over: /retry asks again",
  ),
  use(
    "/btw asks beside the conversation",
    `${APP}/plan.test.ts`,
    "answers a side question while it works",
  ),
  use("a prompt is put aside", `${APP}/input.e2e.test.ts`, "puts the prompt aside"),
  use("a picture is pasted", `${APP}/input.e2e.test.ts`, "pastes the picture of the clipboard"),
  // What people type works.
  use("/exit", WORDS, "/exit leaves"),
  use("/clear", WORDS, "/clear begins a new session"),
  use("/models, /undo, /usage", WORDS, "/models lists models"),
  use("/status, /config", WORDS, "/status and /config show what holds"),
  use("/login", WORDS, "/login asks for a key"),
  use("a mistyped command", WORDS, "one that is mistyped"),
  use("a command that was not taken is replaced", WORDS, "one that was not taken is replaced"),
  use("questions are answered by digits", WORDS, "is answered by a digit"),
  use(
    "commands in files run commands and name files",
    WORDS,
    "runs what it names after a question",
  ),
  use(
    "-r lists the sessions",
    WORDS,
    "lists the sessions, and goes on with the one that is chosen",
  ),
  use(
    "options, SYSTEM.md, AGENTS.md, @file, sonnet:high, --api-key",
    TERMINAL,
    "%s is used in a terminal as well",
  ),
  use("keys are set", `${APP}/keys.e2e.test.ts`, "a key does what it is set for"),
  use("the status line is set", `${APP}/status-line.e2e.test.ts`, "a template is filled in"),
  use("the prompt is edited as in vim", `${APP}/vim.e2e.test.ts`, "a prompt is edited as in vim"),
  use(
    "Ctrl+Z and fg",
    `${APP}/job-control.e2e.test.ts`,
    "Ctrl+Z: stops it, and the screen is drawn again",
  ),
  use(
    "rules of .claude/settings.json hold",
    WORDS,
    "are asked about at the start where they allow",
  ),
  use("/memory, /agents, /skills, /hooks, /todos, /tasks", WORDS, "show what there is"),
  use("/plan, /theme, /effort, /config KEY VALUE", WORDS, "change what there is"),
  use("/doctor, /ide", WORDS, "/doctor reports"),
  use("# adds a line to CLAUDE.md", WORDS, "# adds a line to the file"),
  use("a command is shown as it was typed", WORDS, "is shown as it was typed"),
  use("-c goes on with what was said in a terminal", WORDS, "and -c go on with what was said"),
  use("/compact", WORDS, "/compact says once what it did"),
  use("options of Claude Code", OPTIONS, "are taken where there is an equal", SAME),
  use('gyre -p "/command"', OPTIONS, "is the prompt that its file has", "it is for scripts"),
  // Looks.
  use(
    "reads are grouped, headings, ends and the mode are seen",
    TERMINAL,
    "reads and searches are one row",
  ),
  use("thoughts are shown", TERMINAL, "a short thought is shown"),
  use("counts are true", LOOKS, "counts the lines of a long output"),
  use("a question says what a command is for", LOOKS, "says what a command is for"),
  use("title and progress", LOOKS, "has the title of the terminal say what it does"),
  use("models have windows and prices", LOOKS, "lists models with their window and prices"),
  use(
    "branch and jobs are in the footer",
    `${APP}/jobs.test.ts`,
    "shows the branch of the repository",
  ),
  use("emoji are whole", `${APP}/emoji.e2e.test.ts`, "is drawn whole where the terminal takes it"),
  use(
    "links lead somewhere",
    `${APP}/links.e2e.test.ts`,
    "files and addresses lead where they say",
  ),
  use(
    "a notification when it ends or asks",
    `${APP}/notifications.test.ts`,
    "comes when a prompt ends",
  ),
  use("light, dark and own themes", `${APP}/themes.test.ts`, "is light where the terminal says"),
  use("a session elsewhere, on many screens", ATTACH, "show the same: what is asked in one"),
  // The prompt.
  use("the model knows date, mode, sandbox and git", TERMINAL, "the facts of the start"),
  use(
    "the model reads the pages about gyre",
    `${HERE}/own-pages.test.ts`,
    "pages of the guide are read",
    "it is about what a model may read, which no view shows",
  ),
  use(
    "prompt and tools are small",
    `${HERE}/prompt-size.test.ts`,
    "the system prompt and all tools",
    "it is about what is sent",
  ),
];
