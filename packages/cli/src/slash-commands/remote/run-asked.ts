import {
  type CommandPart,
  type CommandResult,
  type Question,
  runCommand,
} from "@gyre/coding/internal/conversation/command";
import type { SlashCommand, SlashContext } from "../command-context.ts";

/** The answer to a question of a command: a choice by its place and label, or that the question was left. */
export type GivenAnswer = { choice: number; label: string } | null;

/** A question as it travels: choices have no values there. */
export interface AskedQuestion extends Omit<Question<number>, "choices"> {
  choices: readonly Omit<Question<number>["choices"][number], "value">[];
}

/** What became of a command that is run at another place than it is typed at. */
export interface AskedOutcome {
  /** What it has shown so far. */
  show: readonly CommandPart[];
  /** It needs an answer to go on. */
  ask?: AskedQuestion;
  result?: CommandResult;
}

/** Ends a command at a question that has no answer yet. */
class QuestionRaised extends Error {
  readonly question: AskedQuestion;

  constructor(question: AskedQuestion) {
    super("The command asks.");
    this.question = question;
  }
}

/**
 * Runs a command whose user is elsewhere: with the answers that were given so far, up to the first question that has
 * none. It is run again from its beginning with one answer more. Commands change nothing before their last question.
 * Throws its error, and one where a list of choices is another by now.
 */
export async function runAsked(
  command: SlashCommand,
  rest: string,
  given: Omit<SlashContext, "choose" | "show">,
  answers: readonly GivenAnswer[],
): Promise<AskedOutcome> {
  const shown: CommandPart[] = [];
  const left = [...answers];
  const context: SlashContext = {
    ...given,
    show: (...parts) => void shown.push(...parts),
    choose: async (question) => {
      const answer = left.shift();
      if (answer === undefined) throw new QuestionRaised(withoutValues(question));
      if (answer === null) return undefined;
      const choice = question.choices[answer.choice];
      if (choice?.label !== answer.label) {
        throw new Error(`The list has changed since: /${command.name} shows it again.`);
      }
      return choice.value;
    },
  };
  try {
    const result = await runCommand(command, rest, context);
    if (result === "stopped") throw new Error("Stopped.");
    const { show = [], ...more } = result;
    return { show: [...shown, ...show], result: more };
  } catch (error) {
    if (error instanceof QuestionRaised) return { show: shown, ask: error.question };
    throw error;
  }
}

function withoutValues<T>({ choices, ...question }: Question<T>): AskedQuestion {
  return { ...question, choices: choices.map(({ value: _value, ...choice }) => choice) };
}
