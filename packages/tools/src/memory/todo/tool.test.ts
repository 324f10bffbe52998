import { validateToolArguments } from "@gyre/ai";
import { describe, expect, it } from "vitest";
import { MAX_TODO_CHARS, MAX_TODOS, type Todo, TodoList, todoTool } from "./tool.ts";

const signal = new AbortController().signal;
const host = {
  call: (): Promise<never> => Promise.reject(new Error("Calls nothing.")),
};

async function call(list: TodoList, todos: readonly Todo[]): Promise<string> {
  const result = await todoTool(list).execute(
    { todos },
    { id: "1", signal, update: () => {}, host, messages: [] },
  );
  if (typeof result === "string") return result;
  return result.content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

describe("todo", () => {
  it("replaces the whole list and shows it", async () => {
    const list = new TodoList();
    await call(list, [{ content: "Old", status: "pending" }]);
    const shown = await call(list, [
      { content: "Read", status: "done" },
      { content: "Write", status: "in_progress" },
      { content: "Test", status: "pending" },
    ]);
    expect(shown).toBe("[x] Read\n[>] Write\n[ ] Test");
    expect(list.items.map((item) => item.content)).toEqual(["Read", "Write", "Test"]);
  });

  it("says so when nothing is left", async () => {
    expect(await call(new TodoList(), [])).toBe("The list is empty.");
  });

  it("notifies listeners of each change until they go", async () => {
    const list = new TodoList();
    const seen: number[] = [];
    const stop = list.onChange((items) => seen.push(items.length));
    await call(list, [{ content: "A", status: "pending" }]);
    await call(list, []);
    stop();
    await call(list, [{ content: "B", status: "pending" }]);
    expect(seen).toEqual([1, 0]);
  });

  it("keeps its own copy", () => {
    const list = new TodoList();
    const items: Todo[] = [{ content: "A", status: "pending" }];
    list.replace(items);
    items.push({ content: "B", status: "done" });
    expect(list.items).toHaveLength(1);
  });

  it("takes so many and so long, and no more", async () => {
    const tool = todoTool();
    const taken = async (todos: unknown): Promise<boolean> =>
      (await validateToolArguments(tool, { todos })).ok;
    const one = { content: "A", status: "pending" };
    expect(await taken(Array.from({ length: MAX_TODOS }, () => one))).toBe(true);
    expect(await taken(Array.from({ length: MAX_TODOS + 1 }, () => one))).toBe(false);
    expect(await taken([{ ...one, content: "x".repeat(MAX_TODO_CHARS + 1) }])).toBe(false);
    expect(await taken([{ ...one, status: "later" }])).toBe(false);
  });

  it("touches nothing", async () => {
    expect(await todoTool().access({ todos: [1, 2] })).toEqual({
      kind: "none",
      targets: [],
      summary: "Sets the list of 2 steps.",
    });
  });
});
