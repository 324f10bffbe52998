import type { GuardedTool } from "../../contract/access.ts";
import { defineEntryTool } from "../../contract/define-tool.ts";
import type { ToolEntry } from "../../contract/entry.ts";
import { counted, textResult } from "../../text/text.ts";

export const MAX_TODOS = 100;
export const MAX_TODO_CHARS = 500;

export type TodoStatus = "pending" | "in_progress" | "done";

/** One thing to do, in an agent's own words. */
export interface Todo {
  readonly content: string;
  readonly status: TodoStatus;
}

const MARKS: Readonly<Record<TodoStatus, string>> = {
  pending: "[ ]",
  in_progress: "[>]",
  done: "[x]",
};

/** What an agent has set out to do. One for an agent; a UI listens. */
export class TodoList {
  #items: readonly Todo[] = [];
  readonly #listeners = new Set<(items: readonly Todo[]) => void>();

  get items(): readonly Todo[] {
    return this.#items;
  }

  /** Puts these in the place of all that were there, and notifies the listeners. */
  replace(items: readonly Todo[]): void {
    this.#items = items.map(({ content, status }) => ({ content, status }));
    for (const listener of [...this.#listeners]) listener(this.#items);
  }

  /** Calls `listener` with the whole list at each change; the answer takes it back. */
  onChange(listener: (items: readonly Todo[]) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** One line for each, with its mark; "" for none. */
  toString(): string {
    return this.#items.map((item) => `${MARKS[item.status]} ${item.content}`).join("\n");
  }
}

const parameters = {
  type: "object",
  properties: {
    todos: {
      type: "array",
      maxItems: MAX_TODOS,
      description: "The whole list, in order.",
      items: {
        type: "object",
        properties: {
          content: { type: "string", minLength: 1, maxLength: MAX_TODO_CHARS },
          status: { type: "string", enum: ["pending", "in_progress", "done"] },
        },
        required: ["content", "status"],
        additionalProperties: false,
      },
    },
  },
  required: ["todos"],
  additionalProperties: false,
} as const;

export const todoEntry: ToolEntry<{ todos: TodoList }> = {
  name: "todo",
  aliases: ["TodoWrite"],
  presentation: {
    kind: "think",
    verb: "Update the plan:",
    title: ({ todos }) => (Array.isArray(todos) ? counted(todos.length, "step") : ""),
  },
  isPersonal: true,
  make: ({ todos }) => Promise.resolve(todoTool(todos)),
};

/** A tool by which an agent keeps `list`: each call replaces all of it. */
export function todoTool(list: TodoList = new TodoList()): GuardedTool {
  return defineEntryTool(todoEntry, {
    label: "Todo",
    description:
      "Keeps a list of the steps of a longer task. Give the whole list each time; it replaces the one before. Keep one step in_progress, and mark a step done when it is done.",
    parameters,
    idempotent: true,
    execute({ todos }) {
      list.replace(todos);
      const done = todos.filter((todo) => todo.status === "done").length;
      const text = todos.length > 0 ? list.toString() : "The list is empty.";
      return textResult(text, { done, total: todos.length });
    },
    access(args) {
      const count = Array.isArray(args["todos"]) ? args["todos"].length : 0;
      return { kind: "none", targets: [], summary: `Sets the list of ${counted(count, "step")}.` };
    },
  });
}
