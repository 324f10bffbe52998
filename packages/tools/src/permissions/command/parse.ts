/** Brackets, quotes and compound commands inside of each other, at most. */
const MAX_NESTING = 50;

/** Twice of what a program takes as one argument on Linux: a longer one is not even looked at. */
const MAX_PARSED_CHARS = 256 * 1024;

/** One word of a command, as far as it is known without running anything. */
export interface Word {
  /** What the program gets where `literal`, else the word as it was written. */
  text: string;
  /** Nothing in it is expanded by the shell. */
  literal: boolean;
  /** What it surely begins with; all of it where `literal`. */
  prefix: string;
}

/** A file that the shell itself opens for a command. */
export interface Redirect {
  kind: "read" | "write" | "input";
  /** The file; with `input` the text that is fed in, or the mark at its end. */
  target: Word;
  /** What is in the file stays there. */
  appends?: true;
  /** The text of a here-document in which nothing is expanded. */
  body?: string;
  /** The text of a here-document as it was written. */
  written?: string;
}

/** What stands around commands: they share one object. */
export interface Group {
  /** A shell of its own; what runs once, often or never; what runs when it is called. */
  kind: "subshell" | "branch" | "function";
  /** Of a function. */
  name?: string;
  /** Another process, which has the variables that are exported alone. */
  isProcess?: true;
  /** As for a command. */
  joint: string;
}

/** What is left of a command line when all of its structure is taken apart. */
export interface SimpleCommand {
  /** `NAME=value` before the command, or on its own. */
  assignments: Word[];
  /** Program and arguments; empty for redirections or assignments that stand alone. */
  words: Word[];
  redirects: Redirect[];
  /** From outside to inside. */
  groups: readonly Group[];
  /** What stands between it and the command before, "&&" say; empty for the end of a line, and for the first. */
  joint: string;
  /** What it prints goes to the next one. */
  pipes: boolean;
}

/** A word that a loop goes through. */
export interface ListedWord extends Word {
  /** The variable of the loop. */
  name: string;
  /** How many commands stand before it. */
  at: number;
  /** As of a command. */
  groups: readonly Group[];
}

export interface CommandLine {
  /** Every simple command, in whatever structure, also inside of substitutions. */
  commands: SimpleCommand[];
  /** What loops go through. */
  listed: ListedWord[];
  /** Why these may not be all that is run, or not as they stand here. */
  unclear?: string;
  /** The text behind what could not be read: nothing is known of it. */
  unread?: string;
  /** Characters looked at: grows as the length does. */
  steps: number;
}

/**
 * Takes a bash command line apart. Never throws: where it is unclear what the shell
 * would do, `unclear` says why, and `commands` has what was found up to there. It may
 * call clear what bash refuses to run, never the other way round.
 */
export function parseCommandLine(text: string): CommandLine {
  const found: Found = { commands: [], listed: [], steps: 0 };
  if (text.length > MAX_PARSED_CHARS) {
    return { ...found, unclear: `It has more than ${MAX_PARSED_CHARS} characters.` };
  }
  try {
    new Parser(text, found, 0).script();
  } catch (error) {
    if (!(error instanceof Unparsable)) throw error;
    found.unclear ??= error.message;
    found.unread = text;
  }
  return found;
}

class Unparsable extends Error {}

/** Shared by a parser and those that it starts for text inside of its text. */
interface Found {
  commands: SimpleCommand[];
  listed: ListedWord[];
  unclear?: string;
  unread?: string;
  steps: number;
}

interface WrittenWord {
  word: Word;
  /** How much of its beginning was written without quotes and expansions. */
  plain: number;
  /** Some of it was quoted, be it nothing at all: `EOF""`. */
  hasQuote: boolean;
}

interface HereDocument {
  redirect: Redirect;
  end: string;
  /** The mark was quoted: the text is taken as it is. */
  quoted: boolean;
  stripTabs: boolean;
}

/** Words that close or go on with a compound command, where a command could begin. */
const CLOSERS = new Set(["then", "elif", "else", "fi", "do", "done", "esac", "}"]);
const OPENERS = new Set("if while until for select case function { ! coproc [[ in".split(" "));

/** Those whose commands may not run, or more than once. */
const GROUPS = new Set("if while until for select case {".split(" "));

const KEYWORD = /(?:[a-z]+|\[\[|[!{}])(?=[ \t\n;&|()<>]|$)/y;
/** `time` before a compound command. Before others it may be a program, and is taken for one. */
const TIMED = /time(?:[ \t]+-p)?[ \t]+(?=\(|\[\[ |(?:\{|!|if|for|while|until|case|select)[ \t\n])/y;
const TIMED_NOT = /time(?:[ \t]+-p)?[ \t]+!/y;
const TIMES = new Set(["time", "-p", "--"]);
const PLAIN = /[\w\-./:,+%@^=]+/y;
const NAME = /[A-Za-z_]\w*/y;
const ASSIGNMENT = /^[A-Za-z_]\w*\+?=/;
const SUBSCRIPT = /[A-Za-z_]\w*\[(?!\w+\]\w)/y;
const DECLARATIONS = new Set("alias declare export local readonly typeset".split(" "));
/** A line that goes on inside of `$(`, `<<` and the like: the shell joins it before it looks. */
const SPLIT_SIGN = /[$<>(]\\\n|[^\s\\](?:\\\n)+[<>(]/;
const ARRAY_ASSIGNMENT = /^[A-Za-z_]\w*\+?=$/;
const IN_BRACES = /^\{.*\}$/s;
const HANDLE_VARIABLE = /^\{([A-Za-z_]\w*)\}$/;
const REDIRECT = /&>>?|<<<|<<-?|<>|<&|>>|>&|>\||[<>]/y;
/** `${...}` that only reads a variable. Others assign, run or calculate. */
const PLAIN_EXPANSION = /^(?:#?\w+|[@*#?$!-]|\w+(?::?[-+?]|%|#|\/|\^|,)[^]*)$/;
/** Arithmetic of numbers alone. On variables it may run what they hold. */
const PLAIN_ARITHMETIC = /^[\d\s+\-*/%()<>=!&|^~?:,]*$/;
/** Variables of loops and redirections that no program takes for a setting. */
const HARMLESS_NAME = /^(?!npm_|[a-z_]*proxy$)[a-z_][a-z0-9_]*$/;
const ARITHMETIC_TESTS = new Set(["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v"]);

class Parser {
  readonly #text: string;
  readonly #found: Found;
  #depth: number;
  #at = 0;
  /** Here-documents whose text begins on the next line. */
  #pending: HereDocument[] = [];
  /** The command that begins here gets the output of another one, or may do so. */
  #isPiped = false;
  #substitutions = 0;
  /** A here-document has ended in the substitution that is open. */
  #isBehindDocument = false;
  /** Substitutions that are open while a here-document around them waits for its text. */
  #waitingOutside = 0;
  #groups: readonly Group[];
  /** What stands before the command that begins here. */
  #joint = "";

  constructor(text: string, found: Found, depth: number, groups: readonly Group[] = []) {
    this.#text = text;
    this.#groups = groups;
    this.#found = found;
    this.#depth = depth;
    if (depth > MAX_NESTING) throw new Unparsable("It is nested too deeply.");
    if (text.includes("\0")) throw new Unparsable("It has a NUL character.");
  }

  script(): void {
    if (SPLIT_SIGN.test(this.#text)) this.#doubt("A line ends in the middle of a sign.");
    const closer = this.#list();
    if (closer !== "") throw new Unparsable(`There is an unexpected "${closer}".`);
  }

  /** Commands up to something that closes a list, which is left where it is. */
  #list(): string {
    for (;;) {
      this.#skipSeparators();
      const rest = this.#peek();
      if (rest === "" || rest === ")") return rest;
      if (rest === ";") return ";;";
      const keyword = this.#keyword();
      if (CLOSERS.has(keyword)) return keyword;
      this.#command(keyword);
    }
  }

  /** Commands up to one of these words, which is taken. */
  #listUntil(...closers: string[]): string {
    const closer = this.#list();
    if (!closers.includes(closer)) {
      throw new Unparsable(`A "${closers.join('" or "')}" is missing.`);
    }
    this.#at += closer.length;
    return closer;
  }

  #command(keyword: string): void {
    this.#nested(() => {
      // Bash rewrites what is in a substitution before it runs it and may lose the next ";".
      if (this.#isBehindDocument) this.#doubt("A command follows a here-document in it.");
      if (this.#looksAt(TIMED_NOT)) this.#doubt('It is unclear what "time !" is here.');
      if (this.#match(TIMED) !== "") {
        // There it is a program, and what follows are its arguments.
        if (this.#isPiped) this.#doubt('It is unclear what "time" is behind a pipe.');
        return;
      }
      if (this.#peek() === "(") this.#parenthesis();
      else if (GROUPS.has(keyword)) this.#inGroup("branch", () => this.#compound(keyword));
      else if (OPENERS.has(keyword)) this.#compound(keyword);
      else this.#simple();
    });
  }

  #parenthesis(): void {
    this.#at++;
    if (this.#peek() === "(") {
      this.#at++;
      this.#arithmetic();
    } else {
      this.#inGroup("subshell", () => this.#listUntil(")"));
    }
  }

  #inGroup(kind: Group["kind"], inner: () => void, name?: string): void {
    const around = this.#groups;
    const joint = this.#joint;
    this.#groups = [...around, { kind, joint, ...(name !== undefined && { name }) }];
    this.#joint = "";
    inner();
    this.#groups = around;
    this.#joint = "";
  }

  #compound(keyword: string): void {
    this.#at += keyword.length;
    switch (keyword) {
      case "{":
        this.#listUntil("}");
        return;
      case "if": {
        this.#listUntil("then");
        for (;;) {
          const next = this.#listUntil("elif", "else", "fi");
          if (next === "fi") return;
          if (next === "elif") this.#listUntil("then");
        }
      }
      case "while":
      case "until":
        this.#listUntil("do");
        this.#listUntil("done");
        return;
      case "for":
      case "select":
        return this.#for();
      case "case":
        return this.#case();
      case "function":
        this.#skipBlanks();
        return this.#function(this.#word().text);
      case "[[":
        return this.#condition();
      case "!":
        return;
      default:
        this.#doubt(`"${keyword}" is not looked into.`);
    }
  }

  #for(): void {
    this.#skipBlanks();
    if (this.#text.startsWith("((", this.#at)) {
      this.#at += 2;
      this.#arithmetic();
    } else {
      const variable = this.#match(NAME);
      if (!HARMLESS_NAME.test(variable)) {
        this.#doubt(`The loop sets "${variable}", which may be a setting of a program.`);
      }
      this.#skipNewlines();
      if (this.#keyword() === "in") {
        this.#at += 2;
        this.#skipBlanks();
        while (!";\n".includes(this.#peek())) {
          const at = this.#found.commands.length;
          const word = this.#word();
          this.#found.listed.push({ ...word, name: variable, at, groups: this.#groups });
          this.#skipBlanks();
        }
      }
    }
    this.#skipSeparators();
    const opener = this.#keyword();
    if (opener !== "do" && opener !== "{") throw new Unparsable('A "do" is missing.');
    this.#at += opener.length;
    this.#listUntil(opener === "do" ? "done" : "}");
  }

  #case(): void {
    this.#skipBlanks();
    this.#word();
    this.#skipNewlines();
    if (this.#keyword() !== "in") throw new Unparsable('An "in" is missing.');
    this.#at += 2;
    for (;;) {
      this.#skipNewlines();
      if (this.#keyword() === "esac") break;
      if (this.#peek() === "(") this.#at++;
      for (;;) {
        this.#skipBlanks();
        this.#word();
        this.#skipBlanks();
        if (this.#peek() !== "|") break;
        this.#at++;
      }
      if (this.#peek() !== ")") throw new Unparsable('A ")" is missing.');
      this.#at++;
      const closer = this.#list();
      if (closer === "esac") break;
      if (closer !== ";;") throw new Unparsable('An "esac" is missing.');
      while (this.#peek() !== "" && ";&".includes(this.#peek())) this.#at++;
    }
    this.#at += "esac".length;
  }

  /** From behind the name on. The body counts as run: it is there to be called. */
  #function(name: string): void {
    this.#doubt("It defines a function, which may stand for another command.");
    this.#skipBlanks();
    if (this.#peek() === "(") {
      this.#at++;
      this.#skipBlanks();
      if (this.#peek() !== ")") throw new Unparsable('There is an unexpected "(".');
      this.#at++;
    }
    this.#skipNewlines();
    this.#inGroup("function", () => this.#command(this.#keyword()), name);
  }

  #condition(): void {
    const words: Word[] = [{ text: "[[", literal: true, prefix: "[[" }];
    for (;;) {
      while (/[ \t\n()<>&|]/.test(this.#peek()) && !this.#atSubstitution()) {
        if (this.#peek() === "\n") this.#newline();
        else this.#step();
      }
      if (this.#peek() === "#")
        throw new Unparsable("A comment and a pattern look the same in it.");
      const word = this.#word();
      if (word.literal && word.text === "]]") break;
      words.push(word);
    }
    const calculates = words.some(({ text }) => ARITHMETIC_TESTS.has(text));
    const isPlain = ({ text, literal }: Word): boolean =>
      literal && /^(-?\d+|-[a-z]+|\[\[)$/.test(text);
    if (calculates && !words.every(isPlain)) this.#doubt("It calculates with variables.");
    this.#found.commands.push({ assignments: [], words, redirects: [], ...this.#place() });
  }

  /** Where a command stands that ends here. */
  #place(joint: string = this.#joint): Pick<SimpleCommand, "groups" | "joint" | "pipes"> {
    return { groups: this.#groups, joint, pipes: this.#looksAt(/\|(?!\|)/y) };
  }

  #simple(): void {
    const command: Omit<SimpleCommand, "groups" | "joint" | "pipes"> = {
      assignments: [],
      words: [],
      redirects: [],
    };
    // What is inside of its words has joints of its own.
    const joint = this.#joint;
    let declares = false;
    // Behind "time", which is a keyword itself, a command begins as well.
    let begins = true;
    for (;;) {
      this.#skipBlanks();
      if (this.#redirect(command.redirects)) continue;
      const next = this.#peek();
      if (next === "" || "\n;&|)".includes(next)) break;
      if (next === "(") {
        if (command.words.length !== 1) throw new Unparsable('There is an unexpected "(".');
        return this.#function(command.words[0]?.text ?? "");
      }
      // Up to its "]" nothing means what it means elsewhere, not even a blank or a comment.
      if ((declares || begins) && this.#looksAt(SUBSCRIPT)) {
        throw new Unparsable("It calculates the place in a list.");
      }
      const { word, plain, hasQuote } = this.#readWord();
      const isUnquoted = !hasQuote && plain === word.text.length;
      const assignment = command.words.length === 0 ? ASSIGNMENT.exec(word.prefix) : null;
      if (assignment && assignment[0].length <= plain) {
        command.assignments.push(word);
        continue;
      }
      if ((isUnquoted || !word.literal) && IN_BRACES.test(word.text) && this.#looksAt(/[<>]/y)) {
        // The redirection that follows puts its number into this variable.
        const name = HANDLE_VARIABLE.exec(word.text)?.[1];
        if (name !== undefined && !HARMLESS_NAME.test(name)) {
          this.#doubt(`It sets "${name}", which may be a setting of a program.`);
        }
        if (name !== undefined) continue;
        throw new Unparsable("It is unclear what is redirected.");
      }
      // A keyword in a disguise that the shell takes off: a line that goes on with "\".
      // Or one behind "time", which is a keyword itself.
      if (
        isUnquoted &&
        isKeyword(word.text) &&
        command.words.every(({ text }) => TIMES.has(text))
      ) {
        throw new Unparsable(`There is an unexpected "${word.text}".`);
      }
      const isTwice = command.words.at(-1)?.text === word.text && word.text !== "time";
      if (begins && (hasQuote || isTwice) && command.words.length > 0 && isPrelude(word.text)) {
        throw new Unparsable(`It is unclear what "${word.text}" is behind "time".`);
      }
      begins &&= TIMES.has(word.text);
      declares ||= DECLARATIONS.has(word.text);
      command.words.push(word);
    }
    // What stands behind a compound command may be nothing, or redirections alone.
    const { assignments, words, redirects } = command;
    if (assignments.length + words.length + redirects.length > 0)
      this.#found.commands.push({ ...command, ...this.#place(joint) });
  }

  /** A redirection, if there is one here. */
  #redirect(into: Redirect[]): boolean {
    if (!this.#looksAt(/&>|\d*[<>](?!\()/y)) return false;
    this.#match(/\d*/y);
    const operator = this.#match(REDIRECT);
    this.#skipBlanks();
    // Closes a handle. What follows is another word, even without a blank.
    if (operator.endsWith("&") && this.#match(/-/y) !== "") return true;
    if (operator === "<<" || operator === "<<-") {
      const start = this.#at;
      const { word, hasQuote } = this.#readWord();
      const redirect: Redirect = { kind: "input", target: word };
      if (!word.literal) throw new Unparsable("The mark of a here-document is expanded.");
      if (/\$(?:\\\n)*['"]/.test(this.#text.slice(start, this.#at))) {
        throw new Unparsable("Shells read the mark of the here-document differently.");
      }
      this.#pending.push({
        redirect,
        end: word.text,
        quoted: hasQuote,
        stripTabs: operator === "<<-",
      });
      into.push(redirect);
      return true;
    }
    const { word: target, hasQuote } = this.#readWord();
    if (operator.endsWith("&") && (hasQuote || !target.literal)) {
      // Bash expands it, and then once more as the name of a file.
      throw new Unparsable(`The shell may expand what follows "${operator}" twice.`);
    }
    const isHandle = operator.endsWith("&") && target.literal && /^\d+-?$/.test(target.text);
    if (isHandle) return true;
    if (operator === "<<<") into.push({ kind: "input", target });
    else {
      const isRead = operator.startsWith("<") && operator !== "<>";
      const appends = operator.endsWith(">>") || operator === "<>";
      into.push({ kind: isRead ? "read" : "write", target, ...(appends && { appends }) });
    }
    return true;
  }

  #word(): Word {
    return this.#readWord().word;
  }

  /** A word, and how it was written. */
  #readWord(): WrittenWord {
    const start = this.#at;
    const value = new Value();
    if (this.#peek() === "~") {
      this.#step();
      value.expand();
      value.add("~");
    }
    for (;;) {
      const run = this.#match(PLAIN);
      if (run !== "") value.add(run);
      const next = this.#peek();
      if (this.#atSubstitution()) {
        this.#at += 2;
        this.#substitution();
        value.expand();
      } else if (next === "(" && ARRAY_ASSIGNMENT.test(value.text)) {
        this.#nested(() => this.#array());
        value.expand();
      } else if (next === "" || " \t\n;&|()<>".includes(next)) {
        break;
      } else if (next === "\\") {
        this.#step();
        const escaped = this.#step();
        // Bash keeps it in a line alone, and drops it behind other lines.
        if (escaped === "") throw new Unparsable('It ends with a "\\".');
        if (escaped !== "\n") value.quote(escaped);
      } else if (next === "'") {
        value.quote(this.#singleQuoted());
      } else if (next === '"') {
        this.#at++;
        value.quote("");
        this.#doubleQuoted(value, '"');
      } else if (next === "$") {
        this.#dollar(value, false);
      } else if (next === "`") {
        this.#backquoted(false);
        value.expand();
      } else {
        this.#step();
        if (next === "*" || next === "?") value.expand();
        if (next === "~" && /[=:]$/.test(value.last)) value.expand();
        if (next === "[" || next === "{") value.open(next);
        if (next === "]" && value.hasBracket) value.expand();
        if (next === "}" && value.hasAlternatives) value.expand();
        value.add(next);
      }
    }
    if (this.#at === start) throw new Unparsable(`There is an unexpected "${this.#peek()}".`);
    const { text, prefix, plain, hasQuote } = value;
    if (prefix === undefined) {
      return { word: { text, literal: true, prefix: text }, plain, hasQuote };
    }
    const written = this.#text.slice(start, this.#at);
    return { word: { text: written, literal: false, prefix }, plain, hasQuote };
  }

  #array(): void {
    this.#at++;
    for (;;) {
      this.#skipNewlines();
      if (this.#peek() === ")") break;
      if (this.#peek() === "[") throw new Unparsable("It calculates places in a list.");
      this.#word();
    }
    this.#at++;
  }

  #singleQuoted(): string {
    const end = this.#text.indexOf("'", this.#at + 1);
    if (end < 0) throw new Unparsable("A quote is not closed.");
    const inner = this.#text.slice(this.#at + 1, end);
    this.#at = end + 1;
    this.#found.steps += inner.length;
    return inner;
  }

  /** Text in which only `$`, a backquote and some backslashes mean anything, and its end. */
  #doubleQuoted(value: Value, end: '"' | ""): void {
    for (;;) {
      value.quote(this.#match(/[^"\\$`]+/y));
      const next = this.#peek();
      if (next === end) break;
      if (next === "") throw new Unparsable("A quote is not closed.");
      if (next === "$") {
        this.#dollar(value, true);
      } else if (next === "`") {
        this.#backquoted(true);
        value.expand();
      } else if (this.#step() === "\\") {
        const escaped = this.#peek();
        if (escaped === "" || !'$`"\\\n'.includes(escaped)) value.quote("\\");
        else if (this.#step() !== "\n") value.quote(escaped);
      } else {
        value.quote(next);
      }
    }
    this.#at += end.length;
  }

  #dollar(value: Value, quoted: boolean): void {
    this.#step();
    const next = this.#peek();
    if (next === "(") {
      this.#at++;
      if (this.#peek() === "(") {
        this.#at++;
        this.#nested(() => this.#arithmetic());
      } else {
        this.#substitution();
      }
      value.expand();
    } else if (next === "{") {
      this.#at++;
      this.#nested(() => this.#parameter(quoted));
      value.expand();
    } else if (next === "[") {
      throw new Unparsable('It calculates in the old way, with "$[".');
    } else if (next === "'" && !quoted) {
      this.#ansiQuoted(value);
    } else if (next === '"' && !quoted) {
      value.expand();
    } else if (this.#match(/\w+|[@*#?$!-]/y) !== "") {
      value.expand();
    } else {
      value.add("$");
    }
  }

  /** `$(...)`, `<(...)` or `>(...)` from behind the bracket on. */
  #substitution(): void {
    this.#nested(() => {
      const outside = this.#pending;
      const wasBehind = this.#isBehindDocument;
      this.#pending = [];
      this.#isBehindDocument = false;
      this.#substitutions++;
      if (outside.length > 0) this.#waitingOutside++;
      this.#inGroup("subshell", () => this.#listUntil(")"));
      if (this.#pending.length > 0) throw new Unparsable("A here-document has no text.");
      if (outside.length > 0) this.#waitingOutside--;
      this.#pending = outside;
      this.#isBehindDocument = wasBehind;
      this.#substitutions--;
    });
  }

  #backquoted(quoted: boolean): void {
    this.#step();
    let inner = "";
    for (;;) {
      inner += this.#match(/[^`\\]+/y);
      const next = this.#step();
      if (next === "`") break;
      if (next === "") throw new Unparsable("A backquote is not closed.");
      const escaped = this.#step();
      // The shell joins lines before it looks at what is in backquotes, even in quotes in there.
      if (escaped === "\n") continue;
      // Whether the backslash counts depends on what is around: a here-document, an expansion.
      if (quoted && escaped === '"')
        throw new Unparsable("There is a quote in backquotes in quotes.");
      inner += "$`\\".includes(escaped) ? escaped : next + escaped;
    }
    const groups: readonly Group[] = [...this.#groups, { kind: "subshell", joint: "" }];
    new Parser(inner, this.#found, this.#depth + 1, groups).script();
  }

  /** `${...}` from behind the bracket on. */
  #parameter(quoted: boolean): void {
    const start = this.#at;
    const value = new Value();
    for (;;) {
      this.#match(/[^}\\'"$`]+/y);
      const next = this.#peek();
      if (next === "}") break;
      if (next === "") throw new Unparsable('A "}" is missing.');
      if (next === "\\") {
        this.#step();
        this.#step();
      } else if (next === "'") {
        // Whether it quotes depends on what is expanded.
        if (quoted) throw new Unparsable("There is a quote in an expansion in quotes.");
        this.#singleQuoted();
      } else if (next === '"') {
        this.#at++;
        this.#doubleQuoted(value, '"');
      } else if (next === "$") {
        // `${$}` and `${x$}`: the sign stands for itself before the end.
        this.#dollar(value, quoted);
      } else {
        this.#backquoted(quoted);
      }
    }
    const inner = this.#text.slice(start, this.#at);
    this.#at++;
    if (!PLAIN_EXPANSION.test(inner) || /[<>]\(/.test(inner)) {
      this.#doubt("It has an expansion that may assign, calculate or run something.");
    }
  }

  /** From behind `((` to behind `))`. */
  #arithmetic(): void {
    const start = this.#at;
    const value = new Value();
    let open = 0;
    for (;;) {
      this.#match(/[^()\\'"$`]+/y);
      const next = this.#peek();
      if (next === "$") {
        this.#dollar(value, true);
      } else if (next === "`") {
        this.#backquoted(true);
      } else if (next === "(") {
        open++;
        this.#step();
      } else if (next === ")" && open > 0) {
        open--;
        this.#step();
      } else if (next === ")" && this.#text[this.#at + 1] === ")") {
        break;
      } else {
        throw new Unparsable("It is unclear whether it calculates or runs something.");
      }
    }
    const inner = this.#text.slice(start, this.#at);
    this.#at += 2;
    if (!PLAIN_ARITHMETIC.test(inner)) this.#doubt("It calculates with variables.");
  }

  #ansiQuoted(value: Value): void {
    this.#step();
    value.quote("");
    for (;;) {
      value.quote(this.#match(/[^'\\]+/y));
      const next = this.#step();
      if (next === "'") return;
      if (next === "") throw new Unparsable("A quote is not closed.");
      const code = this.#match(/x[\da-fA-F]{1,2}|[0-7]{1,3}|u[\da-fA-F]{1,4}|U[\da-fA-F]{1,8}/y);
      if (code === "") {
        const escaped = this.#step();
        // A shell that does not know this kind of quote sees its end here.
        if (escaped === "'") throw new Unparsable("A quote ends in one shell and not in another.");
        const plain = ANSI_ESCAPES.get(escaped);
        if (plain === undefined) throw new Unparsable(`There is an unknown escape "\\${escaped}".`);
        value.quote(plain);
        continue;
      }
      const point = /^\d/.test(code)
        ? Number.parseInt(code, 8)
        : Number.parseInt(code.slice(1), 16);
      const isByte = !/^[uU]/.test(code);
      if (point === 0 || point > 0x10ffff || (isByte && point > 0x7f)) {
        throw new Unparsable(`The escape "\\${code}" does not stand for a character.`);
      }
      value.quote(String.fromCodePoint(point));
    }
  }

  /** Blanks, comments and lines that go on. */
  #skipBlanks(): void {
    for (;;) {
      this.#match(/[ \t]+/y);
      if (this.#text.startsWith("\\\n", this.#at)) this.#at += 2;
      else if (this.#peek() === "#") this.#match(/[^\n]*/y);
      else return;
    }
  }

  #skipNewlines(): void {
    this.#skipBlanks();
    while (this.#peek() === "\n") {
      this.#newline();
      this.#skipBlanks();
    }
  }

  /** All that may stand between two commands of a list. */
  #skipSeparators(): void {
    this.#isPiped = false;
    this.#joint = "";
    for (;;) {
      this.#skipNewlines();
      const next = this.#peek();
      const after = this.#text[this.#at + 1];
      const separates =
        next === "|" ||
        (next === "&" && after !== ">") ||
        (next === ";" && after !== ";" && after !== "&");
      if (!separates) return;
      this.#isPiped ||= next === "|";
      this.#joint += this.#step();
    }
  }

  /** The end of a line, and the here-documents that follow it. */
  #newline(): void {
    this.#step();
    if (this.#waitingOutside > 0) throw new Unparsable("A here-document begins inside of another.");
    const pending = this.#pending;
    this.#pending = [];
    for (const document of pending) this.#hereDocument(document);
  }

  #hereDocument({ redirect, end, quoted, stripTabs }: HereDocument): void {
    const lines: string[] = [];
    this.#isBehindDocument = this.#substitutions > 0;
    for (;;) {
      if (this.#at >= this.#text.length) throw new Unparsable(`The here-document has no "${end}".`);
      let line = "";
      let piece = this.#line();
      while (!quoted && goesOn(piece) && this.#at < this.#text.length) {
        line += piece.slice(0, -1);
        piece = this.#line();
      }
      line += piece;
      if (stripTabs) line = line.replace(/^\t+/, "");
      if (line === end) break;
      // For old scripts' sake bash takes the mark and a bracket on one line for the end.
      if (this.#substitutions > 0 && line.startsWith(end) && line.includes(")")) {
        throw new Unparsable("It is unclear where a here-document in it ends.");
      }
      lines.push(line);
    }
    const body = lines.join("\n");
    redirect.written = body;
    if (quoted || !/[$`\\]/.test(body)) redirect.body = body;
    else {
      const inner = new Parser(body, this.#found, this.#depth + 1, this.#groups);
      inner.#doubleQuoted(new Value(), "");
    }
  }

  #line(): string {
    const end = this.#text.indexOf("\n", this.#at);
    const line = this.#text.slice(this.#at, end < 0 ? undefined : end);
    this.#at += line.length + (end < 0 ? 0 : 1);
    this.#found.steps += line.length + 1;
    return line;
  }

  #atSubstitution(): boolean {
    const next = this.#peek();
    return (next === "<" || next === ">") && this.#text[this.#at + 1] === "(";
  }

  #keyword(): string {
    KEYWORD.lastIndex = this.#at;
    const [word = ""] = KEYWORD.exec(this.#text) ?? [];
    return isKeyword(word) ? word : "";
  }

  #peek(): string {
    return this.#text[this.#at] ?? "";
  }

  #step(): string {
    this.#found.steps++;
    const next = this.#peek();
    this.#at += next.length;
    return next;
  }

  #looksAt(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    return pattern.test(this.#text);
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const [found = ""] = pattern.exec(this.#text) ?? [];
    this.#at += found.length;
    this.#found.steps += found.length + 1;
    return found;
  }

  #nested(inner: () => void): void {
    if (++this.#depth > MAX_NESTING) throw new Unparsable("It is nested too deeply.");
    inner();
    this.#depth--;
  }

  #doubt(why: string): void {
    this.#found.unclear ??= why;
  }
}

/** A word while it is put together. */
class Value {
  text = "";
  /** What came before the first expansion, if there was one. */
  prefix: string | undefined;
  /** What was added last. */
  last = "";
  hasQuote = false;
  /** There is an open bracket: the next one that closes makes it a pattern. */
  hasBracket = false;
  /** Behind an open brace there may be a list or a sequence. */
  hasAlternatives = false;
  #hasBrace = false;
  /** Where the first bracket or brace was opened. */
  #opened: number | undefined;
  #quotedFrom: number | undefined;

  get plain(): number {
    return this.#quotedFrom ?? this.text.length;
  }

  add(text: string): void {
    // The two dots may come in two pieces, where a line goes on.
    this.hasAlternatives ||=
      this.#hasBrace && (/,|\.\./.test(text) || (text.startsWith(".") && this.text.endsWith(".")));
    this.text += text;
    this.last = text;
  }

  quote(text: string): void {
    this.hasQuote = true;
    this.#quotedFrom ??= this.text.length;
    this.text += text;
  }

  /** Before a bracket or a brace that may begin a pattern or a list of words. */
  open(sign: string): void {
    this.#opened ??= this.text.length;
    this.hasBracket ||= sign === "[";
    this.#hasBrace ||= sign === "{";
  }

  /**
   * From here on it is not known. Neither is what stands behind an open bracket or brace:
   * it may become other words before anything else is expanded.
   */
  expand(): void {
    this.prefix ??= this.text.slice(0, this.#opened);
    this.#quotedFrom ??= this.text.length;
  }
}

const ANSI_ESCAPES = new Map([
  ["n", "\n"],
  ["t", "\t"],
  ["r", "\r"],
  ["a", "\u0007"],
  ["b", "\b"],
  ["e", "\u001b"],
  ["E", "\u001b"],
  ["f", "\f"],
  ["v", "\v"],
  ["\\", "\\"],
  ['"', '"'],
  ["?", "?"],
]);

/** Whether a line ends with a backslash that is not itself behind one. */
function goesOn(line: string): boolean {
  let from = line.length;
  while (line[from - 1] === "\\") from--;
  return (line.length - from) % 2 === 1;
}

/** What "time" takes for its own unless it is quoted, and may stand before a command. */
function isPrelude(word: string): boolean {
  return TIMES.has(word) || ASSIGNMENT.test(word);
}

function isKeyword(word: string): boolean {
  return CLOSERS.has(word) || OPENERS.has(word);
}
